"""How much of its steps a run waits for input, what is said of it, and the verdicts on that."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.frames.tables import run_of
from tests.input_runs import MARKED, UNMARKED, pipelines, steps
from tests.profiles import compared_runs, loaded_run
from tests.xspace_builder import event, line, plane, space
from tfcompare import compare
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import pair_with
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.views.input.figures import (
    InputWait,
    headline,
    input_wait,
    level_of,
    mean_call_us,
    on_waiting,
    share_by_core,
    wait_by_calls,
    words,
)

MODULE = SimpleNamespace(has_steps=True, has_step_times=True, step_source="XLA module jit_f")

LEVELS = {
    "highly": input_wait(steps((100.0, 30.0)), MARKED),
    "moderately": input_wait(steps((100.0, 10.0)), MARKED),
    "not": input_wait(steps((200.0, 2.0)), MARKED),
    "unknown": input_wait(steps(), UNMARKED),
}


def test_the_figures_are_those_of_the_steps_that_count():
    frame = steps((900.0, 900.0), (100.0, 10.0), (100.0, 20.0), (200.0, 90.0), (100.0, 40.0), (900.0, 0.0))
    wait = input_wait(frame, MARKED)
    assert wait.steps == 4
    assert (wait.step_time_us.average, wait.step_time_us.smallest, wait.step_time_us.largest) == (125.0, 100.0, 200.0)
    assert wait.step_time_us.deviation == pytest.approx(50.0)
    assert (wait.input_time_us.average, wait.input_time_us.smallest, wait.input_time_us.largest) == (40.0, 10.0, 90.0)
    assert wait.share.average == pytest.approx(160 / 500), "of all step time together"
    assert (wait.share.smallest, wait.share.largest) == (0.1, 0.45)
    assert wait.level == "highly"


def test_one_step_has_no_deviation():
    assert math.isnan(LEVELS["highly"].share.deviation)


@pytest.mark.parametrize(
    ("share", "level"), [(0.20, "highly"), (0.199, "moderately"), (0.05, "moderately"), (0.049, "not"), (0.006, "not")]
)
def test_the_classes_begin_at_their_thresholds(share, level):
    assert level_of(share) == level


def test_a_slow_call_in_a_long_step_is_no_bottleneck():
    wait = input_wait(steps(*[(33_000.0, 51.0)] * 9), MARKED)
    assert (wait.level, wait.is_bound) == ("not", False)
    assert input_wait(steps(*[(500.0, 51.0)] * 9), MARKED).level == "moderately"


def test_a_run_without_steps_or_whose_steps_hold_no_waiting_tells_nothing():
    assert words(LEVELS["unknown"]) == "does not show how long it waits for input: no step markers were found"
    wait = input_wait(steps((100.0, 0.0)), MODULE)
    assert not wait.is_known
    assert "XLA module" in words(wait)
    assert not input_wait(steps((0.0, 0.0)), MARKED).is_known


def test_what_is_said_of_a_run():
    assert words(LEVELS["highly"]) == (
        "is highly input-bound: it waits for input 30.0 % of the step time (30.0 µs of 100 µs)"
    )
    assert words(LEVELS["not"]).startswith("is not input-bound: it waits for input 1.00 % of the step time")
    unexplained = words(input_wait(steps((100.0, 0.6), other_us=7.0), MARKED))
    assert unexplained.startswith("is not input-bound: it waits for input 0.600 % of the step time")
    assert unexplained.endswith("another 7.00 % is unexplained and may be input that Python reads")


def by_calls(*rows: tuple[int, float], host: str = "a", duration_us: float = 10_000.0) -> InputWait:
    """The waiting of a run without steps, from (calls, mean call in µs) of each pipeline."""
    made = pipelines(*((calls, 0, mean, False) for calls, mean in rows)).assign(host=host)
    return wait_by_calls(made.assign(mean_latency_us=made["max_latency_us"]), duration_us, "no step markers were found")


def test_without_steps_calls_count_by_their_share_of_the_profile():
    assert by_calls((10, 300.0)).level == "highly"
    assert by_calls((10, 51.0)).level == "moderately"
    assert by_calls((1, 400.0)).level == "not"
    assert by_calls().level == "unknown"
    assert by_calls((10, 30_000.0)).of_profile == 1
    assert words(by_calls((10, 300.0))) == (
        "is highly input-bound: tf.data calls take 30.0 % of the profile (no step markers were found)"
    )


def test_calls_that_only_feed_a_device_are_not_asked_for_by_the_program():
    frame = pipelines((10, 4, 80.0, False), (30, 6, 70.0, False), (5, 5, 900.0, True))
    assert mean_call_us(frame.assign(mean_latency_us=[40.0, 20.0, 900.0])) == 25.0
    assert math.isnan(mean_call_us(pipelines((5, 5, 900.0, True))))


@pytest.mark.parametrize(("before", "after"), [("highly", "not"), ("not", "moderately"), ("highly", "highly")])
def test_the_sentence_on_a_pair_says_what_is_true_of_each_run(before, after):
    ours, theirs = (f"{100 * LEVELS[level].share.average:.1f}" for level in (before, after))
    sentence = headline(LEVELS[before], LEVELS[after]).replace("1.00", "1.0")
    assert sentence == (
        f"The candidate waits for input {theirs} % of the step time ({after} input-bound), "
        f"the baseline {ours} % ({before} input-bound)"
    )


def test_a_side_that_tells_nothing_is_named():
    sentence = headline(LEVELS["unknown"], LEVELS["highly"])
    assert sentence.startswith("The candidate is highly input-bound: it waits for input 30.0 % of the step time")
    assert sentence.endswith("The baseline does not show how long it waits for input: no step markers were found")


def test_when_neither_side_tells_anything_both_reasons_are_given_once():
    unmarked, module = LEVELS["unknown"], input_wait(steps((1.0, 0.0)), MODULE)
    assert headline(unmarked, unmarked).count("no step markers") == 1
    both = headline(unmarked, module)
    assert both.count("no step markers") == 1
    assert both.count("run times of an XLA module") == 1


def test_one_recording_beside_itself_did_not_change():
    sentence = headline(LEVELS["highly"], LEVELS["highly"], identical=True)
    assert sentence.startswith("The baseline and the candidate are the same capture: highly input-bound")


def test_a_headline_names_the_runs_as_the_page_does():
    sentence = headline(LEVELS["highly"], LEVELS["not"], ("A", "B"))
    assert sentence == ("B waits for input 1.00 % of the step time (not input-bound), A 30.0 % (highly input-bound)")


def wait_of(name: str) -> InputWait:
    run = loaded_run(name)
    return input_wait(on_slowest_host(run.table("steps")), run.info)


def test_the_samples_are_input_bound_as_their_recording_made_them():
    naive_but_slow_model, naive, better = (
        wait_of(name) for name in ("filters_512_128", "filters_16_8", "filters_16_8_better_input")
    )
    assert naive_but_slow_model.level == "not", "the model takes so long that its input does not matter"
    assert naive.level == wait_of("filters_16_8_again").level == "highly"
    assert not better.is_bound, "it is read ahead and in parallel"
    assert better.input_time_us.average < naive.input_time_us.average / 5


def test_the_input_wait_of_each_step_ranges_over_the_hosts():
    run = loaded_run("workers_slow_input")
    found = share_by_core(run, None)
    steps = run.table("steps").query("included")
    assert found["cores"].eq(3).all() and len(found) == steps["step"].nunique()
    shares = (steps["input_us"] / steps["duration_us"]).groupby(steps["step"])
    for column, expected in (("least", shares.min()), ("mean", shares.mean()), ("largest", shares.max())):
        assert found[column].tolist() == pytest.approx(expected.tolist())
    alone = share_by_core(run, "worker1")
    assert alone["least"].tolist() == alone["largest"].tolist() == pytest.approx(found["largest"].tolist())


def test_the_input_wait_of_each_step_ranges_over_the_devices():
    """Two devices get their input at the same time: the copies of the second take three times as long."""
    copies = {0: 10.0, 1: 30.0}
    steps = [event("train", 100 * i, 90, step_num=i, _r=1) for i in range(12)]
    launches = [event("a:A", 100 * i + 1, 2, correlation_id=i) for i in range(12)]
    devices = []
    for number, takes in copies.items():
        copied = [event("MemcpyH2D", 100 * i + 5, takes, correlation_id=i) for i in range(12)]
        computed = [event("k", 100 * i + 5 + takes, 80 - takes, correlation_id=i) for i in range(12)]
        lines = line("Stream #1(MemcpyH2D)", *copied, id=1), line("Stream #2(Compute)", *computed, id=2)
        devices.append(plane(f"/device:GPU:{number}", *lines))
    run = run_of(space(plane("/host:CPU", line("python", *steps, *launches)), *devices))
    found = share_by_core(run, None)
    durations = run.table("steps").query("included")["duration_us"]
    assert found["least"].tolist() == pytest.approx((10 / durations).tolist(), abs=0.03)
    assert found["largest"].tolist() == pytest.approx((30 / durations).tolist(), abs=0.03)
    assert found["cores"].eq(2).all()


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
