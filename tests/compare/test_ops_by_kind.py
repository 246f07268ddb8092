"""Ops and kernels of captures with several kinds of steps: another mix alone changes none, a change is found in its
kind, by its true ratio."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pandas as pd
import pytest

from tests.compare.loops import loop
from tfcompare.compare.check.conditions import Findings, check, parse_condition
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.verdict import FASTER, SAME, SLOWER, UNCLEAR, UNTESTED
from tfcompare.comparison import compare
from tfcompare.run import Run

SHARED, TRAIN, EVAL = "model/shared", "model/train", "model/eval"
MOSTLY_TRAIN = ["train", "train", "eval"] * 20
MOSTLY_EVAL = ["eval", "eval", "train"] * 20
WHERE = pytest.mark.parametrize("on_devices", [0, 1], ids=["host", "device"])


@cache
def run(kinds: tuple[str, ...], *, eval_us: float = 500.0, shared_us: float = 400.0, on_devices: int = 1) -> Run:
    """Training steps run an op of 1,000 µs, evaluation one of `eval_us`; of another op, both take a part."""
    of = {
        "train": ("train", ((SHARED, shared_us), (TRAIN, 1_000.0))),
        "eval": ("eval", ((SHARED, shared_us / 4), (EVAL, eval_us))),
    }
    return loop([of[kind] for kind in kinds], on_devices=on_devices)


def pair(ours: Sequence[str], theirs: Sequence[str], on_devices: int, **after: float) -> Pair:
    return pair_with(
        compare(
            run(tuple(ours), on_devices=on_devices), run(tuple(theirs), on_devices=on_devices, **after), spread=0.004
        )
    )


def rows(one: Pair, table: str = "op_stats") -> pd.DataFrame:
    diff = one.diff(table)
    if table == "op_stats":
        diff = diff[diff["op_type"] == "MatMul"]
        if one.knows_devices and (diff["host_or_device"] == "Device").any():
            diff = diff[diff["host_or_device"] == "Device"]
    return diff.set_index("op_name")


def outcomes(one: Pair, *conditions: str) -> list[str]:
    found: Findings = check(one.among, [parse_condition(text) for text in conditions])
    return [finding.outcome for finding in found.found]


@WHERE
def test_another_mix_alone_changes_no_op(on_devices: int) -> None:
    found = rows(pair(MOSTLY_TRAIN, MOSTLY_EVAL, on_devices))
    assert found["self_time_us_ratio"].to_dict() == pytest.approx(dict.fromkeys((SHARED, TRAIN, EVAL), 1.0), rel=3e-3)
    assert set(found["verdict"]) == {SAME}
    per_step = found["self_time_us_baseline"]
    assert per_step[TRAIN] == pytest.approx(500, rel=0.01), "of one mix of both sides, half of the steps train"
    assert per_step[EVAL] == pytest.approx(250, rel=0.01)
    assert found["occurrences_candidate"].to_dict() == pytest.approx({SHARED: 1.0, TRAIN: 0.5, EVAL: 0.5}, rel=0.03)


def test_another_mix_alone_changes_no_kernel() -> None:
    found = rows(pair(MOSTLY_TRAIN, MOSTLY_EVAL, 1), "kernel_stats")
    assert len(found) == 3 and set(found["verdict"]) == {SAME}
    assert found["total_duration_us_ratio"].tolist() == pytest.approx([1.0] * 3, rel=3e-3)


@WHERE
def test_a_change_in_one_kind_is_found_by_its_ratio_within_that_kind(on_devices: int) -> None:
    one = pair(MOSTLY_TRAIN, MOSTLY_EVAL, on_devices, eval_us=650.0)
    found = rows(one)
    assert found["verdict"].to_dict() == {SHARED: SAME, TRAIN: SAME, EVAL: SLOWER}
    assert found["self_time_us_ratio"][EVAL] == pytest.approx(1.3, rel=3e-3)
    assert found["interval_low"][EVAL] < 1.3 < found["interval_high"][EVAL] < 1.35
    back = rows(pair_with(compare(one.candidate, one.baseline, spread=0.004)))
    assert back["verdict"].to_dict() == {SHARED: SAME, TRAIN: SAME, EVAL: FASTER}
    assert (back["self_time_us_ratio"] * found["self_time_us_ratio"]).tolist() == pytest.approx([1.0] * 3)


def test_an_op_of_several_kinds_is_judged_in_that_in_which_it_takes_most_time() -> None:
    found = rows(pair(MOSTLY_TRAIN, MOSTLY_EVAL, 1, shared_us=520.0))
    assert found["verdict"].to_dict() == {SHARED: SLOWER, TRAIN: SAME, EVAL: SAME}
    assert found["self_time_us_ratio"][SHARED] == pytest.approx(1.3, rel=3e-3)


def test_conditions_on_ops_and_kernels_are_judged_within_a_kind() -> None:
    one = pair(MOSTLY_TRAIN, MOSTLY_EVAL, 1, eval_us=650.0)
    conditions = ["op:*train>+5%", "kernel:gemm_train>+5%", "kernel:gemm_train<-5%", "op:*eval>+25%", "op:*eval>+35%"]
    assert outcomes(one, *conditions) == ["passed", "passed", "passed", "failed", "passed"]
    (found,) = check(one.among, [parse_condition("kernel:gemm_eval>+25%")]).found
    assert (found.measured.baseline, found.measured.candidate) == pytest.approx((500, 650), rel=3e-3)
    assert "39 steps of eval" in found.reason


def test_launches_are_of_one_mix_too() -> None:
    train, evaluate = ("train", [(SHARED, 400.0), (TRAIN, 1_000.0)] * 2), ("eval", [(EVAL, 500.0)])
    ours, theirs = (
        loop([{"train": train, "eval": evaluate}[kind] for kind in kinds], on_devices=1)
        for kinds in (MOSTLY_TRAIN, MOSTLY_EVAL)
    )
    assert outcomes(pair_with(compare(ours, theirs)), "kernel_launches>+1%", "kernel_launches<-1%") == ["passed"] * 2


def test_the_same_mix_leaves_figures_as_they_are_and_is_judged_within_kinds_too() -> None:
    """The steps of a kind vary by 1 %, those of all kinds by far more."""
    one = pair(MOSTLY_TRAIN, MOSTLY_TRAIN, 1, eval_us=550.0)
    found = rows(one)
    in_steps = one.baseline.tables.in_steps("op_stats").query("host_or_device == 'Device'").set_index("op_name")
    for name in (SHARED, TRAIN, EVAL):
        assert found["self_time_us_baseline"][name] == in_steps["self_time_us"][name] / one.baseline.info.steps_included
    assert found["verdict"].to_dict() == {SHARED: SAME, TRAIN: SAME, EVAL: SLOWER}


def test_ops_of_a_kind_that_one_side_lacks_change_no_other() -> None:
    found = rows(pair(["train"] * 40, MOSTLY_TRAIN, 1))
    assert found["status"].to_dict() == {SHARED: "matched", TRAIN: "matched", EVAL: "added"}
    assert found["self_time_us_ratio"][TRAIN] == pytest.approx(1.0, rel=3e-3)
    assert found["verdict"][[TRAIN, SHARED]].tolist() == [SAME, UNTESTED], "evaluation also runs the shared op"
    assert found["self_time_us_candidate"][EVAL] == pytest.approx(500 * 19 / 39, rel=0.01), "per step of training"


def test_too_few_steps_of_a_kind_are_not_tested_and_hide_nothing_of_the_others() -> None:
    few = ["train"] * 40 + ["eval"] * 6
    found = rows(pair(few, few, 1, eval_us=1_000.0))
    assert found["verdict"].to_dict() == {SHARED: SAME, TRAIN: SAME, EVAL: UNTESTED}
    assert UNCLEAR not in set(rows(pair(few, few, 1))["verdict"])
