"""Spans are partners if they are the same op at the same occurrence in compared steps; the diff's matches decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.profiles import EACH_KIND
from tests.tools.timeline.cases import (
    KERNEL,
    PAIRS,
    aligned_pair,
    host_run,
    open_pair,
    partners,
    places_of,
    recorded_pair,
    step,
    write_run,
)
from tests.xspace_builder import Event, event, line, plane
from tfcompare.compare.diff import MATCHED
from tfcompare.run import Run
from tfcompare.tools.timeline.aligned import Aligned, align
from tfcompare.tools.timeline.drawing import Viewport, drawing
from tfcompare.tools.timeline.losses import losses
from tfcompare.tools.timeline.run_pair import Timelines
from tfcompare.tools.timeline.run_timeline import NONE
from tfcompare.tools.timeline.window import ALONE


@pytest.mark.parametrize("name", EACH_KIND)
def test_in_a_run_beside_itself_every_span_is_its_own_partner(name: str) -> None:
    aligned = aligned_pair(name, name)
    assert aligned.pairs is not None
    for side, spans in enumerate(one.timeline.spans for one in aligned.timelines.sides):
        compared = aligned.pairs.is_compared[side]
        assert compared.mean() > 0.5
        assert (aligned.pairs.partner[side] == np.where(compared, np.arange(len(spans)), NONE)).all()
        assert not (aligned.partner_ps[side] == ALONE).any()
    assert len(aligned.drift_ps) > 0
    assert not aligned.drift_ps.any()
    assert losses(aligned) == []
    drawn = drawing(aligned, Viewport())["spans"]
    assert set(drawn["status"]) <= {0, 1}
    assert (drawn["change"] == 0).all()


@pytest.mark.parametrize("names", PAIRS)
def test_swapping_the_runs_mirrors_partners(names: tuple[str, str]) -> None:
    timelines, swapped = recorded_pair(*names), recorded_pair(*names[::-1])
    op = None if timelines.all_have_steps else int(timelines.ops_by_time.index[0])
    there, back = align(timelines, op=op).pairs, align(swapped, op=op_in(swapped, timelines, op)).pairs
    assert there is not None
    assert back is not None
    for side in (0, 1):
        assert (there.partner[side] == back.partner[1 - side]).all()
        assert (there.is_compared[side] == back.is_compared[1 - side]).all()


def op_in(swapped: Timelines, timelines: Timelines, op: int | None) -> int | None:
    """The row of an op in the diff of the swapped runs."""
    if op is None:
        return None
    row, rows = timelines.op_stats.loc[op], swapped.op_stats
    is_it = (rows["op_name"] == row["op_name_candidate"]) & (rows["host_or_device"] == row["host_or_device"])
    return int(rows.index[is_it & (rows["op_type"] == row["op_type_candidate"])][0])


@pytest.mark.parametrize("names", PAIRS)
def test_partners_are_of_rows_that_the_diff_has_matched_and_in_compared_steps(names: tuple[str, str]) -> None:
    aligned = aligned_pair(*names)
    timelines, pairs = aligned.timelines, aligned.pairs
    assert pairs is not None
    rows = np.flatnonzero(pairs.partner[0] != NONE)
    partner = pairs.partner[0][rows]
    assert (pairs.partner[1][partner] == rows).all(), "partners of each other"
    ours, theirs = (side.timeline.spans for side in timelines.sides)
    op = timelines.op_rows(0)[rows]
    assert (op == timelines.op_rows(1)[partner]).all()
    diff, is_op = timelines.op_stats, op != NONE
    matches = diff.iloc[op[is_op]]
    assert (matches["status"] == MATCHED).all()
    for column in ("op_name", "op_type"):
        mine, other = (
            spans[column].astype(str).to_numpy()[which] for spans, which in ((ours, rows), (theirs, partner))
        )
        assert (mine[is_op] == matches[column]).all()
        assert (other[is_op] == matches[f"{column}_candidate"]).all()
    if aligned.steps:
        shift = aligned.steps[1] - aligned.steps[0]
        steps = ours["step"].to_numpy()[rows], theirs["step"].to_numpy()[partner]
        assert (steps[1] - steps[0] == shift).all()


@pytest.mark.parametrize("names", PAIRS[:3])
def test_ops_that_run_equally_often_in_both_steps_all_have_partners(names: tuple[str, str]) -> None:
    """Counted apart from how partners are found."""
    aligned = aligned_pair(*names)
    assert aligned.steps is not None
    assert aligned.pairs is not None
    counts = []
    for side, one in enumerate(aligned.timelines.sides):
        here = (one.timeline.spans["step"] == aligned.steps[side]).to_numpy()
        op = aligned.timelines.op_rows(side)
        every = np.bincount(op[here & (op >= 0)], minlength=len(aligned.timelines.op_stats))
        found = here & (op >= 0) & (aligned.pairs.partner[side] != NONE)
        counts.append((every, np.bincount(op[found], minlength=len(every))))
    (ours, matched), (theirs, _) = counts
    same = (ours == theirs) & (ours > 0)
    assert same.sum() > 50
    assert (matched[same] == ours[same]).all()
    assert (matched <= np.minimum(ours, theirs)).all()


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
