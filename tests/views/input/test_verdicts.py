"""Verdicts on the waiting for input and on calls to tf.data are on the numbers that the pages show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.profiles import compared_runs
from tfcompare import compare
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import pair_with
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.views.input.figures import input_wait, on_waiting

PAIRS = [
    ("filters_512_128", "filters_16_8"),
    ("filters_16_8", "filters_16_8_better_input"),
    ("filters_16_8", "filters_16_8_again"),
    ("tf_cpu_base", "tf_cpu_sleepy"),
]
TURNED = {"faster": "slower", "slower": "faster"}


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_verdict_on_the_waiting_is_on_the_means_that_are_shown(one: str, other: str):
    comparison = compared_runs(one, other)
    runs = comparison.baseline, comparison.candidates[0]
    ours, theirs = (input_wait(on_slowest_host(run.table("steps")), run.info).input_time_us.average for run in runs)
    found = on_waiting(pair_with(comparison, runs[1].id))
    if ours == theirs == 0:
        assert found.word == "untested"
        return
    assert found.ratio == pytest.approx(theirs / ours)
    assert found.low <= found.ratio <= found.high
    assert "steps" in found.reason


@pytest.mark.parametrize(("one", "other"), PAIRS[:3])
def test_the_verdict_on_calls_is_on_the_mean_that_the_diff_has(one: str, other: str):
    comparison = compared_runs(one, other)
    rows = comparison.table("tf_data_pipelines")
    found = pair_with(comparison).call_verdicts(rows)
    matched = rows[rows["status"] == "matched"]
    assert [call.verdict.word for call in found] == matched["verdict"].tolist()
    for call, ratio in zip(found, matched["mean_latency_us_ratio"], strict=True):
        assert "calls" in call.verdict.reason
        if call.verdict.has_interval:
            assert call.verdict.ratio == pytest.approx(ratio)
            assert call.verdict.low <= ratio <= call.verdict.high


@pytest.mark.parametrize(("one", "other"), PAIRS[:3])
def test_swapped_sides_mirror(one: str, other: str):
    forth, back = compared_runs(one, other), compared_runs(other, one)
    for verdict in (on_waiting, lambda pair: pair.slowest_call_verdict().verdict):  # type: ignore[union-attr]
        there, again = (verdict(pair_with(c)) for c in (forth, back))
        assert again.word == TURNED.get(there.word, there.word)
        assert there.low == pytest.approx(1 / again.high, nan_ok=True)


def test_a_better_input_is_faster_and_a_second_recording_cannot_be_told_apart():
    better, again = compared_runs(*PAIRS[1]), compared_runs(*PAIRS[2])
    for verdict in (on_waiting, lambda pair: pair.slowest_call_verdict().verdict):  # type: ignore[union-attr]
        assert verdict(pair_with(better)).word == "faster"
        assert verdict(pair_with(again)).word == "unclear"


def test_a_run_beside_itself_is_the_same():
    comparison = compared_runs("filters_16_8", "filters_16_8")
    pair = pair_with(comparison)
    assert on_waiting(pair).word == "same"
    assert {call.verdict.word for call in pair.call_verdicts(pair.diff("tf_data_pipelines"))} == {"same"}


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("jax_conv_08", "is unknown: no step markers were found"),
        ("jax_tpu", "is unknown: its steps are run times of an XLA module"),
        ("tf_gpu", "too few steps: 1"),
    ],
)
def test_where_the_waiting_cannot_be_judged_it_says_why(run: str, why: str):
    for pair in ((run, "tf_cpu_zoo"), ("tf_cpu_zoo", run)):
        comparison = compared_runs(*pair)
        found = on_waiting(pair_with(comparison))
        assert found.word == "untested"
        assert why in found.reason


def test_without_calls_on_a_side_there_is_no_verdict_on_them():
    comparison = compared_runs("jax_tpu", "tf_cpu_zoo")
    assert pair_with(comparison).slowest_call_verdict() is None


@pytest.mark.parametrize(("one", "other"), PAIRS[:3])
def test_check_and_the_page_judge_the_slowest_pipeline_alike(one: str, other: str):
    comparison = compared_runs(one, other)
    runs = comparison.baseline, comparison.candidates[0]
    (found,) = [f for f in check(compare(*runs), [parse_condition("input_latency>+5%")]).found if f.condition]
    call = pair_with(comparison).slowest_call_verdict()
    assert found.measured.verdict == replace(call.verdict, caveat="")
