"""Calls of tf.data iterators, and which call led to which.

A call is an event `Iterator::…` with an `id`. It was led to by the call directly around it on its thread. Where a stage
works ahead on threads of its own, the call lies in a `<X>Produce` event there, and belongs to the call around the
`<X>Consume` that took the element: the one with the same `element_id`, in the iterator that the call names as its
parent (`docs/numbers.md`, "tf.data").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfcompare.frames.combinations import combinations
from tfcompare.frames.links import directly_around
from tfcompare.frames.nesting import order_by_start
from tfcompare.frames.planes import host_plane, recorded_on
from tfcompare.frames.tf_data.tf_data_functions import RUNS_AHEAD
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.compilation import Array, compiled

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PREFIX, _SEPARATOR = "Iterator::", "::"
_CALL, _PRODUCE, _CONSUME = 1, 2, 3
_KIND = {f"{x}Produce": _PRODUCE for x in RUNS_AHEAD} | {f"{x}Consume": _CONSUME for x in RUNS_AHEAD}
_UNKNOWN, _NONE = -2, -1


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of iterators in order of their start, one element each.

    `row`: the event's; `around`: the row of the event directly around it, −1 for none; `iterator`: a code, whose id (as
    signed) is `ids[code]`; `above`: the call that led to it, −1 for none; `root`: the call of a pipeline that it
    belongs to in the end, −1 for none, itself for those; `depth`: how far below its root; `is_waited_for`: whether it,
    and all up to its root, ran while the call above did; `self_ps`: time in which nothing that it led to ran.
    """

    row: Int64
    around: Int64
    iterator: Int64
    ids: Int64
    start_ps: Int64
    end_ps: Int64
    self_ps: Int64
    above: Int64
    root: Int64
    depth: Int64
    is_waited_for: Bools

    @property
    def roots(self) -> Int64:
        """The calls of pipelines, in order of their start."""
        return np.flatnonzero(self.root == np.arange(len(self.root)))


def is_pipeline(long_name: str) -> bool:
    """Whether an iterator of this name is what a program asks for elements: no other iterator stands above it."""
    return long_name.startswith(_PREFIX) and long_name.count(_SEPARATOR) == 1


def find_calls(space: XSpace, around: Int32 | None = None) -> Calls | None:
    """All calls on the threads of the host; None where the profile has none. `around`: as `links.directly_around` gives
    it, if that is at hand."""
    kinds = np.array([_kind(name) for name in space.metadata_names], np.int8)
    host = host_plane(space)
    if host is None or not (kinds == _CALL).any():
        return None
    kind = kinds.take(space.events.metadata)
    calls = np.flatnonzero(kind == _CALL)
    kind[calls[~_have_number(space, "id", calls)]] = 0
    order = _in_order(space, kind, host)
    rows = order[kind[order] == _CALL].astype(np.int64)
    if not len(rows):
        return None
    parent = around if around is not None else directly_around(space)
    ids, in_time = space.number_of("id", rows, 0), np.argsort(space.events.start_ps[rows], kind="stable")
    ids, rows = ids[in_time], rows[in_time]
    outer = parent[rows].astype(np.int64)
    led_to_by = np.where((outer >= 0) & (kind[outer] == _CALL), outer, _NONE)
    index = np.full(len(space.events) + 1, _NONE, np.int32)  # the spare last element answers for −1
    index[rows] = np.arange(len(rows))
    _link_threads(space, order, parent, kind, index, led_to_by)
    return _calls(space, rows, outer, ids, index[led_to_by].astype(np.int64))


def _in_order(space: XSpace, kind: npt.NDArray[np.int8], host: Plane) -> Int32:
    """The events of some `kind` on the host's threads, line by line in order of their start."""
    counts = recorded_on(space, host) & (kind > 0)
    if "_a" in space.stat_names:
        counts &= ~space.has("_a")
    rows = np.flatnonzero(counts).astype(np.int32)
    order_by_start(space.events.line, space.events.start_ps, space.events.duration_ps, rows)
    return rows


def _have_number(space: XSpace, name: str, rows: Int32 | Int64) -> Bools:
    """Which of these events have the integer stat."""
    return space.numbers_of(name, rows)[1]


def _kind(name: str) -> int:
    return _CALL if name.startswith(_PREFIX) else _KIND.get(name, 0)


def _link_threads(
    space: XSpace, order: Int32, parent: Int32, kind: npt.NDArray[np.int8], index: Int32, led_to_by: Int64
) -> None:
    """Fill `led_to_by` of calls that were made ahead: by the call that took the element. `index`: of each event, where
    in `led_to_by` it is."""
    inside = order[parent[order] >= 0]
    outer = parent[inside]
    is_made = (kind[inside] == _CALL) & (kind[outer] == _PRODUCE)
    is_made &= _have_number(space, "parent_id", inside) & _have_number(space, "element_id", outer)
    is_taken = (kind[inside] == _CONSUME) & (kind[outer] == _CALL) & _have_number(space, "element_id", inside)
    made, producer = inside[is_made], outer[is_made]
    consumer, taker = inside[is_taken], outer[is_taken]
    at = _first_not_before(
        (space.number_of("parent_id", made, 0), space.number_of("element_id", producer, 0), _ends(space, made)),
        (space.number_of("id", taker, 0), space.number_of("element_id", consumer, 0), _ends(space, consumer)),
    )
    led_to_by[index[made[at >= 0]]] = taker[at[at >= 0]]


def _ends(space: XSpace, rows: Int64) -> Int64:
    return space.events.start_ps[rows] + space.events.duration_ps[rows]


def _first_not_before(made: tuple[Int64, Int64, Int64], taken: tuple[Int64, Int64, Int64]) -> Int64:
    """For each (id, element, time) of `made` the place in `taken` of the first one with the same id and element that is
    not before it, else of the last such one; −1 for none. Ids and elements are used again once an iterator is gone."""
    ids, elements = (np.concatenate([made[i], taken[i]]) for i in (0, 1))
    key = combinations(ids, elements)[1]
    key_made, key_taken = key[: len(made[0])], key[len(made[0]) :]
    order = np.lexsort((taken[2], key_taken))
    first, last = (np.searchsorted(key_taken[order], key_made, side) for side in ("left", "right"))
    place = np.empty(len(key_made), np.int64)
    _search(taken[2][order], first, last, made[2], place)
    return np.append(order, _NONE)[place]


def _calls(space: XSpace, rows: Int64, around: Int64, ids: Int64, above: Int64) -> Calls:
    start = space.events.start_ps[rows]
    end = start + space.events.duration_ps[rows]
    distinct, iterator = np.unique(ids, return_inverse=True)
    starts_pipeline = np.array([is_pipeline(name) for name in space.metadata_names], np.bool_)
    own = end - start
    _take_off(start, end, above, start.copy(), own)
    root, depth = np.full(len(rows), _UNKNOWN), np.zeros(len(rows), np.int64)
    is_waited_for = np.zeros(len(rows), np.bool_)
    path = np.empty(len(rows), np.int64)
    _climb(start, end, above, starts_pipeline[space.events.metadata[rows]], path, root, depth, is_waited_for)
    return Calls(rows, around, iterator, distinct, start, end, own, above, root, depth, is_waited_for)


@compiled
def _search(times: Array, first: Array, last: Array, wanted: Array, place: Array) -> None:
    """`place[i]`: the first of `times[first[i]:last[i]]` (in order) from `wanted[i]` on, else the last; −1 for none."""
    for i in range(wanted.size):
        low, high = first[i], last[i]
        while low < high:
            middle = (low + high) // 2
            if times[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        place[i] = min(low, last[i] - 1) if first[i] < last[i] else _NONE


@compiled
def _take_off(start: Array, end: Array, above: Array, covered: Array, own: Array) -> None:
    """Take from `own` (the durations) the time that the calls below cover, that which several cover once. Calls are in
    order of their start; `covered` begins as a copy of it."""
    for call in range(start.size):
        upper = above[call]
        if upper >= 0:
            begin, until = max(start[call], covered[upper]), min(end[call], end[upper])
            if until > begin:
                own[upper] -= until - begin
                covered[upper] = until


@compiled
def _climb(
    start: Array, end: Array, above: Array, is_root: Array, path: Array, root: Array, depth: Array, is_waited_for: Array
) -> None:
    """Fill `root` (all `_UNKNOWN`), `depth` and `is_waited_for`: from each call up to what is known, and down again."""
    for call in range(start.size):
        length, at = 0, call
        while at >= 0 and root[at] == _UNKNOWN:
            root[at] = at if is_root[at] else _NONE  # a circle ends where it began, at none
            is_waited_for[at] = is_root[at]
            path[length] = at
            length += 1
            at = _NONE if is_root[at] else above[at]
        for i in range(length - 1, -1, -1):
            lower = path[i]
            upper = above[lower]
            if not is_root[lower] and upper >= 0 and root[upper] >= 0:
                overlap = min(end[lower], end[upper]) - max(start[lower], start[upper])
                root[lower] = root[upper]
                depth[lower] = depth[upper] + 1
                is_waited_for[lower] = is_waited_for[upper] and overlap > 0
