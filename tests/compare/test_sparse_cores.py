"""Runs with and without a record of the SparseCores of their TPU chips: nothing of the chips differs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from tests.frames.tables import run_with
from tests.frames.test_sparse_cores import (
    CORES,
    FUSION,
    GATHER,
    PERIOD_US,
    REDUCE,
    STEPS,
    each_step,
    instruction,
    sparse_core,
    tensor_core,
)
from tests.store.test_packing import assert_packs
from tests.xspace_builder import Plane, event, line, plane
from tfcompare import compare
from tfcompare.compare.check.conditions import PASSED, check, parse_condition
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.per_device import computing_devices
from tfcompare.comparison import Comparison
from tfcompare.frames.planes import STEPS_LINE
from tfcompare.run import Run
from tfcompare.views.advice.facts import facts_of
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.dashboard import dashboard
from tfcompare.views.xla import figures as unknown_costs
from tfcompare.views.xla.instruction import instruction_key

SPARSE = "SparseCores busy"


@pytest.fixture(scope="module")
def plain() -> Run:
    return run_with(tensor_core(), tensor_core(1))


@pytest.fixture(scope="module")
def both() -> Run:
    return run_with(tensor_core(), tensor_core(1), *CORES)


@pytest.fixture(scope="module")
def comparison(plain: Run, both: Run) -> Comparison:
    return compare(plain, both)


def pair_of(comparison: Comparison) -> Pair:
    return pair_with(comparison)


def figures(comparison: Comparison) -> dict[str, KeyFigure]:
    pair = pair_of(comparison)
    return {one.label: one for one in dashboard(pair, attribution_of(pair).parts)}


def places(diff: pd.DataFrame) -> dict[str, str]:
    """The status of each op by where it ran."""
    keys = diff["host_or_device"] + " " + diff["op_name"].str.rpartition("/")[2]
    return dict(zip(keys, diff["status"], strict=True))


def test_no_figure_of_the_chips_differs(comparison: Comparison) -> None:
    found = figures(comparison)
    sparse = found.pop(SPARSE)
    assert pd.isna(sparse.baseline) and sparse.candidate == pytest.approx(150.0)
    assert {"Step time", "Device busy", "Device duty cycle", "FLOP utilization", "Memory bandwidth"} <= set(found)
    for label, figure in found.items():
        assert figure.candidate == figure.baseline > 0 or label == "Input wait"
    parts = attribution_of(pair_of(comparison)).parts
    assert (parts["mean_us_baseline"] == parts["mean_us_candidate"]).all()
    assert computing_devices(comparison.baseline) == computing_devices(comparison.candidates[0]) == 2


def test_what_they_ran_is_added_and_nothing_else_changed(comparison: Comparison) -> None:
    diff = comparison.table("op_stats")
    assert places(diff) == {
        "Device dot_general": "matched",
        "Device all-reduce.2": "matched",
        "Device IDLE": "matched",
        "SparseCore gather": "added",
    }
    assert (diff.loc[diff["status"] == "matched", "self_time_us_per_step_delta"] == 0).all()
    conditions = ["step_time>+20%", "mfu<-20%", "hbm_share<-20%"]
    assert {one.outcome for one in check(comparison, map(parse_condition, conditions)).found} == {PASSED}


def test_swapping_mirrors(plain: Run, both: Run, comparison: Comparison) -> None:
    back = compare(both, plain)
    assert places(back.table("op_stats"))["SparseCore gather"] == "removed"
    assert figures(back)[SPARSE].baseline == figures(comparison)[SPARSE].candidate
    assert pd.isna(figures(back)[SPARSE].candidate)


def test_a_run_compared_with_itself_shows_no_difference(both: Run) -> None:
    alike = compare(both, run_with(tensor_core(), tensor_core(1), *CORES))
    for name in ("op_stats", "hlo_ops", "hosts", "op_profile"):
        diff = alike.table(name)
        assert (diff["status"] == "matched").all()
        changes = diff[[column for column in diff if column.endswith("_delta")]]
        assert (changes.isna() | (changes == 0)).all(axis=None)
    assert alike.table("op_stats")["host_or_device"].eq("SparseCore").sum() == 1
    assert alike.table("hosts")["sparse_core_busy_us_delta"].notna().any()


def test_slower_sparse_cores_show_in_their_own_figures_alone(both: Run) -> None:
    """They overlap with what the TensorCore does, and run on for the same time on both cores."""
    slow = run_with(tensor_core(), tensor_core(1), slower(), slower(1))
    comparison = compare(both, slow)
    found = figures(comparison)
    assert (found[SPARSE].baseline, found[SPARSE].candidate) == pytest.approx((150.0, 300.0))
    assert found["Device busy"].baseline == found["Device busy"].candidate
    diff = comparison.table("op_stats").set_index("host_or_device")
    assert diff.loc["SparseCore", "self_time_us_per_step_ratio"] == pytest.approx(600 / 200)
    assert (diff.loc["Device", "self_time_us_per_step_delta"] == 0).all()


def repeating(times: int) -> Run:
    """A step does the same work so many times, on the TensorCore and beside it on a SparseCore."""
    of_chip, of_core = ([(op, 320.0 * i, 300.0) for i in range(times)] for op in (FUSION, GATHER))
    steps = [event(str(step), PERIOD_US * step, 650) for step in range(STEPS)]
    chip = plane("/device:TPU:0", line("Steps", *steps, id=STEPS_LINE), line("XLA Ops", *each_step(*of_chip), id=3))
    core = plane("/device:TPU:0 SparseCore 0", line("Sparse Core Ops", *each_step(*of_core), id=13))
    return run_with(chip, core)


def test_steps_of_several_iterations_are_compared_per_iteration() -> None:
    comparison = compare(repeating(1), repeating(2))
    assert pair_of(comparison).iterations == (1, 2)
    found = figures(comparison)[SPARSE]
    assert (found.baseline, found.candidate) == pytest.approx((300.0, 300.0))


def test_costs_of_what_they_ran_are_no_costs_of_the_chip() -> None:
    unknown = instruction(9, "gather.9", "", "sparse-core-op")
    comparison = compare(*[run_with(replace(tensor_core(), stats=()), sparse_core(op=unknown))] * 2)
    assert unknown_costs.unknown_costs_sentence(pair_of(comparison)) == ""
    (found,) = check(comparison, [parse_condition("mfu<90%")]).found
    assert found.measured.verdict.reason.endswith("on a device whose peak is known")


def slower(number: int = 0) -> Plane:
    ops = line("Sparse Core Ops", *each_step((GATHER, 100, 300)))
    return plane(f"/device:TPU:0 SparseCore {number}", ops)


def test_an_op_that_moves_to_a_sparse_core_has_no_counterpart_there() -> None:
    """Its time is then in other figures."""
    steps = tensor_core().contents[:2]
    with_gather = line("XLA Ops", *each_step((FUSION, 0, 500), (GATHER, 500, 100), (REDUCE, 600, 50)), id=3)
    without = line("XLA Ops", *each_step((FUSION, 0, 500), (REDUCE, 600, 50)), id=3)
    before, after = (plane("/device:TPU:0", *steps, ops_line) for ops_line in (with_gather, without))
    comparison = compare(run_with(before), run_with(after, sparse_core()))
    found = places(comparison.table("op_stats"))
    assert (found["Device gather"], found["SparseCore gather"]) == ("removed", "added")
    instructions = comparison.table("hlo_ops").set_index(["hlo_op", "core_type"])["status"]
    assert instructions["gather.9", "TensorCore"] == "removed"
    assert instructions["gather.9", "SparseCore"] == "added"


def test_a_program_takes_the_time_of_the_tensor_core(comparison: Comparison) -> None:
    pair = pair_of(comparison)
    rows = pair.instructions()
    assert rows["execution_time_us_candidate"].sum() == rows["execution_time_us_baseline"].sum() == pytest.approx(650)
    every = pair.every_instruction().set_index("core_type")
    assert every.loc["SparseCore", "execution_time_us_candidate"] == pytest.approx(400 / 2)
    assert pair.longest_program is not None and pair.longest_program.candidate_us == pytest.approx(650)


def test_how_often_a_program_ran_is_told_by_the_tensor_core() -> None:
    """Not by an offload in every fourth step."""
    ops = line("Sparse Core Ops", *each_step((GATHER, 100, 100))[::4])
    run = run_with(tensor_core(), plane("/device:TPU:0 SparseCore 0", ops))
    every = pair_of(compare(run, run)).every_instruction().set_index("core_type")
    assert every["program_executions_baseline"].unique().tolist() == [12]
    assert every.loc["SparseCore", "execution_time_us_baseline"] == pytest.approx(3 * 100 / 12)


def test_an_instruction_of_both_types_of_core_is_selected_by_keys_of_their_own() -> None:
    run = run_with(tensor_core(), sparse_core(op=FUSION))
    rows = pair_of(compare(run, run)).every_instruction()
    assert instruction_key(rows).is_unique and len(rows) == 3


def test_what_sparse_cores_ran_was_not_lost_by_a_capture_without_them() -> None:
    """Though a program's other instructions ran as often."""
    every = [
        instruction(n, f"op.{n}", f"model/op_{n}:", "custom-call", flops=1, bytes_accessed=1) for n in range(20, 30)
    ]
    own, offloaded = every[:6], every[6:]
    chip = plane(
        "/device:TPU:0",
        *tensor_core().contents[:2],
        line("XLA Ops", *each_step(*((op, 20 * at, 10) for at, op in enumerate(own))), id=3),
    )
    core = plane(
        "/device:TPU:0 SparseCore 0",
        line("Sparse Core Ops", *each_step(*((op, 20 * at, 10) for at, op in enumerate(offloaded)))),
    )
    comparison = compare(run_with(chip), run_with(chip, core))
    assert pair_of(comparison).lost_events().empty


def test_they_come_out_of_a_store_as_they_went_in(both: Run) -> None:
    (host,) = both.hosts
    assert_packs(host)


def test_advice_is_on_the_same_facts(plain: Run, both: Run) -> None:
    before, after = facts_of(plain), facts_of(both)
    for name in ("ops", "hlo_ops"):
        pd.testing.assert_frame_equal(getattr(before, name), getattr(after, name))
    assert (before.idle_us, before.device_us, before.gap) == (after.idle_us, after.device_us, after.gap)


def test_a_chip_whose_sparse_cores_alone_compute_is_no_computing_device() -> None:
    idle = plane("/device:TPU:1", line("XLA Ops", *each_step((REDUCE, 0, 10)), id=3))
    run = run_with(tensor_core(), idle, sparse_core(chip=1))
    assert {op_type for *_, op_type in run.tables.op_types_on_devices()} == {"dot_general", "Unknown"}
    assert computing_devices(run) == 1
