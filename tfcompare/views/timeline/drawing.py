"""What the timeline's drawing is given: rectangles, lanes, steps, drift and selection, in µs of the common axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.matching.kernel_names import kernel_label
from tfcompare.schema.arrays import Bools, Int64, Strings
from tfcompare.views.timeline.aligned import MOST_RECTANGLES, Aligned, Rectangles, rectangles
from tfcompare.views.timeline.run_pair import SideTimeline
from tfcompare.views.timeline.run_timeline import NONE
from tfcompare.xspace.space import PS_PER_US

KINDS = 8
"""Colours of op types; spans that are no op have none (`KINDS`)."""
ROWS_SHOWN = 6
LONG_NAME = 60
"""Letters. Kernels with a longer name are drawn with their label."""
MARGIN = 0.03
"""Of the compared step, shown before and after it."""
_NEUTRAL, _MATCHED, _ALONE, _IN_OP = 0, 1, 2, 3
_FAR_PS = 1 << 60
"""13 days: longer than any profile, and short enough to reckon with in 64 bits."""


@dataclass(frozen=True)
class Viewport:
    """What to look at: a window in µs of the common axis, how wide it is drawn, and what is marked.

    None for the window stands for the compared step. `shift_us` moves the candidate to the right; `stretch` draws its
    step as long as the baseline's. Lanes are shown with `rows` rows; `opened` and `folded` are the positions of those
    shown with all rows, or only the first; others are ignored. `find` marks the spans whose name, op or op type contain
    all of its words.
    """

    window_us: tuple[float, float] | None = None
    width_px: int = 1200
    shift_us: float = 0.0
    stretch: bool = False
    find: str = ""
    rows: int = ROWS_SHOWN
    opened: frozenset[int] = frozenset()
    folded: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Axis:
    """Converts times of one side to µs of the common axis, and back."""

    zero_ps: int
    scale: float
    shift_us: float

    def us(self, time_ps: Any) -> Any:
        """A time of the profile on the common axis."""
        return (time_ps - self.zero_ps) / PS_PER_US * self.scale + self.shift_us

    def ps(self, time_us: float) -> int:
        """A time of the common axis in that of the profile; times that are far away from it are cut."""
        time_ps = round((time_us - self.shift_us) / self.scale * PS_PER_US) + self.zero_ps
        return max(-_FAR_PS, min(time_ps, _FAR_PS))


def axes(aligned: Aligned, look: Viewport) -> list[Axis]:
    """The axis of each side."""
    lengths = aligned.lengths_ps
    scales = [1.0, lengths[0] / lengths[-1] if look.stretch else 1.0]
    shifts = [0.0, look.shift_us]
    return [Axis(*of) for of in zip(aligned.zero_ps, scales, shifts, strict=False)]


def default_window_us(aligned: Aligned, look: Viewport) -> tuple[float, float]:
    """The compared step of both sides with a margin; without steps, from time 0 to the end."""
    on = axes(aligned, look)
    begin = min(axis.us(time) for axis, time in zip(on, aligned.begin_ps, strict=True))
    end = max(axis.us(time) for axis, time in zip(on, aligned.end_ps, strict=True))
    return begin - MARGIN * (end - begin), end + MARGIN * (end - begin)


def drawing(aligned: Aligned, look: Viewport) -> dict[str, Any]:
    """All that is drawn of a window, as JSON values and frames.

    `sides` (names), `lanes` (as `Aligned.lanes`), `steps` (number, start, duration and position of each, by side),
    `compared` (the number of the compared step of each side), `rows` (of a lane that is neither folded nor opened),
    `scales` (how much longer each side is drawn), `is_compared` (whether any span has a partner), `clock` (of two
    hosts: its `error`, as closer events have no known order, and how `late` the second reaches the collective; None for
    runs), `window`, `extents` (first start and last end of each side), `names`, `kinds` (the op types of each colour,
    those that take longest first); the frames `drift` (`at`, `behind`) and `spans`, one row for each rectangle: `side`,
    `lane`, `row`, `start`, `duration`, `busy` (the share of it that spans cover), `count`, `name` (its position in
    `names`; of a long kernel, its label), `op` (the same of its op, −1 if that says no more), `kind` of op type,
    `change` (log2 of candidate ÷ baseline), `status` (0 not compared, 1 matched, 2 only in this run, 3 a kernel of an
    op that is other kernels on the other side: `change` is of all of them), `marked`, and, of single spans, `id` and
    `partner`, their positions in the tables of spans; and `matches`, as `found` returns them. All times are in µs.
    """
    window = look.window_us or default_window_us(aligned, look)
    on = axes(aligned, look)
    frames = [_spans(aligned, look, side, axis, window) for side, axis in enumerate(on)]
    every = pd.concat(frames, ignore_index=True)
    codes, names = pd.factorize(pd.concat([every["name"], every["op"]]))
    name, op = codes[: len(every)], np.where(every["op"] == "", NONE, codes[len(every) :])
    time = (every["duration"] * every["busy"]).groupby([every["kind"], every["op_type"]]).sum()
    longest = time.sort_values(ascending=False, kind="stable").index
    meeting = aligned.meeting
    clock = {"error": meeting.error_us, "late": meeting.late_us} if meeting and meeting.has_clock else None
    drift = aligned.drift((on[0].ps(window[0]) - aligned.zero_ps[0], on[0].ps(window[1]) - aligned.zero_ps[0]))
    return {
        "sides": [side.run for side in aligned.timelines.sides],
        "lanes": aligned.lanes,
        "steps": [_steps(side, axis) for side, axis in zip(aligned.timelines.sides, on, strict=True)],
        "rows": look.rows,
        "scales": [axis.scale for axis in on],
        "clock": clock,
        "is_compared": aligned.has_pairs,
        "compared": list(aligned.steps or ()),
        "window": list(window),
        "extents": [list(map(axis.us, side.extent_ps)) for side, axis in zip(aligned.timelines.sides, on, strict=True)],
        "names": [str(one) for one in names],
        "kinds": [[str(name) for of, name in longest if of == kind] for kind in range(KINDS)],
        "matches": found(aligned, look),
        "drift": drift.set_axis(["at", "behind"], axis=1) / PS_PER_US,
        "spans": every.drop(columns="op_type").assign(name=name.astype(np.int32), op=op.astype(np.int32)),
    }


def _spans(aligned: Aligned, look: Viewport, number: int, axis: Axis, window: tuple[float, float]) -> pd.DataFrame:
    """The rectangles of one side."""
    side = aligned.timelines.sides[number]
    layout, lane = side.layout, aligned.timelines.lane_numbers[number][side.layout.lane]
    shown = np.full(len(aligned.timelines.lanes) + 1, look.rows)
    positions = range(len(aligned.timelines.lanes))
    shown[[one for one in look.opened if one in positions]] = np.iinfo(np.int64).max
    shown[[one for one in look.folded if one in positions]] = 1
    rows = np.flatnonzero((lane != NONE) & (layout.number < shown[lane]))
    low, high = (axis.ps(time) for time in window)
    pixel_ps = (high - low) // max(look.width_px, 1)
    marked, most = _find_spans(side, look.find), MOST_RECTANGLES // len(aligned.timelines.sides)
    drawn = rectangles(layout, rows, (low, high), pixel_ps, aligned.partner_ps[number], marked, most=most)
    spans = side.timeline.spans.iloc[drawn.span]
    is_one = drawn.count == 1
    partner, theirs_ps = np.full(len(is_one), NONE), np.full(len(is_one), NONE)
    if aligned.pairs is not None:
        partner, theirs_ps = (of[number][drawn.span] for of in (aligned.pairs.partner, aligned.pairs.theirs_ps))
    length = np.maximum(drawn.end_ps - drawn.start_ps, 1)
    name, op = _names(aligned, spans, lane[drawn.row])
    return pd.DataFrame(
        {
            "side": np.full(len(is_one), number, np.int8),
            "lane": lane[drawn.row].astype(np.int32),
            "row": layout.number[drawn.row].astype(np.int8),
            "start": axis.us(drawn.start_ps),
            "duration": ((drawn.end_ps - drawn.start_ps) / PS_PER_US * axis.scale),
            "busy": np.minimum(drawn.busy_ps / length, 1.0).astype(np.float32),
            "count": drawn.count.astype(np.int32),
            "name": name,
            "op": op,
            "op_type": spans["op_type"].astype(object).to_numpy(),
            "kind": _kinds(spans["op_type"]),
            "change": _changes(drawn, number),
            "status": np.where(is_one & (theirs_ps != NONE), _IN_OP, _status(drawn)).astype(np.int8),
            "marked": drawn.is_marked.astype(np.int8),
            "id": np.where(is_one, drawn.span, NONE).astype(np.int32),
            "partner": np.where(is_one, partner, NONE).astype(np.int32),
        }
    )


def _names(aligned: Aligned, spans: pd.DataFrame, lane: Int64) -> tuple[Strings, Strings]:
    """What each span and its op are called; an empty text for an op that is named by its span."""
    is_on_host = np.array([pair.is_on_host for pair in aligned.timelines.lanes], np.bool_)[lane]
    names, ops = (spans[column].astype(object) for column in ("name", "op_name"))
    labels, own = [], []
    for name, op, on_host in zip(names, ops, is_on_host, strict=True):
        labels.append(kernel_label(name) if len(name) > LONG_NAME and not on_host else name)
        own.append("" if op == name or (on_host and op in name) else op)
    return np.array(labels, object), np.array(own, object)


def _changes(drawn: Rectangles, side: int) -> npt.NDArray[np.float32]:
    """log2 of the candidate's time ÷ the baseline's, both a picosecond longer, since some events take no time."""
    ours, theirs = (np.log2(times + 1.0) for times in (drawn.matched_ps, drawn.partner_ps))
    change: npt.NDArray[np.float32] = (ours - theirs if side else theirs - ours).astype(np.float32)
    return change


def _status(drawn: Rectangles) -> npt.NDArray[np.int8]:
    """Whether the most of a rectangle's time is matched, or only in this run, or not compared."""
    other = drawn.busy_ps - drawn.matched_ps - drawn.alone_ps
    is_alone = (drawn.alone_ps > drawn.matched_ps) & (drawn.alone_ps > other)
    is_matched = (drawn.matched_ps >= other) & (drawn.matched_ps > 0) & ~is_alone
    return np.where(is_alone, _ALONE, np.where(is_matched, _MATCHED, _NEUTRAL)).astype(np.int8)


def _kinds(op_type: pd.Series) -> npt.NDArray[np.int8]:
    """The colour of each op type, the same in every run."""
    colours = [crc32(text.encode()) % KINDS if text else KINDS for text in op_type.cat.categories.astype(str)]
    return np.array([*colours, KINDS], np.int8)[op_type.cat.codes.to_numpy()]


def _find_spans(side: SideTimeline, text: str) -> Bools:
    """Which spans have every word of a text in their name, op or op type; none for an empty text."""
    spans, words = side.timeline.spans, text.casefold().split()
    marked = np.full(len(spans), bool(words))
    for word in words:
        has = np.zeros(len(spans), np.bool_)
        for column in ("name", "op_name", "op_type"):
            values = spans[column].cat
            has |= np.array([word in str(one).casefold() for one in values.categories], np.bool_)[values.codes]
        marked &= has
    return marked


def found(aligned: Aligned, look: Viewport) -> pd.DataFrame:
    """The spans that `Viewport.find` marks in the compared step, by their start.

    Columns: `side`, `id` (the position in its table of spans), `start` and `duration` in µs of the common axis.
    """
    frames = []
    for number, (side, axis) in enumerate(zip(aligned.timelines.sides, axes(aligned, look), strict=True)):
        spans = side.timeline.spans
        is_shown = aligned.timelines.lane_numbers[number][spans["lane"]] != NONE
        rows = np.flatnonzero(_find_spans(side, look.find) & is_shown & aligned.starts_within(number))
        start, duration = (spans[name].to_numpy()[rows] for name in ("start_ps", "duration_ps"))
        times = {"start": axis.us(start), "duration": duration / PS_PER_US * axis.scale}
        frames.append(pd.DataFrame({"side": np.full(len(rows), number, np.int8), "id": rows.astype(np.int32)} | times))
    return pd.concat(frames).sort_values("start", kind="stable", ignore_index=True)


def _steps(side: SideTimeline, axis: Axis) -> list[list[float]]:
    """Number, start, duration and position of each step."""
    start, duration = axis.us(side.steps["start_ps"]), side.steps["duration_ps"] / PS_PER_US * axis.scale
    columns = side.steps["step"], start, duration, side.steps["position"]
    return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
