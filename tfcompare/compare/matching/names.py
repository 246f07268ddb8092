"""Matches op names that TensorFlow or XLA renamed automatically.

A model built a second time in one process has `dense_2/MatMul` where the first one has `dense/MatMul`, and XLA numbers
its fusions independently for each program. Names are paired scope by scope, from the outermost inwards, so that one
renaming applies to everything below a scope. Scopes that only wrap a program are ignored (`plain_names.py`). Within a
pair of scopes, names that differ only by trailing numbers (`dense`, `dense_1`, `fusion.12`) form a family. The families
of the two sides are compared (`families.py`):

1. Both sides have the same names: equal names pair.
2. The sides have different numbers of members, numbered without gaps as TensorFlow does: members pair by shape, then in
   order if shapes and contents show which member was added or removed. Remaining pairs of equal names are doubtful. If
   there are gaps in the numbers, only equal names pair.
3. Both sides have the same number of members: they pair in the order of their numbers, if all names that occur on both
   sides then pair with themselves.
4. Otherwise, pairing in order would pair a name that occurs on both sides with a different one (`dense`, `dense_1` with
   `dense_1`, `dense_2`). This is accepted only if both sides are numbered without gaps and at least as many ops match
   as with equal names. If not, only equal names pair.

Hex numbers, addresses and function numbers inside a name have no order. Families with such members pair by equal names,
and then the last unpaired member if there is exactly one per side. Below `gradient_tape` and `gradients`, scopes named
after a forward op or layer are paired in the same way as that op or layer.

The rules are symmetric: swapping the sides yields the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tfcompare.compare.matching.families import pair_families
from tfcompare.compare.matching.name_tree import (
    GRADIENT_SCOPES,
    NameAndType,
    Node,
    NodePair,
    Ops,
    family,
    name_tree,
    types_of_names,
)
from tfcompare.compare.matching.plain_names import plain_paths

Names = dict[str, str]
"""Maps names of the candidate to names of the baseline."""

SiblingRule = Callable[[NodePair, list[Node], list[Node]], list[NodePair]]
"""A function that pairs siblings below a pair of scopes which their names leave unpaired."""


@dataclass(frozen=True)
class Alignment:
    """Matched names: certain ones, and equal names that are at most probable.

    `sides` are the ops with `paths`, `trees` their trees with the partners of the nodes; None if all names are equal.
    """

    sure: Names
    doubtful: Names
    sides: tuple[Ops, Ops]
    trees: NodePair | None = None


def align_names(baseline: Iterable[NameAndType], candidate: Iterable[NameAndType]) -> Names:
    """Maps each matched name of the candidate to a name of the baseline, one to one.

    Ops are given as (name, op type); a name may have several types.
    """
    found = align_ops(Ops(types_of_names(baseline)), Ops(types_of_names(candidate)))
    return found.sure | found.doubtful


def align_ops(baseline: Ops, candidate: Ops) -> Alignment:
    """Matches the candidate's ops to the baseline's by name, one to one."""
    if baseline.types.keys() == candidate.types.keys() and _agree(baseline, candidate):
        return Alignment({name: name for name in candidate.types}, {}, (baseline, candidate))
    return align_paths(*with_plain_paths(baseline, candidate))


def align_paths(baseline: Ops, candidate: Ops) -> Alignment:
    """Matches the candidate's ops to the baseline's by their `paths`, one to one."""
    sure, doubtful = Names(), Names()
    trees = name_tree(baseline), name_tree(candidate)
    for b, c in walk(*trees):
        if b.name is not None and c.name is not None:
            (doubtful if b.is_doubtful else sure)[c.name] = b.name
    return Alignment(sure, doubtful, (baseline, candidate), trees)


def _agree(baseline: Ops, candidate: Ops) -> bool:
    """Whether all names that occur on both sides have equal shapes and places."""
    return all(baseline.shapes.get(name, shape) == shape for name, shape in candidate.shapes.items()) and all(
        baseline.places.get(name, place) == place for name, place in candidate.places.items()
    )


def with_plain_paths(baseline: Ops, candidate: Ops) -> tuple[Ops, Ops]:
    """Both sides with `paths` set: the names to match by."""
    if baseline.paths or candidate.paths:
        return baseline, candidate
    paths = plain_paths(baseline.types, candidate.types)
    return replace(baseline, paths=paths), replace(candidate, paths=paths)


def walk(baseline: Node, candidate: Node, pair_rest: SiblingRule | None = None) -> Iterator[NodePair]:
    """Yields all pairs of nodes below two roots; `pair_rest` may pair siblings that their names leave unpaired.

    Gradient scopes come last because their pairs depend on those of the forward scopes.
    """
    root = (baseline, candidate)
    forward: list[tuple[NodePair, list[NodePair]]] = [(root, [])]
    gradients: list[tuple[NodePair, list[NodePair]]] = []
    while forward or gradients:
        parent, shadows = forward.pop() if forward else gradients.pop(0)
        for pair in _pair_children(parent, shadows, pair_rest):
            b, c = pair
            b.is_doubtful = c.is_doubtful = b.is_doubtful or parent[0].is_doubtful
            b.partner, c.partner = c, b
            yield pair
            if family(c.label)[0] in GRADIENT_SCOPES:
                gradients.append((pair, [parent, root]))
            elif b.children and c.children:
                forward.append((pair, _descend(shadows, b.label, c.label)))


def _descend(shadows: list[NodePair], b: str, c: str) -> list[NodePair]:
    return [(sb.children[b], sc.children[c]) for sb, sc in shadows if b in sb.children and c in sc.children]


def _pair_children(parent: NodePair, shadows: list[NodePair], pair_rest: SiblingRule | None) -> list[NodePair]:
    """Pairs the children of a pair; `shadows` are the forward scopes that it mirrors, the most reliable first."""
    ours, theirs = parent[0].children, parent[1].children
    if shadows:
        pairs, ours, theirs = _pair_like_shadows(dict(ours), dict(theirs), shadows)
    else:
        pairs = []
    found = pair_families(ours, theirs)
    for b, c in found.doubtful:
        b.is_doubtful = c.is_doubtful = True
    by_name = found.sure + found.doubtful
    if pair_rest is not None:
        rest = _rest(ours, {b.label for b, _ in by_name}), _rest(theirs, {c.label for _, c in by_name})
        by_name += pair_rest(parent, *rest)
    return pairs + by_name


def _rest(siblings: dict[str, Node], labels: set[str]) -> list[Node]:
    """The sorted siblings with other labels, without gradient scopes, which match by their own names only."""
    left = [node for label, node in sorted(siblings.items()) if label not in labels]
    return [node for node in left if family(node.label)[0] not in GRADIENT_SCOPES]


def _pair_like_shadows(
    ours: dict[str, Node], theirs: dict[str, Node], shadows: list[NodePair]
) -> tuple[list[NodePair], dict[str, Node], dict[str, Node]]:
    """Pairs scopes in the same way as their forward scopes; returns the pairs and the unpaired nodes of each side.

    A scope whose forward scope is unmatched pairs only with an equal name, since its layer has no other counterpart.
    """
    pairs: list[NodePair] = []
    bound_ours: set[str] = set()
    bound_theirs: set[str] = set()
    for shadow_b, shadow_c in shadows:
        for label, node in list(theirs.items()):
            shadow = shadow_c.children.get(label)
            if shadow is None or not node.children:
                continue
            bound_theirs.add(label)
            mate = ours.get(shadow.partner.label) if shadow.partner is not None else None
            if mate is not None and mate.children and shadow_b.children.get(mate.label) is shadow.partner:
                mate.is_doubtful = node.is_doubtful = shadow.is_doubtful
                pairs.append((ours.pop(mate.label), theirs.pop(label)))
        bound_ours.update(k for k, node in ours.items() if node.children and k in shadow_b.children)
    for label in (bound_ours | bound_theirs) & ours.keys() & theirs.keys():
        pairs.append((ours.pop(label), theirs.pop(label)))
    free_ours = {k: node for k, node in ours.items() if k not in bound_ours}
    free_theirs = {k: node for k, node in theirs.items() if k not in bound_theirs}
    return pairs, free_ours, free_theirs
