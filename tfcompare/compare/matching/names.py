"""Which name of the candidate is which name of the baseline: the renaming that TensorFlow and XLA do on their own.

A model built a second time in one process has `dense_2/MatMul` where the first had `dense/MatMul`; XLA numbers its
fusions anew for each program. Names are paired scope by scope, from the outermost in, so that one renaming holds for
all that lies below a scope. Scopes that only wrap a program do not count (`plain_names.py`). Inside a pair of scopes,
names that differ only by their trailing numbers (`dense`, `dense_1`, `fusion.12`) form a family, and a family of one
side is laid against that of the other (`families.py`):

1. The same names on both sides: each is itself.
2. Unequal numbers of members, numbered without gaps as TensorFlow numbers: members pair by their shapes, and in order
   where shapes and what lies below them say which one was put in or taken out. Namesakes that are left are doubtful.
   With gaps in the numbers, only equal names pair.
3. Equal numbers: in the order of their numbers, if every name found on both sides thereby stays itself.
4. Otherwise a name found on both sides would pair with another one (`dense`, `dense_1` beside `dense_1`, `dense_2`).
   That is believed only where both sides are numbered without gaps, and where no fewer ops find a partner that way.
   Else only equal names pair.

Hex numbers, addresses and function numbers inside a name have no order, so families with such members pair by equal
names, and beyond that only one with one. Below `gradient_tape` and `gradients`, scopes named after a forward op or
layer take the pairing that was found there.

The rules know no direction: with the sides swapped, the pairs are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tfcompare.compare.matching.families import pair_families
from tfcompare.compare.matching.name_tree import (
    GRADIENT_SCOPES,
    NameAndType,
    Node,
    Ops,
    Pair,
    family,
    name_tree,
    types_of_names,
)
from tfcompare.compare.matching.plain_names import plain_paths

Names = dict[str, str]
"""The baseline's name for names of the candidate."""

SiblingRule = Callable[[Pair, list[Node], list[Node]], list[Pair]]
"""Pairs some of the siblings below a pair of scopes that their names have left unpaired."""


@dataclass(frozen=True)
class Alignment:
    """The counterparts of names: those that are sure, and namesakes that are probable at most."""

    sure: Names
    doubtful: Names


def align_names(baseline: Iterable[NameAndType], candidate: Iterable[NameAndType]) -> Names:
    """The baseline's name for each name of the candidate that has a counterpart; no two have the same one.

    Both sides give their ops as (name, op type); a name may come with several types.
    """
    found = align_ops(Ops(types_of_names(baseline)), Ops(types_of_names(candidate)))
    return found.sure | found.doubtful


def align_ops(baseline: Ops, candidate: Ops) -> Alignment:
    """The counterparts of the candidate's ops by their names; no two names have the same one."""
    if baseline.types.keys() == candidate.types.keys() and _agree(baseline, candidate):
        return Alignment({name: name for name in candidate.types}, {})
    sure, doubtful = Names(), Names()
    ours, theirs = (name_tree(side) for side in with_plain_paths(baseline, candidate))
    for b, c in walk(ours, theirs):
        if b.name is not None and c.name is not None:
            (doubtful if b.is_doubtful else sure)[c.name] = b.name
    return Alignment(sure, doubtful)


def _agree(baseline: Ops, candidate: Ops) -> bool:
    """Whether no name of both sides has other shapes or another place."""
    return all(baseline.shapes.get(name, shape) == shape for name, shape in candidate.shapes.items()) and all(
        baseline.places.get(name, place) == place for name, place in candidate.places.items()
    )


def with_plain_paths(baseline: Ops, candidate: Ops) -> tuple[Ops, Ops]:
    """Both sides with the names to go by."""
    paths = plain_paths(baseline.types, candidate.types)
    return replace(baseline, paths=paths), replace(candidate, paths=paths)


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
            b.is_doubtful = c.is_doubtful = b.is_doubtful or parent[0].is_doubtful
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
    found = pair_families(ours, theirs)
    for b, c in found.doubtful:
        b.is_doubtful = c.is_doubtful = True
    by_name = found.sure + found.doubtful
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
                mate.is_doubtful = node.is_doubtful = shadow.is_doubtful
                pairs.append((ours.pop(mate.label), theirs.pop(label)))
        bound_ours.update(k for k, node in ours.items() if node.children and k in shadow_b.children)
    for label in (bound_ours | bound_theirs) & ours.keys() & theirs.keys():
        pairs.append((ours.pop(label), theirs.pop(label)))
    free_ours = {k: node for k, node in ours.items() if k not in bound_ours}
    free_theirs = {k: node for k, node in theirs.items() if k not in bound_theirs}
    return pairs, free_ours, free_theirs
