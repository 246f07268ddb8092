"""One selected span and its partner: when, for how long, where, and what launched them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfcompare.tools.timeline.aligned import Aligned
from tfcompare.tools.timeline.drawing import Axis, Viewport, axes
from tfcompare.tools.timeline.run_pair import SideTimeline
from tfcompare.tools.timeline.run_timeline import NONE
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
    return [None if one == NONE else _selected(aligned, number, one) for number, one in enumerate(spans)]


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


def _selected(aligned: Aligned, side: int, span: int) -> Selected:
    timelines = aligned.timelines
    spans = timelines.sides[side].timeline.spans
    row = spans.iloc[span]
    lane = timelines.lane_numbers[side][row["lane"]]
    launch = int(row["launch"])
    on_tpu = "TPU" in str(timelines.sides[side].timeline.lanes["plane"].iloc[int(row["lane"])])
    has_delay = launch != NONE and not on_tpu
    delay_us = (int(row["start_ps"]) - int(spans["start_ps"].iloc[launch])) / PS_PER_US if has_delay else math.nan
    return Selected(
        str(row["name"]), int(timelines.op_rows(side)[span]), str(row["op_name"]),
        _step(timelines.sides[side], int(row["step"])),
        timelines.lanes[lane].label if lane != NONE else "", (int(row["start_ps"]) - aligned.zero_ps[side]) / PS_PER_US,
        int(row["duration_ps"]) / PS_PER_US, int(timelines.self_time_ps[side][span]) / PS_PER_US,
        str(spans["name"].iloc[launch]) if launch != NONE else "", delay_us,
    )  # fmt: skip


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
    spans = aligned.timelines.sides[side].timeline.spans
    lane, row = aligned.timelines.of_row(side, int(aligned.timelines.row_of_span[side][span]))
    if lane == NONE:
        return None
    start, duration = int(spans["start_ps"].iloc[span]), int(spans["duration_ps"].iloc[span])
    return {
        "side": side, "lane": lane, "row": row, "id": span, "start": axis.us(start),
        "duration": duration / PS_PER_US * axis.scale,
    }  # fmt: skip
