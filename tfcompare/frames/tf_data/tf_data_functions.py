"""What tf.data runs, and for which of its iterators: functions such as that of a map run on threads of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.links import directly_around
from tfcompare.frames.nesting import count_begun
from tfcompare.frames.ops.op_names import DATASET, parse_op
from tfcompare.frames.steps import groups as grouping
from tfcompare.xspace import XSpace

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

RUNS_AHEAD = ("Prefetch", "ParallelInterleave", "ParallelMap", "MapAndBatch", "ParseExample", "ParallelBatch")
"""Stages of tf.data that let those before them work on threads of their own, while the step goes on."""

_FUNCTION_PARTS = ("FunctionRun", "ExecutorState::Process", "ExecutorDoneCallback")
_PRODUCE = "Produce"
_SEPARATOR = "::"
_NONE = -1


def runs_ahead(name: str) -> bool:
    """Whether a stage of tf.data, by its long name, works for one that lets it run ahead of the step."""
    stage = name.split(_SEPARATOR)
    return stage[0] == "Iterator" and any(above.startswith(RUNS_AHEAD) for above in stage[1:-1])


@dataclass(frozen=True, eq=False)
class TfDataFunctions:
    """`is_iterator`: of each event, whether it is a call of an iterator, or a stage that a program marks itself;
    `is_waiting`: whether by itself it only waits for what others make; `calls`: rows of the events in which an iterator
    runs a function, and `caller`: a row of that iterator, −1 where the profile does not tell.

    `part_line`, `part_start_ps`, `part_end_ps`, `part_caller`: what the functions' executions consist of, sorted by
    line and start.
    """

    is_iterator: Bools
    is_waiting: Bools
    calls: Int64
    caller: Int64
    part_line: Int32
    part_start_ps: Int64
    part_end_ps: Int64
    part_caller: Int64

    def part_around(self, space: XSpace, rows: Int32 | Int64) -> Int64:
        """The position of the part of a function that each of these events is in, −1 for none."""
        if not len(self.part_line):
            return np.full(len(rows), _NONE)
        line, start = space.events.line[rows], space.events.start_ps[rows]
        begun = count_begun(self.part_line, self.part_start_ps, line, start)
        is_inside = (begun > 0) & (self.part_line[begun - 1] == line) & (start < self.part_end_ps[begun - 1])
        return np.where(is_inside, begun - 1, _NONE)


def tf_data_functions(space: XSpace, around: Int32 | None = None) -> TfDataFunctions:
    """What tf.data runs on this host. `around`: as `links.directly_around` gives it, if that is at hand."""
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
    """(which event metadata entries with events name an iterator; which of those one that works ahead)."""
    is_iterator, is_ahead = (np.zeros(len(space.metadata_names), np.bool_) for _ in range(2))
    for row in np.flatnonzero(space.has_events).tolist():
        name = space.metadata_names[row]
        op = parse_op(name)
        is_iterator[row] = op is not None and op.type == DATASET
        is_ahead[row] = is_iterator[row] and name.rpartition(_SEPARATOR)[2].startswith(RUNS_AHEAD)
    return is_iterator, is_ahead


def _callers(space: XSpace, calls: Int64, around: Int32, is_iterator: Bools) -> Int64:
    """A row of the iterator that each of `calls` is made for: the one around it, or, on a thread of a stage that works
    ahead, the one whose inputs that thread takes."""
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
    """For each `…Produce` event a row of the iterator that it makes elements for: the one that the name of the iterator
    called within leads to."""
    out = np.full(len(space.events) + 1, _NONE)
    inside = iterators[around[iterators] >= 0]
    inside = inside[is_produce[around[inside]]]
    names = space.metadata_names[space.events.metadata[inside]]
    above = {name: name.rpartition(_SEPARATOR)[0] for name in dict.fromkeys(names.tolist())}
    row_of_name: dict[str, int] = {}
    for name in above.values():
        rows = space.rows_named(name)
        row_of_name[name] = int(rows[0]) if len(rows) else _NONE
    out[around[inside]] = [row_of_name[above[name]] for name in names.tolist()]
    return out


def _parts(space: XSpace, calls: Int64, caller: Int64) -> tuple[Int64, Int64]:
    """(rows of what the executions of tf.data's functions consist of, the caller of each): known by the step id of the
    run that started them."""
    rows = space.rows_named(*_FUNCTION_PARTS)
    of_calls, is_told = space.numbers_of("id", calls)
    ids, known = space.numbers_of("id", rows)
    of_run = pd.Series(caller[is_told], of_calls[is_told])
    of_run = of_run[~of_run.index.duplicated(keep="last")]
    known &= np.isin(ids, of_run.index)
    return rows[known], of_run.reindex(ids[known]).to_numpy(np.int64)
