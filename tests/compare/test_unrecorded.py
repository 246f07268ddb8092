"""Pairs of which one side lacks the record of what ran on devices, whole or in part."""

from __future__ import annotations

from functools import cache

import pytest

from tests.unrecorded import DROPPED, NO_CUPTI, program
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.verdict import UNTESTED
from tfcompare.comparison import Comparison, compare
from tfcompare.run import Run


@cache
def made(kind: str, waits: bool) -> Run:
    """The same program, recorded in another way."""
    if kind == "whole":
        return program(waits=waits)
    if kind == "cut":
        return program(range(17), waits=waits)
    if kind == "short":
        return program(range(9), waits=waits, complaint=DROPPED)
    return program([], waits=waits, complaint=NO_CUPTI)


def pair(baseline: str, candidate: str, waits: bool) -> Comparison:
    return compare(made(baseline, waits), made(candidate, waits))


def outcomes(of: Comparison, *conditions: str) -> list[str]:
    return [one.outcome for one in check(of, [parse_condition(text) for text in conditions]).found]


OF_DEVICES = (
    "step_time>+5%",
    "step_time_p95>+5%",
    "time_between_steps>+5%",
    "op:*MatMul>+5%",
    "kernel:*>-5%",
    "kernel_launches>+1%",
)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("sides", [("whole", "absent"), ("absent", "whole"), ("absent", "absent")])
def test_nothing_of_devices_is_compared_without_a_record_of_them(sides: tuple[str, str], waits: bool) -> None:
    found = pair(*sides, waits)
    if sides[0] == sides[1]:
        found = compare(made("absent", waits), program([], waits=waits))
    verdict = next(iter(found.verdict.values()))
    assert (verdict.word, verdict.reason) == (UNTESTED, made("absent", waits).why_untimed)
    assert found.headline().startswith("Step times cannot be compared.")
    ops = found.table("op_stats")
    assert ops["status"].eq("matched").all()
    assert set(ops["host_or_device"]) == {"Host"}
    for table in ("kernel_stats", "copies", "hlo_ops", "hosts"):
        assert found.table(table).empty
    assert "Device type" not in [one.label for one in pair_with(found).mismatches]
    assert all(one in ("untested", "missing") for one in outcomes(found, *OF_DEVICES))


@pytest.mark.parametrize("sides", [("whole", "absent"), ("absent", "whole")])
def test_throughput_and_ops_of_hosts_are_compared_all_the_same(sides: tuple[str, str]) -> None:
    found = pair(*sides, False)
    assert outcomes(found, "throughput<-5%", "op:loader*>+5%", "throughput<+5%") == ["passed", "passed", "unclear"]
    assert "500 vs 500 steps/s" in found.headline()


@pytest.mark.parametrize("waits", [True, False])
def test_steps_that_were_recorded_as_a_whole_are_compared(waits: bool) -> None:
    found = pair("whole", "cut", waits)
    verdict = next(iter(found.verdict.values()))
    assert verdict.ratio == pytest.approx(1)
    assert found.sides[1].step_count() == 16
    ops = found.table("op_stats").set_index("op_name")
    assert ops.loc["dense_0/MatMul", "self_time_us_per_step_ratio"] == pytest.approx(1)
    assert outcomes(found, "kernel_launches>+1%", "op:dense*>+50%", "step_time>+50%") == ["passed"] * 3


@pytest.mark.parametrize("waits", [True, False])
def test_below_nine_recorded_steps_nothing_is_judged(waits: bool) -> None:
    found = pair("whole", "short", waits)
    assert outcomes(found, "step_time>+50%", "op:dense*>+50%") == [UNTESTED] * 2


def test_a_value_of_the_candidate_alone_is_judged_where_only_the_baseline_lacks_its_record() -> None:
    conditions = "op:dense*>1us", "step_time>1us", "op:dense*>+5%", "step_time>+5%"
    assert outcomes(pair("absent", "whole", False), *conditions) == ["failed", "failed", "untested", "untested"]
    found = check(pair("whole", "absent", False), list(map(parse_condition, conditions)))
    assert all(one.outcome == "untested" and "the candidate: nothing" in one.why_not_judged for one in found.found)
