"""What is selected on the timeline: a span with its counterpart, or a range with the ops in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tfcompare.compare.diff import change
from tfcompare.schema import DEVICE, HOST, SIDES, SPARSE_CORE
from tfcompare.schema.arrays import Floats, Int64
from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.drawing import Axis, Viewport, axes
from tfcompare.views.timeline.pairs import OP
from tfcompare.views.timeline.run_pair import SideTimeline
from tfcompare.views.timeline.run_timeline import NONE, HostTimeline
from tfcompare.xspace.compilation import Array, compiled
from tfcompare.xspace.space import PS_PER_US


@dataclass(frozen=True)
class Selected:
    """A span of one side. Times are in µs; `start_us` counts from the side's time 0.

    `op` is the row of `op_stats` that it belongs to, `NONE` for none; `step` says which one it is in, empty outside of
    steps; `lane` is the label of its lane; `self_time_us` is that of `Timelines.self_time_ps`. `launched_by` is the
    name of the host's call, empty if unknown, and `delay_us` the time from the begin of that call to the start of the
    span; NaN without a call, and on TPUs, whose clock differs from the host's by up to 0.2 s.
    """

    name: str
    op: int
    op_name: str
    step: str
    lane: str
    start_us: float
    duration_us: float
    self_time_us: float
    launched_by: str
    delay_us: float


def select(aligned: Aligned, side: int, span: int) -> list[Selected | None]:
    """The span and its partner, baseline first, None for a side without; empty if there is no such span."""
    spans = _with_partner(aligned, side, span)
    return [None if one == NONE else _select(aligned, number, one) for number, one in enumerate(spans)]


def most_changed_of(aligned: Aligned, op_name: str) -> tuple[int, int] | None:
    """(side, span) of the op of this name that changed most in the compared step, on a device if it runs there.

    The longest one if none has a partner, as in a run alone. On the baseline if the op runs there; None if it does not
    run in either step.
    """
    return _most_changed(aligned, "op_name", op_name)


def most_changed_kernel(aligned: Aligned, kernel_name: str) -> tuple[int, int] | None:
    """The same of the kernel of this name, as `kernel_stats` names it."""
    return _most_changed(aligned, "name", kernel_name)


def _most_changed(aligned: Aligned, column: str, text: str) -> tuple[int, int] | None:
    lanes = aligned.timelines.lanes
    on_host = np.array([*(pair.is_on_host for pair in lanes), True], np.bool_)
    for number, side in enumerate(aligned.timelines.sides):
        spans, lane = side.timeline.spans, aligned.timelines.lane_numbers[number]
        start, duration = (spans[name].to_numpy() for name in ("start_ps", "duration_ps"))
        is_named = (lane[spans["lane"]] != NONE) & (spans[column] == text).to_numpy() & bool(text)
        rows = np.flatnonzero(aligned.starts_within(number) & is_named)
        if len(rows):
            partner = aligned.partner_ps[number][rows]
            change = np.where(partner >= 0, np.abs(partner - duration[rows]), duration[rows])
            later = on_host[lane[spans["lane"].to_numpy()[rows]]]
            return number, int(rows[np.lexsort((start[rows], -change, later))[0]])
    return None


def _with_partner(aligned: Aligned, side: int, span: int) -> list[int]:
    """The position of the span of each side, `NONE` for none; empty if there is no such span."""
    sides = aligned.timelines.sides
    if not (0 <= side < len(sides) and 0 <= span < len(sides[side].timeline.spans)):
        return []
    if aligned.pairs is None:
        return [span]
    partner = int(aligned.pairs.partner[side][span])
    return [partner, span] if side else [span, partner]


def _step(side: SideTimeline, number: int) -> str:
    """`3 (number 8)`: the position of a step in the run and, if it is another, the number that the program gave it."""
    if number < 0 or not side.has_steps:
        return ""
    position = side.position_of(number)
    return str(position) if position == number else f"{position} (number {number})"


def _select(aligned: Aligned, side: int, span: int) -> Selected:
    timelines = aligned.timelines
    spans = timelines.sides[side].timeline.spans
    row = spans.iloc[span]
    lane = timelines.lane_numbers[side][row["lane"]]
    launch = int(row["launch"])
    on_tpu = "TPU" in str(timelines.sides[side].timeline.lanes["plane"].iloc[int(row["lane"])])
    has_delay = launch != NONE and not on_tpu
    delay_us = (int(row["start_ps"]) - int(spans["start_ps"].iloc[launch])) / PS_PER_US if has_delay else math.nan
    op, step = int(timelines.op_rows(side)[span]), _step(timelines.sides[side], int(row["step"]))
    label = timelines.lanes[lane].label if lane != NONE else ""
    launched_by = _call(spans, span, launch) if launch != NONE else ""
    start_us, duration_us = (
        (int(row["start_ps"]) - aligned.zero_ps[side]) / PS_PER_US,
        int(row["duration_ps"]) / PS_PER_US,
    )
    times = start_us, duration_us, int(timelines.self_time_ps[side][span]) / PS_PER_US
    return Selected(str(row["name"]), op, str(row["op_name"]), step, label, *times, launched_by, delay_us)


def _call(spans: pd.DataFrame, span: int, launch: int) -> str:
    """The name of a launch; if it is that of the launched span, as JAX records it, of the innermost call around it."""
    name, lane, start = (spans[column].iloc[launch] for column in ("name", "lane", "start_ps"))
    if name != spans["name"].iloc[span]:
        return str(name)
    lanes, starts = spans["lane"].to_numpy(), spans["start_ps"].to_numpy()
    first = int(np.searchsorted(lanes, lane))
    around = spans.iloc[first:launch]
    end = start + spans["duration_ps"].iloc[launch]
    is_around = (starts[first:launch] + around["duration_ps"].to_numpy() >= end) & (around["name"] != name).to_numpy()
    return str(around["name"][is_around].iloc[-1]) if is_around.any() else str(name)


def drawn_selection(aligned: Aligned, look: Viewport, side: int, span: int) -> list[dict[str, Any]]:
    """Where the span, its partner, and the calls that launched them are drawn.

    Each has `side`, `lane`, `row`, `start` and `duration` (µs), `id`, and `launch`: the same of the call, None if
    unknown or on a lane that is not shown.
    """
    places = []
    for number, (one, axis) in enumerate(zip(_with_partner(aligned, side, span), axes(aligned, look), strict=False)):
        if one != NONE and (place := _place(aligned, number, one, axis)):
            launch = int(aligned.timelines.sides[number].timeline.spans["launch"].iloc[one])
            places.append(place | {"launch": _place(aligned, number, launch, axis) if launch != NONE else None})
    return places


def _place(aligned: Aligned, side: int, span: int, axis: Axis) -> dict[str, Any] | None:
    timelines, layout = aligned.timelines, aligned.timelines.sides[side].layout
    spans, at = timelines.sides[side].timeline.spans, int(timelines.row_of_span[side][span])
    lane, row = int(timelines.lane_numbers[side][layout.lane[at]]), int(layout.number[at])
    if lane == NONE:
        return None
    start, duration = int(spans["start_ps"].iloc[span]), int(spans["duration_ps"].iloc[span])
    times = {"start": axis.us(start), "duration": duration / PS_PER_US * axis.scale}
    return {"side": side, "lane": lane, "row": row, "id": span} | times


def range_table(aligned: Aligned, look: Viewport, range_us: tuple[float, float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(the ops that ran in the range, the largest change first; how much of the range they cover).

    The first has one row for each op: `host_or_device`, `op_type`, `op_name`, and for each side
    `wall_time_us_<role>`, `occurrences_<role>` (0 where it did not run), and `wall_time_us_delta`. An instant is
    divided equally among the ops that run then at one place (the device, SparseCores, the host), so the times of each
    add up to the time in which any op ran there. The second has `host_or_device` and `<role>`: that time as a share of
    the range.
    """
    timelines = aligned.timelines
    parts, coverage = [], []
    for place in (DEVICE, SPARSE_CORE, HOST):
        sides, shares = [], {}
        for number, (side, axis) in enumerate(zip(timelines.sides, axes(aligned, look), strict=True)):
            here = [pair.lanes[number] for pair in timelines.lanes if pair.place == place]
            lanes = [lane for lane in here if lane is not None]
            range_ps = axis.ps(range_us[0]), axis.ps(range_us[1])
            times, share = wall_times(side.timeline, lanes, timelines.op_rows(number), range_ps)
            sides.append(times.add_suffix(f"_{SIDES[number]}"))
            shares[SIDES[number]] = share
        parts.append(pd.concat(sides, axis=1).fillna(0.0))
        coverage.append({"host_or_device": place} | shares)
    rows = pd.concat(parts)
    table = timelines.op_stats.loc[rows.index, list(OP)].reset_index(drop=True).join(rows.reset_index(drop=True))
    size = table["wall_time_us_baseline"]
    if len(timelines.sides) > 1:
        table["wall_time_us_delta"] = change(table["wall_time_us_baseline"], table["wall_time_us_candidate"])
        size = table["wall_time_us_delta"].abs()
    order = size.sort_values(ascending=False, kind="stable").index
    used = [one for one in coverage if any(one.get(role, 0.0) for role in SIDES)]
    return table.loc[order].reset_index(drop=True), pd.DataFrame(used, columns=["host_or_device", *shares])


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
    times, busy_ps = _divide(*innermost[:2])
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


def _divide(start: Int64, end: Int64) -> tuple[Floats, int]:
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
