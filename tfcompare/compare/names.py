"""Which name of the candidate is which name of the baseline: the renaming that TensorFlow and XLA do on their own.

A model built a second time in one process has `dense_2/MatMul` where the first had `dense/MatMul`; XLA numbers its
fusions anew for each program. Names are paired scope by scope, from the outermost in, so that one renaming holds for
all that lies below a scope. Inside a pair of scopes, names that differ only by their trailing numbers (`dense`,
`dense_1`, `fusion.12`) form a family, and a family of one side is laid against that of the other:

1. The same names on both sides: each is itself.
2. Unequal numbers of members: only equal names pair, the rest stays unpaired, so that no two layers become one.
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

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

NameAndType = tuple[str, str]
Aligner = Callable[[Iterable[NameAndType], Iterable[NameAndType]], dict[str, str]]

MAX_DEPTH = 64
"""Scopes deeper than this are not told apart from their op."""

_GRADIENT_SCOPES = ("gradient_tape", "gradients")
_NUMBERS_REVERSED = re.compile(r"(?:\d{1,9}[._])+")
_UNORDERED = re.compile(
    r"0x[0-9a-fA-F]+"
    r"|\d{10,}"
    r"|(?<=_)\d+(?=__)"
    r"|(?<![0-9A-Za-z])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9A-Za-z])"
)


class _Node:
    """One component of a name: a scope, an op, or both."""

    __slots__ = ("children", "label", "name", "partner", "types")

    def __init__(self, label: str) -> None:
        self.label = label
        self.children: dict[str, _Node] = {}
        self.name: str | None = None
        self.types: frozenset[str] = frozenset()
        self.partner: _Node | None = None


_Pair = tuple[_Node, _Node]


def align_names(baseline: Iterable[NameAndType], candidate: Iterable[NameAndType]) -> dict[str, str]:
    """The baseline's name for each name of the candidate that has a counterpart; no two have the same one.

    Both sides give their ops as (name, op type); a name may come with several types.
    """
    ours, theirs = _types_of_names(baseline), _types_of_names(candidate)
    if ours.keys() == theirs.keys():
        return {name: name for name in theirs}
    pairs = _walk(_tree(ours), _tree(theirs))
    return {c.name: b.name for b, c in pairs if b.name is not None and c.name is not None}


@lru_cache(maxsize=100_000)
def family(label: str) -> tuple[str, tuple[int, ...], bool]:
    """A name component without its trailing numbers, those numbers, and whether it holds some that have no order."""
    base, replaced = _UNORDERED.subn("#", label)
    numbers = _NUMBERS_REVERSED.match(base[::-1])
    if numbers is None:
        return base, (), replaced > 0
    cut = len(base) - numbers.end()
    return base[:cut], tuple(int(n) for n in re.split("[._]", base[cut + 1 :])), replaced > 0


def _types_of_names(ops: Iterable[NameAndType]) -> dict[str, set[str]]:
    types: dict[str, set[str]] = {}
    for name, op_type in ops:
        types.setdefault(name, set()).add(op_type)
    return types


def _tree(types_of_names: dict[str, set[str]]) -> _Node:
    root = _Node("")
    for name in sorted(types_of_names):
        node = root
        for label in name.split("/", MAX_DEPTH):
            child = node.children.get(label)
            if child is None:
                child = node.children[label] = _Node(label)
            node = child
        node.name, node.types = name, frozenset(types_of_names[name])
    return root


def _walk(baseline: _Node, candidate: _Node) -> Iterator[_Pair]:
    """All pairs of nodes. Gradient scopes come last, when the forward scopes that they go by have their partners."""
    root = (baseline, candidate)
    forward: list[tuple[_Pair, list[_Pair]]] = [(root, [])]
    gradients: list[tuple[_Pair, list[_Pair]]] = []
    while forward or gradients:
        parent, shadows = forward.pop() if forward else gradients.pop(0)
        for pair in _pair_children(parent, shadows):
            b, c = pair
            b.partner, c.partner = c, b
            yield pair
            if family(c.label)[0] in _GRADIENT_SCOPES:
                gradients.append((pair, [parent, root]))
            elif b.children and c.children:
                forward.append((pair, _descend(shadows, b.label, c.label)))


def _descend(shadows: list[_Pair], b: str, c: str) -> list[_Pair]:
    return [(sb.children[b], sc.children[c]) for sb, sc in shadows if b in sb.children and c in sc.children]


def _pair_children(parent: _Pair, shadows: list[_Pair]) -> list[_Pair]:
    """The pairs among the children of a pair; `shadows` are the forward scopes that it mirrors, in order of trust."""
    ours, theirs = parent[0].children, parent[1].children
    if shadows:
        pairs, ours, theirs = _pair_like_shadows(dict(ours), dict(theirs), shadows)
    else:
        pairs = []
    if ours.keys() == theirs.keys():
        return pairs + [(node, theirs[label]) for label, node in ours.items()]
    families = _families(theirs)
    for base, members in _families(ours).items():
        pairs += _pair_family(members, families.get(base, []))
    return pairs


def _pair_like_shadows(
    ours: dict[str, _Node], theirs: dict[str, _Node], shadows: list[_Pair]
) -> tuple[list[_Pair], dict[str, _Node], dict[str, _Node]]:
    """Pair scopes as their forward scopes are paired; return the pairs, and what of either side is left to pair.

    A scope whose forward scope has no partner pairs with its own name only: it is another layer than the rest.
    """
    pairs: list[_Pair] = []
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


def _families(children: dict[str, _Node]) -> dict[str, list[_Node]]:
    """Children by their name without numbers, each family in the order of its numbers."""
    families: dict[str, list[_Node]] = {}
    for label in sorted(children, key=lambda k: (family(k)[1], k)):
        families.setdefault(family(label)[0], []).append(children[label])
    return families


def _pair_family(ours: list[_Node], theirs: list[_Node]) -> list[_Pair]:
    """The rules of the module's docstring, for one family; both lists are in order."""
    by_label = {node.label: node for node in theirs}
    same = [(node, by_label[node.label]) for node in ours if node.label in by_label]
    if len(ours) != len(theirs) or len(same) == len(ours):
        return same
    if any(family(node.label)[2] for node in ours + theirs):
        return same + _pair_the_odd_ones(ours, theirs, same)
    in_order = list(zip(ours, theirs, strict=True))
    if sum(b.label == c.label for b, c in in_order) == len(same):
        return in_order
    if _is_gapless(ours) and _is_gapless(theirs) and _likeness(in_order) >= _likeness(same):
        return in_order
    return same


def _pair_the_odd_ones(ours: list[_Node], theirs: list[_Node], same: list[_Pair]) -> list[_Pair]:
    """The one member on either side that has no namesake, where there is just one."""
    if len(same) != len(ours) - 1:
        return []
    labels = {b.label for b, _ in same}
    return [(next(n for n in ours if n.label not in labels), next(n for n in theirs if n.label not in labels))]


def _is_gapless(members: list[_Node]) -> bool:
    numbers = [family(node.label)[1] for node in members]
    firsts = [n[0] if n else 0 for n in numbers]
    return all(after - before <= 1 for before, after in pairwise(firsts))


def _likeness(pairs: list[_Pair]) -> int:
    """How many ops below the pairs have one of the same type at the same place, numbers aside."""
    return sum((_contents(b) & _contents(c)).total() for b, c in pairs)


def _contents(node: _Node) -> Counter[NameAndType]:
    contents: Counter[NameAndType] = Counter()
    below = [("", node)]
    while below:
        path, current = below.pop()
        contents.update((path, op_type) for op_type in current.types)
        below += [(f"{path}/{family(k)[0]}", child) for k, child in current.children.items()]
    return contents
