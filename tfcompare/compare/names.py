"""Which name of the candidate is which name of the baseline: the renaming that TensorFlow and XLA do on their own.

A model built a second time in one process has `dense_2/MatMul` where the first had `dense/MatMul`; XLA numbers its
fusions anew for each program. Names are paired scope by scope, from the outermost in, so that one renaming holds for
all that lies below a scope. Inside a pair of scopes, names that differ only by their trailing numbers (`dense`,
`dense_1`, `fusion.12`) form a family, and a family of one side is laid against that of the other:

1. The same names on both sides: each is itself.
2. Unequal numbers of members: only equal names pair, the rest stays unpaired, so that no two layers become one. Where
   both sides are numbered without gaps and differ in what lies below their members, so that more ops find a partner
   if a layer was put in or taken out in the middle, they pair in order around it.
3. Equal numbers: in the order of their numbers, if every name found on both sides thereby stays itself.
4. Otherwise a name found on both sides would pair with another one (`dense`, `dense_1` beside `dense_1`, `dense_2`).
   That is believed only where both sides are numbered without gaps, as TensorFlow numbers, and where no fewer ops find
   a partner that way. Else only equal names pair.

Hex numbers, addresses and function numbers inside a name have no order, so families with such members pair by equal
names, and beyond that only one with one. Below `gradient_tape` and `gradients`, scopes named after a forward op or
layer take the pairing that was found there.

The rules know no direction: with the sides swapped, the pairs are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from tfcompare.compare.name_tree import (
    GRADIENT_SCOPES,
    NameAndType,
    Node,
    Pair,
    families,
    family,
    name_tree,
    paths_below,
    types_of_names,
)
from tfcompare.compare.sequences import agreed_alignment

Aligner = Callable[[Iterable[NameAndType], Iterable[NameAndType]], dict[str, str]]
SiblingRule = Callable[[Pair, list[Node], list[Node]], list[Pair]]
"""Pairs some of the siblings below a pair of scopes that their names have left unpaired."""

_Contents = tuple[Counter[NameAndType], Counter[NameAndType]]

MOST_ALIGNED = 2_500
"""Families of unequal size are laid beside each other up to so many members of one times members of the other."""

_MOST_COUNTED = 100_000


def align_names(baseline: Iterable[NameAndType], candidate: Iterable[NameAndType]) -> dict[str, str]:
    """The baseline's name for each name of the candidate that has a counterpart; no two have the same one.

    Both sides give their ops as (name, op type); a name may come with several types.
    """
    ours, theirs = types_of_names(baseline), types_of_names(candidate)
    if ours.keys() == theirs.keys():
        return {name: name for name in theirs}
    pairs = walk(name_tree(ours), name_tree(theirs))
    return {c.name: b.name for b, c in pairs if b.name is not None and c.name is not None}


def walk(baseline: Node, candidate: Node, pair_rest: SiblingRule | None = None) -> Iterator[Pair]:
    """All pairs of nodes below two roots; `pair_rest` may pair siblings that their names do not.

    Gradient scopes come last, when the forward scopes that they go by have their partners.
    """
    root = (baseline, candidate)
    forward: list[tuple[Pair, list[Pair]]] = [(root, [])]
    gradients: list[tuple[Pair, list[Pair]]] = []
    while forward or gradients:
        parent, shadows = forward.pop() if forward else gradients.pop(0)
        for pair in _pair_children(parent, shadows, pair_rest):
            b, c = pair
            b.partner, c.partner = c, b
            yield pair
            if family(c.label)[0] in GRADIENT_SCOPES:
                gradients.append((pair, [parent, root]))
            elif b.children and c.children:
                forward.append((pair, _descend(shadows, b.label, c.label)))


def _descend(shadows: list[Pair], b: str, c: str) -> list[Pair]:
    return [(sb.children[b], sc.children[c]) for sb, sc in shadows if b in sb.children and c in sc.children]


def _pair_children(parent: Pair, shadows: list[Pair], pair_rest: SiblingRule | None) -> list[Pair]:
    """The pairs among the children of a pair; `shadows` are the forward scopes that it mirrors, in order of trust."""
    ours, theirs = parent[0].children, parent[1].children
    if shadows:
        pairs, ours, theirs = _pair_like_shadows(dict(ours), dict(theirs), shadows)
    else:
        pairs = []
    if ours.keys() == theirs.keys():
        return pairs + [(node, theirs[label]) for label, node in ours.items()]
    their_families = families(theirs.values())
    by_name: list[Pair] = []
    for base, members in families(ours.values()).items():
        by_name += _pair_family(members, their_families.get(base, []))
    if pair_rest is not None:
        rest = _rest(ours, {b.label for b, _ in by_name}), _rest(theirs, {c.label for _, c in by_name})
        by_name += pair_rest(parent, *rest)
    return pairs + by_name


def _rest(siblings: dict[str, Node], labels: set[str]) -> list[Node]:
    """The siblings of other labels, in order; gradients, which go by their own name alone, are left out."""
    left = [node for label, node in sorted(siblings.items()) if label not in labels]
    return [node for node in left if family(node.label)[0] not in GRADIENT_SCOPES]


def _pair_like_shadows(
    ours: dict[str, Node], theirs: dict[str, Node], shadows: list[Pair]
) -> tuple[list[Pair], dict[str, Node], dict[str, Node]]:
    """Pair scopes as their forward scopes are paired; return the pairs, and what of either side is left to pair.

    A scope whose forward scope has no partner pairs with its own name only: it is another layer than the rest.
    """
    pairs: list[Pair] = []
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
                pairs.append((ours.pop(mate.label), theirs.pop(label)))
        bound_ours.update(k for k, node in ours.items() if node.children and k in shadow_b.children)
    for label in (bound_ours | bound_theirs) & ours.keys() & theirs.keys():
        pairs.append((ours.pop(label), theirs.pop(label)))
    free_ours = {k: node for k, node in ours.items() if k not in bound_ours}
    free_theirs = {k: node for k, node in theirs.items() if k not in bound_theirs}
    return pairs, free_ours, free_theirs


def _pair_family(ours: list[Node], theirs: list[Node]) -> list[Pair]:
    """The rules of the module's docstring, for one family; both lists are in order."""
    by_label = {node.label: node for node in theirs}
    same = [(node, by_label[node.label]) for node in ours if node.label in by_label]
    if len(ours) != len(theirs):
        return _pair_around_the_added(ours, theirs, same)
    if len(same) == len(ours):
        return same
    if any(family(node.label)[2] for node in ours + theirs):
        return same + _pair_the_odd_ones(ours, theirs, same)
    in_order = list(zip(ours, theirs, strict=True))
    if sum(b.label == c.label for b, c in in_order) == len(same):
        return in_order
    if _is_gapless(ours) and _is_gapless(theirs) and _likeness(in_order) >= _likeness(same):
        return in_order
    return same


def _pair_around_the_added(ours: list[Node], theirs: list[Node], same: list[Pair]) -> list[Pair]:
    """Pairs in order around what one side has more, where what lies below tells its place; else those of equal name."""
    if not ours or not theirs or len(ours) * len(theirs) > MOST_ALIGNED:
        return same
    if any(family(node.label)[2] for node in ours + theirs) or not (_is_gapless(ours) and _is_gapless(theirs)):
        return same
    below = {id(node): (paths_below(node), _gradients(node)) for node in ours + theirs}
    if len(same) == min(len(ours), len(theirs)) and all(below[id(b)][0] == below[id(c)][0] for b, c in same):
        return same
    gains = [[_gain(b.label == c.label, below[id(b)], below[id(c)]) for c in theirs] for b in ours]
    in_order = [(ours[i], theirs[j]) for i, j in agreed_alignment(np.array(gains, dtype=np.int64))]
    return in_order if _likeness(in_order) > _likeness(same) else same


def _gain(is_namesake: bool, ours: _Contents, theirs: _Contents) -> int:
    """What a pair is worth: the ops that both have, then those of their gradients, then that the name stays."""
    ops, gradients = (min((b & c).total(), _MOST_COUNTED) for b, c in zip(ours, theirs, strict=True))
    return (ops * _MOST_COUNTED + gradients) * MOST_ALIGNED + is_namesake if ops else 0


def _gradients(node: Node) -> Counter[NameAndType]:
    return sum((paths_below(echo) for echo in node.echoes), Counter())


def _pair_the_odd_ones(ours: list[Node], theirs: list[Node], same: list[Pair]) -> list[Pair]:
    """The one member on either side that has no namesake, where there is just one."""
    if len(same) != len(ours) - 1:
        return []
    labels = {b.label for b, _ in same}
    return [(next(n for n in ours if n.label not in labels), next(n for n in theirs if n.label not in labels))]


def _is_gapless(members: list[Node]) -> bool:
    numbers = [family(node.label)[1] for node in members]
    firsts = [n[0] if n else 0 for n in numbers]
    return all(after - before <= 1 for before, after in pairwise(firsts))


def _likeness(pairs: list[Pair]) -> int:
    """How many ops below the pairs have one of the same type at the same place, numbers aside."""
    return sum((paths_below(b) & paths_below(c)).total() for b, c in pairs)
