"""A selected span, its partner, and what launched them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.views.timeline.cases import (
    GPU_PAIR,
    KERNEL,
    aligned_pair,
    host_run,
    open_alone,
    open_pair,
    span_named,
    step,
    write_run,
)
from tests.xspace_builder import event, line, plane
from tfcompare.run import Run
from tfcompare.views.timeline.aligned import Aligned, align
from tfcompare.views.timeline.drawing import Viewport
from tfcompare.views.timeline.lanes import MOST_ROWS
from tfcompare.views.timeline.run_pair import Timelines
from tfcompare.views.timeline.run_timeline import NONE
from tfcompare.views.timeline.selection import Selected, drawn_selection, most_changed_kernel, most_changed_of, select

DERIVED = 0xDEADBEEF - (1 << 32)
"""The id of a line that the profiler derived from others."""


def gpu_run(folder: Path, name: str, start_us: float, duration_us: float) -> Run:
    """A step at 1,000 µs in which a kernel is launched at 10 µs."""
    call = event("cuLaunchKernel", 10, 2, correlation_id=1)
    host = line("python", *step(4, 1_000, 100, event("x:Conv2D", 5, 20), call), id=1)
    kernel = event("conv", 1_000 + start_us, duration_us, KERNEL | {"tf_op": "x:Conv2D", "correlation_id": 1})
    return write_run(
        folder, name, plane("/host:CPU", host), plane("/device:GPU:0", line("Stream #7(Compute)", kernel, id=7))
    )


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Aligned:
    folder = tmp_path_factory.mktemp("kernels")
    return align(open_pair(gpu_run(folder, "a", 30, 40), gpu_run(folder, "b", 50, 45)))


def test_a_kernel_and_its_partner_have_times_and_launches(kernels: Aligned) -> None:
    both = kernels
    for side in (0, 1):
        ours, theirs = select(both, side, span_named(both, side, "conv"))
        op = int(both.timelines.op_rows(0)[span_named(both, 0, "conv")])
        lane = "GPU:0 Stream #7(Compute)"
        assert ours == Selected("conv", op, "x", "1 (number 4)", lane, 30.0, 40.0, 40.0, "cuLaunchKernel", 20.0)
        assert theirs == Selected("conv", op, "x", "1 (number 4)", lane, 50.0, 45.0, 45.0, "cuLaunchKernel", 40.0)


def test_a_launch_with_the_name_of_its_kernel_is_called_as_what_is_around_it(tmp_path: Path) -> None:
    inside = [event("PjitFunction(f)", 2, 50), event("cudnn-conv.5", 5, 20), event("conv", 10, 2, correlation_id=1)]
    host = line("python", *step(4, 1_000, 100, *inside, event("conv", 40, 2, correlation_id=2)), id=1)
    kernels = [event("conv", at, 5, KERNEL | {"correlation_id": i}) for i, at in ((1, 1_030), (2, 1_060))]
    device = plane("/device:GPU:0", line("Stream #7(Compute)", *kernels, id=7))
    alone = align(open_alone(write_run(tmp_path, "a", plane("/host:CPU", host), device)))
    launched = [select(alone, 0, span_named(alone, 0, "conv", nth))[0].launched_by for nth in range(4)]
    assert sorted(launched) == ["", "", "PjitFunction(f)", "cudnn-conv.5"]


def test_the_kernel_and_its_launch_are_drawn_where_they_are(kernels: Aligned) -> None:
    both = kernels
    ours, theirs = drawn_selection(both, Viewport(shift_us=1_000), 0, span_named(both, 0, "conv"))
    labels = [pair.label for pair in both.timelines.lanes]
    device, host = labels.index("GPU:0 Stream #7(Compute)"), labels.index("python")
    for place, side, moved in ((ours, 0, 0), (theirs, 1, 1_000)):
        assert (place["side"], place["lane"], place["row"]) == (side, device, 0)
        assert place["id"] == span_named(both, side, "conv")
        assert (place["start"], place["duration"]) == ((30, 40), (50 + moved, 45))[side]
        launch = place["launch"]
        assert (launch["lane"], launch["start"], launch["duration"]) == (host, 10 + moved, 2)
        assert launch["row"] == 2, "in the op, in the marker"


def test_the_self_time_is_the_duration_less_that_of_children(tmp_path: Path) -> None:
    inside = [event("a:While", 0, 60), event("b:MatMul", 10, 20), event("c:Cast", 12, 5), event("d:Relu", 40, 15)]
    alone = align(open_alone(host_run(tmp_path, "a", *step(1, 0, 100, *inside))))
    expected = {"train": 40.0, "a:While": 25.0, "b:MatMul": 15.0, "c:Cast": 5.0, "d:Relu": 15.0}
    for name, self_time in expected.items():
        (one,) = select(alone, 0, span_named(alone, 0, name))
        assert one.self_time_us == self_time
        assert one.launched_by == ""
        assert math.isnan(one.delay_us)


def test_the_self_time_of_deep_spans_counts_each_child_once(tmp_path: Path) -> None:
    depth = MOST_ROWS + 20
    nested = [event(f"level_{i}", i, 3 * depth - 2 * i) for i in range(depth)]
    alone = align(open_alone(host_run(tmp_path, "a", *nested)))
    for i in range(depth):
        (one,) = select(alone, 0, span_named(alone, 0, f"level_{i}"))
        assert one.self_time_us == (2.0 if i < depth - 1 else 3 * depth - 2 * i)


def test_spans_that_overlap_in_part_keep_all_of_their_self_time(tmp_path: Path) -> None:
    alone = align(open_alone(host_run(tmp_path, "a", event("a:MatMul", 0, 10), event("b:MatMul", 5, 10))))
    for name in ("a:MatMul", "b:MatMul"):
        (one,) = select(alone, 0, span_named(alone, 0, name))
        assert one.self_time_us == 10.0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """In step 1 the baseline runs `a` once more than the candidate, in step 2 once less; `x` runs in step 3."""
    folder = tmp_path_factory.mktemp("steps")
    once, twice = [event("a:MatMul", 0, 5)], [event("a:MatMul", 0, 5), event("a:MatMul", 10, 5)]
    found = []
    for name, first, second, last in (("a", twice, once, 60), ("b", once, twice, 90)):
        xs = [event("x:MatMul", at, length) for at, length in ((10, 50), (100, 80), (300, last))]
        events = [*step(1, 0, 100, *first), *step(2, 200, 100, *second), *step(3, 1_000, 1_000, *xs)]
        found.append(host_run(folder, name, *events))
    return found


@pytest.fixture(scope="module")
def steps(runs: list[Run]) -> Timelines:
    return open_pair(*runs)


def test_a_span_without_a_partner_stands_alone(steps: Timelines) -> None:
    for number, side in ((1, 0), (2, 1)):
        both = align(steps, (number, number))
        span = span_named(both, side, "a:MatMul", number)
        found = [one and one.start_us for one in select(both, side, span)]
        assert found == [None, 10.0] if side else [10.0, None]
        assert [place["side"] for place in drawn_selection(both, Viewport(), side, span)] == [side]


def test_a_span_of_a_derived_lane_has_times_but_no_place(tmp_path: Path) -> None:
    def run(name: str) -> Run:
        stream = line("Stream #7", event("conv", 10, 5, KERNEL), id=7)
        derived = line("TensorFlow Ops", event("shown again", 10, 5), id=DERIVED)
        return write_run(tmp_path, name, plane("/device:GPU:0", stream, derived))

    both = align(open_pair(run("a"), run("b")))
    ours, theirs = select(both, 0, span_named(both, 0, "shown again"))
    assert (ours.lane, ours.op, ours.duration_us, theirs) == ("", NONE, 5.0, None)
    assert drawn_selection(both, Viewport(), 0, span_named(both, 0, "shown again")) == []


@pytest.mark.parametrize(("side", "span"), [(2, 0), (-1, 0), (0, -1), (0, 10**9), (10**14, 10**14)])
def test_there_is_no_selection_of_spans_that_are_not_there(side: int, span: int) -> None:
    aligned = aligned_pair(*GPU_PAIR)
    assert select(aligned, side, span) == []
    assert drawn_selection(aligned, Viewport(), side, span) == []


def test_every_launch_of_a_real_step_begins_before_what_it_launched() -> None:
    aligned = aligned_pair(*GPU_PAIR)
    spans = aligned.timelines.sides[1].timeline.spans
    rows = np.flatnonzero((spans["launch"] != NONE) & (spans["step"] == aligned.steps[1]))
    assert len(rows) > 50
    for row in rows[:50]:
        one = select(aligned, 1, int(row))[1]
        assert one.delay_us >= 0
        assert one.launched_by
        place = next(p for p in drawn_selection(aligned, Viewport(), 1, int(row)) if p["side"] == 1)
        assert place["launch"]["start"] == pytest.approx(place["start"] - one.delay_us, abs=1e-6)


def test_an_op_is_looked_up_where_it_changed_most(runs: list[Run], steps: Timelines) -> None:
    both = align(steps, (3, 3))
    assert most_changed_of(both, "x") == (0, span_named(both, 0, "x:MatMul", 2))
    assert most_changed_of(both, "y") is None
    alone = align(open_alone(runs[0]), (3,))
    assert most_changed_of(alone, "x") == (0, span_named(alone, 0, "x:MatMul", 1)), "the longest"


def test_an_op_that_runs_on_a_device_is_looked_up_there_and_a_kernel_by_its_name(kernels: Aligned) -> None:
    place = 0, span_named(kernels, 0, "conv")
    assert most_changed_of(kernels, "x") == most_changed_kernel(kernels, "conv") == place
    for other in ("x", "", "con"):
        assert most_changed_kernel(kernels, other) is None
