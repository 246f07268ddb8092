"""The iterators of a tf.data pipeline as a tree: who asks whom for elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "Iterator::"
"""What the long name of every iterator begins with."""

_INDEX = re.compile(r"\[(\d{1,18})\]$")
_VERSION = re.compile(r"V\d+$")
_VARIANT = re.compile(r"^(?:LegacyParallel|Parallel|Forever|Finite|Infinite|Empty)(?=[A-Z])")
_MAKES_ITS_INPUTS = frozenset({"FlatMap", "Interleave", "Repeat"})
_CACHE = re.compile(r"^(?:Memory|File)(?:Cache|CacheImpl|Reader|Writer|ReaderImpl|WriterImpl)$|^Cache(?:Impl)?$")


@dataclass(frozen=True)
class Iterator:
    """One iterator: `iterator` is its type (`Map`), `parent` the id of the one that asks it, empty at the top.

    `element` tells what it makes (shapes and types), `calls` how often it was asked, `start_us` when first; they only
    settle between pairs that are alike otherwise.
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
    """Iterators in the order in which a tree is read: each before those below it, siblings in order.

    `place` is where each was among those given; `last` the end of its subtree, exclusive: a subtree is a range;
    `inputs` which of the inputs that were written down it is (of a Zip, say), −1 where that is not so.
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
        """Equal for two trees of which each iterator is the counterpart of the one at its place."""
        return [(d, it.iterator, it.element) for d, it in zip(self.depth, self.iterators, strict=True)]


@lru_cache(maxsize=10_000)
def transformation(iterator: str) -> str:
    """What an iterator does, however it is done: `Map` for `ParallelMapV2`, `Repeat` for `ForeverRepeat`."""
    name = _VERSION.sub("", iterator).removesuffix("Dataset")
    if _CACHE.match(name):
        return "Cache"
    return _VARIANT.sub("", name) or iterator


@lru_cache(maxsize=10_000)
def display_name(iterator: str) -> str:
    """The iterator's type as people call it: without the number of its version."""
    return _VERSION.sub("", iterator) or iterator


def parent_name(long_name: str) -> str:
    """The long name of the iterator above, empty for a pipeline's own."""
    above = _INDEX.sub("", long_name.rpartition("::")[0])
    return above if "::" in above else ""


def branch(long_name: str) -> int:
    """Which input of the iterator above it is: 1 in `Iterator::Root::Zip[1]::Map`; −1 where the name does not tell."""
    found = _INDEX.search(long_name.rpartition("::")[0])
    return int(found.group(1)) if found else -1


def whereabouts(long_names: Iterable[str]) -> dict[str, str]:
    """For each long name as much of what is above as tells it from others of its type: `FlatMap[1]` for one of two
    readers, nothing where there is no other."""
    where: dict[str, str] = {}
    alike, length = list(long_names), 1
    while alike:
        ends = {name: "::".join(name.split("::")[-length:]) for name in alike}
        often = Counter(ends.values())
        where |= {name: end.rpartition("::")[0] for name, end in ends.items() if often[end] == 1 or end == name}
        alike, length = [name for name in alike if name not in where], length + 1
    return where


def tree_of(iterators: Sequence[Iterator]) -> Tree:
    """The iterators as a tree (or several): one whose parent is not there, or below itself, is at the top."""
    place_of = {it.id: place for place, it in enumerate(iterators)}
    children: list[list[int]] = [[] for _ in iterators]
    tops: list[int] = []
    for place, it in enumerate(iterators):
        above = place_of.get(it.parent)
        (tops if above is None or above == place else children[above]).append(place)
    order, parent, depth, last, starts = _read(iterators, children, tops)
    if len(order) < len(iterators):  # what is left leads in circles: cut each open at its first
        tops = _opened(children, tops, len(iterators))
        order, parent, depth, last, starts = _read(iterators, children, tops)
    return Tree(
        iterators=tuple(iterators[place] for place in order),
        place=tuple(order),
        parent=tuple(parent),
        children=_children(parent),
        last=tuple(last),
        depth=tuple(depth),
        tops=tuple(starts),
        inputs=tuple(_input(iterators, place, place_of) for place in order),
    )


def _input(iterators: Sequence[Iterator], place: int, place_of: dict[str, int]) -> int:
    """Its `branch`, −1 below one that makes an input of each element: the number is only a count of these."""
    above = place_of.get(iterators[place].parent)
    if above is None or transformation(iterators[above].iterator) in _MAKES_ITS_INPUTS:
        return -1
    return branch(iterators[place].long_name)


def _read(
    iterators: Sequence[Iterator], children: list[list[int]], tops: list[int]
) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """(places in reading order, and for each of them parent, depth, end of its subtree; where the tops are)."""

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
    """The order of siblings: by input of the iterator above, else by what they do, else by time."""
    return branch(it.long_name), transformation(it.iterator), it.iterator, it.element, it.start_us, it.id


def _opened(children: list[list[int]], tops: list[int], count: int) -> list[int]:
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


def _children(parent: list[int]) -> tuple[tuple[int, ...], ...]:
    out: list[list[int]] = [[] for _ in parent]
    for here, above in enumerate(parent):
        if above >= 0:
            out[above].append(here)
    return tuple(tuple(below) for below in out)


def setting(row: pd.Series, name: str) -> str:
    """One of the `settings` of a row of `tf_data`, empty where it is unknown."""
    parts = (part.partition("=") for part in str(row["settings"]).split(", "))
    return next((value for key, _, value in parts if key == name), "")
