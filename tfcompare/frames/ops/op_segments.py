"""Segments of time in which an op is the innermost one on its thread or stream: they share the time of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow.compute as pc

from tfcompare.frames.nesting import order_by_start
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.steps.activities import NONE, Activity
from tfcompare.frames.steps.steps import Steps
from tfcompare.frames.tf_data.tf_data_functions import TfDataFunctions
from tfcompare.schema import HOST
from tfcompare.schema.arrays import Bools, Int8, Int32, Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.compilation import Array, Int, compiled

PIECES_PER_SEGMENT = 4
PIECES_AT_LEAST = 100_000
"""Limits on the pieces made when tf.data segments are split at steps. Segments that overlap the most steps are dropped
first. No real profile reaches this."""

WORKING, WAITING, AROUND = np.arange(3, dtype=np.int8)
"""Ranks of segments: of ops at work, of ops that wait for others, and of what encloses ops."""


@dataclass(frozen=True, eq=False)
class OpSegments:
    """Segments of ops, one element each.

    `op` is the position among the op rows of all planes; `step` the step whose time the segment may share; `activity`
    an `Activity`; `stage` the op row of the tf.data iterator that it works for, −1 for none. `rank`: `WORKING`,
    `WAITING` or `AROUND`; a segment gets only time in which none of a lower rank runs in the same part of its step.
    """

    op: Int32
    start_ps: Int64
    end_ps: Int64
    step: Int32
    activity: Int8
    rank: Int8
    stage: Int32

    def take(self, chosen: Int32 | Int64) -> OpSegments:
        """The segments at those positions."""
        return OpSegments(*(getattr(self, f.name).take(chosen) for f in fields(self)))


_NOTHING, _NO_TIMES, _NO_BYTES = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int8)
NO_SEGMENTS = OpSegments(_NOTHING, _NO_TIMES, _NO_TIMES, _NOTHING, _NO_BYTES, _NO_BYTES, _NOTHING)


def op_segments(
    space: XSpace, steps: Steps, ops: Sequence[OpEvents], activity: Int8, functions: TfDataFunctions
) -> list[OpSegments]:
    """The segments of all ops that may share the time of a step, clipped to it, of several planes and kinds.

    `activity` is the activity of every event, `NONE` if it explains no time. A segment shares the time of the step that
    caused it; segments of tf.data share that of any step in which they run.
    """
    first = 0
    found = []
    for plane in ops:
        if plane.host_or_device == HOST:
            of_plane = _host_segments(space, steps, plane, activity, functions)
        else:
            of_plane = [_device_segments(space, steps, plane, activity)]
        for segments in of_plane:
            segments.op[:] += first
            segments.stage[segments.stage >= 0] += first
        found += of_plane
        first += len(plane.parts)
    return found


def _device_segments(space: XSpace, steps: Steps, ops: OpEvents, activity: Int8) -> OpSegments:
    at, start, end = innermost(space, ops.rows)
    row = ops.rows.take(at)
    chosen = np.flatnonzero((steps.of_event.take(row) >= 0) & (activity.take(row) != NONE))
    at, row = at.take(chosen), row.take(chosen)
    segments = OpSegments(
        op=ops.part.take(at).astype(np.int32, copy=False),
        start_ps=start.take(chosen),
        end_ps=end.take(chosen),
        step=steps.of_event.take(row),
        activity=activity.take(row),
        rank=np.full(len(at), WORKING, np.int8),
        stage=np.full(len(at), -1, np.int32),
    )
    return clip_to_steps(segments, steps)


def _host_segments(
    space: XSpace, steps: Steps, ops: OpEvents, activity: Int8, functions: TfDataFunctions
) -> list[OpSegments]:
    """The segments of host ops: those of tf.data in every step that they overlap, all others in their own step."""
    op_of_event = np.full(len(space.events) + 1, -1, np.int32)  # the last element maps −1 to −1
    op_of_event[ops.rows] = ops.part
    op_of_event[functions.calls] = op_of_event[functions.caller]  # in a call, the iterator waits for its function
    calls = functions.calls[op_of_event[functions.calls] >= 0]
    rows, events = ops.rows, space.events
    if len(calls):
        rows = np.sort(np.append(rows, calls.astype(np.int32)), kind="stable")  # file order is line by line
        order_by_start(events.line, events.start_ps, events.duration_ps, rows)
    at, start, end = innermost(space, rows)
    row = rows.take(at)
    function = functions.part_around(space, row)
    caller = np.append(functions.part_caller, -1)[function]
    is_iterator, is_waiting, own = (of.take(row) for of in (functions.is_iterator, functions.is_waiting, activity))
    is_tf_data = is_iterator | is_waiting | (function >= 0)
    is_eager_op = np.zeros(len(events), np.bool_)  # host compute, though they explain no part of a step
    is_eager_op[ops.rows] = ops.is_eager
    own[is_eager_op.take(row) & (own == NONE)] = Activity.HOST_COMPUTE
    is_waiting_op = (own == Activity.WAIT_FOR_INPUT) & ~is_tf_data
    is_input = is_tf_data | is_waiting_op
    segments = OpSegments(
        op=op_of_event.take(row),
        start_ps=start,
        end_ps=end,
        step=steps.of_event.take(row),
        activity=np.where(is_input, np.int8(Activity.WAIT_FOR_INPUT), own),
        rank=np.where(is_waiting | is_waiting_op | _runs_instructions(space, ops).take(row), WAITING, WORKING),
        stage=np.where(is_iterator, np.int32(-1), op_of_event.take(caller)),
    )
    of_input = _in_overlapped_steps(segments.take(np.flatnonzero(is_input)), steps)
    others = segments.take(np.flatnonzero(~is_input & (segments.step >= 0) & (own != NONE)))
    return [clip_to_steps(others, steps), clip_to_steps(of_input, steps)]


def _runs_instructions(space: XSpace, ops: OpEvents) -> Bools:
    """Which events are ops that run a compiled program, whose instructions may run on other threads meanwhile."""
    out = np.zeros(len(space.events), np.bool_)
    is_part_instruction = pc.not_equal(ops.parts["part"], "").to_numpy(zero_copy_only=False)
    if not is_part_instruction.any():
        return out
    is_instruction = is_part_instruction[ops.part]
    line, end = space.events.line[ops.rows], ops.start_ps + ops.total_ps
    is_within = (line[1:] == line[:-1]) & (ops.start_ps[1:] < end[:-1])
    callers = np.zeros(len(ops.parts), np.bool_)
    callers[ops.part[:-1][is_within & is_instruction[1:] & ~is_instruction[:-1]]] = True
    out[ops.rows] = callers[ops.part]
    return out


def _in_overlapped_steps(segments: OpSegments, steps: Steps) -> OpSegments:
    """Each segment repeated for every step that it overlaps."""
    if not len(steps.number):
        return segments.take(np.zeros(0, np.int64))
    in_order = np.argsort(steps.start_ps, kind="stable")
    start, reach = steps.start_ps[in_order], np.maximum.accumulate(steps.end_ps[in_order])
    # Each segment overlaps `count` steps, the first of which is number `low` by start time.
    low = np.searchsorted(reach, segments.start_ps, side="right")
    count = np.maximum(np.searchsorted(start, segments.end_ps, side="left") - low, 0)
    fewest_first = np.argsort(count, kind="stable")
    limit = PIECES_PER_SEGMENT * len(count) + PIECES_AT_LEAST
    retained = np.sort(fewest_first[np.cumsum(count[fewest_first]) <= limit])
    low, count = low[retained], count[retained]
    piece = np.repeat(retained, count)
    position = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
    out = segments.take(piece)
    out.step[:] = in_order[position]
    return out


def clip_to_steps(segments: OpSegments, steps: Steps) -> OpSegments:
    """The segments, which have a step and an activity, clipped to their steps in place, without those that are in
    none."""
    start, end = segments.start_ps, segments.end_ps
    np.maximum(start, steps.start_ps.take(segments.step), out=start)
    np.minimum(end, steps.end_ps.take(segments.step), out=end)
    inside = np.flatnonzero(end > start)
    return segments if len(inside) == len(start) else segments.take(inside)


def concat(several: Sequence[OpSegments]) -> OpSegments:
    """The segments of all, one after the other."""
    several = [segments for segments in several if len(segments.op)]
    if len(several) < 2:
        return several[0] if several else NO_SEGMENTS
    return OpSegments(*(np.concatenate([getattr(s, f.name) for s in several]) for f in fields(OpSegments)))


def innermost(space: XSpace, rows: Int32) -> tuple[Int32, Int64, Int64]:
    """(position in `rows`, start, end) of each stretch of an event in which none of the events nested in it runs.

    `rows` are sorted as by `nesting.order_by_start`.
    """
    limit = 2 * len(rows)
    at, start, end = np.empty(limit, np.int32), np.empty(limit, np.int64), np.empty(limit, np.int64)
    stack, since = np.empty(len(rows), np.int32), np.empty(len(rows), np.int64)
    events = space.events
    out = (at, start, end)
    count = _find_innermost(events.line, events.start_ps, events.duration_ps, rows, stack, since, out)
    for column in out:
        column.resize(count, refcheck=False)  # unlike a slice it frees the rest
    return out


@compiled
def _find_innermost(
    line: Array, start: Array, duration: Array, order: Array, stack: Array, since: Array, out: tuple[Array, ...]
) -> Int:
    """`stack` holds positions in `order` of the open events; `since` is when each of them last became the innermost."""
    at, begins, ends = out
    count, depth = np.int64(0), 0
    for i in range(order.size + 1 if order.size else 0):
        is_last = i == order.size
        row = order[0] if is_last else order[i]
        until = start[row] + duration[row]
        while depth > 0:
            top = order[stack[depth - 1]]
            top_end = start[top] + duration[top]
            if not is_last and line[top] == line[row] and until <= top_end:
                break
            if top_end > since[depth - 1]:
                at[count], begins[count], ends[count] = stack[depth - 1], since[depth - 1], top_end
                count += 1
            depth -= 1
            if depth > 0:
                since[depth - 1] = max(since[depth - 1], top_end)
        if is_last:
            break
        if depth > 0:
            if start[row] > since[depth - 1]:
                at[count], begins[count], ends[count] = stack[depth - 1], since[depth - 1], start[row]
                count += 1
            since[depth - 1] = max(since[depth - 1], start[row])
        stack[depth], since[depth] = i, start[row]
        depth += 1
    return count
