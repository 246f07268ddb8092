"""Lanes stand beside their counterparts, and every span has a place of its own in the layout."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.views.timeline.cases import bare_timeline, spans_table
from tfcompare.views.timeline.lanes import MOST_ROWS, Layout, lane_pairs, lay_out
from tfcompare.views.timeline.run_timeline import HostTimeline

Spans = list[tuple[int, int, int]]
SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 30)), max_size=60)


def row_numbers(layout: Layout) -> np.ndarray:
    """The number of the row of each span, in the order of the table of spans."""
    found = np.full(len(layout.span), -1)
    found[layout.span] = np.repeat(layout.number, np.diff(layout.first))
    return found


def check(spans: pd.DataFrame, layout: Layout) -> None:
    """Every span once, in its lane, with its times; spans of a row follow one another."""
    assert np.sort(layout.span).tolist() == list(range(len(spans)))
    lane, start, duration = (
        spans[name].to_numpy(np.int64)[layout.span] for name in ("lane", "start_ps", "duration_ps")
    )
    assert (layout.start_ps == start).all()
    assert (layout.end_ps == start + duration).all()
    assert (np.repeat(layout.lane, np.diff(layout.first)) == lane).all()
    number = np.repeat(layout.number, np.diff(layout.first))
    follows = (np.diff(lane) == 0) & (np.diff(number) == 0) & (number[1:] < MOST_ROWS - 1)
    assert (layout.end_ps[:-1][follows] <= layout.start_ps[1:][follows]).all()
    for one in np.unique(layout.lane):
        rows = layout.number[layout.lane == one]
        assert rows.tolist() == list(range(len(rows)))


@law(40)
@given(SPANS)
def test_rows_hold_every_span_once_and_no_two_overlap(spans: Spans) -> None:
    table = spans_table(spans)
    check(table, lay_out(table))


@law(40)
@given(SPANS)
def test_a_span_is_in_the_first_row_that_is_free(spans: Spans) -> None:
    table = spans_table(spans)
    rows = row_numbers(lay_out(table))
    for i, (lane, start, _) in enumerate(table.itertuples(index=False)):
        before = table.iloc[:i].assign(row=rows[:i])
        running = before[(before["lane"] == lane) & (before["start_ps"] + before["duration_ps"] > start)]
        assert rows[i] not in set(running["row"])
        assert set(range(rows[i])) <= set(running["row"])


def test_spans_that_only_overlap_are_below_as_well() -> None:
    table = spans_table([(0, 0, 10), (0, 5, 10), (0, 10, 5), (1, 7, 1)])
    assert row_numbers(lay_out(table)).tolist() == [0, 1, 0, 0]


def test_nesting_deeper_than_the_rows_loses_no_span() -> None:
    depth = MOST_ROWS + 100
    table = spans_table([(0, i, 3 * depth - 2 * i) for i in range(depth)])
    layout = lay_out(table)
    check(table, layout)
    assert np.diff(layout.first).tolist() == [1] * (MOST_ROWS - 1) + [101]


def test_no_spans_have_no_rows() -> None:
    layout = lay_out(spans_table([]))
    assert (len(layout.lane), layout.first.tolist()) == (0, [0])


HOST, GPU = "/host:CPU", "/device:GPU:0"
LANE = st.tuples(
    st.sampled_from([HOST, GPU, "/device:GPU:1"]),
    st.sampled_from(["main/1", "main/2", "pool_1/3", "pool_2/4", "pool_3/3", "Stream #1", "Stream #2", ""]),
    st.integers(0, 10**9),
)
LANES = st.lists(LANE, max_size=8, unique_by=lambda lane: lane[2])


def paired(ours: HostTimeline, theirs: HostTimeline) -> list[tuple[str, str | None, str | None]]:
    """(label, the lane of the baseline, that of the candidate)."""
    names = [timeline.lanes["line"].tolist() for timeline in (ours, theirs)]
    return [
        (pair.label, *(None if lane is None else of[lane] for of, lane in zip(names, pair.lanes, strict=True)))
        for pair in lane_pairs([ours, theirs])
    ]


def test_lanes_pair_by_name_before_they_pair_without_numbers() -> None:
    ours = bare_timeline([(HOST, "main/7", 50), (HOST, "pool_1/3", 9), (HOST, "pool_2/3", 5)])
    theirs = bare_timeline([(HOST, "main/8", 40), (HOST, "pool_2/9", 4), (HOST, "pool_8/9", 1), (HOST, "other/1", 7)])
    assert paired(ours, theirs) == [
        ("main", "main/7", "main/8"),
        ("pool_1", "pool_1/3", "pool_8/9"),
        ("pool_2", "pool_2/3", "pool_2/9"),
        ("other", None, "other/1"),
    ]


def test_of_lanes_that_differ_in_numbers_only_the_busiest_pair() -> None:
    ours = bare_timeline([(HOST, "pool_1/1", 5), (HOST, "pool_2/2", 9)])
    theirs = bare_timeline([(HOST, "pool_7/7", 3), (HOST, "pool_8/8", 8), (HOST, "pool_9/9", 1)])
    assert paired(ours, theirs) == [
        ("pool_2", "pool_2/2", "pool_8/8"),
        ("pool_1", "pool_1/1", "pool_7/7"),
        ("pool_9", None, "pool_9/9"),
    ]


def test_of_equal_names_the_one_with_the_same_id_is_the_counterpart() -> None:
    ours = bare_timeline([(HOST, "pool/1", 5), (HOST, "pool/2", 9)])
    theirs = bare_timeline([(HOST, "pool/1", 7), (HOST, "pool/3", 6)])
    assert paired(ours, theirs) == [("pool 1", "pool/2", "pool/3"), ("pool 2", "pool/1", "pool/1")]


def test_a_stream_is_one_lane_whatever_ran_on_it_first() -> None:
    ours = bare_timeline([(GPU, "Stream #13(Compute,MemcpyD2D)", 5), (GPU, "Stream #14(Compute)", 9)])
    theirs = bare_timeline([(GPU, "Stream #13(MemcpyD2D,Compute)", 7), (GPU, "Stream #15(MemcpyD2D)", 6)])
    assert paired(ours, theirs) == [
        ("GPU:0 Stream #13(Compute,MemcpyD2D)", "Stream #13(Compute,MemcpyD2D)", "Stream #13(MemcpyD2D,Compute)"),
        ("GPU:0 Stream #14(Compute)", "Stream #14(Compute)", None),
        ("GPU:0 Stream #15(MemcpyD2D)", None, "Stream #15(MemcpyD2D)"),
    ]


def test_devices_come_first_by_their_numbers_and_what_both_runs_have_before_the_rest() -> None:
    lanes = [(HOST, "main/1", 99), ("/device:GPU:10", "Stream #1", 50), ("/device:GPU:2", "Stream #1", 5)]
    ours, theirs = bare_timeline([*lanes, ("/device:GPU:2", "Stream #2", 8)]), bare_timeline(lanes)
    assert [label for label, *_ in paired(ours, theirs)] == [
        "GPU:2 Stream #1",
        "GPU:10 Stream #1",
        "GPU:2 Stream #2",
        "main",
    ]
    assert [pair.is_on_host for pair in lane_pairs([ours])] == [False, False, False, True]


def test_the_busiest_lanes_come_first_by_the_time_of_both_sides() -> None:
    ours = bare_timeline([(HOST, "a/1", 5), (HOST, "b/2", 4), (HOST, "c/3", 8)])
    theirs = bare_timeline([(HOST, "a/1", 5), (HOST, "b/2", 7)])
    assert [label for label, *_ in paired(ours, theirs)] == ["b", "a", "c"]


def test_derived_lanes_are_left_out() -> None:
    ours = bare_timeline([(GPU, "Stream #1", 5), (GPU, "TensorFlow Ops", 9)], derived=[1])
    assert [pair.label for pair in lane_pairs([ours])] == ["GPU:0 Stream #1"]
    assert [pair.lanes for pair in lane_pairs([ours, ours])] == [(0, 0)]


def test_a_thread_without_a_name_is_called_a_thread() -> None:
    ours = bare_timeline([(HOST, "", 5), (HOST, "/12", 4)])
    assert [pair.label for pair in lane_pairs([ours])] == ["thread 1", "thread 2"]


@law(15)
@given(LANES, LANES)
def test_every_lane_stands_exactly_once_and_swapping_sides_mirrors(ours, theirs) -> None:
    timelines = [bare_timeline(lanes) for lanes in (ours, theirs)]
    there, back = (lane_pairs(sides) for sides in (timelines, timelines[::-1]))
    for side, timeline in enumerate(timelines):
        shown = [pair.lanes[side] for pair in there if pair.lanes[side] is not None]
        assert sorted(shown) == list(range(len(timeline.lanes)))
    for pair in there:
        planes = {
            t.lanes["plane"].iloc[lane] for t, lane in zip(timelines, pair.lanes, strict=True) if lane is not None
        }
        assert len(planes) == 1, "the lanes of a pair are of one device"
    assert {pair.lanes for pair in there} == {pair.lanes[::-1] for pair in back}
    assert len({pair.label for pair in there}) == len(there)
