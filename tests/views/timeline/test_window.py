"""Joining narrow spans loses no time, no span and no mark; a window or a range shows what overlaps it."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.views.timeline.cases import (
    KERNEL,
    aligned_pair,
    host_run,
    open_alone,
    open_pair,
    spans_table,
    step,
    write_run,
)
from tests.xspace_builder import PS_PER_US, event, line, plane
from tfcompare.schema import DEVICE, HOST
from tfcompare.views.timeline.aligned import ALONE, NEUTRAL, Rectangles, align, rectangles
from tfcompare.views.timeline.drawing import Viewport
from tfcompare.views.timeline.lanes import MOST_ROWS, Layout, lay_out
from tfcompare.views.timeline.run_timeline import HostTimeline
from tfcompare.views.timeline.selection import range_table, wall_times

SUMS = ("busy_ps", "count", "matched_ps", "partner_ps", "alone_ps")
SPAN = st.tuples(st.integers(0, 2), st.integers(0, 200), st.integers(0, 40), st.integers(NEUTRAL, 50), st.booleans())
WINDOW = st.tuples(st.integers(-20, 260), st.integers(-20, 260)).map(lambda ends: (min(ends), max(ends)))
WHOLE = (-1_000, 1_000)


class Drawn:
    """Spans of (lane, start, duration, duration of the partner, is marked), laid out."""

    def __init__(self, spans: list[tuple[int, int, int, int, bool]]) -> None:
        spans = sorted(spans, key=lambda span: (span[0], span[1], -span[2]))
        self.layout = lay_out(spans_table([span[:3] for span in spans]))
        self.partner = np.array([span[3] for span in spans], np.int64)
        self.marked = np.array([span[4] for span in spans], np.bool_)

    def rectangles(
        self, window: tuple[int, int], pixel: int, rows: np.ndarray | None = None, **options: int
    ) -> Rectangles:
        chosen = np.arange(len(self.layout.lane)) if rows is None else rows
        return rectangles(self.layout, chosen, window, pixel, self.partner, self.marked, **options)

    def expected(self, window: tuple[int, int], pixel: int) -> list[dict[str, int]]:
        """The rectangles, the slow way."""
        found = []
        for row, (first, last) in enumerate(zip(self.layout.first[:-1], self.layout.first[1:], strict=True)):
            here = [i for i in range(first, last) if self.start(i) <= window[1] and self.end(i) >= window[0]]
            pixels = [(0, self.start(i) // pixel) if self.length(i) < pixel else (1, i) for i in here]
            for _, group in groupby(zip(pixels, here, strict=True), key=itemgetter(0)):
                found.append(self.joined(row, [i for _, i in group]))
        return found

    def start(self, i: int) -> int:
        return int(self.layout.start_ps[i])

    def end(self, i: int) -> int:
        return int(self.layout.end_ps[i])

    def length(self, i: int) -> int:
        return self.end(i) - self.start(i)

    def joined(self, row: int, group: list[int]) -> dict[str, int]:
        spans = [int(self.layout.span[i]) for i in group]
        partners = self.partner[spans].tolist()
        lengths = [self.length(i) for i in group]
        matched = [length for length, partner in zip(lengths, partners, strict=True) if partner >= 0]
        alone = [length for length, partner in zip(lengths, partners, strict=True) if partner == ALONE]
        return {
            "row": row,
            "start_ps": self.start(group[0]),
            "end_ps": max(map(self.end, group)),
            "busy_ps": sum(lengths),
            "count": len(group),
            "span": spans[lengths.index(max(lengths))],
            "matched_ps": sum(matched),
            "partner_ps": sum(one for one in partners if one >= 0),
            "alone_ps": sum(alone),
            "is_marked": bool(self.marked[spans].any()),
        }


def listed(found: Rectangles) -> list[dict[str, int]]:
    columns = {name: values.tolist() for name, values in asdict(found).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@law(40)
@given(st.lists(SPAN, max_size=40), WINDOW, st.integers(1, 60))
def test_a_window_is_cut_and_joined_as_a_slow_reference_does(spans, window, pixel) -> None:
    drawn = Drawn(spans)
    assert listed(drawn.rectangles(window, pixel)) == drawn.expected(window, pixel)


def sums(layout: Layout, found: Rectangles) -> dict[str, list[int]]:
    """The sums of each row."""
    rows = len(layout.lane)
    return {
        name: np.bincount(found.row, getattr(found, name), minlength=rows).astype(np.int64).tolist() for name in SUMS
    }


@law(40)
@given(st.lists(SPAN, max_size=60), st.integers(3, 12))
def test_pixels_grow_until_the_rectangles_are_few_enough(spans, most) -> None:
    drawn = Drawn(spans)
    top = np.flatnonzero(drawn.layout.number == 0)
    found = drawn.rectangles(WHOLE, 1, top, most=most)
    assert len(found.row) <= most
    assert sums(drawn.layout, found) == sums(drawn.layout, drawn.rectangles(WHOLE, 1, top))


def test_the_smallest_pixel_that_is_coarse_enough_is_taken() -> None:
    drawn = Drawn([(0, 2 * i, 1, NEUTRAL, i == 3) for i in range(16)])
    assert len(drawn.rectangles(WHOLE, 1).row) == 16
    found = drawn.rectangles(WHOLE, 1, most=8)
    assert found.count.tolist() == [2] * 8
    assert found.is_marked.tolist() == [False, True] + [False] * 6


def test_more_rows_than_rectangles_have_one_each() -> None:
    drawn = Drawn([(lane, at, 1, NEUTRAL, False) for lane in range(20) for at in (0, 50)])
    assert drawn.rectangles(WHOLE, 1, most=10).count.tolist() == [2] * 20


def test_rows_that_are_not_asked_for_are_left_out() -> None:
    drawn = Drawn([(0, 0, 10, NEUTRAL, False), (0, 2, 3, NEUTRAL, False), (1, 0, 10, NEUTRAL, False)])
    assert drawn.rectangles(WHOLE, 1, np.array([2])).row.tolist() == [2]


def test_a_window_within_spans_that_share_the_last_row_holds_all_that_overlap_it() -> None:
    depth = MOST_ROWS + 100
    drawn = Drawn([(0, i, 3 * depth - 2 * i, NEUTRAL, False) for i in range(depth)])
    middle = 3 * depth // 2
    assert drawn.rectangles((middle, middle + 1), 1).count.sum() == depth


OP_SPAN = st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20), st.integers(-1, 3))
RANGE = st.tuples(st.integers(-5, 70), st.integers(-5, 70)).map(lambda ends: (min(ends), max(ends) + 1))
LOOK = Viewport()


def timeline_of(spans: list[tuple[int, int, int, int]]) -> tuple[HostTimeline, np.ndarray]:
    """A timeline of spans of (lane, start, duration, op) in ps, and the op of each."""
    spans = sorted(spans, key=lambda span: (span[0], span[1], -span[2]))
    return HostTimeline("host", pd.DataFrame(), spans_table([span[:3] for span in spans]), 0), np.array(
        [span[3] for span in spans], np.int64
    )


def slow_wall_times(
    timeline: HostTimeline, lanes: list[int], op: np.ndarray, time: range
) -> tuple[dict[int, float], int]:
    """(ps of each op, ps in which any ran), instant by instant."""
    times: dict[int, float] = {}
    busy = 0
    rows = list(zip(timeline.spans.itertuples(index=False), op.tolist(), strict=True))
    for at in time:
        innermost: dict[int, int] = {}
        for (lane, start, duration), one in rows:
            if one >= 0 and lane in lanes and start <= at < start + duration:
                innermost[lane] = one  # the one that began last
        busy += bool(innermost)
        for one in innermost.values():
            times[one] = times.get(one, 0.0) + 1 / len(innermost)
    return times, busy


@law(40)
@given(st.lists(OP_SPAN, max_size=20), RANGE, st.sets(st.integers(0, 3)))
def test_times_are_those_of_a_reference_that_looks_at_every_instant(spans, time, lanes) -> None:
    timeline, op = timeline_of(spans)
    found, share = wall_times(timeline, sorted(lanes), op, time)
    expected, busy = slow_wall_times(timeline, sorted(lanes), op, range(*time))
    assert share == pytest.approx(busy / (time[1] - time[0]))
    times = (found["wall_time_us"] * PS_PER_US).to_dict()
    assert {one: value for one, value in times.items() if value > 1e-9} == pytest.approx(expected)
    overlaps = [
        one
        for lane, start, duration, one in zip(*timeline.spans.to_numpy().T, op, strict=True)
        if one >= 0 and lane in lanes and start < time[1] and start + duration > time[0]
    ]
    assert found["occurrences"].to_dict() == {one: overlaps.count(one) for one in set(overlaps)}


def rows_of(table: pd.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return list(table[["op_name", *columns]].itertuples(index=False, name=None))


def test_the_innermost_op_counts_and_parallel_threads_share(tmp_path: Path) -> None:
    outer = [event("a:While", 0, 100), event("a/b:MatMul", 20, 40)]
    alone = host_run(tmp_path, "a", *step(1, 0, 200, *outer))
    lines = [line("python", *step(1, 0, 200, *outer), id=1), line("pool/2", event("c:Relu", 0, 50), id=2)]
    both = align(open_pair(alone, write_run(tmp_path, "b", plane("/host:CPU", *lines))))
    table, coverage = range_table(both, LOOK, (0.0, 200.0))
    assert rows_of(table, "wall_time_us_baseline", "wall_time_us_candidate", "wall_time_us_delta") == [
        ("c", 0.0, 25.0, 25.0),
        ("a/b", 40.0, 25.0, -15.0),
        ("a", 60.0, 50.0, -10.0),
    ]
    assert coverage.to_dict("records") == [{"host_or_device": HOST, "baseline": 0.5, "candidate": 0.5}]


def test_a_range_cuts_spans_and_counts_those_that_overlap_it(tmp_path: Path) -> None:
    run = host_run(tmp_path, "a", *step(1, 1_000, 100, *(event("a:MatMul", at, 8) for at in (0, 10, 20, 30))))
    table, coverage = range_table(align(open_alone(run)), LOOK, (4.0, 24.0))
    assert rows_of(table, "wall_time_us_baseline", "occurrences_baseline") == [("a", 16.0, 3)]
    assert coverage.to_dict("records") == [{"host_or_device": HOST, "baseline": 0.8}]
    assert "wall_time_us_delta" not in table


def test_device_and_host_are_measured_apart(tmp_path: Path) -> None:
    host = line("python", *step(1, 0, 100, event("x:Conv2D", 10, 30)), id=1)
    stream = line("Stream #1", event("conv", 20, 30, KERNEL | {"tf_op": "x:Conv2D"}), id=7)
    run = write_run(tmp_path, "a", plane("/host:CPU", host), plane("/device:GPU:0", stream))
    aligned = align(open_alone(run), (1,))
    begin = -aligned.zero_ps[0] / PS_PER_US
    table, coverage = range_table(aligned, LOOK, (begin, begin + 100))
    assert rows_of(table.sort_values("host_or_device"), "host_or_device", "wall_time_us_baseline") == [
        ("x", DEVICE, 30.0),
        ("x", HOST, 30.0),
    ]
    assert coverage.to_dict("records") == [
        {"host_or_device": DEVICE, "baseline": 0.3},
        {"host_or_device": HOST, "baseline": 0.3},
    ]


def test_a_range_without_ops_is_empty() -> None:
    table, coverage = range_table(aligned_pair("filters_512_128", "filters_16_8"), LOOK, (1e9, 1e9 + 1))
    assert (len(table), len(coverage)) == (0, 0)
