"""Executions of tf.data pipelines: the calls of iterators, and which consumer waits for them.

A call is an event `Iterator::…` with an `id`. Its parent is the call that directly encloses it on its thread. A stage
that prefetches on other threads calls iterators within a `<X>Produce` event there. The parent is then the call around
the `<X>Consume` event that took the element: the one with the same `element_id`, in the iterator that the call names as
its parent (`docs/numbers.md`, "tf.data").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfcompare.frames.grouping import any_of, combinations, smallest, sums
from tfcompare.frames.links import directly_around
from tfcompare.frames.nesting import order_by_start, times_without_children
from tfcompare.frames.planes import host_plane, recorded_on
from tfcompare.frames.tf_data.tf_data_functions import RUNS_AHEAD
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.compilation import Array, compiled

MOST_ROWS = 50_000
"""Limit of iterator rows per host. If there are more, only the slowest executions of each pipeline are retained."""

_TO_DEVICE = ("Iterator::Prefetch::Generator", "Iterator::Root::Prefetch::Generator")
_AHEAD_OF_DEVICE = "Iterator::Root::Prefetch"
_PREFIX, _SEPARATOR = "Iterator::", "::"
_CALL, _PRODUCE, _CONSUME = 1, 2, 3
_KIND = {f"{x}Produce": _PRODUCE for x in RUNS_AHEAD} | {f"{x}Consume": _CONSUME for x in RUNS_AHEAD}
_UNKNOWN, _NONE = -2, -1


@dataclass(frozen=True, eq=False)
class Pipelines:
    """Pipelines in order of their first call, one element each.

    `iterator` is the code of its iterator. `feeds_device` says whether it only passes elements of another pipeline to a
    device.
    """

    iterator: Int64
    feeds_device: Bools

    def names(self) -> list[str]:
        """`Host:0`, `Device:0` and so on, numbered separately by kind."""
        number = np.where(self.feeds_device, np.cumsum(self.feeds_device), np.cumsum(~self.feeds_device)) - 1
        return [f"{'Device' if d else 'Host'}:{n}" for d, n in zip(self.feeds_device, number, strict=True)]


@dataclass(frozen=True, eq=False)
class Executions:
    """Executions of pipelines, sorted by start, one element each.

    `call` is the execution's root call, `pipeline` a position, `rank` its rank within the pipeline (0 is the slowest),
    and `is_retained` says whether its iterator rows are stored.
    """

    call: Int64
    pipeline: Int64
    rank: Int64
    latency_ps: Int64
    is_retained: Bools


@dataclass(frozen=True, eq=False)
class IteratorRows:
    """What one iterator did in one retained execution, one element each.

    `first` is its call nearest to the root, the earliest if several tie; `caller` the code of the iterator that made
    this call, −1 for none. `of_call` is the element of every call, −1 for calls in no retained execution.
    """

    execution: Int64
    iterator: Int64
    first: Int64
    caller: Int64
    calls: Int64
    start_ps: Int64
    total_ps: Int64
    self_ps: Int64
    is_waited_for: Bools
    is_bottleneck: Bools
    of_call: Int64


@dataclass(frozen=True, eq=False)
class Analysis:
    """The tf.data activity of one host."""

    calls: Calls
    pipelines: Pipelines
    executions: Executions
    rows: IteratorRows


def analyse(space: XSpace, most_rows: int = MOST_ROWS, around: Int32 | None = None) -> Analysis | None:
    """Analyses the tf.data calls; None if no pipeline was called. Retains at most `most_rows` rows.

    `around` is passed to `find_calls`.
    """
    calls = find_calls(space, around)
    if calls is None or not len(calls.roots):
        return None
    iterators, first = np.unique(calls.iterator[calls.roots], return_index=True)
    iterators = iterators[np.argsort(first)]
    pipelines = Pipelines(iterators, np.isin(calls.ids[iterators], _fed_to_devices(space, calls)))
    executions = find_executions(calls, pipelines, most_rows)
    return Analysis(calls, pipelines, executions, find_rows(calls, pipelines, executions))


def find_executions(calls: Calls, pipelines: Pipelines, most_rows: int = MOST_ROWS) -> Executions:
    """All executions; the slowest ones are retained, as many per pipeline as fit in `most_rows` rows."""
    roots = calls.roots
    pipeline_of_iterator = np.zeros(len(calls.ids), np.int64)
    pipeline_of_iterator[pipelines.iterator] = np.arange(len(pipelines.iterator))
    pipeline = pipeline_of_iterator[calls.iterator[roots]]
    latency = calls.end_ps[roots] - calls.start_ps[roots]
    slowest_first = np.lexsort((-latency, pipeline))
    sorted_pipeline = pipeline[slowest_first]
    rank = np.empty(len(roots), np.int64)
    rank[slowest_first] = np.arange(len(roots)) - np.searchsorted(sorted_pipeline, sorted_pipeline)
    order = np.lexsort((-latency, rank))
    execution = _execution_of_each(calls, roots)
    inside = np.flatnonzero(execution >= 0)
    pairs = np.unique(execution[inside] * len(calls.ids) + calls.iterator[inside])
    iterators = np.bincount(pairs // len(calls.ids), minlength=len(roots))  # of each execution
    retained = order[np.cumsum(iterators[order]) <= most_rows]
    is_retained = np.zeros(len(roots), np.bool_)
    is_retained[retained] = True
    return Executions(roots, pipeline, rank, latency, is_retained)


def find_rows(calls: Calls, pipelines: Pipelines, executions: Executions) -> IteratorRows:
    """The rows of all retained executions, sorted by execution."""
    execution_of_call = _execution_of_each(calls, executions.call)
    counted = np.flatnonzero((execution_of_call >= 0) & executions.is_retained[execution_of_call])
    counted = counted[np.argsort(calls.depth[counted], kind="stable")]
    keys = execution_of_call[counted] * len(calls.ids) + calls.iterator[counted]
    distinct, at, code = np.unique(keys, return_index=True, return_inverse=True)
    first, size = counted[at], len(distinct)
    execution = distinct // len(calls.ids)
    own = sums(code, calls.self_ps[counted], size)
    is_waited_for = any_of(code, calls.is_waited_for[counted], size)
    of_call = np.full(len(calls.row), -1, np.int64)
    of_call[counted] = code
    # The bottleneck of an execution is the iterator that it waited for with the largest self time, if above 0.
    blamed = np.flatnonzero(is_waited_for & ~pipelines.feeds_device[executions.pipeline[execution]] & (own > 0))
    blamed = blamed[np.lexsort((-own[blamed], execution[blamed]))]
    is_bottleneck = np.zeros(size, np.bool_)
    is_bottleneck[blamed[np.unique(execution[blamed], return_index=True)[1]]] = True
    return IteratorRows(
        execution=execution,
        iterator=distinct % len(calls.ids),
        first=first,
        caller=np.where(calls.depth[first] > 0, calls.iterator[calls.above[first]], -1),
        calls=np.bincount(code, minlength=size),
        start_ps=smallest(code, calls.start_ps[counted], size),
        total_ps=sums(code, (calls.end_ps - calls.start_ps)[counted], size),
        self_ps=own,
        is_waited_for=is_waited_for,
        is_bottleneck=is_bottleneck,
        of_call=of_call,
    )


def _fed_to_devices(space: XSpace, calls: Calls) -> Int64:
    """Ids of the pipelines that pass elements of others to a device, found through their generator iterators."""
    is_generator = space.events_named(*_TO_DEVICE)[calls.row]
    if not is_generator.any():
        return np.zeros(0, np.int64)

    def parents_of(rows: Int64) -> Int64:
        parents, are_known = space.numbers_of("parent_id", rows)
        return np.unique(parents[are_known])

    above = parents_of(calls.row[is_generator])
    ahead = np.isin(calls.ids[calls.iterator], above) & space.events_named(_AHEAD_OF_DEVICE)[calls.row]
    return np.concatenate([above, parents_of(calls.row[ahead])])


def _execution_of_each(calls: Calls, roots: Int64) -> Int64:
    """The position in `roots` of each call's root, −1 for calls without one."""
    position = np.full(len(calls.row) + 1, -1, np.int64)  # the last element maps −1 to −1
    position[roots] = np.arange(len(roots))
    return position[calls.root]


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of iterators sorted by start, one element each.

    `row` is the event's row; `around` the row of the event that directly encloses it, −1 for none; `ids[iterator]` the
    iterator's id (as signed); `above` the parent call, −1 for none; `root` the pipeline call it belongs to (itself for
    a pipeline call), −1 for none; `depth` the number of levels below the root. `is_waited_for` says whether it and all
    its ancestors up to the root ran while their parent did. `self_ps` is the time in which none of its children ran.
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
        """The calls of pipelines, sorted by start."""
        return np.flatnonzero(self.root == np.arange(len(self.root)))


def find_calls(space: XSpace, around: Int32 | None = None) -> Calls | None:
    """All calls on the host's threads; None if there are none.

    `around` is the result of `links.directly_around`, computed if not given.
    """
    kinds = np.array([_CALL if n.startswith(_PREFIX) else _KIND.get(n, 0) for n in space.metadata_names], np.int8)
    host = host_plane(space)
    if host is None or not (kinds == _CALL).any():
        return None
    kind = kinds.take(space.events.metadata)
    calls = np.flatnonzero(kind == _CALL)
    kind[calls[~space.numbers_of("id", calls)[1]]] = 0
    chosen = recorded_on(space, host) & (kind > 0)
    if "_a" in space.stat_names:
        chosen &= ~space.has("_a")
    order = np.flatnonzero(chosen).astype(np.int32)
    order_by_start(space.events.line, space.events.start_ps, space.events.duration_ps, order)
    rows = order[kind[order] == _CALL].astype(np.int64)
    if not len(rows):
        return None
    parent = around if around is not None else directly_around(space)
    ids, in_time = space.number_of("id", rows, 0), np.argsort(space.events.start_ps[rows], kind="stable")
    ids, rows = ids[in_time], rows[in_time]
    outer = parent[rows].astype(np.int64)
    parent_row = np.where((outer >= 0) & (kind[outer] == _CALL), outer, _NONE)
    index = np.full(len(space.events) + 1, _NONE, np.int32)  # the last element maps −1 to −1
    index[rows] = np.arange(len(rows))
    _link_threads(space, order, parent, kind, index, parent_row)
    return _calls(space, rows, outer, ids, index[parent_row].astype(np.int64))


def _link_threads(
    space: XSpace, order: Int32, parent: Int32, kind: npt.NDArray[np.int8], index: Int32, parent_row: Int64
) -> None:
    """Fill in `parent_row` of calls made ahead on other threads: the call that consumed the element. `index` maps each
    event to its position in `parent_row`."""
    inside = order[parent[order] >= 0]
    outer = parent[inside]
    is_made = (kind[inside] == _CALL) & (kind[outer] == _PRODUCE)
    is_made &= space.numbers_of("parent_id", inside)[1] & space.numbers_of("element_id", outer)[1]
    is_taken = (kind[inside] == _CONSUME) & (kind[outer] == _CALL) & space.numbers_of("element_id", inside)[1]
    made, producer = inside[is_made], outer[is_made]
    consumer, taker = inside[is_taken], outer[is_taken]
    at = _matching_consumers(
        (space.number_of("parent_id", made, 0), space.number_of("element_id", producer, 0), _end_times(space, made)),
        (space.number_of("id", taker, 0), space.number_of("element_id", consumer, 0), _end_times(space, consumer)),
    )
    parent_row[index[made[at >= 0]]] = taker[at[at >= 0]]


def _end_times(space: XSpace, rows: Int64) -> Int64:
    return space.events.start_ps[rows] + space.events.duration_ps[rows]


def _matching_consumers(produced: tuple[Int64, Int64, Int64], consumed: tuple[Int64, Int64, Int64]) -> Int64:
    """For each produced (id, element, end time), the position of the first consumer of the same id and element not
    before it.

    The last matching consumer if all are before it, −1 if there is none. Ids and elements are reused after an iterator
    is deleted.
    """
    ids, elements = (np.concatenate([produced[i], consumed[i]]) for i in (0, 1))
    key = combinations(ids, elements)[1]
    key_produced, key_consumed = key[: len(produced[0])], key[len(produced[0]) :]
    order = np.lexsort((consumed[2], key_consumed))
    first, last = (np.searchsorted(key_consumed[order], key_produced, side) for side in ("left", "right"))
    position = np.empty(len(key_produced), np.int64)
    _first_from(consumed[2][order], first, last, produced[2], position)
    return np.append(order, _NONE)[position]


def _calls(space: XSpace, rows: Int64, around: Int64, ids: Int64, above: Int64) -> Calls:
    start = space.events.start_ps[rows]
    end = start + space.events.duration_ps[rows]
    distinct, iterator = np.unique(ids, return_inverse=True)
    starts_pipeline = np.array(
        [name.startswith(_PREFIX) and name.count(_SEPARATOR) == 1 for name in space.metadata_names], np.bool_
    )  # the outermost iterators, from which the program fetches elements
    own = times_without_children(start, end - start, np.arange(len(rows), dtype=np.int32), above.astype(np.int32))
    root, depth = np.full(len(rows), _UNKNOWN), np.zeros(len(rows), np.int64)
    is_waited_for = np.zeros(len(rows), np.bool_)
    path = np.empty(len(rows), np.int64)
    _find_roots(start, end, above, starts_pipeline[space.events.metadata[rows]], path, root, depth, is_waited_for)
    return Calls(rows, around, iterator, distinct, start, end, own, above, root, depth, is_waited_for)


@compiled
def _first_from(times: Array, first: Array, last: Array, wanted: Array, position: Array) -> None:
    """`position[i]`: the first of `times[first[i]:last[i]]` (sorted) from `wanted[i]` on, else the last; −1 if none."""
    for i in range(wanted.size):
        at = first[i] + np.searchsorted(times[first[i] : last[i]], wanted[i])
        position[i] = min(at, last[i] - 1) if first[i] < last[i] else _NONE


@compiled
def _find_roots(
    start: Array, end: Array, above: Array, is_root: Array, path: Array, root: Array, depth: Array, is_waited_for: Array
) -> None:
    """Fill in `root` (at first `_UNKNOWN`), `depth` and `is_waited_for`: from each call up to a known one, and down."""
    for call in range(start.size):
        length, at = 0, call
        while at >= 0 and root[at] == _UNKNOWN:
            root[at] = at if is_root[at] else _NONE  # also ends the climb in a cycle
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
