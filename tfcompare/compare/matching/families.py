"""Matches the members of families: siblings whose names differ only by a trailing number (`dense`, `dense_1`).

Frameworks assign these numbers in order of creation, so an inserted layer increments the numbers of all later layers.
Shapes, where the profiles have them, reveal such a shift: members with equal shapes match, in order. Without shapes,
the ops below the members may reveal it.

Equal names normally match. In four cases the match is `doubtful`:

- the sides have different numbers of members, numbered without gaps, and nothing shows which members are new;
- shapes show that other members of the family were renumbered;
- shapes show that another family of ops in the scope was renumbered, and they neither confirm nor refute this pair;
- two members that look alike always run in opposite order on the two sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfcompare.compare.matching.name_tree import (
    NameAndType,
    Node,
    NodePair,
    families,
    family,
    paths_below,
    shapes_below,
)
from tfcompare.compare.matching.sequences import agreed_alignment

MOST_ALIGNED = 2_500
"""Families of unequal size are aligned only if the product of their sizes is at most this."""

_MOST_COUNTED = 10_000


class Pairs(NamedTuple):
    """Certain pairs, and pairs of equal names that are at most probable."""

    sure: list[NodePair]
    doubtful: list[NodePair]


def pair_families(ours: dict[str, Node], theirs: dict[str, Node]) -> Pairs:
    """Pairs the children of two matched scopes, family by family."""
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


def _moved_by_shape(pairs: list[NodePair]) -> bool:
    """Whether shapes pair two ops with different names although both names occur on both sides."""
    labels = {b.label for b, _ in pairs} & {c.label for _, c in pairs}
    return any(b.shape and b.label != c.label and {b.label, c.label} <= labels for b, c in pairs)


def _not_shown_by_shapes(pairs: list[NodePair]) -> list[NodePair]:
    """Pairs of numbered ops with equal names that shapes do not confirm: differing, or shared by several members."""
    count = Counter(node.shape for pair in pairs for node in pair)
    is_of_ops = len(pairs) > 1 and any(b.types for b, _ in pairs)
    return [
        (b, c)
        for b, c in pairs
        if is_of_ops and b.label == c.label and not (b.shape and b.shape == c.shape and count[b.shape] == 2)
    ]


def _pair_family(ours: list[Node], theirs: list[Node]) -> Pairs:
    """Pairs the members of one family; both lists are sorted by number."""
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


def _pair_as_many(ours: list[Node], theirs: list[Node], same: list[NodePair], is_ordered: bool) -> list[NodePair]:
    """Pairs the members of two families of equal size by name."""
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


def _pair_the_odd_ones(ours: list[Node], theirs: list[Node], same: list[NodePair]) -> list[NodePair]:
    """Pairs the members without an equal name, if there is exactly one per side."""
    if len(same) != len(ours) - 1:
        return []
    labels = {b.label for b, _ in same}
    return [(next(n for n in ours if n.label not in labels), next(n for n in theirs if n.label not in labels))]


def _pair_around_the_added(ours: list[Node], theirs: list[Node], same: list[NodePair]) -> Pairs:
    """Pairs families of unequal size: by shapes, then in order, skipping added members that their contents reveal."""
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


def _left(same: list[NodePair], sure: list[NodePair]) -> list[NodePair]:
    """The pairs of equal names with neither member in a certain pair."""
    paired = {id(node) for pair in sure for node in pair}
    return [(b, c) for b, c in same if id(b) not in paired and id(c) not in paired]


def _pair_by_shapes(ours: list[Node], theirs: list[Node]) -> list[NodePair]:
    """Pairs members with equal shapes, in order, if both sides have the same number of them.

    If the pairs found this way are not in the same order on both sides, only members with unique shapes are paired.
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
    """Whether both have shapes and these are not equal."""
    ours, theirs = shapes_below(b), shapes_below(c)
    return bool(ours and theirs and ours != theirs)


def _run_in_another_order(pairs: list[NodePair]) -> list[NodePair]:
    """Pairs of adjacent layers that look alike but always run in opposite order on the two sides."""
    if any(node.types or node.place is None for pair in pairs for node in pair):
        return []
    turned: dict[int, NodePair] = {}
    for side in (0, 1):
        in_order = sorted(pairs, key=lambda pair: pair[side].place or (0, 0))
        for first, second in pairwise(in_order):
            alike = all(below(first[0]) == below(second[0]) for below in (shapes_below, paths_below))
            if alike and _run_before(first, second, side) and _run_before(second, first, 1 - side):
                turned |= {id(pair[0]): pair for pair in (first, second)}
    return [pair for pair in pairs if id(pair[0]) in turned]


def _run_before(first: NodePair, second: NodePair, side: int) -> bool:
    """Whether the first always ends before the second on this side."""
    one, other = first[side].place, second[side].place
    return one is not None and other is not None and one[1] < other[0]


def _pair_in_order(ours: list[Node], theirs: list[Node]) -> Pairs:
    """The pairs common to all optimal alignments; doubtful if common only when equal names add to the score."""
    if not ours or not theirs or len(ours) * len(theirs) > MOST_ALIGNED:
        return Pairs([], [])
    below = {id(node): (shapes_below(node), paths_below(node), _gradients(node)) for node in ours + theirs}
    gains = np.array([[_gain(below[id(b)], below[id(c)]) for c in theirs] for b in ours], dtype=np.int64)
    is_namesake = np.array([[b.label == c.label for c in theirs] for b in ours]) & (gains > 0)
    sure = agreed_alignment(gains)
    by_name = agreed_alignment(gains * MOST_ALIGNED + is_namesake)
    return Pairs(*([(ours[i], theirs[j]) for i, j in found] for found in (sure, [p for p in by_name if p not in sure])))


def _gain(ours: Sequence[Counter[Any]], theirs: Sequence[Counter[Any]]) -> int:
    """The score of a pair: common shapes first, then common ops, then common ops of the gradients."""
    shapes, ops, gradients = (min((b & c).total(), _MOST_COUNTED) for b, c in zip(ours, theirs, strict=True))
    return (shapes * _MOST_COUNTED + ops) * _MOST_COUNTED + gradients if ops else 0


def _gradients(node: Node) -> Counter[NameAndType]:
    return sum((paths_below(echo) for echo in node.gradient_scopes), Counter())


def _are_numbered(members: list[Node]) -> bool:
    """Whether a framework assigned the numbers, which is assumed of ops, and of scopes numbered without gaps."""
    return any(node.types for node in members) or _is_gapless(members)


def _is_gapless(members: list[Node]) -> bool:
    numbers = [family(node.label)[1] for node in members]
    firsts = [n[0] if n else 0 for n in numbers]
    return all(after - before <= 1 for before, after in pairwise(firsts))


def _likeness(pairs: list[NodePair]) -> tuple[int, int]:
    """The number of equal shapes and of equal op types at equal paths, summed over the pairs."""
    return (
        sum((shapes_below(b) & shapes_below(c)).total() for b, c in pairs),
        sum((paths_below(b) & paths_below(c)).total() for b, c in pairs),
    )
