"""Two timelines on one axis, with their spans in pairs, and the window that is drawn."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tfcompare.errors import TfcompareError
from tfcompare.schema import DEVICE
from tfcompare.schema.arrays import Bools, Int64
from tfcompare.views.timeline.host_pair import Meeting
from tfcompare.views.timeline.lanes import MOST_ROWS, Layout
from tfcompare.views.timeline.pairs import SpanPairs, span_pairs
from tfcompare.views.timeline.run_pair import SideTimeline, Timelines
from tfcompare.views.timeline.run_timeline import NONE
from tfcompare.xspace.compilation import Array, Int, compiled

IDLE = 0.001
"""A lane that is busy for less than this share of the compared step is idle."""

MOST_DRIFT_POINTS = 600
_MOST_READ = 60_000
"""Points of the drift that one window reads; of more, every n-th."""
MOST_RECTANGLES = 15_000
"""A browser draws this many in about 20 ms."""

NEUTRAL, ALONE = -2, -1
"""In place of a partner's duration: a span that is compared with nothing, and one that only this run has."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """Timelines with a common time 0, and the pairs of their spans.

    `steps` are the compared steps, None without steps. `zero_ps` is the time 0 of each side. What is compared lasts
    from `begin_ps` to `end_ps`: the compared step, wherever time 0 is; without steps, from time 0 to the end of the
    last op that has a partner. `partner_ps` is, for each span of a side, the duration of its partner (or
    `SpanPairs.theirs_ps`), `ALONE` or `NEUTRAL`. The drift is `drift_ps`, counted from `since_ps`, at `drift_at_ps`,
    times of the baseline since its time 0, sorted. `meeting` is where two hosts of one run meet; None for anything
    else.
    """

    timelines: Timelines
    steps: tuple[int, ...] | None
    zero_ps: tuple[int, ...]
    begin_ps: tuple[int, ...]
    end_ps: tuple[int, ...]
    pairs: SpanPairs | None
    partner_ps: tuple[Int64, ...]
    drift_at_ps: Int64
    drift_ps: Int64
    meeting: Meeting | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the compared steps among those of their runs, counted from 1; empty without steps."""
        return tuple(side.position_of(step) for side, step in zip(self.timelines.sides, self.steps or (), strict=False))

    @property
    def since_ps(self) -> tuple[int, ...]:
        """What the drift is counted from: the begin of what is compared; of hosts on one clock, the same instant."""
        return _since(self.begin_ps, self.meeting)

    @property
    def has_pairs(self) -> bool:
        """Whether any span has a partner."""
        return self.pairs is not None and bool((self.pairs.partner[0] != NONE).any())

    def change_of_kernels(self, side: int, span: int) -> float | None:
        """Candidate ÷ baseline of the kernels of a span's op that are others on each side; None for other spans."""
        if self.pairs is None or self.pairs.theirs_ps[side][span] == NONE:
            return None
        own_ps = int(self.timelines.sides[side].timeline.spans["duration_ps"].iloc[span])
        theirs_ps = int(self.pairs.theirs_ps[side][span])
        ours_ps, theirs_ps = (theirs_ps, own_ps) if side else (own_ps, theirs_ps)
        return theirs_ps / ours_ps if ours_ps else None

    def without_pairs(self) -> Aligned:
        """The same of two programs that have nothing to do with each other: no span is compared with any."""
        none = tuple(np.full(len(spans), NONE, np.int64) for spans in self.partner_ps)
        false = tuple(spans != NONE for spans in none)
        pairs = SpanPairs((none[0], none[1]), (false[0], false[1]), (none[0], none[1]))
        neutral = tuple(np.full(len(spans), NEUTRAL, np.int64) for spans in self.partner_ps)
        nothing = np.zeros(0, np.int64)
        return replace(self, pairs=pairs, partner_ps=neutral, drift_at_ps=nothing, drift_ps=nothing)

    @property
    def is_at_meeting(self) -> bool:
        """Whether time 0 is where two hosts meet."""
        return self.meeting is not None and self.zero_ps == self.meeting.zero_ps

    @property
    def lengths_ps(self) -> tuple[int, ...]:
        """How long what is compared lasts, of each side."""
        return tuple(max(end - begin, 1) for begin, end in zip(self.begin_ps, self.end_ps, strict=True))

    def starts_within(self, side: int) -> Bools:
        """Which spans of a side start in the compared step."""
        start = self.timelines.sides[side].timeline.spans["start_ps"].to_numpy()
        within: Bools = (start >= self.begin_ps[side]) & (start < self.end_ps[side])
        return within

    @cached_property
    def lanes(self) -> list[dict[str, Any]]:
        """The lanes: `label`, `rows` of each side, and `idle`: hardly anything runs there in the compared step."""
        timelines = self.timelines
        rows = np.zeros((len(timelines.sides), len(timelines.lanes) + 1), np.int64)
        busy, least_ps = np.zeros(len(timelines.lanes) + 1, np.int64), IDLE * max(self.lengths_ps)
        for number, side in enumerate(timelines.sides):
            layout = side.layout
            lane = timelines.lane_numbers[number][layout.lane]
            np.maximum.at(rows[number], lane, layout.number + 1)
            whole = self.begin_ps[number] + 1, self.end_ps[number] - 1  # not what ends or begins at its borders
            none = np.zeros(len(side.timeline.spans), np.bool_)
            top = np.flatnonzero(layout.number == 0)
            drawn = rectangles(layout, top, whole, whole[1] - whole[0], self.partner_ps[number], none)
            np.add.at(busy, lane[drawn.row], drawn.busy_ps)
        return [
            {"label": pair.label, "rows": rows[:, position].tolist(), "idle": bool(busy[position] <= least_ps)}
            for position, pair in enumerate(timelines.lanes)
        ]

    def drift(self, window_ps: tuple[int, int]) -> pd.DataFrame:
        """How far the candidate is behind the baseline within a window of the baseline's time.

        Columns `at_ps`, since the baseline's time 0, and `behind_ps`, counted from `since_ps` and negative where the
        candidate is ahead. The median of neighbours if there are more than `MOST_DRIFT_POINTS`; but at the borders of
        the compared step it is how far apart these are.
        """
        first, last = np.searchsorted(self.drift_at_ps, window_ps)
        stride = max(1, (last - first) // _MOST_READ)
        part = slice(first, last, stride)
        points = pd.DataFrame({"at_ps": self.drift_at_ps[part], "behind_ps": self.drift_ps[part]})
        if len(points) > MOST_DRIFT_POINTS:
            width = max((window_ps[1] - window_ps[0]) // MOST_DRIFT_POINTS, 1)
            points = points.groupby(points["at_ps"] // width, sort=True).median()
        points = pd.concat([points, self._borders])
        points = points[points["at_ps"].between(*window_ps)]
        return points.sort_values("at_ps", kind="stable", ignore_index=True)

    @property
    def _borders(self) -> pd.DataFrame:
        """The drift at the begin and the end of the compared step; empty where nothing tells any drift."""
        if self.steps is None or not len(self.drift_at_ps):
            return pd.DataFrame({"at_ps": [], "behind_ps": []})
        borders = (self.begin_ps, self.end_ps)
        behind = [(theirs - self.since_ps[1]) - (ours - self.since_ps[0]) for ours, theirs in borders]
        return pd.DataFrame({"at_ps": [ours - self.zero_ps[0] for ours, _ in borders], "behind_ps": behind})


def _since(begin_ps: tuple[int, ...], meeting: Meeting | None) -> tuple[int, ...]:
    return meeting.zero_ps if meeting is not None and meeting.has_clock else begin_ps


def align(
    timelines: Timelines, steps: tuple[int, ...] | None = None, op: int | None = None, meeting: Meeting | None = None
) -> Aligned:
    """Puts time 0 at the start of a step of each side, or of the first span there of an op, a row of `op_stats`.

    Without steps, the typical step of each side. Without an op, time 0 is where hosts meet in that step, if given. If a
    side marks no steps, time 0 is the first span of `op`, or else of the op that takes longest of those that both sides
    have, or else the first span of each side.

    Raises `TfcompareError` if a side has no such step, or no such op in it.
    """
    sides = timelines.sides
    if not timelines.all_have_steps:
        return _without_steps(timelines, op)
    chosen = steps or tuple(side.typical or 0 for side in sides)
    found = [_step(side, number) for side, number in zip(sides, chosen, strict=True)]
    begins = [int(side.steps["start_ps"].iloc[at]) for side, at in zip(sides, found, strict=True)]
    ends = [b + int(side.steps["duration_ps"].iloc[at]) for side, at, b in zip(sides, found, begins, strict=True)]
    zeros = begins if meeting is None else list(meeting.zero_ps)
    if op is not None:
        zeros = [_first_of(timelines, i, op, *window) for i, window in enumerate(zip(begins, ends, strict=True))]
    before, after = min(found), min(len(side.steps) - at for side, at in zip(sides, found, strict=True))
    numbers = []  # of the step of each span, equal for steps compared with each other
    for side, at in zip(sides, found, strict=True):
        compared = side.steps["step"].iloc[at - before : at + after]
        number = pd.Series(np.arange(len(compared)), compared)
        number = number[~number.index.duplicated()]
        numbers.append(side.timeline.spans["step"].map(number).fillna(NONE).to_numpy(np.int64))
    return _with_pairs(timelines, chosen, zeros, begins, ends, numbers, meeting)


def _step(side: SideTimeline, number: int) -> int:
    """The position of a step."""
    at = np.flatnonzero(side.steps["step"] == number)
    if not len(at):
        there = side.steps["step"]
        raise TfcompareError(f"{side.run}: there is no step {number}; steps are {there.min()} to {there.max()}")
    return int(at[0])


def _first_of(timelines: Timelines, side: int, op: int, begin: int, end: int) -> int:
    """The first start of an op within a time."""
    start = timelines.sides[side].timeline.spans["start_ps"].to_numpy()
    there = start[(timelines.op_rows(side) == op) & (start >= begin) & (start < end)]
    if not len(there):
        name = timelines.op_stats["op_name"].iloc[op]
        raise TfcompareError(f"{timelines.sides[side].run}: {name!r} does not start in this step")
    return int(there.min())


def _without_steps(timelines: Timelines, op: int | None) -> Aligned:
    """Aligned at an op; what runs after it is compared as if it were one step."""
    ends = [side.extent_ps[1] for side in timelines.sides]
    candidates = [op] if op is not None else timelines.ops_by_time.index.tolist()
    zeros = [side.extent_ps[0] for side in timelines.sides]
    if len(timelines.sides) > 1 or op is not None:
        for row in candidates:
            try:
                zeros = [_first_of(timelines, i, row, 0, end + 1) for i, end in enumerate(ends)]
                break
            except TfcompareError:
                if op is not None:
                    raise
    starts = [side.timeline.spans["start_ps"].to_numpy() for side in timelines.sides]
    numbers = [np.where(start >= zero, 0, NONE) for start, zero in zip(starts, zeros, strict=True)]
    return _with_pairs(timelines, None, zeros, zeros, ends, numbers)


def _with_pairs(
    timelines: Timelines,
    steps: tuple[int, ...] | None,
    zeros: list[int],
    begins: list[int],
    ends: list[int],
    numbers: list[Int64],
    meeting: Meeting | None = None,
) -> Aligned:
    zero, begin = tuple(zeros), tuple(begins)
    neutral = [np.full(len(side.timeline.spans), NEUTRAL, np.int64) for side in timelines.sides]
    none = np.zeros(0, np.int64)
    if len(timelines.sides) == 1:
        return Aligned(timelines, steps, zero, begin, tuple(ends), None, tuple(neutral), none, none)
    pairs = span_pairs(timelines.known, (numbers[0], numbers[1]))
    durations = [side.timeline.spans["duration_ps"].to_numpy() for side in timelines.sides]
    for side, found in enumerate(neutral):
        partner = pairs.partner[side]
        found[pairs.is_compared[side]] = ALONE
        found[partner >= 0] = durations[1 - side][partner[partner >= 0]]
        theirs_ps = pairs.theirs_ps[side]
        found[theirs_ps >= 0] = theirs_ps[theirs_ps >= 0]
    since = _since(begin, meeting)
    at, behind = _drift(timelines, pairs, since)
    at += since[0] - zeros[0]
    if steps is None and len(at):
        ends = [zeros[0] + int(at[-1]), zeros[1] + int((at + behind).max())]
    return Aligned(timelines, steps, zero, begin, tuple(ends), pairs, tuple(neutral), at, behind, meeting)


def _drift(timelines: Timelines, pairs: SpanPairs, since: tuple[int, ...]) -> tuple[Int64, Int64]:
    """(start or end of a telling span of the baseline, how much later its partner's is), both since these times."""
    rows = telling_spans(timelines, pairs)
    sides = [side.timeline.spans for side in timelines.sides]
    starts, ends = [], []
    for spans, which, begin in zip(sides, (rows, pairs.partner[0][rows]), since, strict=True):
        starts.append(spans["start_ps"].to_numpy()[which] - begin)
        ends.append(starts[-1] + spans["duration_ps"].to_numpy()[which])
    at = np.concatenate([starts[0], ends[0]])
    behind = np.concatenate([starts[1] - starts[0], ends[1] - ends[0]])
    order = np.argsort(at, kind="stable")
    return at[order], behind[order]


def telling_spans(timelines: Timelines, pairs: SpanPairs) -> Int64:
    """The baseline's spans with a partner that tell how far the candidate is behind.

    Ops on devices; if none is matched, ops on the host; where a profile names no ops, as those of JAX on CPUs, spans
    that no other one is within.
    """
    return np.flatnonzero((pairs.partner[0] >= 0) & comparable_spans(timelines, pairs)[0])


def comparable_spans(timelines: Timelines, pairs: SpanPairs) -> tuple[Bools, Bools]:
    """Which spans of both sides are of the kind that `telling_spans` describes, with a partner or without."""
    kinds = [_kinds_of_spans(timelines, side) for side in (0, 1)]
    has_partner = pairs.partner[0] >= 0
    for ours, theirs in zip(*kinds, strict=True):
        if (has_partner & ours).any():
            return ours, theirs
    return np.zeros(len(has_partner), np.bool_), np.zeros(len(pairs.partner[1]), np.bool_)


def _kinds_of_spans(timelines: Timelines, side: int) -> tuple[Bools, Bools, Bools]:
    """Which spans of a side are ops on devices; ops; and those that no other span is within."""
    op, spans = timelines.op_rows(side), timelines.sides[side].timeline.spans
    is_on_device = np.append(timelines.op_stats["host_or_device"] == DEVICE, False)[op]
    lane, start, duration = (spans[name].to_numpy() for name in ("lane", "start_ps", "duration_ps"))
    is_around = (lane[1:] == lane[:-1]) & (start[1:] < (start + duration)[:-1])
    return (op >= 0) & is_on_device, op >= 0, ~np.append(is_around, False)[: len(spans)]


@dataclass(frozen=True, eq=False)
class Rectangles:
    """What to draw: one row for each rectangle, which stands for one span or for several neighbours of a row.

    `row` is a row of the layout, `start_ps` and `end_ps` the extent, `busy_ps` the sum of the durations of its spans,
    `count` their number, and `span` the longest of them. `matched_ps` is the duration of those with a partner,
    `partner_ps` that of the partners, and `alone_ps` that of spans that only this run has. `is_marked`: whether any of
    them is marked.
    """

    row: Int64
    start_ps: Int64
    end_ps: Int64
    busy_ps: Int64
    count: Int64
    span: Int64
    matched_ps: Int64
    partner_ps: Int64
    alone_ps: Int64
    is_marked: Bools


_COLUMNS = [one.name for one in fields(Rectangles)][:-1]


def rectangles(
    layout: Layout,
    rows: Int64,
    window_ps: tuple[int, int],
    pixel_ps: int,
    partner_ps: Int64,
    marked: Bools,
    *,
    most: int = MOST_RECTANGLES,
) -> Rectangles:
    """The rectangles of these `rows` of a layout that overlap a window of time.

    Spans narrower than a pixel that begin within the same pixel of a row are joined. If that leaves more than `most`
    rectangles, pixels are made twice as wide until it does not; each row keeps one at least. `partner_ps` is the
    duration of the partner of each span, or `NEUTRAL` or `ALONE`; `marked` says which spans to mark. Both are in the
    order of the table of spans.
    """
    pixel_ps, most = max(pixel_ps, 1), max(most, len(rows))
    spans = layout.first, layout.number, layout.span, layout.start_ps, layout.end_ps
    while True:
        found = np.zeros((len(_COLUMNS) + 1, most), np.int64)
        count = _join(spans, rows, window_ps, pixel_ps, partner_ps, marked, found)
        if count >= 0:
            columns = dict(zip(_COLUMNS, found[:-1, :count], strict=True))
            return Rectangles(**columns, is_marked=found[-1, :count] > 0)
        pixel_ps *= 2


@compiled
def _join(
    layout: tuple[Array, ...],
    rows: Array,
    window: tuple[Int, Int],
    pixel: Int,
    partner: Array,
    marked: Array,
    out: Array,
) -> int:
    """Fills `out`: `_COLUMNS`, and whether any is marked; returns their number, −1 if too many."""
    first, number, span, start, end = layout
    begin, until = window
    k = -1
    for row in rows:
        at, last = first[row], first[row + 1]
        if number[row] < MOST_ROWS - 1:
            at += np.searchsorted(end[at:last], begin)
        joining, longest = np.int64(-1), np.int64(-1)  # the pixel of spans that may join the rectangle; its longest one
        while at < last and start[at] <= until:
            which, duration = span[at], end[at] - start[at]
            pixel_here = start[at] // pixel if duration < pixel else np.int64(-1)
            if end[at] >= begin:
                if pixel_here < 0 or pixel_here != joining:
                    k += 1
                    if k == out.shape[1]:
                        return -1
                    out[0, k], out[1, k], out[2, k] = row, start[at], end[at]
                    joining, longest = pixel_here, np.int64(-1)
                if duration > longest:
                    longest, out[5, k] = duration, which
                out[2, k] = max(out[2, k], end[at])
                out[3, k] += duration
                out[4, k] += 1
                if partner[which] >= 0:
                    out[6, k] += duration
                    out[7, k] += partner[which]
                elif partner[which] == ALONE:
                    out[8, k] += duration
                out[9, k] |= marked[which]
            at += 1
    return k + 1
