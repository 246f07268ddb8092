"""Spans are partners if they are the same op at the same occurrence in compared steps; the diff's matches decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.tools.timeline.cases import (
    KERNEL,
    host_run,
    open_pair,
    partners,
    places_of,
    step,
    write_run,
)
from tests.xspace_builder import Event, event, line, plane
from tfcompare.run import Run
from tfcompare.tools.timeline.aligned import Aligned, align
from tfcompare.tools.timeline.window import ALONE


def aligned(ours: Run, theirs: Run, steps: tuple[int, int] | None = None) -> Aligned:
    return align(open_pair(ours, theirs), steps)


def test_the_nth_occurrence_in_a_step_is_the_partner_of_the_nth(tmp_path: Path) -> None:
    ours = host_run(
        tmp_path, "a", *step(1, 0, 100, event("x:MatMul", 10, 5), event("x:MatMul", 30, 5), event("y:Relu", 50, 5))
    )
    theirs = host_run(
        tmp_path, "b", *step(1, 0, 100, event("y:Relu", 5, 5), event("x:MatMul", 20, 5), event("x:MatMul", 70, 5),
                             event("x:MatMul", 80, 5)),
    )  # fmt: skip
    both = aligned(ours, theirs)
    assert partners(both) == [
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


def test_a_renamed_op_has_the_partner_that_the_diff_gives_it(tmp_path: Path) -> None:
    ours, theirs = (
        host_run(
            tmp_path, name, *step(1, 0, 100, event(f"{model}/dense/MatMul:MatMul", 10, 50), event("y:Relu", 70, 5))
        )
        for name, model in (("a", "sequential"), ("b", "sequential_1"))
    )
    assert partners(aligned(ours, theirs))[0] == (
        ("sequential/dense/MatMul:MatMul", 10),
        ("sequential_1/dense/MatMul:MatMul", 10),
    )


def gpu_run(folder: Path, name: str, *kernels: tuple[str, float], on_host: Sequence[Event] = ()) -> Run:
    """One step in which an op launches these kernels of (name, start), each of 5 µs."""
    calls = [event("cuLaunchKernel", 1 + i, 0.5, correlation_id=i + 1) for i in range(len(kernels))]
    host = line("python", *step(1, 0, 100, event("x:Conv2D", 0.5, 20), *calls, *on_host), id=1)
    stats = KERNEL | {"tf_op": "x:Conv2D"}
    events = [event(kernel, at, 5, stats | {"correlation_id": i + 1}) for i, (kernel, at) in enumerate(kernels)]
    return write_run(
        folder, name, plane("/host:CPU", host), plane("/device:GPU:0", line("Stream #7(Compute)", *events, id=7))
    )


def kernels_of(both: Aligned) -> list[tuple[tuple[str, float], tuple[str, float] | None]]:
    return [pair for pair in partners(both) if pair[0][0] not in ("cuLaunchKernel", "x:Conv2D")]


def test_another_kernel_of_the_same_op_is_the_partner_where_counts_are_equal(tmp_path: Path) -> None:
    ours = gpu_run(tmp_path, "a", ("volta_sgemm_128x64", 30), ("relu", 40), ("volta_sgemm_128x64", 50))
    theirs = gpu_run(tmp_path, "b", ("implicit_convolve", 30), ("relu", 45), ("implicit_convolve", 60))
    assert kernels_of(aligned(ours, theirs)) == [
        (("volta_sgemm_128x64", 30), ("implicit_convolve", 30)),
        (("relu", 40), ("relu", 45)),
        (("volta_sgemm_128x64", 50), ("implicit_convolve", 60)),
    ]


def test_other_kernels_of_an_op_have_no_partner_where_counts_differ(tmp_path: Path) -> None:
    ours = gpu_run(tmp_path, "a", ("winograd_forward", 30), ("relu", 40))
    theirs = gpu_run(tmp_path, "b", ("splitK_first", 30), ("relu", 45), ("reduce_second", 60))
    both = aligned(ours, theirs)
    assert kernels_of(both) == [(("winograd_forward", 30), None), (("relu", 40), ("relu", 45))]
    assert {name for name, _ in alone(both, 1)} == {"cuLaunchKernel", "splitK_first", "reduce_second"}


def test_only_kernels_are_renamed_even_if_other_events_have_their_names(tmp_path: Path) -> None:
    ours = gpu_run(tmp_path, "a", ("fusion.kd", 30), on_host=[event("fusion", 10, 5)])
    theirs = gpu_run(tmp_path, "b", ("fusion", 30), ("memset", 40), on_host=[event("fusion", 12, 5)])
    found = dict(partners(aligned(ours, theirs)))
    assert found[("fusion.kd", 30)] == ("fusion", 30)
    assert found[("fusion", 10)] == ("fusion", 12)


def test_a_traced_function_is_the_same_whatever_its_number(tmp_path: Path) -> None:
    def calls(*names: str) -> list[Event]:
        return step(1, 0, 100, *(event(name, 10 * i, 5) for i, name in enumerate(names, start=1)))

    ours = host_run(tmp_path, "a", *calls("__inference_train_step_6936", "__inference_test_step_12"))
    theirs = host_run(tmp_path, "b", *calls("__inference_test_step_8", "__inference_train_step_6950"))
    assert partners(aligned(ours, theirs)) == [
        (("__inference_train_step_6936", 10), ("__inference_train_step_6950", 20)),
        (("__inference_test_step_12", 20), ("__inference_test_step_8", 10)),
    ]


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
