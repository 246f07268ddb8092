"""Pairs names that differ in numbers or in parts that programs rename, such as scopes and layers.

A model built a second time in one process has `dense_2/MatMul` where the first one has `dense/MatMul`, and XLA numbers
its fusions independently for each program. Names are paired scope by scope, from the outermost inwards, so that one
renaming applies to everything below a scope. Scopes that only wrap a program are ignored (`plain_names.py`). Within a
pair of scopes, names that differ only by trailing numbers (`dense`, `dense_1`, `fusion.12`) form a family. The families
of the two sides are compared:

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
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfcompare.compare.matching.name_tree import (
    GRADIENT_SCOPES,
    NameAndType,
    Node,
    NodePair,
    Ops,
    agreed_alignment,
    families,
    family,
    name_tree,
    paths_below,
    shapes_below,
    types_of_names,
)
from tfcompare.compare.matching.plain_names import plain_paths

Names = dict[str, str]
"""Maps names of the candidate to names of the baseline."""

SiblingRule = Callable[[NodePair, list[Node], list[Node]], list[NodePair]]
"""A function that pairs siblings below a pair of scopes which their names leave unpaired."""
MOST_ALIGNED = 2_500
"""Families of unequal size are aligned only if the product of their sizes is at most this."""

_MOST_COUNTED = 10_000


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
    are_alike = (
        baseline.types.keys() == candidate.types.keys()
        and all(baseline.shapes.get(name, shape) == shape for name, shape in candidate.shapes.items())
        and all(baseline.places.get(name, place) == place for name, place in candidate.places.items())
    )
    if are_alike:
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
                below = [(ours.children.get(b.label), theirs.children.get(c.label)) for ours, theirs in shadows]
                forward.append((pair, [(one, other) for one, other in below if one and other]))


def _pair_children(parent: NodePair, shadows: list[NodePair], pair_rest: SiblingRule | None) -> list[NodePair]:
    """Pairs the children of a pair; `shadows` are the forward scopes that it mirrors, the most reliable first."""
    ours, theirs = parent[0].children, parent[1].children
    pairs: list[NodePair] = []
    if shadows:
        pairs, ours, theirs = _pair_like_shadows(dict(ours), dict(theirs), shadows)
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
    doubtful += [pair for pair in sure if id(pair[0]) in unclear]
    return Pairs([pair for pair in sure if id(pair[0]) not in unclear], doubtful)


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
    known = [(shapes_below(b), shapes_below(c)) for b, c in pairs]
    if any(b and c and b != c for b, c in known):
        shaped = _pair_by_shapes(ours, theirs)
        if not set(shaped) <= set(pairs):
            return Pairs(shaped, _unpaired_rows(same, shaped))
    turned = _run_in_another_order(pairs)
    return Pairs([pair for pair in pairs if pair not in turned], turned)


def _pair_as_many(ours: list[Node], theirs: list[Node], same: list[NodePair], is_ordered: bool) -> list[NodePair]:
    """Pairs the members of two families of equal size by name."""
    if len(same) == len(ours):
        return same
    if not is_ordered:
        labels = {b.label for b, _ in same}
        odd, their_odd = ([node for node in side if node.label not in labels] for side in (ours, theirs))
        return same + (list(zip(odd, their_odd, strict=True)) if len(odd) == 1 else [])
    in_order = list(zip(ours, theirs, strict=True))
    if sum(b.label == c.label for b, c in in_order) == len(same):
        return in_order
    if _is_gapless(ours) and _is_gapless(theirs) and _likeness(in_order) >= _likeness(same):
        return in_order
    return same


def _pair_around_the_added(ours: list[Node], theirs: list[Node], same: list[NodePair]) -> Pairs:
    """Pairs families of unequal size: by shapes, then in order, skipping added members that their contents reveal."""
    if not (_are_numbered(ours) and _are_numbered(theirs)):
        return Pairs(same, [])
    sure = _pair_by_shapes(ours, theirs)
    paired = {id(node) for pair in sure for node in pair}
    left = _unpaired_rows(same, sure)
    in_order = _pair_in_order(*([node for node in side if id(node) not in paired] for side in (ours, theirs)))
    if _likeness(in_order.sure + in_order.doubtful) > _likeness(left):
        return Pairs(sure + in_order.sure, in_order.doubtful)
    agreed = [pair for pair in left if pair in in_order.sure]
    return Pairs(sure + agreed, [pair for pair in left if pair not in agreed])


def _unpaired_rows(same: list[NodePair], sure: list[NodePair]) -> list[NodePair]:
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
    below: dict[int, tuple[Counter[Any], ...]] = {}
    for node in ours + theirs:
        gradients: Counter[NameAndType] = sum(map(paths_below, node.gradient_scopes), Counter())
        below[id(node)] = shapes_below(node), paths_below(node), gradients
    gains = np.array([[_gain(below[id(b)], below[id(c)]) for c in theirs] for b in ours], dtype=np.int64)
    is_namesake = np.array([[b.label == c.label for c in theirs] for b in ours]) & (gains > 0)
    sure = agreed_alignment(gains)
    by_name = agreed_alignment(gains * MOST_ALIGNED + is_namesake)
    return Pairs(*([(ours[i], theirs[j]) for i, j in found] for found in (sure, [p for p in by_name if p not in sure])))


def _gain(ours: Sequence[Counter[Any]], theirs: Sequence[Counter[Any]]) -> int:
    """The score of a pair: common shapes first, then common ops, then common ops of the gradients."""
    shapes, ops, gradients = (min((b & c).total(), _MOST_COUNTED) for b, c in zip(ours, theirs, strict=True))
    return (shapes * _MOST_COUNTED + ops) * _MOST_COUNTED + gradients if ops else 0


def _are_numbered(members: list[Node]) -> bool:
    """Whether a framework assigned the numbers, which is assumed of ops, and of scopes numbered without gaps."""
    return any(node.types for node in members) or _is_gapless(members)


def _is_gapless(members: list[Node]) -> bool:
    numbers = [family(node.label)[1] for node in members]
    firsts = [n[0] if n else 0 for n in numbers]
    return all(after - before <= 1 for before, after in pairwise(firsts))


def _likeness(pairs: list[NodePair]) -> tuple[int, int]:
    """The number of equal shapes and of equal op types at equal paths, summed over the pairs."""
    shapes = sum((shapes_below(b) & shapes_below(c)).total() for b, c in pairs)
    return shapes, sum((paths_below(b) & paths_below(c)).total() for b, c in pairs)
