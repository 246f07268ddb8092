"""Time 0, the compared steps, and how far the candidate is behind the baseline."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from tests.profiles import loaded_run
from tests.tools.timeline.cases import (
    KERNEL,
    aligned_pair,
    host_run,
    open_alone,
    open_pair,
    partners,
    recorded_pair,
    step,
    write_run,
)
from tests.xspace_builder import PS_PER_US, Event, event, line, plane
from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.tools.timeline.aligned import MOST_DRIFT_POINTS, Aligned, align
from tfcompare.tools.timeline.drawing import Viewport
from tfcompare.tools.timeline.losses import Loss, losses, window_of
from tfcompare.tools.timeline.run_timeline import NONE, typical_step

EVER = (-(10**15), 10**15)


def a_step(folder: Path, name: str, *inside: Event, length_us: float = 10_000) -> Run:
    return host_run(folder, name, *step(3, 500, length_us, *inside))


def aligned(ours: Run, theirs: Run) -> Aligned:
    return align(open_pair(ours, theirs))


def drift_us(both: Aligned) -> list[tuple[float, float]]:
    points = both.drift(EVER) / PS_PER_US
    return list(points.itertuples(index=False, name=None))


def test_by_default_the_typical_steps_are_compared() -> None:
    both = aligned_pair("filters_512_128", "filters_16_8")
    assert both.steps == (10, 8)
    assert [side.typical for side in both.timelines.sides] == [10, 8]


@pytest.mark.parametrize("name", ["filters_512_128", "filters_16_8_simulated"])
def test_the_typical_step_is_the_first_nearest_to_the_mean_and_the_one_of_traces(name: str) -> None:
    run = loaded_run(name)
    side = open_alone(run).sides[0]
    lengths = {
        int(step): int(length) for step, length in zip(side.steps["step"], side.steps["duration_ps"], strict=True)
    }
    counted = {int(step): lengths[int(step)] for step in side.steps["step"][side.steps["included"]]}
    mean = statistics.fmean(counted.values())
    assert side.typical == min(counted, key=lambda step: abs(counted[step] - mean))
    assert typical_step(run.steps.assign(program="")) == side.typical


@pytest.mark.parametrize("steps", [(10, 999), (-5, 12), (999, 999)])
def test_a_step_that_is_not_there_is_answered_with_those_that_are(steps: tuple[int, int]) -> None:
    with pytest.raises(TfcompareError, match=r"^filters_\w+: there is no step (999|-5); steps are 5 to \d+$"):
        align(recorded_pair("filters_512_128", "filters_16_8"), steps)


def test_time_0_can_be_the_first_start_of_an_op_in_each_step(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("x:MatMul", 20, 5), event("y:Relu", 40, 5), event("y:Relu", 60, 5))
    theirs = a_step(tmp_path, "b", event("x:MatMul", 20, 5), event("y:Relu", 90, 5))
    timelines = open_pair(ours, theirs)
    op = int(timelines.op_stats.index[timelines.op_stats["op_name"] == "y"][0])
    both = align(timelines, (3, 3), op)
    assert partners(both) == [
        (("x:MatMul", -20), ("x:MatMul", -70)),
        (("y:Relu", 0), ("y:Relu", 0)),
        (("y:Relu", 20), None),
    ]
    assert both.lengths_ps == (10_000 * PS_PER_US, 10_000 * PS_PER_US), "the step, wherever time 0 is"


def test_losses_and_drift_count_from_the_begin_of_the_step_wherever_time_0_is(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("a:Relu", 10, 10), event("b:MatMul", 20, 500), event("c:Cast", 600, 10))
    theirs = a_step(
        tmp_path,
        "b",
        event("a:Relu", 40, 10),
        event("b:MatMul", 50, 1_500),
        event("c:Cast", 1_630, 10),
        length_us=11_000,
    )
    timelines = open_pair(ours, theirs)
    at_step = align(timelines)
    for name, start in (("a", 10), ("b", 20), ("c", 600)):
        at_op = align(timelines, (3, 3), int(timelines.op_stats.index[timelines.op_stats["op_name"] == name][0]))
        assert [replace(one, start_us=0, end_us=0) for one in losses(at_op)] == [
            replace(one, start_us=0, end_us=0) for one in losses(at_step)
        ]
        assert [(one.op_name, one.is_wait, one.lost_us) for one in losses(at_op)] == [("b", False, 1_000.0)]
        assert drift_us(at_op) == [(at - start, behind) for at, behind in drift_us(at_step)]
        assert drift_us(at_op)[0] == (-start, 0)
        assert drift_us(at_op)[-1] == (10_000 - start, 1_000), "the change of the step's length"


def test_time_after_the_last_op_is_lost_at_the_end_of_the_step(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("a:Relu", 10, 10))
    theirs = a_step(tmp_path, "b", event("a:Relu", 10, 11), length_us=12_000)
    (at_end,) = losses(aligned(ours, theirs))
    assert at_end == Loss("", True, 1_999.0, NONE, 20.0, 10_000.0, 11_979.0)


def test_an_op_that_a_step_lacks_cannot_be_time_0(tmp_path: Path) -> None:
    ours = host_run(tmp_path, "a", *step(1, 0, 50, event("x:MatMul", 5, 5)), *step(2, 100, 50, event("y:Relu", 5, 5)))
    theirs = host_run(tmp_path, "b", *step(1, 0, 50, event("x:MatMul", 5, 5), event("y:Relu", 20, 5)))
    timelines = open_pair(ours, theirs)
    op = int(timelines.op_stats.index[timelines.op_stats["op_name"] == "y"][0])
    with pytest.raises(TfcompareError, match=r"^a: 'y' does not start in this step$"):
        align(timelines, (1, 1), op)


def test_runs_without_steps_are_aligned_at_the_longest_op_of_both(tmp_path: Path) -> None:
    ours = host_run(tmp_path, "a", event("only:Here", 0, 900), event("x:MatMul", 1_000, 50), event("y:Relu", 1_100, 5))
    theirs = host_run(tmp_path, "b", event("y:Relu", 4_000, 5), event("x:MatMul", 7_000, 50), event("y:Relu", 7_200, 5))
    both = aligned(ours, theirs)
    assert both.steps is None
    assert both.zero_ps == (1_000 * PS_PER_US, 7_000 * PS_PER_US)
    assert partners(both) == [
        (("only:Here", -1_000), None),
        (("x:MatMul", 0), ("x:MatMul", 0)),
        (("y:Relu", 100), ("y:Relu", 200)),
    ], "what ran before time 0 is not compared"
    assert drift_us(both) == [(0, 0), (50, 0), (100, 100), (105, 100)]


def test_runs_with_no_op_in_common_begin_at_their_first_spans(tmp_path: Path) -> None:
    ours = host_run(tmp_path, "a", event("hello", 700, 10), event("aa/bb/Alpha:MatMul", 800, 10))
    theirs = host_run(tmp_path, "b", event("other", 40, 10), event("zz/yy/Omega:Softmax", 50, 10))
    both = aligned(ours, theirs)
    assert both.zero_ps == (700 * PS_PER_US, 40 * PS_PER_US)
    assert drift_us(both) == []
    assert losses(both) == []


def test_a_run_alone_has_a_time_0_and_nothing_to_compare() -> None:
    run = loaded_run("filters_16_8")
    alone = align(open_alone(run))
    start = run.table("steps").set_index("step")["start_us"]
    assert alone.steps == (8,)
    assert alone.zero_ps[0] / PS_PER_US == pytest.approx(start[8], abs=1e-6)
    assert alone.pairs is None
    assert losses(alone) == []
    assert drift_us(alone) == []


def test_an_op_that_takes_longer_puts_all_behind_it_as_much_behind(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("a:Relu", 0, 10), event("b:MatMul", 20, 500), event("c:Cast", 600, 10))
    theirs = a_step(
        tmp_path,
        "b",
        event("a:Relu", 0, 10),
        event("b:MatMul", 20, 1_500),
        event("c:Cast", 1_600, 10),
        length_us=11_000,
    )
    both = aligned(ours, theirs)
    ops = [(0, 0), (10, 0), (20, 0), (520, 1_000), (600, 1_000), (610, 1_000)]
    assert drift_us(both) == [(0, 0), *ops, (10_000, 1_000)], "from the begin to the end of the step"
    assert losses(both) == [Loss("b", False, 1_000.0, 2, 20.0, 520.0, 1_500.0)]


def test_an_op_that_starts_later_is_a_wait_before_it(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("a:Relu", 0, 10), event("b:MatMul", 20, 500))
    theirs = a_step(tmp_path, "b", event("a:Relu", 0, 10), event("b:MatMul", 320, 500), length_us=10_300)
    assert losses(aligned(ours, theirs)) == [Loss("b", True, 300.0, 2, 10.0, 20.0, 310.0)]


def test_kernels_without_a_counterpart_are_work_and_not_a_wait(tmp_path: Path) -> None:
    """One kernel on one side, two on the other, and then the same op: what is left of the gap is the wait."""
    runs = []
    for name, kernels in (("a", [(10, 400)]), ("b", [(10, 20), (40, 30)])):
        end = kernels[-1][0] + kernels[-1][1]
        events = [
            event("first", 0, 5, tf_op="net/a:Relu", **KERNEL),
            *(event(f"conv_{name}{i}", *at, tf_op="net/conv:Conv2D", **KERNEL) for i, at in enumerate(kernels)),
            event("last", end + (100 if name == "a" else 10), 5, tf_op="net/c:Cast", **KERNEL),
        ]
        marker = event("train", 0, 1_000, step_num=1, _r=1)
        device = plane("/device:GPU:0", line("Stream #1(compute)", *events))
        runs.append(write_run(tmp_path, name, plane("/host:CPU", line("python", marker)), device))
    for (ours, theirs), sign in ((runs, -1), (runs[::-1], 1)):
        found = losses(aligned(ours, theirs))
        told = {(one.unmatched, one.is_wait): one.lost_us for one in found if one.op_name == "net/c"}
        # 400 µs against 20 and 30, and waits of 5 + 100 µs against 5 + 10 + 10
        assert told == {("net/conv", True): sign * 350.0, ("", True): sign * 80.0}


def test_a_shorter_step_gains_most_where_an_op_takes_less(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("a:Relu", 0, 40), event("b:MatMul", 50, 500), event("c:Cast", 560, 10))
    theirs = a_step(
        tmp_path, "b", event("a:Relu", 0, 10), event("b:MatMul", 10, 100), event("c:Cast", 110, 30), length_us=9_000
    )
    found = losses(aligned(ours, theirs))
    assert [(one.op_name, one.is_wait, one.lost_us) for one in found] == [
        ("", True, -570.0),
        ("b", False, -400.0),
    ], "the most after the last op; neither where it loses nor where it hardly gains"


def test_of_ops_within_ops_the_outer_one_loses_the_time(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("a:While", 0, 100), event("a/b:MatMul", 10, 50))
    theirs = a_step(tmp_path, "b", event("a:While", 0, 300), event("a/b:MatMul", 10, 250), length_us=10_200)
    assert [(one.op_name, one.lost_us) for one in losses(aligned(ours, theirs))] == [("a", 200.0)]


def test_the_window_of_a_loss_holds_it_on_both_sides(tmp_path: Path) -> None:
    ours = a_step(tmp_path, "a", event("a:Relu", 0, 10), event("b:MatMul", 30, 500))
    waiting = a_step(tmp_path, "b", event("a:Relu", 0, 10), event("b:MatMul", 330, 500), length_us=10_300)
    longer = a_step(tmp_path, "c", event("a:Relu", 0, 10), event("b:MatMul", 30, 800), length_us=10_300)
    ending = a_step(tmp_path, "d", event("a:Relu", 0, 10), event("b:MatMul", 30, 500), length_us=10_300)
    for theirs, begin, end in ((waiting, 10, 330), (longer, 30, 830), (ending, 530, 10_300)):
        both = aligned(ours, theirs)
        (loss,) = losses(both)
        for shift_us in (0.0, 50.0):
            assert window_of(both, Viewport(shift_us=shift_us), loss) == (begin, end + shift_us)


def test_a_window_of_the_drift_has_few_points_within_it() -> None:
    both = aligned_pair("filters_512_128", "filters_16_8")
    window = (0, both.lengths_ps[0])
    points = both.drift(window)
    every = (both.drift_at_ps >= window[0]) & (both.drift_at_ps < window[1])
    assert every.sum() > MOST_DRIFT_POINTS
    assert 2 < len(points) <= MOST_DRIFT_POINTS + 3
    assert points["at_ps"].is_monotonic_increasing
    assert points["at_ps"].between(*window).all()
    assert points["behind_ps"][1:-1].between(both.drift_ps[every].min(), both.drift_ps[every].max()).all()
    assert points["behind_ps"].iloc[[0, -1]].tolist() == [0, both.lengths_ps[1] - both.lengths_ps[0]]
    few = both.drift((0, int(both.drift_at_ps[both.drift_at_ps >= 0][50])))
    assert set(few["behind_ps"]) <= {0, *both.drift_ps.tolist()}
