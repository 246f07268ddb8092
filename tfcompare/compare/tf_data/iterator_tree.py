"""The iterators of a tf.data pipeline as a tree, in which each iterator requests elements from its children."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tfcompare.text import NAMES_KEPT

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "Iterator::"
"""The prefix of the long name of every iterator."""

_INDEX = re.compile(r"\[(\d{1,18})\]$")
_VERSION = re.compile(r"V\d+$")
_VARIANT = re.compile(r"^(?:LegacyParallel|Parallel|Forever|Finite|Infinite|Empty)(?=[A-Z])")
_MAKES_ITS_INPUTS = frozenset({"FlatMap", "Interleave", "Repeat"})
_CACHE = re.compile(r"^(?:Memory|File)(?:Cache|CacheImpl|Reader|Writer|ReaderImpl|WriterImpl)$|^Cache(?:Impl)?$")


@dataclass(frozen=True)
class Iterator:
    """One iterator: `iterator` is its type (`Map`), `parent` the id of its consumer, empty at the top.

    `element` describes its output (shapes and types), `calls` is its number of calls, `start_us` the start of the first
    one. These three only decide between pairs that are otherwise equivalent.
    """

    id: str
    parent: str
    iterator: str
    long_name: str = ""
    element: str = ""
    start_us: float = 0.0
    calls: int = 1


@dataclass(frozen=True)
class Tree:
    """Iterators in depth-first order: each before its children, siblings in order.

    `place` is each iterator's index in the sequence given; `last` is the exclusive end of its subtree, which is a
    contiguous range; `inputs` is its index among the named inputs of its parent (of a Zip, for example), −1 if the
    parent has none.
    """

    iterators: tuple[Iterator, ...]
    place: tuple[int, ...]
    parent: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    depth: tuple[int, ...]
    tops: tuple[int, ...]
    inputs: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.iterators)

    @property
    def signature(self) -> list[tuple[int, str, str]]:
        """A key that is equal for two trees if each iterator matches the one at the same position."""
        return [(d, it.iterator, it.element) for d, it in zip(self.depth, self.iterators, strict=True)]


@lru_cache(maxsize=NAMES_KEPT)
def transformation(iterator: str) -> str:
    """The iterator's transformation, regardless of implementation: `Map` for `ParallelMapV2`."""
    name = _VERSION.sub("", iterator).removesuffix("Dataset")
    if _CACHE.match(name):
        return "Cache"
    return _VARIANT.sub("", name) or iterator


def display_name(iterator: str) -> str:
    """The iterator's type without its version number."""
    return _VERSION.sub("", iterator) or iterator


def parent_name(long_name: str) -> str:
    """The long name of the parent iterator, empty for a pipeline's top iterator."""
    above = _INDEX.sub("", long_name.rpartition("::")[0])
    return above if "::" in above else ""


def branch(long_name: str) -> int:
    """The index of the parent's input that it is: 1 in `Iterator::Root::Zip[1]::Map`; −1 if the name has none."""
    found = _INDEX.search(long_name.rpartition("::")[0])
    return int(found.group(1)) if found else -1


def whereabouts(long_names: Iterable[str]) -> dict[str, str]:
    """The shortest part of each long name's parents that distinguishes it from other iterators of its type.

    `FlatMap[1]` for one of two readers, for example; empty if there is no other iterator of that type.
    """
    where: dict[str, str] = {}
    alike, length = list(long_names), 1
    while alike:
        ends = {name: "::".join(name.split("::")[-length:]) for name in alike}
        often = Counter(ends.values())
        where |= {name: end.rpartition("::")[0] for name, end in ends.items() if often[end] == 1 or end == name}
        alike, length = [name for name in alike if name not in where], length + 1
    return where


def tree_of(iterators: Sequence[Iterator]) -> Tree:
    """The iterators as one or more trees; an iterator whose parent is missing or one of its descendants is a root."""
    place_of = {it.id: place for place, it in enumerate(iterators)}
    children: list[list[int]] = [[] for _ in iterators]
    tops: list[int] = []
    for place, it in enumerate(iterators):
        above = place_of.get(it.parent)
        (tops if above is None or above == place else children[above]).append(place)
    order, parent, depth, last, starts = _read(iterators, children, tops)
    if len(order) < len(iterators):  # the remaining iterators form cycles: cut each at its first
        tops = _opened_iterators(children, tops, len(iterators))
        order, parent, depth, last, starts = _read(iterators, children, tops)
    below: list[list[int]] = [[] for _ in parent]
    for here, above_it in enumerate(parent):
        if above_it >= 0:
            below[above_it].append(here)
    return Tree(
        iterators=tuple(iterators[place] for place in order),
        place=tuple(order),
        parent=tuple(parent),
        children=tuple(map(tuple, below)),
        last=tuple(last),
        depth=tuple(depth),
        tops=tuple(starts),
        inputs=tuple(_input(iterators, place, place_of) for place in order),
    )


def _input(iterators: Sequence[Iterator], place: int, place_of: dict[str, int]) -> int:
    """The iterator's `branch`; −1 if its parent creates one input per element, where the number is only a counter."""
    above = place_of.get(iterators[place].parent)
    if above is None or transformation(iterators[above].iterator) in _MAKES_ITS_INPUTS:
        return -1
    return branch(iterators[place].long_name)


def _read(
    iterators: Sequence[Iterator], children: list[list[int]], tops: list[int]
) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """(indices in depth-first order; the parent, depth and subtree end of each; the positions of the roots)."""

    def in_order(places: list[int]) -> list[int]:
        return sorted(places, key=lambda place: _rank(iterators[place]), reverse=True)

    order: list[int] = []
    parent: list[int] = []
    depth: list[int] = []
    waiting = [(place, -1) for place in in_order(tops)]
    while waiting:
        place, above = waiting.pop()
        here = len(order)
        order.append(place)
        parent.append(above)
        depth.append(depth[above] + 1 if above >= 0 else 0)
        waiting += [(child, here) for child in in_order(children[place])]
    last = list(range(1, len(order) + 1))
    for here in range(len(order) - 1, -1, -1):
        if parent[here] >= 0:
            last[parent[here]] = max(last[parent[here]], last[here])
    return order, parent, depth, last, [here for here, above in enumerate(parent) if above < 0]


def _rank(it: Iterator) -> tuple[int, str, str, str, float, str]:
    """The sort key of siblings: by input of the parent, then by transformation, then by time."""
    return branch(it.long_name), transformation(it.iterator), it.iterator, it.element, it.start_us, it.id


def _opened_iterators(children: list[list[int]], tops: list[int], count: int) -> list[int]:
    reached = [False] * count
    out = list(tops)

    def reach(start: int) -> None:
        waiting = [start]
        while waiting:
            place = waiting.pop()
            reached[place] = True
            children[place] = [child for child in children[place] if not reached[child]]
            waiting += children[place]

    for top in tops:
        reach(top)
    for place in range(count):
        if not reached[place]:
            out.append(place)
            reach(place)
    return out


def setting(row: pd.Series, name: str) -> str:
    """One of the `settings` of a row of `tf_data`, empty if it is unknown."""
    parts = (part.partition("=") for part in str(row["settings"]).split(", "))
    return next((value for key, _, value in parts if key == name), "")
