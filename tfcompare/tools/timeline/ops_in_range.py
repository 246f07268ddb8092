"""Which ops ran in a range of time, on both sides, and for how long."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcompare.schema.arrays import Floats, Int64
from tfcompare.tools.timeline.run_timeline import HostTimeline
from tfcompare.xspace.compilation import Array, compiled
from tfcompare.xspace.space import PS_PER_US


def wall_times(
    timeline: HostTimeline, lanes: Sequence[int], op: Int64, range_ps: tuple[int, int]
) -> tuple[pd.DataFrame, float]:
    """(the time of each op on these lanes within a range, the share of the range in which any of them ran).

    An instant is divided equally among the lanes on which an op runs then, and counts for the innermost op of each, so
    times add up to the time in which any op ran. `op` is the op of each span, negative for none. Columns, by op:
    `wall_time_us` and `occurrences`, the number of its spans that overlap the range.
    """
    begin, until = range_ps
    spans = timeline.spans
    start, duration = spans["start_ps"].to_numpy(), spans["duration_ps"].to_numpy()
    here = (op >= 0) & np.isin(spans["lane"].to_numpy(), list(lanes)) & (start < until) & (start + duration > begin)
    rows = np.flatnonzero(here)
    low, high = np.maximum(start[rows], begin), np.minimum(start[rows] + duration[rows], until)
    innermost = _segments(spans["lane"].to_numpy()[rows].astype(np.int64), low, high)
    times, busy_ps = _divided(*innermost[:2])
    by_op = np.bincount(op[rows][innermost[2]], times, minlength=int(op.max(initial=-1)) + 1)
    count = np.bincount(op[rows], minlength=len(by_op))
    table = pd.DataFrame({"wall_time_us": by_op / PS_PER_US, "occurrences": count})
    return table[count > 0].rename_axis("op"), busy_ps / max(until - begin, 1)


def _segments(lane: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64, Int64]:
    """(start, end, position of the span) of the stretches in which each span is the innermost of its lane."""
    size = 2 * len(start)
    found = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    count = _innermost(lane, start, end, np.empty(len(start), np.int64), *found)
    return found[0][:count], found[1][:count], found[2][:count]


@compiled
def _innermost(lane: Array, start: Array, end: Array, stack: Array, starts: Array, ends: Array, spans: Array) -> int:
    """Fills the segments; spans are sorted by lane and start, and the one that began last is the innermost."""
    count, depth, at = 0, 0, np.int64(0)
    for i in range(start.size + 1):
        is_new_lane = i == start.size or i == 0 or lane[i] != lane[i - 1]
        while depth > 0 and (is_new_lane or end[stack[depth - 1]] <= start[i]):
            top = stack[depth - 1]
            if end[top] > at:
                starts[count], ends[count], spans[count] = at, end[top], top
                count += 1
                at = end[top]
            depth -= 1
        if i < start.size:
            if depth > 0 and start[i] > at:
                starts[count], ends[count], spans[count] = at, start[i], stack[depth - 1]
                count += 1
            at = start[i] if is_new_lane else max(at, start[i])
            stack[depth] = i
            depth += 1
    return count


def _divided(start: Int64, end: Int64) -> tuple[Floats, int]:
    """(for each segment its time, where segments that overlap share it equally; the time that any of them covers)."""
    edges = np.unique(np.concatenate([start, end]))
    if not len(edges):
        return np.zeros(0), 0
    change = np.zeros(len(edges), np.int64)
    np.add.at(change, np.searchsorted(edges, start), 1)
    np.add.at(change, np.searchsorted(edges, end), -1)
    running, length = np.cumsum(change)[:-1], np.diff(edges)
    share = np.concatenate([[0.0], np.cumsum(np.where(running > 0, length / np.maximum(running, 1), 0.0))])
    return share[np.searchsorted(edges, end)] - share[np.searchsorted(edges, start)], int(length[running > 0].sum())
