"""Functions that tf.data runs on its own threads, such as that of a map, and the iterator that each runs for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcompare.frames.links import directly_around
from tfcompare.frames.nesting import count_started
from tfcompare.frames.ops.op_names import DATASET, named_ops
from tfcompare.frames.steps import groups as grouping
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace, lookup

RUNS_AHEAD = ("Prefetch", "ParallelInterleave", "ParallelMap", "MapAndBatch", "ParseExample", "ParallelBatch")
"""Stages of tf.data that run their inputs on background threads, in parallel with the step."""

_FUNCTION_PARTS = ("FunctionRun", "ExecutorState::Process", "ExecutorDoneCallback")
_PRODUCE = "Produce"
_SEPARATOR = "::"
_NONE = -1


def runs_ahead(name: str) -> bool:
    """Whether the iterator of this long name feeds a stage that runs its inputs on background threads."""
    stage = name.split(_SEPARATOR)
    return stage[0] == "Iterator" and any(above.startswith(RUNS_AHEAD) for above in stage[1:-1])


@dataclass(frozen=True, eq=False)
class TfDataFunctions:
    """The events of tf.data on one host.

    `is_iterator` says whether each event is a call of an iterator, or a stage that the program marks itself;
    `is_waiting` whether its self time is only waiting for others. `calls` are the rows of events in which an iterator
    runs a function, `caller` a row of that iterator, −1 if unknown.

    `part_line`, `part_start_ps`, `part_end_ps` and `part_caller` describe the events that make up the functions'
    executions, sorted by line and start.
    """

    is_iterator: Bools
    is_waiting: Bools
    calls: Int64
    caller: Int64
    part_line: Int32
    part_start_ps: Int64
    part_end_ps: Int64
    part_caller: Int64

    def part_around(self, space: XSpace, rows: Int32 | Int64) -> Int32:
        """The position of the function part that contains each of these events, −1 for none."""
        if not len(self.part_line):
            return np.full(len(rows), _NONE, np.int32)
        line, start = space.events.line.take(rows), space.events.start_ps.take(rows)
        last = count_started(self.part_line, self.part_start_ps, line, start) - 1
        is_inside = (last >= 0) & (self.part_line.take(last) == line) & (start < self.part_end_ps.take(last))
        return np.where(is_inside, last, np.int32(_NONE))


def tf_data_functions(space: XSpace, around: Int32 | None = None) -> TfDataFunctions:
    """The functions that tf.data runs on this host.

    `around` is the result of `links.directly_around`, computed if not given.
    """
    calls = space.rows_named(*grouping.TF_DATA_RUNS)
    is_iterator, is_ahead = (flags[space.events.metadata] for flags in _iterator_names(space))
    caller = np.full(len(calls), _NONE)
    if len(calls):
        caller = _callers(space, calls, around if around is not None else directly_around(space), is_iterator)
    parts, part_caller = _parts(space, calls, caller)
    line, start = space.events.line[parts], space.events.start_ps[parts]
    order = np.lexsort((start, line))
    is_iterator |= space.has("_ipl_stage_id")
    is_ahead[calls] = True
    return TfDataFunctions(
        is_iterator=is_iterator,
        is_waiting=is_ahead,
        calls=calls,
        caller=caller,
        part_line=line[order],
        part_start_ps=start[order],
        part_end_ps=(start + space.events.duration_ps[parts])[order],
        part_caller=part_caller[order],
    )


def _iterator_names(space: XSpace) -> tuple[Bools, Bools]:
    """(whether each event metadata entry with events names an iterator, whether one that runs its inputs ahead)."""
    is_iterator, is_ahead = (np.zeros(len(space.metadata_names), np.bool_) for _ in range(2))
    for row, op in enumerate(named_ops(space)):
        if op is not None and op.type == DATASET:
            is_iterator[row] = True
            is_ahead[row] = space.metadata_names[row].rpartition(_SEPARATOR)[2].startswith(RUNS_AHEAD)
    return is_iterator, is_ahead


def _callers(space: XSpace, calls: Int64, around: Int32, is_iterator: Bools) -> Int64:
    """A row of the iterator that makes each of `calls`: the enclosing one, or on a prefetching thread the consumer."""
    is_produce = np.array([name.endswith(_PRODUCE) for name in space.metadata_names], np.bool_)[space.events.metadata]
    ahead = _consumers(space, np.flatnonzero(is_iterator), around, is_produce)
    out, at = np.full(len(calls), _NONE), around[calls].astype(np.int64)
    while (at >= 0).any():
        found = (at >= 0) & (is_iterator[at] | is_produce[at])
        own = np.where(is_iterator[at], at, ahead[at])
        out[found] = own[found]
        at = np.where((at >= 0) & ~found, around[at], _NONE)
    return out


def _consumers(space: XSpace, iterators: Int64, around: Int32, is_produce: Bools) -> Int64:
    """For each `…Produce` event, a row of the iterator that it produces for: the parent, by name, of the one in it."""
    out = np.full(len(space.events) + 1, _NONE)
    inside = iterators[around[iterators] >= 0]
    inside = inside[is_produce[around[inside]]]
    names = space.metadata_names[space.events.metadata[inside]]
    above = {name: name.rpartition(_SEPARATOR)[0] for name in dict.fromkeys(names.tolist())}
    row_of_name = {name: np.append(space.rows_named(name)[:1], _NONE)[0] for name in above.values()}
    out[around[inside]] = [row_of_name[above[name]] for name in names.tolist()]
    return out


def _parts(space: XSpace, calls: Int64, caller: Int64) -> tuple[Int64, Int64]:
    """(rows of the events that make up executions of tf.data's functions, by the step id of the run that started them;
    the caller of each)."""
    rows = space.rows_named(*_FUNCTION_PARTS)
    of_calls, has_id = space.numbers_of("id", calls)
    ids, known = space.numbers_of("id", rows)
    run = lookup.last_rows(of_calls[has_id], ids)
    known &= run >= 0
    return rows[known], caller[has_id][run[known]]
