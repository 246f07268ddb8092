"""Matches layers that have another scope around them: one that was inserted, removed or renamed.

`enc_0/q/MatMul` is `encoder/enc_0/q/MatMul` of the other side, and `modelA/enc_0/q/MatMul` is `net/enc_0/q/MatMul`. Of
each op that its name leaves unmatched, the longest end of its path counts that an unmatched op below the counterpart of
its scope has, too: at least a layer and an op, without numbers. Two prefixes belong together if some ends follow no
other prefix on their side. An end that follows several, as two equally good candidates, says nothing.

Ops of such prefixes are matched by the rest of their names. The result is doubtful unless most of what the prefixes
contain has a counterpart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tfcompare.compare.matching.name_tree import MAX_DEPTH, NodePair, Ops, PathNumbers, are_other_things, family
from tfcompare.compare.matching.names import Alignment, Names, align_paths

LEAST_LABELS = 2
"""Only ends with a layer and an op count: every model has a `MatMul`."""

FEWEST_OPS = 2
"""One op may be there by chance."""

LEAST_SURE, LEAST_LIKELY = 0.8, 0.5
"""The minimum share of the ops below a prefix with a counterpart below the other: a layer that gained or lost one op in
five is still itself, as for `guesses.LEAST_IN_COMMON`; of less than half, the rest says that it is another model."""


class _Left(NamedTuple):
    """An unmatched op: its labels below the innermost matched scope, the numbers of the ends of these without numbers,
    by how many labels they have, and whether the match of that scope is doubtful."""

    name: str
    labels: tuple[str, ...]
    ends: list[int]
    is_doubtful: bool


class _Moved(NamedTuple):
    """An unmatched op with an end that the other side has: what is before it, and its number."""

    op: _Left
    prefix: tuple[str, ...]
    end: int


_Scope = tuple[str, ...]
_Sides = tuple[list[_Left], list[_Left]]
_Groups = dict[tuple[_Scope, _Scope], tuple[list[_Moved], list[_Moved]]]


def by_layers_below(aligned: Alignment, known: Mapping[str, str]) -> tuple[Names, Names]:
    """Matches further names by the layers that stand below another scope; the certain matches, and the doubtful ones.

    `aligned` is the result of `align_ops`. No name of `known` is matched again, and none is matched twice.
    """
    (baseline, candidate), trees = aligned.sides, aligned.trees
    left = baseline.types.keys() - known.values(), candidate.types.keys() - known.keys()
    if trees is None or not all(left):
        return {}, {}
    paths: tuple[dict[str, str], dict[str, str]] = {}, {}
    doubtful: set[str] = set()
    for scope, sides in _left_by_scope(trees, baseline.paths, left).items():
        groups = _corresponding(sides)
        begins = PathNumbers()
        below = [Counter(number for op in ops for number in begins.along(op.labels)) for ops in sides if groups]
        for prefixes, moved in groups.items():
            numbers = [begins.along(prefix)[-1] for prefix in prefixes]
            # Below the matched scope itself is also what has nothing to do with the other prefix.
            sides_of = zip(moved, numbers, below, strict=True)
            share = min(len(ops) / of[number] if number else 1.0 for ops, number, of in sides_of)
            if share < LEAST_LIKELY or min(map(len, moved)) < FEWEST_OPS:
                continue
            if are_other_things(*map("/".join, prefixes)) and len({_rest(one)[0] for one in moved[0]}) == 1:
                continue  # `branch1x1/conv` and `branch3x3/conv`, but not models of two versions with the same layers
            common = " for ".join(map("\0".join, prefixes)) + "\0"  # ends with no number, so that it is of no family
            for ops, of_side in zip(moved, paths, strict=True):
                of_side.update({one.op.name: "/".join((*scope, common, *_rest(one))) for one in ops})
            if share < LEAST_SURE or moved[0][0].op.is_doubtful:
                doubtful.update(one.op.name for one in moved[0])
    if not paths[0]:
        return {}, {}
    found = align_paths(_renamed_layers(baseline, paths[0]), _renamed_layers(candidate, paths[1]))
    unsure = {theirs: ours for theirs, ours in found.sure.items() if ours in doubtful}
    return {c: b for c, b in found.sure.items() if c not in unsure}, found.doubtful | unsure


def _renamed_layers(side: Ops, paths: dict[str, str]) -> Ops:
    """The ops that have such a path."""
    return replace(side, types={name: side.types[name] for name in paths}, paths=paths)


def _rest(moved: _Moved) -> tuple[str, ...]:
    """The labels of the end."""
    return moved.op.labels[len(moved.prefix) :]


def _left_by_scope(roots: NodePair, paths: Mapping[str, str], left: tuple[Iterable[str], ...]) -> dict[_Scope, _Sides]:
    """The unmatched ops of both sides by the innermost matched scope around them, as the baseline's labels."""
    ends = PathNumbers()
    found: dict[_Scope, _Sides] = {}
    for side, names in enumerate(left):
        for name in names:
            labels = paths.get(name, name).split("/", MAX_DEPTH)
            node, scope = roots[side], []
            for label in labels:
                child = node.children[label]
                if child.partner is None:
                    break
                scope.append(child.partner.label if side else label)
                node = child
            below = tuple(labels[len(scope) :])
            if len(below) >= LEAST_LABELS:
                stems = [family(label)[0] for label in reversed(below)]
                op = _Left(name, below, ends.along(stems), node.is_doubtful)
                found.setdefault(tuple(scope), ([], []))[side].append(op)
    return {scope: sides for scope, sides in found.items() if all(sides)}


def _corresponding(sides: _Sides) -> _Groups:
    """The ops of both sides by their prefixes, for each two prefixes that correspond."""
    there = [{end for op in ops for end in op.ends} for ops in sides]
    moved = [[one for op in ops if (one := _longest(op, ends))] for ops, ends in zip(sides, there[::-1], strict=True)]
    prefixes: tuple[defaultdict[int, set[_Scope]], ...] = defaultdict(set), defaultdict(set)
    for ops, of_side in zip(moved, prefixes, strict=True):
        for one in ops:
            of_side[one.end].add(one.prefix)
    pairs = {
        end: (*ours, *prefixes[1][end])
        for end, ours in prefixes[0].items()
        if end in prefixes[1] and len(ours) == len(prefixes[1][end]) == 1 and ours != prefixes[1][end]
    }
    groups: _Groups = {}
    for side, ops in enumerate(moved):
        for one in ops:
            if one.end in pairs:
                ours, theirs = pairs[one.end]
                groups.setdefault((ours, theirs), ([], []))[side].append(one)
    return groups


def _longest(op: _Left, common: set[int]) -> _Moved | None:
    """The op with its longest end that is in `common`; None if that is too short."""
    count = 0
    for end in op.ends[1:]:
        if end not in common:
            break  # the longer ones are not, either
        count += 1
    return _Moved(op, op.labels[:-count], op.ends[count]) if count >= LEAST_LABELS else None
