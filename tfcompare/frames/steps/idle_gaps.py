"""`idle_gaps`: the longest gap of each step in which none of its ops runs, and the ops before and after it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table, texts
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.steps.steps import Steps, some_at_a_time
from tfcompare.schema import DEVICE, HOST
from tfcompare.schema.arrays import Int32, Int64
from tfcompare.xspace import XSpace, lookup
from tfcompare.xspace.space import PS_PER_US


def idle_gaps(space: XSpace, steps: Steps, ops: Sequence[OpEvents]) -> pa.Table:
    """Columns of `schema.IDLE_GAPS` for one host: of all its devices together if any of them ran an op, else of its
    threads.

    No rows if nothing marks steps, and for those that were not recorded as a whole.
    """
    if not steps.has_markers or not len(steps.number):
        return empty("idle_gaps")
    side = DEVICE if any(plane.host_or_device == DEVICE for plane in ops) else HOST
    planes = [plane for plane in ops if plane.host_or_device == side]
    since, length, before, after = _longest_gaps(space, steps, planes)
    names = pa.concat_arrays([*(plane.parts["op_name"] for plane in planes), pa.array([""])]).dictionary_encode()
    code, labels = names.indices.to_numpy(), names.dictionary
    known = np.flatnonzero(~steps.is_lost)
    since, length, before, after = (found.take(known) for found in (since, length, before, after))
    return host_table(
        "idle_gaps",
        {
            "step": steps.number[known],
            "host_or_device": [side] * len(known),
            "start_us": (steps.start_ps[known] + since) / PS_PER_US,
            "duration_us": length / PS_PER_US,
            "op_before": texts(code[before], labels),  # −1, no op, is the last: ""
            "op_after": texts(code[after], labels),
        },
    )


def _longest_gaps(space: XSpace, steps: Steps, planes: Sequence[OpEvents]) -> tuple[Int64, Int64, Int64, Int64]:
    """The longest gap of each step: (start since the step's start, length, op before, op after)."""
    by_step = [lookup.grouped(plane.step, len(steps.number)) for plane in planes]
    count = np.zeros(len(steps.number) + 1, np.int64) + sum(first for first, _ in by_step)
    found = []
    for begin, end in some_at_a_time(count):
        events = [order[first[begin] : first[end]] for first, order in by_step]
        every = np.arange(begin, end)
        found.append(_longest_gap_of_each(every, *_events_of_steps(space, steps, every, planes, events), steps))
    since, length, before, after = (np.concatenate(several) for several in zip(*found, strict=True))
    return since, length, before, after


def _events_of_steps(
    space: XSpace, steps: Steps, every: Int64, planes: Sequence[OpEvents], chosen: Sequence[Int32]
) -> tuple[Int64, Int64, Int64, Int64]:
    """(step, start, end, op) of the events of each plane that are `chosen`, clipped to their step.

    Step and op are positions, the latter over the ops of all planes; times count from the start of the step. The end of
    each of the steps `every` is included as an op of position −1.
    """
    events, first = space.events, 0
    length = steps.end_ps - steps.start_ps
    found = [(every, length[every], length[every], np.full(len(every), -1))]
    for plane, of_plane in zip(planes, chosen, strict=True):
        row, step = plane.rows.take(of_plane), plane.step.take(of_plane).astype(np.int64)
        start = events.start_ps.take(row) - steps.start_ps.take(step)
        end = np.minimum(start + events.duration_ps.take(row), length.take(step))
        np.maximum(start, 0, out=start)
        inside = np.flatnonzero(end > start)
        op = first + plane.part.take(of_plane.take(inside)).astype(np.int64)
        found.append((step.take(inside), start.take(inside), end.take(inside), op))
        first += len(plane.parts)
    step, start, end, op = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return step, start, end, op


def _longest_gap_of_each(
    every: Int64, step: Int64, start: Int64, end: Int64, op: Int64, steps: Steps
) -> tuple[Int64, Int64, Int64, Int64]:
    """As `_longest_gaps`, of the steps `every` with these events.

    Steps are placed on one timeline without overlap, so that a running maximum gives the end of all ops so far.
    """
    origin = steps.origin_ps.take(step)
    order = np.argsort(origin + start, kind="stable")
    step, begins, ends = step.take(order), (origin + start).take(order), (origin + end).take(order)
    reach = np.maximum.accumulate(ends)
    until = np.append(0, reach[:-1])
    origin = origin.take(order)
    gap = begins - np.maximum(until, origin)
    longest = np.maximum.reduceat(gap, np.searchsorted(step, every))
    at = np.flatnonzero(gap == longest.take(step - every[0]))
    at = at[np.searchsorted(step[at], every)]
    lasting = np.flatnonzero(ends == reach)
    last = lasting[np.searchsorted(lasting, at) - 1]  # of the ops before the gap, the one that ends last
    before = np.where(until[at] <= origin[at], -1, op[order[last]])
    return np.maximum(until, origin)[at] - origin[at], gap[at], before, op[order[at]]
