"""Time 0, the compared steps, and how far the candidate is behind the baseline."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.profiles import loaded_run
from tests.views.timeline.cases import (
    KERNEL,
    aligned_pair,
    host_run,
    open_alone,
    open_pair,
    pair_of_cases,
    partners,
    recorded_pair,
    span_named,
    step,
    write_run,
)
from tests.xspace_builder import PS_PER_US, Event, event, line, plane
from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.views.timeline.aligned import MOST_DRIFT_POINTS, Aligned, align
from tfcompare.views.timeline.drawing import Viewport
from tfcompare.views.timeline.losses import Loss, losses, window_of
from tfcompare.views.timeline.run_pair import Timelines
from tfcompare.views.timeline.run_timeline import NONE, typical_step

EVER = (-(10**15), 10**15)


def aligned(ours: Run, theirs: Run) -> Aligned:
    return align(open_pair(ours, theirs))


def drift_us(both: Aligned) -> list[tuple[float, float]]:
    """Within the compared step, or ever without one."""
    window = tuple(end - both.zero_ps[0] for end in (both.begin_ps[0], both.end_ps[0])) if both.steps else EVER
    return list((both.drift(window) / PS_PER_US).itertuples(index=False, name=None))


Timed = tuple[float, Sequence[Event]]
"""How long a step takes, and what is in it."""
A, B = event("a:Relu", 0, 10), event("b:MatMul", 20, 500)
CASES: dict[str, tuple[Timed, Timed]] = {
    "longer": (
        (10_000, [A, B, event("c:Cast", 600, 10)]),
        (11_000, [A, event("b:MatMul", 20, 1_500), event("c:Cast", 1_600, 10)]),
    ),
    "later and longer": (
        (10_000, [event("a:Relu", 10, 10), B, event("c:Cast", 600, 10)]),
        (11_000, [event("a:Relu", 40, 10), event("b:MatMul", 50, 1_500), event("c:Cast", 1_630, 10)]),
    ),
    "later": ((10_000, [A, B]), (10_300, [A, event("b:MatMul", 320, 500)])),
    "longer last": ((10_000, [A, B]), (10_300, [A, event("b:MatMul", 20, 800)])),
    "longer end": ((10_000, [A, B]), (10_300, [A, B])),
    "shorter": (
        (10_000, [event("a:Relu", 0, 40), event("b:MatMul", 50, 500), event("c:Cast", 560, 10)]),
        (9_000, [A, event("b:MatMul", 10, 100), event("c:Cast", 110, 30)]),
    ),
    "nested": (
        (10_000, [event("d:While", 0, 100), event("d/b:MatMul", 10, 50)]),
        (10_200, [event("d:While", 0, 300), event("d/b:MatMul", 10, 250)]),
    ),
    "in the end": ((10_000, [event("a:Relu", 10, 10)]), (12_000, [event("a:Relu", 10, 11)])),
    "repeated": (
        (10_000, [event("x:MatMul", 20, 5), event("y:Relu", 40, 5), event("y:Relu", 60, 5)]),
        (10_000, [event("x:MatMul", 20, 5), event("y:Relu", 90, 5)]),
    ),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Timelines:
    """Two runs, with a step for each of `CASES`."""
    numbered = enumerate(CASES.values(), start=1)
    steps = ([step(n, 20_000 * n, length, *inside) for length, inside in sides] for n, sides in numbered)
    return pair_of_cases(tmp_path_factory.mktemp("cases"), steps)


def case(cases: Timelines, name: str, op_name: str | None = None) -> Aligned:
    """The step of that name, with time 0 at its begin or at the op."""
    number = list(CASES).index(name) + 1
    ops = cases.op_stats.index[cases.op_stats["op_name"] == op_name]
    return align(cases, (number, number), int(ops[0]) if op_name else None)


def lost(both: Aligned) -> list[tuple[str, bool, float]]:
    return [(one.op_name, one.is_wait, one.lost_us) for one in losses(both)]


def test_by_default_the_typical_steps_are_compared() -> None:
    both = aligned_pair("filters_512_128", "filters_16_8")
    assert both.steps == (10, 8)
    assert [side.typical for side in both.timelines.sides] == [10, 8]


@pytest.mark.parametrize("name", ["filters_512_128", "gpu_filters_16_8"])
def test_the_typical_step_is_the_first_nearest_to_the_mean_and_the_one_of_traces(name: str) -> None:
    run = loaded_run(name)
    side = open_alone(run).sides[0]
    lengths = {
        int(step): int(length) for step, length in zip(side.steps["step"], side.steps["duration_ps"], strict=True)
    }
    counted = {int(step): lengths[int(step)] for step in side.steps["step"][side.steps["included"]]}
    mean = statistics.fmean(counted.values())
    assert side.typical == min(counted, key=lambda step: abs(counted[step] - mean))
    assert typical_step(run.steps.assign(kind="")) == side.typical


@pytest.mark.parametrize("steps", [(10, 999), (-5, 12), (999, 999)])
def test_a_step_that_is_not_there_is_answered_with_those_that_are(steps: tuple[int, int]) -> None:
    with pytest.raises(TfcompareError, match=r"^filters_\w+: there is no step (999|-5); steps are 5 to \d+$"):
        align(recorded_pair("filters_512_128", "filters_16_8"), steps)


def test_time_0_can_be_the_first_start_of_an_op_in_each_step(cases: Timelines) -> None:
    both = case(cases, "repeated", "y")
    assert [one for one in partners(both) if abs(one[0][1]) < 1_000] == [
        (("x:MatMul", -20), ("x:MatMul", -70)),
        (("y:Relu", 0), ("y:Relu", 0)),
        (("y:Relu", 20), None),
    ]
    assert both.lengths_ps == (10_000 * PS_PER_US, 10_000 * PS_PER_US), "the step, wherever time 0 is"
    with pytest.raises(TfcompareError, match=r"^a: 'y' does not start in this step$"):
        case(cases, "later", "y")


def test_losses_and_drift_count_from_the_begin_of_the_step_wherever_time_0_is(cases: Timelines) -> None:
    at_step = case(cases, "later and longer")
    for name, start in (("a", 10), ("b", 20), ("c", 600)):
        at_op = case(cases, "later and longer", name)
        assert [replace(one, start_us=0, end_us=0) for one in losses(at_op)] == [
            replace(one, start_us=0, end_us=0) for one in losses(at_step)
        ]
        assert lost(at_op) == [("b", False, 1_000.0)]
        assert drift_us(at_op) == [(at - start, behind) for at, behind in drift_us(at_step)]
        assert drift_us(at_op)[0] == (-start, 0)
        assert drift_us(at_op)[-1] == (10_000 - start, 1_000), "the change of the step's length"


def test_time_after_the_last_op_is_lost_at_the_end_of_the_step(cases: Timelines) -> None:
    (at_end,) = losses(case(cases, "in the end"))
    assert at_end == Loss("", True, 1_999.0, NONE, 20.0, 10_000.0, 11_979.0)


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


def test_an_op_that_takes_longer_puts_all_behind_it_as_much_behind(cases: Timelines) -> None:
    both = case(cases, "longer")
    ops = [(0, 0), (10, 0), (20, 0), (520, 1_000), (600, 1_000), (610, 1_000)]
    assert drift_us(both) == [(0, 0), *ops, (10_000, 1_000)], "from the begin to the end of the step"
    assert losses(both) == [Loss("b", False, 1_000.0, span_named(both, 0, "b:MatMul"), 20.0, 520.0, 1_500.0)]


def test_an_op_that_starts_later_is_a_wait_before_it(cases: Timelines) -> None:
    both = case(cases, "later")
    assert losses(both) == [Loss("b", True, 300.0, span_named(both, 0, "b:MatMul", 2), 10.0, 20.0, 310.0)]


def test_what_runs_on_a_device_that_the_other_side_lacks_is_no_loss(tmp_path: Path) -> None:
    """One program on one device and on three, every op of which takes as long on each."""
    kernels = [event("gemm", at, 50, {**KERNEL, "tf_op": f"{op}:MatMul"}) for at, op in ((110, "x"), (170, "y"))]
    on_host = plane("/host:CPU", line("python", *step(1, 100, 200), *step(2, 400, 200)))
    one, *others = (plane(f"/device:GPU:{n}", line("Stream #7(Compute)", *kernels)) for n in range(3))
    both = aligned(write_run(tmp_path, "a", on_host, one), write_run(tmp_path, "b", on_host, one, *others))
    assert losses(both) == []


def test_an_op_that_is_more_kernels_on_one_side_is_one_place(tmp_path: Path) -> None:
    """One kernel on one side, two on the other, and then the same op: the wait is from the last one of them."""
    assert lost_by_kernels(tmp_path, ["net/conv:Conv2D"] * 2) == {
        ("net/conv", "", False): 350.0,  # 400 µs against 20 and 30
        ("net/c", "", True): 90.0,  # 100 µs against 10
    }


def test_kernels_of_an_op_that_only_one_step_has_are_work_and_not_a_wait(tmp_path: Path) -> None:
    assert lost_by_kernels(tmp_path, ["net/conv:Conv2D", "net/sum:AddN"]) == {
        ("net/c", "net/conv", True): 350.0,
        ("net/c", "", True): 80.0,  # 4 + 100 µs against 4 + 10 + 10
    }


def lost_by_kernels(folder: Path, ops: Sequence[str]) -> dict[tuple[str, str, bool], float]:
    """What a step with one kernel loses to one with two, the same if the sides are swapped: by op, `unmatched`, wait.

    The kernels are of these ops, the last of which is on the second side only.
    """
    runs = []
    for name, kernels in (("a", [(10, 400, ops[0])]), ("b", [(10, 20, ops[-1]), (40, 30, ops[-1])])):
        end = kernels[-1][0] + kernels[-1][1]
        events = [
            event("first", 0, 6, tf_op="net/a:Relu", **KERNEL),
            *(event(f"conv_{name}{i}", at, us, tf_op=op, **KERNEL) for i, (at, us, op) in enumerate(kernels)),
            event("last", end + (100 if name == "a" else 10), 5, tf_op="net/c:Cast", **KERNEL),
        ]
        marker = event("train", 0, 1_000, step_num=1, _r=1)
        device = plane("/device:GPU:0", line("Stream #1(compute)", *events))
        runs.append(write_run(folder, name, plane("/host:CPU", line("python", marker)), device))
    found = []
    for (ours, theirs), sign in ((runs, -1), (runs[::-1], 1)):
        every = losses(aligned(ours, theirs), count=10)
        found.append({(one.op_name, one.unmatched, one.is_wait): sign * one.lost_us for one in every if one.op_name})
    assert found[0] == found[1]
    return found[0]


def test_a_shorter_step_gains_most_where_an_op_takes_less(cases: Timelines) -> None:
    assert lost(case(cases, "shorter")) == [("", True, -570.0), ("b", False, -400.0)], (
        "the most after the last op; neither where it loses nor where it hardly gains"
    )


def test_of_ops_within_ops_the_outer_one_loses_the_time(cases: Timelines) -> None:
    assert lost(case(cases, "nested")) == [("d", False, 200.0)]


def test_the_window_of_a_loss_holds_it_on_both_sides(cases: Timelines) -> None:
    for name, begin, end in (("later", 10, 320), ("longer last", 20, 820), ("longer end", 520, 10_300)):
        both = case(cases, name)
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
