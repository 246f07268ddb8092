"""The step of a JAX program on CPU that blocks behind its loop lasts as long as the executions that it launched."""

from __future__ import annotations

import pytest

from tests.checked import checked as check
from tests.frames.async_cpu import DISPATCH_US, GAP_US, AsyncCpuProgram
from tests.frames.tables import run_of
from tfcompare import compare
from tfcompare.compare.check.conditions import parse_condition
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.verdict import UNTESTED
from tfcompare.run import Run
from tfcompare.schema import STEP_PARTS
from tfcompare.views.steps.attribution import attribution

TWELVE = (2_000.0,) * 12
ALTERNATING = (1_000.0, 3_000.0) * 6
WORK_AFTER_STEPS = (
    "steps end before their work: most of the work of `jit_step` runs after the last marker; "
    "block on the result inside the step"
)


def run(*times_us: float, **options: object) -> Run:
    return run_of(AsyncCpuProgram(times_us, **options).profile())


def occurrences(of: Run) -> list[list[int]]:
    """How often each op ran in each step."""
    return of.table("op_steps").pivot(index="step", columns="op_name", values="occurrences").to_numpy().tolist()


@pytest.mark.parametrize(
    "dialect",
    [{}, {"calls_have_run_id": True}, {"run_ids": False}, {"programs": 2}],
    ids=["by order of run ids", "by run id of the call", "by count", "two programs of one name"],
)
def test_the_step_is_the_execution_that_it_launched(dialect: dict[str, bool]) -> None:
    found = run(*ALTERNATING, **dialect)
    steps = found.table("steps")
    assert steps["duration_us"].tolist() == list(ALTERNATING)
    assert steps["device_span_us"].tolist() == list(ALTERNATING)
    assert steps["host_span_us"].tolist() == [DISPATCH_US] * 12
    assert steps["host_compute_us"].tolist() == list(ALTERNATING)
    assert steps[list(STEP_PARTS)].sum(axis=1).tolist() == list(ALTERNATING)
    assert occurrences(found) == [[1, 1]] * 12
    wall = found.table("op_steps").groupby("step")["wall_time_us"].sum()
    assert wall.tolist() == pytest.approx(list(ALTERNATING))


def test_a_step_reaches_from_its_first_to_its_last_program() -> None:
    found = run(*TWELVE, functions=("step", "metrics"))
    steps = found.table("steps")
    assert steps["duration_us"].tolist() == [2 * 2_000 + GAP_US] * 12
    assert steps["idle_us"].tolist() == [GAP_US] * 12
    assert occurrences(found) == [[1] * 4] * 12


@pytest.mark.parametrize(
    "dialect",
    [{}, {"calls_have_run_id": True}, {"run_ids": False}, {"lost": 1}],
    ids=["by order of run ids", "by run id of the call", "by count", "where an execution is unknown"],
)
def test_a_step_that_blocks_lasts_as_long_as_its_marker(dialect: dict[str, bool]) -> None:
    found = run(*TWELVE, blocks=True, **dialect)
    steps = found.table("steps")
    assert (steps["duration_us"] == steps["host_span_us"]).all()
    assert (steps["duration_us"] > 2_000).all()
    assert found.remarks == ()
    if "lost" not in dialect:
        assert steps["device_span_us"].isna().all()
        assert occurrences(found) == [[1, 1]] * 12


@pytest.mark.parametrize("times", [1, 2], ids=["no change", "a slower program"])
def test_step_times_compare_however_a_program_blocks(times: int) -> None:
    before, after = run(*TWELVE, blocks=True), run(*(times * time for time in TWELVE))
    (found,) = check(before, after, [parse_condition("step_time>+5%")]).found
    assert found.outcome == ("failed" if times == 2 else "passed")
    assert found.measured.verdict.ratio == pytest.approx(times, abs=0.01 * times)


@pytest.mark.parametrize("dialect", [{"calls_have_run_id": True}, {"independent": True}], ids=["run id", "context"])
def test_an_execution_of_before_the_profile_belongs_to_no_step(dialect: dict[str, bool]) -> None:
    """A call's run id, or the context of one whose inputs were there, tells which execution is the first step's."""
    found = run(*ALTERNATING, earlier=2, **dialect)
    assert found.table("steps")["duration_us"].tolist() == list(ALTERNATING)
    assert occurrences(found) == [[1, 1]] * 12


@pytest.mark.parametrize(
    "unknown", [{"lost": 2}, {"earlier": 1}, {"lost": 1, "run_ids": False}], ids=["too few", "too many", "uneven"]
)
def test_work_that_no_link_or_count_gives_to_a_step_leaves_no_step_time(unknown: dict[str, int]) -> None:
    before, after = run(*TWELVE, blocks=True), run(*TWELVE, **unknown)
    assert after.table("steps").empty
    assert WORK_AFTER_STEPS in after.remarks
    comparison = compare(before, after)
    verdict = comparison.verdict[after.id]
    assert (verdict.word, verdict.reason) == (UNTESTED, WORK_AFTER_STEPS)
    assert comparison.headline() == f"Step times cannot be compared. `{after.name}`: {WORK_AFTER_STEPS}."
    assert attribution(pair_with(comparison, after.id)).sentence == f"No breakdown: {WORK_AFTER_STEPS}."
    (found,) = check(before, after, [parse_condition("step_time>+5%")]).found
    assert (found.outcome, found.measured.verdict.reason) == ("untested", WORK_AFTER_STEPS)


def test_the_name_of_a_program_is_no_markdown() -> None:
    found = run(*TWELVE, lost=2, functions=("a`b*c*",))
    assert "most of the work of `jit_a'b*c*` runs" in found.why_untimed


def test_a_profile_that_ends_before_all_work_has_no_step_time() -> None:
    found = run(*TWELVE, lost=12)
    assert found.table("steps").empty
    assert found.remarks == (
        "steps end before their work: the profile holds none of it; block on the result inside the step",
    )
