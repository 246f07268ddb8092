"""tf.data pipelines, their executions, and what each iterator did in each execution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcompare.frames.grouping import any_of, sums
from tfcompare.frames.tf_data.tf_data_calls import Calls, find_calls
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace

MOST_ROWS = 50_000
"""Limit of iterator rows per host. If there are more, only the slowest executions of each pipeline are retained."""

_TO_DEVICE = ("Iterator::Prefetch::Generator", "Iterator::Root::Prefetch::Generator")
_AHEAD_OF_DEVICE = "Iterator::Root::Prefetch"


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
    pipelines = find_pipelines(space, calls)
    executions = find_executions(calls, pipelines, most_rows)
    return Analysis(calls, pipelines, executions, find_rows(calls, pipelines, executions))


def find_pipelines(space: XSpace, calls: Calls) -> Pipelines:
    """The pipelines that were called within the profile."""
    of_root = calls.iterator[calls.roots]
    iterators, first = np.unique(of_root, return_index=True)
    iterators = iterators[np.argsort(first)]
    return Pipelines(iterators, np.isin(calls.ids[iterators], _fed_to_devices(space, calls)))


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
    retained = order[np.cumsum(_iterator_counts(calls, roots)[order]) <= most_rows]
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
    start = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(start, code, calls.start_ps[counted])
    own = sums(code, calls.self_ps[counted], size)
    is_waited_for = any_of(code, calls.is_waited_for[counted], size)
    of_call = np.full(len(calls.row), -1, np.int64)
    of_call[counted] = code
    return IteratorRows(
        execution=execution,
        iterator=distinct % len(calls.ids),
        first=first,
        caller=np.where(calls.depth[first] > 0, calls.iterator[calls.above[first]], -1),
        calls=np.bincount(code, minlength=size),
        start_ps=start,
        total_ps=sums(code, (calls.end_ps - calls.start_ps)[counted], size),
        self_ps=own,
        is_waited_for=is_waited_for,
        is_bottleneck=_slowest_waited_for(
            execution, own, is_waited_for & ~pipelines.feeds_device[executions.pipeline[execution]]
        ),
        of_call=of_call,
    )


def _fed_to_devices(space: XSpace, calls: Calls) -> Int64:
    """Ids of the pipelines that pass elements of other pipelines to a device, found through their generator
    iterators."""
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


def _iterator_counts(calls: Calls, roots: Int64) -> Int64:
    """Number of iterators in each execution."""
    execution = _execution_of_each(calls, roots)
    inside = np.flatnonzero(execution >= 0)
    pairs = np.unique(execution[inside] * len(calls.ids) + calls.iterator[inside])
    return np.bincount(pairs // len(calls.ids), minlength=len(roots))


def _slowest_waited_for(execution: Int64, self_ps: Int64, is_candidate: Bools) -> Bools:
    """Which rows are bottlenecks: in each execution, the candidate with the largest self time, if above 0."""
    out = np.zeros(len(execution), np.bool_)
    candidates = np.flatnonzero(is_candidate & (self_ps > 0))
    candidates = candidates[np.lexsort((-self_ps[candidates], execution[candidates]))]
    out[candidates[np.unique(execution[candidates], return_index=True)[1]]] = True
    return out
