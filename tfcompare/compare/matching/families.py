"""Which member of a family is which, where siblings differ only by the numbers at their end: `dense`, `dense_1`.

A framework hands out such numbers as it goes, so a layer that is put in moves those after it on by one. Shapes, where
profiles have them, say what moved: members of the same shapes are the same, in order. Without shapes, what lies below
the members may say it.

A name that is the same on both sides is believed, but for four cases, in which the pair is `doubtful`:

- the sides have different numbers of members, numbered without gaps, and nothing says which of them is new;
- shapes say of other members of the family that they have other names than before;
- they say so of another family of ops in the scope, and of this pair they say nothing;
- two members that look alike always run in the other order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfcompare.compare.matching.name_tree import NameAndType, Node, Pair, families, family, paths_below, shapes_below
from tfcompare.compare.matching.sequences import agreed_alignment

MOST_ALIGNED = 2_500
"""Families of unequal size are laid beside each other up to so many members of one times members of the other."""

_MOST_COUNTED = 10_000


class Pairs(NamedTuple):
    """Pairs that are sure, and namesakes that are probable at most."""

    sure: list[Pair]
    doubtful: list[Pair]


def pair_families(ours: dict[str, Node], theirs: dict[str, Node]) -> Pairs:
    """The pairs among the children of two scopes that are paired, family by family."""
    their_families = families(theirs.values())
    found = [_pair_family(members, their_families.get(base, [])) for base, members in families(ours.values()).items()]
    sure, doubtful = ([pair for pairs in found for pair in pairs[k]] for k in (0, 1))
    if not any(_moved_by_shape(pairs.sure) for pairs in found):
        return Pairs(sure, doubtful)
    unclear = {id(b) for pairs in found for b, _ in _not_shown_by_shapes(pairs.sure)}
    return Pairs(
        [pair for pair in sure if id(pair[0]) not in unclear],
        doubtful + [pair for pair in sure if id(pair[0]) in unclear],
    )


def _moved_by_shape(pairs: list[Pair]) -> bool:
    """Whether shapes pair two single ops of names that both sides have, but for each other."""
    labels = {b.label for b, _ in pairs} & {c.label for _, c in pairs}
    return any(b.shape and b.label != c.label and {b.label, c.label} <= labels for b, c in pairs)


def _not_shown_by_shapes(pairs: list[Pair]) -> list[Pair]:
    """Numbered ops of equal names that do not alone have the shapes that they have on both sides."""
    count = Counter(node.shape for pair in pairs for node in pair)
    is_of_ops = len(pairs) > 1 and any(b.types for b, _ in pairs)
    return [
        (b, c)
        for b, c in pairs
        if is_of_ops and b.label == c.label and not (b.shape and b.shape == c.shape and count[b.shape] == 2)
    ]


def _pair_family(ours: list[Node], theirs: list[Node]) -> Pairs:
    """Both lists are in the order of their numbers."""
    by_label = {node.label: node for node in theirs}
    same = [(node, by_label[node.label]) for node in ours if node.label in by_label]
    if not ours or not theirs:
        return Pairs([], [])
    is_ordered = not any(family(node.label)[2] for node in ours + theirs)
    if len(ours) != len(theirs):
        return _pair_around_the_added(ours, theirs, same) if is_ordered else Pairs(same, [])
    pairs = _pair_as_many(ours, theirs, same, is_ordered)
    if len(pairs) < 2 or not is_ordered:
        return Pairs(pairs, [])
    if any(_differ(b, c) for b, c in pairs):
        shaped = _pair_by_shapes(ours, theirs)
        if not set(shaped) <= set(pairs):
            return Pairs(shaped, _left(same, shaped))
    turned = _run_in_another_order(pairs)
    return Pairs([pair for pair in pairs if pair not in turned], turned)


def _pair_as_many(ours: list[Node], theirs: list[Node], same: list[Pair], is_ordered: bool) -> list[Pair]:
    """Equally many members, by their names."""
    if len(same) == len(ours):
        return same
    if not is_ordered:
        return same + _pair_the_odd_ones(ours, theirs, same)
    in_order = list(zip(ours, theirs, strict=True))
    if sum(b.label == c.label for b, c in in_order) == len(same):
        return in_order
    if _is_gapless(ours) and _is_gapless(theirs) and _likeness(in_order) >= _likeness(same):
        return in_order
    return same


def _pair_the_odd_ones(ours: list[Node], theirs: list[Node], same: list[Pair]) -> list[Pair]:
    """The one member on either side that has no namesake, where there is just one."""
    if len(same) != len(ours) - 1:
        return []
    labels = {b.label for b, _ in same}
    return [(next(n for n in ours if n.label not in labels), next(n for n in theirs if n.label not in labels))]


def _pair_around_the_added(ours: list[Node], theirs: list[Node], same: list[Pair]) -> Pairs:
    """By shapes, then in order around what one side has more, where what lies below says its place."""
    if not (_are_numbered(ours) and _are_numbered(theirs)):
        return Pairs(same, [])
    sure = _pair_by_shapes(ours, theirs)
    paired = {id(node) for pair in sure for node in pair}
    left = _left(same, sure)
    in_order = _pair_in_order(*([node for node in side if id(node) not in paired] for side in (ours, theirs)))
    if _likeness(in_order.sure + in_order.doubtful) > _likeness(left):
        return Pairs(sure + in_order.sure, in_order.doubtful)
    agreed = [pair for pair in left if pair in in_order.sure]
    return Pairs(sure + agreed, [pair for pair in left if pair not in agreed])


def _left(same: list[Pair], sure: list[Pair]) -> list[Pair]:
    """The namesakes of which neither is in a sure pair."""
    paired = {id(node) for pair in sure for node in pair}
    return [(b, c) for b, c in same if id(b) not in paired and id(c) not in paired]


def _pair_by_shapes(ours: list[Node], theirs: list[Node]) -> list[Pair]:
    """Members of the same shapes, where both sides have equally many of them, in order.

    Where that order is another one than that of the rest, only those that alone have their shapes.
    """
    groups, their_groups = _by_shapes(ours), _by_shapes(theirs)
    found = [
        (pair, len(members))
        for shapes, members in groups.items()
        if len(members) == len(their_groups.get(shapes, []))
        for pair in zip(members, their_groups[shapes], strict=True)
    ]
    place, their_place = ({id(node): i for i, node in enumerate(side)} for side in (ours, theirs))
    found.sort(key=lambda item: place[id(item[0][0])])
    places = [their_place[id(c)] for (_, c), _ in found]
    is_in_order = all(before < after for before, after in pairwise(places))
    return [pair for pair, alike in found if alike == 1 or is_in_order]


def _by_shapes(members: list[Node]) -> dict[Hashable, list[Node]]:
    groups: dict[Hashable, list[Node]] = {}
    for node in members:
        if shapes := shapes_below(node):
            groups.setdefault(frozenset(shapes.items()), []).append(node)
    return groups


def _differ(b: Node, c: Node) -> bool:
    """Whether both have shapes, and not the same."""
    ours, theirs = shapes_below(b), shapes_below(c)
    return bool(ours and theirs and ours != theirs)


def _run_in_another_order(pairs: list[Pair]) -> list[Pair]:
    """Layers that look alike and are next to each other on a side, and always run in the other order on the other."""
    if any(node.types or node.place is None for pair in pairs for node in pair):
        return []
    turned: dict[int, Pair] = {}
    for side in (0, 1):
        in_order = sorted(pairs, key=lambda pair: pair[side].place or (0, 0))
        for first, second in pairwise(in_order):
            alike = all(below(first[0]) == below(second[0]) for below in (shapes_below, paths_below))
            if alike and _run_before(first, second, side) and _run_before(second, first, 1 - side):
                turned |= {id(pair[0]): pair for pair in (first, second)}
    return [pair for pair in pairs if id(pair[0]) in turned]


def _run_before(first: Pair, second: Pair, side: int) -> bool:
    """Whether the one always ends before the other does, on this side."""
    one, other = first[side].place, second[side].place
    return one is not None and other is not None and one[1] < other[0]


def _pair_in_order(ours: list[Node], theirs: list[Node]) -> Pairs:
    """The pairs that all best ways to lay the members beside each other have in common; doubtful are those on which
    they agree only if namesakes count."""
    if not ours or not theirs or len(ours) * len(theirs) > MOST_ALIGNED:
        return Pairs([], [])
    below = {id(node): (shapes_below(node), paths_below(node), _gradients(node)) for node in ours + theirs}
    gains = np.array([[_gain(below[id(b)], below[id(c)]) for c in theirs] for b in ours], dtype=np.int64)
    is_namesake = np.array([[b.label == c.label for c in theirs] for b in ours]) & (gains > 0)
    sure = agreed_alignment(gains)
    by_name = agreed_alignment(gains * MOST_ALIGNED + is_namesake)
    return Pairs(*([(ours[i], theirs[j]) for i, j in found] for found in (sure, [p for p in by_name if p not in sure])))


def _gain(ours: Sequence[Counter[Any]], theirs: Sequence[Counter[Any]]) -> int:
    """What a pair is worth: the shapes that both have, then the ops, then those of their gradients."""
    shapes, ops, gradients = (min((b & c).total(), _MOST_COUNTED) for b, c in zip(ours, theirs, strict=True))
    return (shapes * _MOST_COUNTED + ops) * _MOST_COUNTED + gradients if ops else 0


def _gradients(node: Node) -> Counter[NameAndType]:
    return sum((paths_below(echo) for echo in node.echoes), Counter())


def _are_numbered(members: list[Node]) -> bool:
    """Whether a framework handed out the numbers: those of ops, and of scopes if there are no gaps."""
    return any(node.types for node in members) or _is_gapless(members)


def _is_gapless(members: list[Node]) -> bool:
    numbers = [family(node.label)[1] for node in members]
    firsts = [n[0] if n else 0 for n in numbers]
    return all(after - before <= 1 for before, after in pairwise(firsts))


def _likeness(pairs: list[Pair]) -> tuple[int, int]:
    """How many shapes, and how many ops of the same type, the members of the pairs have at the same place."""
    return (
        sum((shapes_below(b) & shapes_below(c)).total() for b, c in pairs),
        sum((paths_below(b) & paths_below(c)).total() for b, c in pairs),
    )
