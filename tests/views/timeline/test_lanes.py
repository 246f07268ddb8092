"""Lanes stand beside their counterparts: each recorded one exactly once, the busiest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.views.timeline.cases import bare_timeline
from tfcompare.views.timeline.lanes import lane_pairs
from tfcompare.views.timeline.run_timeline import HostTimeline

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
