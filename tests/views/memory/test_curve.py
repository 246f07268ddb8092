"""A memory over time: thinned without losing what a reader looks for, laid over steps, whole for a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law, mostly_thorough
from tests.memory_runs import allocate, free, loaded, step, work
from tests.profiles import EACH_KIND, loaded_run
from tfcompare.run import Run
from tfcompare.views.memory import curve as memory_series
from tfcompare.views.memory.curve import Memory, line_of, peak_of, step_positions, thin, timeline_parts, typical_step

GPU = Memory("vm", "gpu")


def steps(*spans: tuple[float, float]) -> pd.DataFrame:
    frame = pd.DataFrame(spans, columns=["start_us", "duration_us"])
    return frame.assign(host_start_us=frame["start_us"], host_span_us=frame["duration_us"])


# Thinning


def test_a_short_line_keeps_every_event() -> None:
    assert thin(np.arange(5.0), np.array([1.0, 5, 2, 5, 1]), peak=3, points=8).tolist() == [0, 1, 2, 3, 4]


def test_of_each_stretch_the_ends_and_the_extremes_stay() -> None:
    values = np.array([3.0, 4, 9, 4, 1, 4, 5, 5, 6, 2, 5, 8, 5, 0, 5, 7])
    kept = thin(np.arange(16.0), values, peak=2, points=8)  # two stretches of eight events
    assert kept.tolist() == [0, 1, 2, 3, 4, 7, 8, 11, 13, 15]


def test_the_level_that_is_held_through_a_pause_stays() -> None:
    """A burst of 1,000 events that ends on a level between the extremes, a long pause, another burst."""
    burst = np.tile([5.0, 1, 9, 3], 250)
    position = np.concatenate([np.linspace(0, 1, 1000), np.linspace(1000, 1001, 1000)])
    kept = thin(position, np.concatenate([burst, burst]), peak=2, points=40)
    assert {0, 999, 1000, 1999} <= set(kept.tolist())


def test_a_peak_keeps_its_width() -> None:
    values = np.zeros(5000)
    values[2500] = 7.0
    kept = thin(np.arange(5000.0), values, peak=2500, points=100)
    assert {2499, 2500, 2501} <= set(kept.tolist())


@law(40)
@given(
    st.lists(st.tuples(st.floats(0, 1e12), st.integers(0, 1 << 60)), min_size=1, max_size=400),
    st.sampled_from([8, 40, 100]),
)
def test_whatever_is_drawn_the_extremes_and_the_ends_are_there(events: list[tuple[float, int]], points: int) -> None:
    events.sort(key=lambda entry: entry[0])
    position, values = np.array([at for at, _ in events]), np.array([value for _, value in events], np.float64)
    kept = thin(position, values, peak_of(values, "in_use_bytes"), points)
    assert kept.tolist() == sorted(set(kept.tolist()))
    assert len(kept) <= points + 3
    assert (kept[0], kept[-1]) == (0, len(events) - 1)
    assert (values[kept].max(), values[kept].min()) == (values.max(), values.min())


@law(20)
@given(st.lists(st.integers(0, 1000), min_size=300, max_size=900))
def test_near_what_is_left_out_something_as_large_and_as_small_is_drawn(values: list[int]) -> None:
    level = np.array(values, np.float64)
    kept = thin(np.arange(float(len(level))), level, 0, points=200)
    reach = 2 * len(level) // 50  # a stretch is a fiftieth of the line
    for i in np.setdiff1d(np.arange(len(level)), kept):
        near = level[kept[np.abs(kept - i) <= reach]]
        assert near.min() <= level[i] <= near.max()


# Over the steps


def test_every_step_is_equally_long_and_reaches_to_the_next() -> None:
    places = step_positions(np.array([10.0, 15, 20, 25, 30, 90, 109.9]), steps((10, 20), (30, 80)))
    assert places.tolist() == pytest.approx([1, 1.25, 1.5, 1.75, 2, 2.75, 2.99875])


def test_what_lies_outside_of_all_steps_stands_before_and_behind_them() -> None:
    places = step_positions(np.array([0.0, 5, 10, 20, 30]), steps((10, 5), (15, 5)))
    assert places.tolist() == pytest.approx([0, 0.5, 1, 3, 4])


def test_steps_in_disorder_and_at_one_time_keep_the_order_of_events() -> None:
    times = np.linspace(0, 50, 200)
    places = step_positions(times, steps((20, 10), (10, 40), (20, 5), (20, 0)))
    assert (np.diff(places) >= 0).all()
    assert places[-1] == 5


def test_the_same_work_at_another_pace_lies_over_itself(tmp_path: Path) -> None:
    lines = []
    for name, pace in (("slow", 10.0), ("fast", 1.0)):
        events = []
        for i in range(3):
            start = 100 * i * pace
            events += [step(i, start, 80 * pace), work(start + pace)]
            events += [allocate(start + 20 * pace, 300 + i, 200 + i), free(start + 40 * pace, 100, 200 + i)]
        lines.append(line_of(loaded(tmp_path / name, *events), GPU, "in_use_bytes", "step"))
    slow, fast = lines
    assert slow["position"].tolist() == pytest.approx(fast["position"].tolist(), rel=1e-9)
    assert slow["position"].tolist() == pytest.approx([1.2, 1.4, 2.2, 2.4, 3.25, 3.5])
    assert slow["is_peak"].tolist() == [False, False, False, False, True, False]


# One typical step


def a_loop(folder: Path, held: list[int], *, length: float = 80.0) -> Run:
    """Steps of `length` µs every 100 µs; in each, `held` more bytes from 25 to 50 µs above the 100 of the program."""
    events = [allocate(1, 100, 100, 0x1)]
    for i, size in enumerate(held):
        start = 100.0 * i + 10
        events += [step(i, start, length), work(start + 1)]
        events += [allocate(start + 25, 100 + size, size, 0x2), free(start + 50, 100, size, 0x2)]
    return loaded(folder, *events)


def test_a_typical_step_is_the_median_of_the_included_steps_with_the_lowest_and_highest(tmp_path: Path) -> None:
    run = a_loop(tmp_path, [900, 200, 300, 200, 250, 400, 900])  # of more than five, the ends do not count
    line = typical_step(run, GPU, "in_use_bytes", slices=4)
    assert line.to_dict("list") == {
        "share": [0, 0.25, 0.5, 0.75],
        "time_us": [0, 25, 50, 75],
        "median": [100, 350, 100, 100],
        "low": [100, 300, 100, 100],
        "high": [100, 500, 100, 100],
        "steps": [5] * 4,
    }


def test_a_peak_within_a_slice_is_not_lost(tmp_path: Path) -> None:
    run = a_loop(tmp_path, [200] * 3)
    assert typical_step(run, GPU, "in_use_bytes", slices=1)["median"].tolist() == [300]
    assert typical_step(run, GPU, "free_bytes", slices=1)["median"].tolist() == [700]


def test_steps_of_other_lengths_are_stretched_to_the_median_one(tmp_path: Path) -> None:
    events = []
    for i, (start, length) in enumerate([(0, 100), (100, 200), (300, 400)]):
        events += [step(i, start, length), work(start + 1)]
        events += [allocate(start + length / 2, 500, 500), free(start + length * 0.75, 0, 500)]
    line = typical_step(loaded(tmp_path, *events), GPU, "in_use_bytes", slices=4)
    assert line["median"].tolist() == line["high"].tolist()
    assert line["median"].tolist()[2:] == [500, 0]
    assert line["time_us"].tolist() == [0, 50, 100, 150]


def test_before_the_first_event_a_level_is_unknown(tmp_path: Path) -> None:
    run = loaded(tmp_path, step(0, 0, 80), work(1), allocate(40, 300, 300))
    line = typical_step(run, GPU, "in_use_bytes", slices=4)
    assert line[["share", "low", "high"]].to_numpy().tolist() == [[0.5, 300, 300], [0.75, 300, 300]]


def test_without_the_level_a_typical_step_is_empty(tmp_path: Path) -> None:
    run = loaded(tmp_path, step(0, 0, 80), work(1), allocate(40, 300, 300, fragmentation=None))
    line = typical_step(run, GPU, "fragmentation")
    assert line.empty
    assert list(line.columns) == ["share", "time_us", "median", "low", "high", "steps"]


# What is drawn


def test_by_time_a_line_begins_at_its_first_event(tmp_path: Path) -> None:
    run = loaded(tmp_path, work(0), allocate(50, 300, 300, tf_op="conv"), free(70, 0, 300))
    line = line_of(run, GPU, "in_use_bytes", "time")
    assert line["position"].tolist() == [0, 20]
    assert line["time_us"].tolist() == [50, 70]
    assert line["op_name"].tolist() == ["conv", "conv"]


def test_other_memories_are_not_drawn(tmp_path: Path) -> None:
    run = loaded(tmp_path, allocate(1, 900, 900, memory="other"), allocate(2, 100, 100), free(3, 0, 100))
    assert line_of(run, GPU, "in_use_bytes", "time")["in_use_bytes"].tolist() == [100, 0]


def test_of_free_memory_the_least_is_marked() -> None:
    values = np.array([3.0, 1, 4, 1])
    assert [peak_of(values, level) for level in ("free_bytes", "heap_bytes", "fragmentation")] == [1, 2, 2]


def test_a_level_that_no_event_tells_is_an_empty_line(tmp_path: Path) -> None:
    run = loaded(tmp_path, allocate(1, 100, 100, fragmentation=None))
    line = line_of(run, GPU, "fragmentation", "time")
    assert line.empty
    assert {"position", "is_peak", "in_use_bytes"} <= set(line.columns)


# On real profiles


@pytest.fixture(scope="module", params=mostly_thorough(EACH_KIND, "filters_16_8", "gpu_filters_16_8"))
def run(request: pytest.FixtureRequest) -> Run:
    return loaded_run(request.param)


@pytest.mark.parametrize("level", ["in_use_bytes", "heap_bytes", "free_bytes", "fragmentation"])
def test_a_drawn_line_has_the_peak_of_the_table(run: Run, level: memory_series.Level) -> None:
    summary, whole = run.table("memory_summary"), run.table("memory_timeline")
    for row in summary.itertuples():
        own = whole[(whole["host"] == row.host) & (whole["memory_id"] == row.memory_id)]
        for align in ("time", "step") if run.info.has_steps else ("time",):
            line = line_of(run, Memory(row.host, row.memory_id), level, align, points=60)
            assert len(line) <= 63
            assert (line[level].max(), line[level].min()) == (own[level].max(), own[level].min())
            assert (np.diff(line["position"]) >= 0).all()
            (marked,) = line.index[line["is_peak"]]
            if level == "in_use_bytes":
                assert (line.loc[marked, "in_use_bytes"], line.loc[marked, "time_us"]) == (
                    row.peak_bytes,
                    row.peak_time_us,
                )


@pytest.mark.parametrize("level", ["in_use_bytes", "free_bytes"])
def test_a_typical_step_reaches_as_far_as_the_events_of_included_steps(run: Run, level: memory_series.Level) -> None:
    for row in run.table("memory_summary").itertuples():
        whole, every = run.table("memory_timeline", host=row.host), run.table("steps", host=row.host)
        own = whole[whole["memory_id"] == row.memory_id]
        line = typical_step(run, Memory(row.host, row.memory_id), level)
        assert ((line["low"] <= line["median"]) & (line["median"] <= line["high"])).all()
        place = np.floor(step_positions(own["time_us"].to_numpy(), every)).astype(int)
        order = every["host_start_us"].fillna(every["start_us"]).argsort(kind="stable")
        included = {number for number, at in enumerate(order, 1) if every["included"].iloc[at]}
        there = own.loc[[number in included for number in place], level]
        if len(there):
            assert line["low"].min() <= there.min() if level == "free_bytes" else line["high"].max() >= there.max()
        assert line[["low", "high"]].isin([*own[level]]).all(axis=None)


def test_the_parts_of_the_file_are_the_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_series, "PART_ROWS", 100)
    whole = run.table("memory_timeline")
    parts = list(timeline_parts(run))
    assert all(0 < len(part) <= 100 for part in parts)
    assert memory_series.event_count(run) == len(whole) == sum(map(len, parts))
    if parts:
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
    for row in run.table("memory_summary").itertuples():
        own = memory_series.event_count(run, row.host, row.memory_id)
        assert own == row.allocations + row.deallocations
