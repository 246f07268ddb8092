"""Spans are partners if they are the same op at the same occurrence in compared steps; the diff's matches decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.views.timeline.cases import (
    KERNEL,
    host_run,
    open_pair,
    pair_of_cases,
    partners,
    places_of,
    span_named,
    step,
    write_run,
)
from tests.xspace_builder import PS_PER_US, Event, event, line, plane
from tfcompare.run import Run
from tfcompare.views.timeline.aligned import ALONE, Aligned, align
from tfcompare.views.timeline.drawing import Viewport, drawing
from tfcompare.views.timeline.pairs import Identities, SpanPairs, span_pairs
from tfcompare.views.timeline.run_pair import Timelines
from tfcompare.views.timeline.run_timeline import NONE


def aligned(ours: Run, theirs: Run, steps: tuple[int, int] | None = None) -> Aligned:
    return align(open_pair(ours, theirs), steps)


Events = Sequence[Event]
CASES: dict[str, tuple[Events, Events]] = {
    "occurrences": (
        [event("x:MatMul", 10, 5), event("x:MatMul", 30, 5), event("y:Relu", 50, 5)],
        [event("y:Relu", 5, 5), *(event("x:MatMul", at, 5) for at in (20, 70, 80))],
    ),
    "renamed": ([event("sequential/dense/Mul:Mul", 10, 50)], [event("sequential_1/dense/Mul:Mul", 10, 50)]),
    "traced": (
        [event("__inference_train_step_6936", 10, 5), event("__inference_test_step_12", 20, 5)],
        [event("__inference_test_step_8", 10, 5), event("__inference_train_step_6950", 20, 5)],
    ),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Timelines:
    """Two runs, with a step of 100 µs for each of `CASES`."""
    numbered = enumerate(CASES.values(), start=1)
    steps = ([step(n, 1_000 * n, 100, *inside) for inside in sides] for n, sides in numbered)
    return pair_of_cases(tmp_path_factory.mktemp("cases"), steps)


def case(timelines: Timelines, number: int) -> Aligned:
    return align(timelines, (number, number))


def in_step(both: Aligned) -> list[tuple[tuple[str, float], tuple[str, float] | None]]:
    """The partners of the spans of the compared step."""
    return [one for one in partners(both) if 0 <= one[0][1] < 100]


def test_the_nth_occurrence_in_a_step_is_the_partner_of_the_nth(cases: Timelines) -> None:
    both = case(cases, 1)
    assert in_step(both) == [
        (("x:MatMul", 10), ("x:MatMul", 20)),
        (("x:MatMul", 30), ("x:MatMul", 70)),
        (("y:Relu", 50), ("y:Relu", 5)),
    ]
    assert alone(both, 1) == [("x:MatMul", 80)]


def alone(both: Aligned, side: int) -> list[tuple[str, float]]:
    """The spans that only this side has."""
    return [
        place for place, partner in zip(places_of(both, side), both.partner_ps[side], strict=True) if partner == ALONE
    ]


def test_occurrences_count_anew_in_each_step(tmp_path: Path) -> None:
    once, twice = [event("x:MatMul", 10, 5)], [event("x:MatMul", 10, 5), event("x:MatMul", 20, 5)]
    ours = host_run(tmp_path, "a", *step(1, 0, 50, *twice), *step(2, 100, 50, *once))
    theirs = host_run(tmp_path, "b", *step(1, 0, 50, *once), *step(2, 100, 50, *twice))
    assert partners(aligned(ours, theirs, (1, 1))) == [
        (("x:MatMul", 10), ("x:MatMul", 10)),
        (("x:MatMul", 20), None),
        (("x:MatMul", 110), ("x:MatMul", 110)),
    ]


def test_a_renamed_op_has_the_partner_that_the_diff_gives_it(cases: Timelines) -> None:
    assert in_step(case(cases, 2)) == [(("sequential/dense/Mul:Mul", 10), ("sequential_1/dense/Mul:Mul", 10))]


def test_a_traced_function_is_the_same_whatever_its_number(cases: Timelines) -> None:
    assert in_step(case(cases, 3)) == [
        (("__inference_train_step_6936", 10), ("__inference_train_step_6950", 20)),
        (("__inference_test_step_12", 20), ("__inference_test_step_8", 10)),
    ]


Kernels = Sequence[tuple[str, float]]
GPU_CASES: list[tuple[Kernels, Kernels]] = [
    (
        [("volta_sgemm_128x64", 30), ("relu", 40), ("volta_sgemm_128x64", 50)],
        [("implicit_convolve", 30), ("relu", 45), ("implicit_convolve", 60)],
    ),
    ([("winograd_forward", 30), ("relu", 40)], [("splitK_first", 30), ("relu", 45), ("reduce_second", 60)]),
    ([("fusion.kd", 30)], [("fusion", 30), ("memset", 40)]),
]
"""The kernels of (name, start) of an op, one op in each step; in the last one, the host has an event `fusion`."""


@pytest.fixture(scope="module")
def gpu_cases(tmp_path_factory: pytest.TempPathFactory) -> Timelines:
    """Two runs, with a step for each of `GPU_CASES`; kernels take 5 µs."""
    folder = tmp_path_factory.mktemp("gpu")
    return open_pair(*(gpu_run(folder, name, [sides[side] for sides in GPU_CASES]) for side, name in enumerate("ab")))


def gpu_run(folder: Path, name: str, steps: Sequence[Kernels]) -> Run:
    on_host, on_device = list[Event](), list[Event]()
    for number, kernels in enumerate(steps, start=1):
        op_name = f"x{number}:Conv2D"
        inside = [event(op_name, 0.5, 20)]
        for i, (kernel, at) in enumerate(kernels):
            correlation = {"correlation_id": 10 * number + i}
            inside.append(event("cuLaunchKernel", 1 + i, 0.5, correlation))
            on_device.append(event(kernel, 1_000 * number + at, 5, KERNEL | {"tf_op": op_name} | correlation))
        if number == len(steps):
            inside.append(event("fusion", 22, 5))
        on_host += step(number, 1_000 * number, 100, *inside)
    device = plane("/device:GPU:0", line("Stream #7(Compute)", *on_device, id=7))
    return write_run(folder, name, plane("/host:CPU", line("python", *on_host, id=1)), device)


def kernels_of(both: Aligned) -> list[tuple[tuple[str, float], tuple[str, float] | None]]:
    return [pair for pair in in_step(both) if pair[0][1] >= 30]


def test_another_kernel_of_the_same_op_is_the_partner_where_counts_are_equal(gpu_cases: Timelines) -> None:
    assert kernels_of(case(gpu_cases, 1)) == [
        (("volta_sgemm_128x64", 30), ("implicit_convolve", 30)),
        (("relu", 40), ("relu", 45)),
        (("volta_sgemm_128x64", 50), ("implicit_convolve", 60)),
    ]


def test_other_kernels_of_an_op_are_partners_and_compared_as_a_whole_where_counts_differ(gpu_cases: Timelines) -> None:
    both = case(gpu_cases, 2)
    assert kernels_of(both) == [(("winograd_forward", 30), ("splitK_first", 30)), (("relu", 40), ("relu", 45))]
    assert {name for name, at in alone(both, 1) if at < 100} == {"cuLaunchKernel"}
    kernels = ((0, "winograd_forward", 10), (1, "splitK_first", 2.5), (1, "reduce_second", 2.5))
    drawn = drawing(both, Viewport(width_px=100_000))["spans"].set_index(["side", "id"])
    for side, name, theirs_us in kernels:  # 5 µs in one kernel, 10 µs in two
        span = span_named(both, side, name)
        assert both.partner_ps[side][span] == theirs_us * PS_PER_US
        assert drawn.loc[(side, span), ["status", "change"]].tolist() == pytest.approx([3, 1])


def test_of_the_side_with_more_kernels_of_an_op_the_longest_have_partners_in_their_order() -> None:
    found = pairs_of_one_step(([0, 0, 1], [16, 1, 9]), ([0, 0, 0, 0, 2], [2, 30, 1, 40, 9]))
    assert [one.tolist() for one in found.partner] == [[1, 3, NONE], [NONE, 0, NONE, 1, NONE]]
    ours, theirs = (one.tolist() for one in found.theirs_ps)
    assert ours == [round(16 * 73 / 17), round(1 * 73 / 17), NONE]
    assert theirs == [round(of * 17 / 73) for of in (2, 30, 1, 40)] + [NONE]
    mirrored = pairs_of_one_step(([0, 0, 0, 0, 2], [2, 30, 1, 40, 9]), ([0, 0, 1], [16, 1, 9]))
    assert [one.tolist() for one in mirrored.partner] == [one.tolist() for one in found.partner[::-1]]


def test_kernels_of_an_op_in_equal_numbers_are_partners_in_their_order_whatever_they_take() -> None:
    found = pairs_of_one_step(([0, 0], [16, 1]), ([0, 0], [1, 30]))
    assert [one.tolist() for one in found.partner] == [[0, 1], [0, 1]]
    assert [one.tolist() for one in found.theirs_ps] == [[NONE, NONE], [NONE, NONE]]


def test_spans_of_no_op_are_partners_by_their_names_only() -> None:
    found = pairs_of_one_step(([NONE] * 2, [5, 5]), ([NONE] * 3, [5, 5, 5]))
    assert [one.tolist() for one in found.partner] == [[NONE] * 2, [NONE] * 3]


def pairs_of_one_step(ours: tuple[list[int], list[int]], theirs: tuple[list[int], list[int]]) -> SpanPairs:
    """The pairs of spans of (op, duration in ps) of one step on one device, each with another name."""
    op, duration = ((np.array(ours[i]), np.array(theirs[i])) for i in (0, 1))
    order = np.arange(len(op[0])), np.arange(len(op[1]))
    name = order[0], order[1] + len(order[0])
    return span_pairs(Identities(op, name, name, op, order, duration), (order[0] * 0, order[1] * 0))


def test_only_kernels_are_renamed_even_if_other_events_have_their_names(gpu_cases: Timelines) -> None:
    found = dict(in_step(case(gpu_cases, 3)))
    assert found[("fusion.kd", 30)] == ("fusion", 30)
    assert found[("fusion", 22)] == ("fusion", 22)


def test_steps_are_compared_in_order_from_the_chosen_ones_on(tmp_path: Path) -> None:
    times = {1: 0, 2: 100, 3: 200}
    ours, theirs = (
        host_run(
            tmp_path,
            name,
            *(one for k, at in times.items() for one in step(first + k, at, 50, event("x:MatMul", k, 5))),
        )
        for name, first in (("a", 0), ("b", 40))
    )
    assert partners(aligned(ours, theirs, (1, 42))) == [
        (("x:MatMul", 1), ("x:MatMul", 2)),
        (("x:MatMul", 102), ("x:MatMul", 103)),
        (("x:MatMul", 203), None),
    ]
    assert alone(aligned(ours, theirs, (1, 42)), 0) == []
    assert alone(aligned(ours, theirs, (1, 42)), 1) == [], "what has no step to be compared with is not compared"


def test_events_that_are_no_ops_pair_by_name_on_the_same_kind_of_lane(tmp_path: Path) -> None:
    def run(name: str, *threads: tuple[str, str, float]) -> Run:
        lines = [line("python", *step(1, 0, 100, event("x:MatMul", 80, 5)), id=1)]
        lines += [line(thread, event(what, at, 5), id=i + 2) for i, (thread, what, at) in enumerate(threads)]
        return write_run(tmp_path, name, plane("/host:CPU", *lines))

    ours = run("a", ("pool_1/8", "Wait", 10), ("pool_2/9", "Wait", 30), ("loader/7", "Wait", 20), ("gone/1", "Go", 3))
    theirs = run("b", ("pool_5/8", "Wait", 40), ("loader/3", "Wait", 12), ("loader/3", "Read", 50), ("new/1", "Go", 3))
    both = aligned(ours, theirs)
    assert both.steps == (1, 1)
    assert partners(both) == [
        (("x:MatMul", 80), ("x:MatMul", 80)),
        (("Wait", 10), ("Wait", 40)),
        (("Wait", 30), None),
        (("Wait", 20), ("Wait", 12)),
        (("Go", 3), None),
    ]
    assert alone(both, 0) == [("Wait", 30)]
    assert alone(both, 1) == [("Read", 50)], "a kind of thread that only one run has is not compared"
