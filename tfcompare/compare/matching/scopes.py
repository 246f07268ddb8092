"""The scopes of names, and scopes that were renamed between two runs.

A compiled run has other ops in a layer than one that is not compiled, and some frameworks wrap all names of either.

The contents of two scopes, including the scopes of their gradients, are equal if paths and types agree apart from
numbers, or at least types and nesting. Siblings pair by three rules:

- Numbered siblings (`dense`, `dense_1`) pair with numbered siblings of another name in the order of their numbers,
  skipping added members.
- Two siblings pair if their contents are equal and no other sibling of either side has the same contents.
- Scopes pair in execution order, if that order is the same in all steps.

Siblings that also have equal shapes are paired first; siblings without any common shape do not pair, nor do those whose
digits mean something else (`conv1x1`, `conv3x3`). If there are several equally good pairings, nothing is paired.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from tfcompare.compare.matching.name_tree import (
    Node,
    NodePair,
    agreed_alignment,
    are_other_things,
    families,
    family,
    kinds_below,
    paths_below,
    shapes_below,
)
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.schema import IDLE

_Scopes = dict[str, str]
"""Maps scopes of the candidate to those of the baseline."""
MOST_ALIGNED = 10_000
"""Families are aligned only if the product of their sizes is at most this."""

UNTYPED = frozenset({"", "Unknown", "Dataset", IDLE})
"""Op types that do not identify what an op does: kernels without an op, and iterators, which have separate rules."""


def in_baseline_scopes(diff: pd.DataFrame) -> pd.Series:
    """The op name of each row of a diff of ops, with the innermost scope that is known in the baseline renamed to it.

    Only added rows change. A scope of the candidate is that of the baseline with which it shares most matched ops, else
    the only one of the same plain name (`plain_names`).
    """
    names = diff["op_name"].copy()
    for candidate in diff.loc[diff["status"] == "added", "candidate"].unique():
        rows = diff[diff["candidate"] == candidate]
        added = rows.loc[rows["status"] == "added", "op_name"]
        known = _by_name(rows.loc[rows["status"] != "added", "op_name"]), _by_matches(rows[rows["status"] == "matched"])
        names.loc[added.index] = [_in_known_scope(name, *known) for name in added]
    return names


def _by_matches(matched: pd.DataFrame) -> _Scopes:
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for ours, theirs in zip(matched["op_name"], matched["op_name_candidate"], strict=True):
        for scope, other in zip(_scopes(ours), _scopes(theirs), strict=False):
            votes[other][scope] += 1
            if scope.rpartition("/")[2] != other.rpartition("/")[2]:
                break
    return {theirs: max(sorted(found), key=found.__getitem__) for theirs, found in votes.items()}


def _by_name(names: pd.Series) -> _Scopes:
    """The baseline's scopes by plain name, if it is the only one of that name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for scope in {scope for name in names for scope in _scopes(name)}:
        found[_plain(scope)].add(scope)
    return {plain: next(iter(scopes)) for plain, scopes in found.items() if len(scopes) == 1}


def _in_known_scope(name: str, by_name: _Scopes, by_matches: _Scopes) -> str:
    for scope in _scopes(name):
        ours = by_matches.get(scope) or by_name.get(_plain(scope))
        if ours is not None:
            return ours + name[len(scope) :]
    return name


def _scopes(name: str) -> list[str]:
    """The scopes that contain the op, innermost first."""
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1)]


def _plain(scope: str) -> str:
    return plain_name(f"{scope}/").rstrip("/")


class Siblings(NamedTuple):
    """The unpaired children of a pair of scopes."""

    ours: list[Node]
    theirs: list[Node]


def pair_alike(parent: NodePair, ours: list[Node], theirs: list[Node]) -> list[NodePair]:
    """Pairs of siblings below `parent` with the same ops; the module docstring has the rules."""
    rest = Siblings(*([node for node in side if _is_distinctive(node, parent)] for side in (ours, theirs)))
    pairs: list[NodePair] = []
    for key_of in (_key_by_shapes, _key_by_paths, _key_by_nesting):
        for rule in (_pair_in_order, _pair_unique, _pair_as_they_run):
            numbers: dict[Hashable, int] = {}
            keys = {id(node): key_of(node, numbers) for side in rest for node in side}
            found = [pair for pair in rule(rest, keys) if not _contradict(*pair)]
            pairs += found
            rest = without(rest, found)
    return pairs


def _contradict(b: Node, c: Node) -> bool:
    """Whether digits in their names mean other things, or their known shapes have nothing in common."""
    if are_other_things(b.label, c.label):
        return True
    ours, theirs = shapes_below(b), shapes_below(c)
    return bool(ours and theirs) and not ours & theirs


def without(siblings: Siblings, pairs: list[NodePair]) -> Siblings:
    """The siblings that are in none of the pairs."""
    if not pairs:
        return siblings
    paired = {id(node) for pair in pairs for node in pair}
    return Siblings(*([node for node in side if id(node) not in paired] for side in siblings))


def _is_distinctive(node: Node, parent: NodePair) -> bool:
    """Whether the node's contents can identify it; at the top level, a single op cannot."""
    if not node.children and node.types <= UNTYPED:
        return False
    return bool(parent[0].label) or kinds_below(node).total() > 1


def _key_by_shapes(node: Node, numbers: dict[Hashable, int]) -> Hashable:
    shapes = shapes_below(node)
    return (_key_by_paths(node, numbers), frozenset(shapes.items())) if shapes else id(node)


def _key_by_paths(node: Node, _: dict[Hashable, int]) -> Hashable:
    gradient_scopes = Counter(frozenset(paths_below(echo).items()) for echo in node.gradient_scopes)
    return frozenset(paths_below(node).items()), frozenset(gradient_scopes.items())


def _key_by_nesting(node: Node, numbers: dict[Hashable, int]) -> Hashable:
    """A key that is equal for nodes whose ops agree in type and nesting, regardless of names."""

    def number(of: Node) -> int:
        below = tuple(sorted(number(child) for child in of.children.values()))
        return numbers.setdefault((of.kinds, below), len(numbers))

    return number(node), tuple(sorted(number(echo) for echo in node.gradient_scopes))


def _pair_in_order(siblings: Siblings, keys: dict[int, Hashable]) -> list[NodePair]:
    """Pairs families that share contents with exactly one family of the other side, in the order of their numbers."""
    ours, theirs = (list(families(side).values()) for side in siblings)
    related = [_relate(side, other, keys) for side, other in ((ours, theirs), (theirs, ours))]
    pairs: list[NodePair] = []
    for i, found in enumerate(related[0]):
        if len(found) == 1 and len(related[1][found[0]]) == 1:
            pairs += _align(ours[i], theirs[found[0]], keys)
    return pairs


def _pair_as_they_run(siblings: Siblings, keys: dict[int, Hashable]) -> list[NodePair]:
    """Pairs scopes in execution order, if each always ends before the next one."""
    placed = ([(node.place, node) for node in side if node.children and node.place] for side in siblings)
    ours, theirs = (sorted(side, key=lambda one: one[0]) for side in placed)
    is_ordered = all(a[0][1] < b[0][0] for side in (ours, theirs) for a, b in pairwise(side))
    return _align([node for _, node in ours], [node for _, node in theirs], keys) if is_ordered else []


def _relate(side: list[list[Node]], other: list[list[Node]], keys: dict[int, Hashable]) -> list[list[int]]:
    """For each family of a side, up to two families of the other side that have a member with the same contents."""
    holders: dict[Hashable, list[int]] = {}
    for j, members in enumerate(other):
        for key in {keys[id(node)] for node in members}:
            holders.setdefault(key, []).append(j)
    shared = [{keys[id(node)] for node in members} for members in side]
    return [sorted({j for key in found for j in holders.get(key, [])[:2]})[:2] for found in shared]


def _align(ours: list[Node], theirs: list[Node], keys: dict[int, Hashable]) -> list[NodePair]:
    if not 0 < len(ours) * len(theirs) <= MOST_ALIGNED or any(family(node.label)[2] for node in ours + theirs):
        return []
    gains = np.array([[keys[id(b)] == keys[id(c)] for c in theirs] for b in ours], dtype=np.int64)
    return [(ours[i], theirs[j]) for i, j in agreed_alignment(gains)]


def _pair_unique(siblings: Siblings, keys: dict[int, Hashable]) -> list[NodePair]:
    """Pairs siblings whose contents are unique on both sides."""
    groups: list[dict[Hashable, list[Node]]] = [{}, {}]
    for found, side in zip(groups, siblings, strict=True):
        for node in side:
            found.setdefault(keys[id(node)], []).append(node)
    ours, theirs = groups
    both = ((nodes, theirs.get(key, [])) for key, nodes in ours.items())
    return [(b[0], c[0]) for b, c in both if len(b) == len(c) == 1]
