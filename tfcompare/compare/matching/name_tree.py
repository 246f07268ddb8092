"""Names as trees of scopes, and the alignment of two sequences of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tfcompare.text import NAMES_KEPT

NameAndType = tuple[str, str]
Place = tuple[int, int]
MeantDigits = frozenset[tuple[str, int]]

MAX_DEPTH = 64
"""Deeper scopes are not split further: the rest of the name is one component."""

GRADIENT_SCOPES = ("gradient_tape", "gradients")
_NUMBERS_REVERSED = re.compile(r"(?:\d{1,9}[._])+")
_UNORDERED = re.compile(
    r"0x[0-9a-fA-F]+"
    r"|\d{10,}"
    r"|(?<=_)\d+(?=__)"
    r"|(?<![0-9A-Za-z])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9A-Za-z])"
)

MOST_MEANT = 16
"""Of more digits in a name, only the last ones count: these are of the innermost scopes, and few names have as many."""
_MEANT = re.compile(
    r"\d+(?:x\d+)+"  # the size of a filter or an image, as in `conv3x3`
    r"|\d+[a-z](?![a-z])"  # dimensions, as in `conv2d`, and branches, as in `mixed_3b`
    r"|(?<![a-z])(?:[fiu]|fp|bf|tf|b?float|[qu]*int|complex)(?:4|8|16|32|64|128)(?!\d)"  # data types, by their bits
    r"|(?<![a-z])v\d+"  # versions
    r"|relu6|mp[34]|h26[45]"
)


@dataclass(frozen=True)
class Ops:
    """The ops of one side by name, with their types and optional further attributes.

    `weights`: each op's time or bytes; `paths`: the name to match by instead of its own; `shapes`: its allocations or
    launches, as text; `places`: its first and last position in the execution order of a step.
    """

    types: Mapping[str, Iterable[str]]
    weights: Mapping[str, float] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One component of a name: a scope, an op, or both.

    `weight` is the op's self time (or bytes), `shape` its shapes, empty if unknown; `place` is where it ends in the
    execution order of a step; `gradient_scopes` are the scopes of its gradients. Once it is matched, `partner` is its
    counterpart on the other side, and `is_doubtful` is whether that match, or one above it, is at most probable.
    """

    label: str
    children: dict[str, Node] = field(default_factory=dict)
    gradient_scopes: list[Node] = field(default_factory=list)
    name: str | None = None
    types: frozenset[str] = frozenset()
    weight: float = 0.0
    shape: str = ""
    shaped: Counter[Hashable] | None = None
    place: Place | None = None
    partner: Node | None = None
    is_doubtful: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """The op's types; an unknown type is taken from the name, because TensorFlow names ops after their type."""
        return frozenset(op_type or family(self.label)[0] for op_type in self.types)


NodePair = tuple[Node, Node]


@lru_cache(maxsize=NAMES_KEPT)
def family(label: str) -> tuple[str, tuple[int, ...], bool]:
    """A name component without trailing numbers, those numbers, and whether it contains unordered ones (hex, ids)."""
    base, replaced = _UNORDERED.subn("#", label)
    numbers = _NUMBERS_REVERSED.match(base[::-1])
    if numbers is None:
        return base, (), replaced > 0
    cut = len(base) - numbers.end()
    return base[:cut], tuple(int(n) for n in re.split("[._]", base[cut + 1 :])), replaced > 0


@lru_cache(maxsize=NAMES_KEPT)
def meant_digits(name: str) -> MeantDigits:
    """The digits in a name that say what the op is, with the letters around them: `3x3`, `2d`, `fp16`, `v2`; each with
    how often it was in the name before.

    They are no counter as in `dense_1` or `block12`, which says only which one of several it is.
    """
    counts = Counter(_MEANT.findall(_UNORDERED.sub("#", name).lower())[-MOST_MEANT:])
    return frozenset((digits, nth) for digits, count in counts.items() for nth in range(count))


def are_other_things(one: str, other: str) -> bool:
    """Whether each name has digits with a meaning that the other lacks, as `conv1x1` and `conv3x3`."""
    return mean_other_things(meant_digits(one), meant_digits(other))


def mean_other_things(ours: MeantDigits, theirs: MeantDigits) -> bool:
    """As `are_other_things`, of the digits of two names."""
    return not (ours <= theirs or theirs <= ours)


def families(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Groups siblings by their label without numbers, each group sorted by number."""
    found: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda n: (family(n.label)[1], n.label)):
        found.setdefault(family(node.label)[0], []).append(node)
    return found


class PathNumbers:
    """A number for each path of labels, 0 for that of none: as texts, all paths of a long name take its square."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}

    def along(self, labels: Iterable[str]) -> list[int]:
        """The paths of no label, of the first, of the first two and so on."""
        path, numbers = 0, self._numbers
        return [path, *[path := numbers.setdefault((path, label), len(numbers) + 1) for label in labels]]

    def below(self, path: int, label: str) -> int:
        """The path with that label behind it."""
        return self._numbers.setdefault((path, label), len(self._numbers) + 1)


def types_of_names(ops: Iterable[NameAndType]) -> dict[str, set[str]]:
    """The op types of each name."""
    types: dict[str, set[str]] = {}
    for name, op_type in ops:
        types.setdefault(name, set()).add(op_type)
    return types


def name_tree(ops: Ops) -> Node:
    """Builds the tree of these ops and returns its root; each scope is linked to the scopes of its gradients."""
    root = Node("")
    for name in sorted(ops.types):
        node, above = root, []
        for label in ops.paths.get(name, name).split("/", MAX_DEPTH):
            above.append(node)
            child = node.children.get(label)
            if child is None:
                child = node.children[label] = Node(label)
            node = child
        node.name, node.types = name, frozenset(ops.types[name])
        node.weight, node.shape = ops.weights.get(name, 0.0), ops.shapes.get(name, "")
        place = ops.places.get(name)
        if place is not None and not any(family(scope.label)[0] in GRADIENT_SCOPES for scope in above):
            for scope in (*above, node):
                known = scope.place
                scope.place = (max(known[0], place[0]), max(known[1], place[1])) if known else place
    _link_gradients(root)
    return root


def shapes_below(node: Node) -> Counter[Hashable]:
    """The known shapes at and below a node and its gradients, counted with their paths and op types."""
    if node.shaped is None:
        node.shaped = Counter()
        for place, top in enumerate([node, *node.gradient_scopes]):
            waiting = [("", top)]
            while waiting:
                path, current = waiting.pop()
                if current.shape:
                    node.shaped[min(place, 1), path, current.types, current.shape] += 1
                waiting += [(f"{path}/{family(k)[0]}", child) for k, child in current.children.items()]
    return node.shaped


def paths_below(node: Node) -> Counter[NameAndType]:
    """Counts the ops below a node by (path without numbers, type), without gradients."""
    below: Counter[NameAndType] = Counter()
    waiting = [("", node)]
    while waiting:
        path, current = waiting.pop()
        below.update((path, op_type) for op_type in current.types)
        waiting += [(f"{path}/{family(k)[0]}", child) for k, child in current.children.items()]
    return below


def kinds_below(node: Node) -> Counter[tuple[int, str]]:
    """Counts the ops of each type below a node (0) and in its gradients (1)."""
    below: Counter[tuple[int, str]] = Counter()
    for place, top in enumerate([node, *node.gradient_scopes]):
        waiting = [top]
        while waiting:
            current = waiting.pop()
            below.update((min(place, 1), kind) for kind in current.kinds)
            waiting += current.children.values()
    return below


def weight_below(node: Node) -> float:
    """The weight of all ops below a node and in its gradients."""
    total, waiting = 0.0, [node, *node.gradient_scopes]
    while waiting:
        current = waiting.pop()
        total += current.weight
        waiting += current.children.values()
    return total


def _link_gradients(root: Node) -> None:
    """Links each scope to the scopes of the same path below a `gradient_tape` beside it or at the top level."""
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
                found.gradient_scopes.append(node)
                waiting.append((node, found))


def agreed_alignment(gains: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The pairs that all optimal alignments of two sequences have in common.

    `gains[i, j]`, at least 0, is the gain of pairing element i of the first sequence with element j of the second.
    Pairs preserve the order of both sequences; unpaired elements cost nothing.
    """
    forward = _best_until(gains)
    backward = _best_until(gains[::-1, ::-1])[::-1, ::-1]
    best = forward[-1, -1]
    can_pair = (gains > 0) & (forward[:-1, :-1] + gains + backward[1:, 1:] == best)
    can_skip = (forward[:-1, :] + backward[1:, :] == best).any(axis=1)
    settled = ~can_skip & (can_pair.sum(axis=1) == 1)
    return [(int(i), int(can_pair[i].argmax())) for i in np.flatnonzero(settled)]


def _best_until(gains: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The maximum total gain of aligning the first i elements with the first j elements, for all i and j."""
    best = np.zeros((gains.shape[0] + 1, gains.shape[1] + 1), dtype=np.int64)
    for i, row in enumerate(gains, start=1):
        best[i, 1:] = np.maximum.accumulate(np.maximum(best[i - 1, 1:], best[i - 1, :-1] + row))
    return best
