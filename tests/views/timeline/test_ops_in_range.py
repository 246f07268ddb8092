"""What ran in a range: an instant belongs to the innermost ops, equally, so that times add up."""

from __future__ import annotations

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
from tfcompare.views.timeline.aligned import align
from tfcompare.views.timeline.drawing import Viewport
from tfcompare.views.timeline.run_timeline import HostTimeline
from tfcompare.views.timeline.selection import range_table, wall_times

SPAN = st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20), st.integers(-1, 3))
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
@given(st.lists(SPAN, max_size=20), RANGE, st.sets(st.integers(0, 3)))
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
