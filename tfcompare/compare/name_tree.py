"""The names of a run's ops as a tree of scopes, and what lies below a scope."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

NameAndType = tuple[str, str]

MAX_DEPTH = 64
"""Scopes deeper than this are not told apart from their op."""

GRADIENT_SCOPES = ("gradient_tape", "gradients")
_NUMBERS_REVERSED = re.compile(r"(?:\d{1,9}[._])+")
_UNORDERED = re.compile(
    r"0x[0-9a-fA-F]+"
    r"|\d{10,}"
    r"|(?<=_)\d+(?=__)"
    r"|(?<![0-9A-Za-z])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9A-Za-z])"
)


class Node:
    """One component of a name: a scope, an op, or both.

    `weight` is the op's own time (or bytes); `echoes` are the scopes of its gradients. `partner` is its counterpart on
    the other side once it has been paired.
    """

    __slots__ = ("children", "echoes", "label", "name", "partner", "types", "weight")

    def __init__(self, label: str) -> None:
        self.label = label
        self.children: dict[str, Node] = {}
        self.echoes: list[Node] = []
        self.name: str | None = None
        self.types: frozenset[str] = frozenset()
        self.weight = 0.0
        self.partner: Node | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The op's types; where no type is known, what its name says it is, as TensorFlow names ops by their type."""
        return frozenset(op_type or family(self.label)[0] for op_type in self.types)


Pair = tuple[Node, Node]


@lru_cache(maxsize=100_000)
def family(label: str) -> tuple[str, tuple[int, ...], bool]:
    """A name component without its trailing numbers, those numbers, and whether it holds some that have no order."""
    base, replaced = _UNORDERED.subn("#", label)
    numbers = _NUMBERS_REVERSED.match(base[::-1])
    if numbers is None:
        return base, (), replaced > 0
    cut = len(base) - numbers.end()
    return base[:cut], tuple(int(n) for n in re.split("[._]", base[cut + 1 :])), replaced > 0


def families(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Siblings by their label without numbers, each family in the order of its numbers."""
    found: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda n: (family(n.label)[1], n.label)):
        found.setdefault(family(node.label)[0], []).append(node)
    return found


def types_of_names(ops: Iterable[NameAndType]) -> dict[str, set[str]]:
    """The types that come with each name."""
    types: dict[str, set[str]] = {}
    for name, op_type in ops:
        types.setdefault(name, set()).add(op_type)
    return types


def name_tree(types: Mapping[str, Iterable[str]], weights: Mapping[str, float] | None = None) -> Node:
    """The root of the tree of these names; each scope knows the scopes of its gradients."""
    root = Node("")
    for name in sorted(types):
        node = root
        for label in name.split("/", MAX_DEPTH):
            child = node.children.get(label)
            if child is None:
                child = node.children[label] = Node(label)
            node = child
        node.name, node.types = name, frozenset(types[name])
        node.weight = weights.get(name, 0.0) if weights else 0.0
    _link_gradients(root)
    return root


def paths_below(node: Node) -> Counter[NameAndType]:
    """The ops below a node: (path without numbers, type) and how often there is one. Gradients are left out."""
    below: Counter[NameAndType] = Counter()
    waiting = [("", node)]
    while waiting:
        path, current = waiting.pop()
        below.update((path, op_type) for op_type in current.types)
        waiting += [(f"{path}/{family(k)[0]}", child) for k, child in current.children.items()]
    return below


def kinds_below(node: Node) -> Counter[tuple[int, str]]:
    """How many ops of each type there are below a node (0) and in its gradients (1)."""
    below: Counter[tuple[int, str]] = Counter()
    for place, top in enumerate([node, *node.echoes]):
        waiting = [top]
        while waiting:
            current = waiting.pop()
            below.update((min(place, 1), kind) for kind in current.kinds)
            waiting += current.children.values()
    return below


def weight_below(node: Node) -> float:
    """The weight of all ops below a node and in its gradients."""
    total, waiting = 0.0, [node, *node.echoes]
    while waiting:
        current = waiting.pop()
        total += current.weight
        waiting += current.children.values()
    return total


def _link_gradients(root: Node) -> None:
    """Give each scope the scopes of its own path below `gradient_tape`, beside it or at the top."""
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        for label, node in parent.children.items():
            if family(label)[0] in GRADIENT_SCOPES:
                for forward in {id(parent): parent, id(root): root}.values():
                    _link(node, forward)
            else:
                waiting.append(node)


def _link(gradients: Node, forward: Node) -> None:
    waiting = [(gradients, forward)]
    while waiting:
        echo, original = waiting.pop()
        for label, node in echo.children.items():
            found = original.children.get(label)
            if found is not None and found.children and node.children:
                found.echoes.append(node)
                waiting.append((node, found))
