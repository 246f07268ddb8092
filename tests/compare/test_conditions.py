"""Conditions: how they are read, and what becomes of them."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.checked import checked as check
from tests.compare import compare_runs
from tests.compare.compare_runs import table
from tests.compare.loops import loop
from tfcompare.compare.check.condition_metrics import METRICS
from tfcompare.compare.check.conditions import (
    OPERATORS,
    UNITS,
    Condition,
    Finding,
    Findings,
    Judgement,
    forms,
    outcome,
    parse_condition,
)
from tfcompare.compare.check.measured import COUNT, TIME, Measured
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.change_test import Level
from tfcompare.compare.stats.verdict import SLOWER, Sensitivity, Verdict
from tfcompare.comparison import compare
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.sources.step_choice import step_choice
from tfcompare.views.steps.verdict_words import check_notes

# --- reading


@pytest.mark.parametrize(
    ("text", "metric", "pattern", "operator", "threshold", "is_change"),
    [
        ("step_time>+5%", "step_time", "", ">", 1.05, True),
        (" step_time >= 5 % ", "step_time", "", ">=", 1.05, True),
        ("step_time<-7.5%", "step_time", "", "<", 0.925, True),
        ("step_time>−7.5%", "step_time", "", ">", 0.925, True),
        ("input_latency>2ms", "input_latency", "", ">", 2000.0, False),
        ("input_latency>.5s", "input_latency", "", ">", 500_000.0, False),
        ("input_latency>300µs", "input_latency", "", ">", 300.0, False),
        ("input_latency>300μs", "input_latency", "", ">", 300.0, False),
        ("input_latency>3e2us", "input_latency", "", ">", 300.0, False),
        ("peak_memory>1.5GB", "peak_memory", "", ">", 1.5e9, False),
        ("peak_memory>=1GiB", "peak_memory", "", ">=", 2.0**30, False),
        ("peak_memory:GPU_0_bfc>+10%", "peak_memory:", "GPU_0_bfc", ">", 1.1, True),
        ("kernel_launches<=285", "kernel_launches", "", "<=", 285.0, False),
        ("occurrences:*Conv2D*>+0%", "occurrences:", "*Conv2D*", ">", 1.0, True),
        ("occurrences:Cast>=3", "occurrences:", "Cast", ">=", 3.0, False),
        ("flops>2.5e12", "flops", "", ">", 2.5e12, False),
        ("device_time>12ms", "device_time", "", ">", 12_000.0, False),
        ("op:*Conv2D*>+5%", "op:", "*Conv2D*", ">", 1.05, True),
        ("rate:*Conv2D*<-5%", "rate:", "*Conv2D*", "<", 0.95, True),
        ("rate:*Conv2D*<2e12", "rate:", "*Conv2D*", "<", 2e12, False),
        ("kernel:void f<float, 3>(int)*>=1ms", "kernel:", "void f<float, 3>(int)*", ">=", 1000.0, False),
        ("kernel:a::b<4>>+0%", "kernel:", "a::b<4>", ">", 1.0, True),
    ],
)
def test_every_form_is_read(text, metric, pattern, operator, threshold, is_change):
    expected = Condition(text.strip(), metric, pattern, operator, pytest.approx(threshold), is_change)
    assert parse_condition(text) == expected


@pytest.mark.parametrize("text", ["steptime>+5%", "op>+5%", "op:>+5%", "step_time:x>5%", ">5%>5%"])
def test_an_unknown_metric_is_answered_with_those_there_are(text):
    with pytest.raises(Unknown) as caught:
        parse_condition(text)
    assert caught.value.known == forms()
    assert all(repr(form) in str(caught.value) for form in forms())


@pytest.mark.parametrize("text", ["", "step_time", "step_time=5%", "step_time>", "step_time>five%", "step_time>1,5%"])
def test_what_is_no_condition_is_answered_with_what_one_is(text):
    with pytest.raises(TfcompareError, match="METRIC OP PERCENT% or METRIC OP VALUE") as caught:
        parse_condition(text)
    assert all(word in str(caught.value) for word in [repr(text), *forms(), *OPERATORS])


@pytest.mark.parametrize("text", ["step_time>5", "step_time>5MB", "peak_memory>5", "kernel_launches>5ms", "op:a>5S"])
def test_a_unit_of_another_kind_is_answered_with_those_that_fit(text):
    unit = METRICS[text.partition(">")[0].replace(":a", ":")].unit
    with pytest.raises(TfcompareError) as caught:
        parse_condition(text)
    assert all(f"'{word}'" in str(caught.value) for word in UNITS[unit] if word)
    assert ("a plain number" in str(caught.value)) == (unit == COUNT)


# --- judging


def measured(low: float, ratio: float, high: float) -> Measured:
    """A time of 100 µs a step in the baseline, with one interval for the change and for the candidate."""
    level = Level(100 * ratio, 100 * low, 100 * high, "")
    return Measured(TIME, 100.0, 100 * ratio, Verdict(SLOWER, "", ratio, low, high), level)


@pytest.mark.parametrize("condition", ["step_time{}+5%", "step_time{}105us"])
@pytest.mark.parametrize(
    ("interval", "above", "below"),
    [
        ((1.06, 1.10, 1.20), "failed", "passed"),
        ((1.00, 1.10, 1.20), "unclear", "passed"),
        ((1.00, 1.04, 1.20), "passed", "unclear"),
        ((0.90, 0.95, 1.00), "passed", "failed"),
        ((math.nan, 1.10, math.nan), "untested", "untested"),
        ((math.inf, math.inf, math.inf), "failed", "passed"),
    ],
)
def test_only_the_whole_interval_fails(condition, interval, above, below):
    found = measured(*interval)
    for sign, expected in {">": above, ">=": above, "<": below, "<=": below}.items():
        assert outcome(parse_condition(condition.format(sign)), found) == expected


def findings_of(*outcomes: str) -> Findings:
    """One finding for each outcome, on a change of +10 % that single captures cannot show."""
    lacking = {"untested": "too short", "missing": "no such op"}
    sensitivity = Sensitivity((1, 1), 20, 0.1, 0.53)
    verdict = Verdict(SLOWER, "", 1.1, 1.0, 1.2, evidence="single", sensitivity=sensitivity)
    found = replace(measured(1.0, 1.1, 1.2), verdict=verdict)
    return Findings(
        tuple(
            Finding("step_time", parse_condition(f"step_time>+{i}%"), found, one, lacking.get(one, ""))
            for i, one in enumerate(outcomes, 1)
        ),
        pair_with(compare(run("a"), run("b"))),
    )


@pytest.mark.parametrize(
    ("outcomes", "lax", "strict"),
    [
        (["passed"], "passed", "passed"),
        (["passed", "unclear"], "unclear", "failed"),
        (["passed", "untested"], "not judged", "not judged"),
        (["passed", "missing"], "not judged", "not judged"),
        (["unclear", "untested"], "not judged", "failed"),
        (["failed", "untested", "missing", "unclear"], "failed", "failed"),
        ([], "no conditions", "no conditions"),
    ],
)
def test_what_failed_outweighs_what_was_not_judged_and_that_what_is_unclear(outcomes, lax, strict):
    for order in (outcomes, outcomes[::-1]):
        findings = findings_of(*order)
        assert findings.judge(strict=False).outcome == lax
        assert findings.judge(strict=True).outcome == strict
        assert len(findings.not_judged) == len({"untested", "missing"} & set(outcomes))


CONTAINED = "the 95 % confidence interval contains the limit"


@pytest.mark.parametrize(
    ("captures", "smallest", "condition", "reason"),
    [
        ((3, 5), 0.06, "step_time>+5%", "these captures can show only changes above 6 %; record more captures"),
        ((3, 3), 0.04, "step_time>+5%", f"{CONTAINED}; smallest detectable change: 4 %; record more captures"),
        ((3, 3), math.inf, "step_time>+5%", "these captures can show only changes above 1,000 %; record more captures"),
        ((1, 1), 0.53, "step_time>105us", f"{CONTAINED}; record more captures"),
    ],
)
def test_why_a_condition_is_unclear(captures, smallest, condition, reason):
    verdict = Verdict(SLOWER, "", 1.1, 1.0, 1.2, sensitivity=Sensitivity(captures, 20, 0.1, smallest))
    found = replace(measured(1.0, 1.1, 1.2), verdict=verdict)
    assert Finding("step_time", parse_condition(condition), found, "unclear").why_unclear == reason
    shows = "these captures can show only changes above 53 %; record 3 captures or more per side"
    unclear = f"{shows}, whose variation is then measured"
    assert findings_of("passed", "unclear").judge(strict=False).reasons == (f"step_time>+2%: {unclear}",)
    assert findings_of("passed", "unclear").judge(strict=True).reasons == (f"step_time>+2%: unclear, since {unclear}",)


# --- measuring


def series(typical_us: float, steps: int = 20) -> list[float]:
    """Steps that take turns in being 2 % shorter and 2 % longer."""
    return [typical_us * (0.98 if i % 2 else 1.02) for i in range(steps)]


def run(name: str, step_us: float = 1000.0, steps: int = 20, **more):
    return compare_runs.run(name, step_frame=compare_runs.steps(series(step_us, steps)), step_count=steps, **more)


def with_ops(fake, times: dict[tuple[str, str], float]):
    """Gives the run ops by (type, name) that take so long in each step."""
    keys = compare_runs.op_stats([("Host", *op, 1, us) for op, us in times.items()])
    count = len(fake.steps)
    fake.cells["op_stats"] = compare_runs.cells_of(keys, [np.array(series(us, count)) for us in times.values()])
    fake.frames["op_stats"] = keys
    return fake


def with_memories(fake, peaks: dict[tuple[str, str], int]):
    hosts, memories = (list(names) for names in zip(*peaks, strict=True))
    fake.frames["memory_summary"] = table(
        "memory_summary", host=hosts, memory_id=memories, peak_bytes=[*peaks.values()]
    )
    return fake


def with_calls(fake, latencies: dict[str, list[float]]):
    rows = [(name, i, us) for name, calls in latencies.items() for i, us in enumerate(calls)]
    columns = dict(zip(("pipeline", "call", "latency_us"), map(list, zip(*rows, strict=True)), strict=True))
    fake.frames["tf_data_calls"] = table("tf_data_calls", host=["worker"] * len(rows), **columns)
    return fake


def only(baseline, candidate, text: str, **more):
    (finding,) = check(baseline, candidate, [parse_condition(text)], **more).found
    return finding


def outcomes(baseline, candidate, *texts: str) -> list[str]:
    return [finding.outcome for finding in check(baseline, candidate, list(map(parse_condition, texts))).found]


def test_step_time_by_change_and_by_value():
    before, after = run("before"), run("after", 2000.0)
    found = outcomes(before, after, "step_time>+5%", "step_time>1.2ms", "step_time>2.05ms", "step_time>1.95ms")
    assert found == ["failed", "failed", "passed", "unclear"]
    assert only(after, before, "step_time>+5%").outcome == "passed"
    assert only(before, after, "step_time>1.95ms", spread=0.0).outcome == "failed"
    assert "16 % (CPU default for times this short)" in only(before, after, "step_time>1.95ms").reason


def test_a_stray_step_does_not_move_the_step_time():
    stray = run("stray")
    stray.frames["steps"].loc[3, "duration_us"] = 50_000.0
    finding = only(run("before"), stray, "step_time>+2%")
    assert finding.outcome == "passed"
    assert finding.candidate == pytest.approx(1000, rel=0.01)
    *_, note = check_notes(check(run("before"), stray, []).pair)  # the step lasts into those after it
    assert note == "Step 4 of the candidate is excluded as a stray: 50.0 ms instead of 1.00 ms."
    assert only(run("before"), stray, "step_time<+50%", spread=0.0).outcome == "unclear", "with the stray it is more"


def test_a_run_against_itself_passes_with_and_without_steps():
    for marked in (True, False):
        one = run("one", has_steps=marked, content="x")
        finding = only(one, run("copy", has_steps=marked, content="x"), "step_time>+0%")
        assert (finding.outcome, finding.reason, finding.measured.verdict.ratio) == ("passed", "identical file", 1.0)


MARKER = "or name the host event that begins each step (--step-marker)"
RECORD = f"record each step inside tf.profiler.experimental.Trace('train', step_num=step, _r=1), {MARKER}"
RECORD_JAX = f"record each step inside jax.profiler.StepTraceAnnotation('train', step_num=step), {MARKER}"
UNTIMED = {
    "a": run("a"),
    "short": run("short", steps=8),
    "unmarked": run("unmarked", has_steps=False),
    "other": run("other", has_steps=False),
    "jax": run("jax", has_steps=False, framework="JAX"),
    "chosen": replace(run("chosen", steps=3), choice=step_choice(steps="2:4")),
}
FEW = "9 needed on each side; record 11 steps or more"
FEW_CHOSEN = "3 steps, 9 needed {}; choose more steps (--steps)"


@pytest.mark.parametrize(
    ("before", "after", "of_change", "of_value"),
    [
        ("a", "short", f"8 steps, {FEW}", "8 steps, 9 needed in the candidate; record 11 steps or more"),
        ("short", "a", f"8 steps, {FEW}", ""),
        ("a", "unmarked", f"no step markers in the candidate; {RECORD}", f"no step markers in the candidate; {RECORD}"),
        ("jax", "a", f"no step markers in the baseline; {RECORD_JAX}", ""),
        (
            "unmarked",
            "other",
            f"no step markers in the baseline and the candidate; {RECORD}",
            f"no step markers in the candidate; {RECORD}",
        ),
        ("a", "chosen", FEW_CHOSEN.format("on each side"), FEW_CHOSEN.format("in the candidate")),
    ],
)
def test_without_enough_steps_nothing_is_judged_and_the_reason_says_what_to_record(before, after, of_change, of_value):
    for text, reason in (("step_time>+5%", of_change), ("step_time<1s", of_value)):
        findings = check(UNTIMED[before], UNTIMED[after], [parse_condition(text)])
        assert findings.found[0].outcome == ("untested" if reason else "failed"), "a value is the candidate's alone"
        assert findings.found[0].why_not_judged == reason
        expected = Judgement("not judged", (f"{text}: {reason}",)) if reason else Judgement("failed")
        assert findings.judge(strict=False) == findings.judge(strict=True) == expected
        assert not expected.is_passed


def test_conditions_with_one_reason_share_a_sentence_and_gaps_and_calls_have_their_own_words():
    a, b = (with_calls(run(name, steps=8), {"Host:0": [100.0]}) for name in "ab")
    conditions = ["step_time>+5%", "step_time<-5%", "input_latency>+5%", "time_between_steps>+5%"]
    assert check(a, b, list(map(parse_condition, conditions))).judge(strict=False).reasons == (
        f"step_time>+5%, step_time<-5%: 8 steps, {FEW}",
        "input_latency>+5%: 1 call, 9 needed on each side; record more steps",
        f"time_between_steps>+5%: 7 gaps between steps, {FEW}",
    )


def test_ops_add_up_over_each_sides_own_names_and_types():
    before = with_ops(run("before"), {("Conv2D", "a/Conv2D"): 100.0, ("MatMul", "dense/MatMul"): 500.0})
    fused = with_ops(run("after"), {("_FusedConv2D", "a/Relu"): 150.0, ("Conv2D", "b/Conv2D"): 150.0})
    finding = only(before, fused, "op:*Conv2D*>+5%")
    assert finding.outcome == "failed"
    assert finding.measured.baseline == pytest.approx(100)
    assert finding.candidate == pytest.approx(300)
    assert only(before, fused, "op:*conv2d*>+5%").outcome == "missing", "case counts"


def test_an_op_that_only_one_run_has_is_missing_in_the_other_and_not_zero():
    before = with_ops(run("before"), {("MatMul", "dense"): 500.0})
    after = with_ops(run("after"), {("MatMul", "dense"): 500.0, ("Transpose", "t"): 20.0})
    added, removed = only(before, after, "op:Transpose>+5%"), only(after, before, "op:Transpose>+5%")
    assert (added.outcome, removed.outcome) == ("failed", "passed")
    assert math.isnan(added.measured.baseline)
    assert math.isnan(removed.measured.candidate)
    assert outcomes(after, before, "op:Transpose<-5%", "op:Transpose>1us") == ["failed", "passed"]


def test_what_neither_run_has_is_missing_even_against_itself():
    one = with_ops(run("one"), {("MatMul", "dense"): 500.0})
    finding = only(one, one, "op:*Conv3D*>+5%")
    assert finding.outcome == "missing"
    assert finding.reason == (
        "neither run has an op whose name or type matches '*Conv3D*'; there are: 'MatMul', 'dense'"
    )
    reasons = {
        "kernel:*>+5%": "neither run has a record of kernels",
        "kernel_launches>0": "neither run has a record of kernels",
        "peak_memory>1GB": "neither run has a record of memory",
        "peak_memory:GPU_0>1GB": "neither run has a record of memory",
        "input_latency>1us": "neither run has calls of an input pipeline of tf.data",
    }
    found = check(one, one, list(map(parse_condition, reasons))).found
    assert [(each.outcome, each.reason) for each in found] == [("missing", reason) for reason in reasons.values()]


def test_a_pattern_that_nothing_matches_is_answered_with_what_may_be_meant():
    before = with_ops(run("before"), {("Conv2D", "encoder/Conv2D"): 100.0})
    after = with_ops(run("after"), {("MatMul", "dense"): 100.0})
    meant = {
        "*conv2d*": "did you mean 'Conv2D' or 'encoder/Conv2D'?",
        "encoder": "did you mean 'encoder/Conv2D'?",
        "*ConvD2": "did you mean 'Conv2D'?",
        "Matmull*": "did you mean 'MatMul'?",
        "x": "there are: 'Conv2D', 'MatMul', 'encoder/Conv2D', 'dense'",
    }
    found = check(before, after, [parse_condition(f"op:{pattern}>1us") for pattern in meant]).found
    assert [one.reason.partition("; ")[2] for one in found] == list(meant.values())
    many = with_ops(run("many"), {("MatMul", f"dense_{i}"): 1.0 for i in range(20)})
    assert only(many, many, "op:xyz>1us").reason.endswith("'dense_5', 'dense_6' and 13 more")


def test_an_op_outside_all_steps_is_there_and_untested():
    one = with_ops(run("one"), {("MatMul", "dense"): 500.0})
    one.frames["op_stats"] = compare_runs.op_stats([("Host", "Restore", "restore", 1, 9.0)])
    finding = only(one, one, "op:Restore>1us")
    assert (finding.outcome, finding.reason) == (
        "untested",
        "in no step of either run there is an op whose name or type matches 'Restore'",
    )


def test_what_is_missing_does_not_pass_and_hides_nothing():
    before, after = run("before"), run("after", 2000.0)
    findings = check(before, after, [parse_condition(text) for text in ("kernel_launches>0", "step_time>+5%")])
    assert [f.outcome for f in findings.found] == ["missing", "failed"]
    assert [f.name for f in findings.found if f.outcome == "missing"] == ["kernel_launches"]
    alone = check(before, after, [parse_condition("kernel_launches>0")])
    assert alone.judge(strict=False) == Judgement(
        "not judged", ("kernel_launches>0: neither run has a record of kernels",)
    )
    assert findings.judge(strict=False) == Judgement("failed"), "a failed condition outweighs a missing one"
    assert "missing" not in {f.outcome for f in check(before, after, []).found}, "no condition, nothing that was meant"


def test_memory_is_compared_where_both_runs_have_it_and_exactly():
    before = with_memories(run("before"), {("a", "GPU_0"): 100, ("b", "GPU_0"): 90, ("a", "old"): 900})
    after = with_memories(run("after"), {("a", "GPU_0"): 50, ("b", "GPU_0"): 105, ("a", "new"): 700})
    expected = {
        "peak_memory>+5%": "passed",
        "peak_memory>=+5%": "failed",
        "peak_memory:GPU_0>+4.9%": "failed",
        "peak_memory:GPU_*<=+5%": "failed",
        "peak_memory>699B": "failed",
        "peak_memory:GPU_0>105B": "passed",
        "peak_memory:old>+5%": "untested",
        "peak_memory:new>1B": "failed",
        "peak_memory:GPU_1>+5%": "missing",
    }
    found = dict(zip(expected, check(before, after, list(map(parse_condition, expected))).found, strict=True))
    assert {text: one.outcome for text, one in found.items()} == expected
    assert "without new, old, which only one run has" in found["peak_memory>+5%"].reason
    assert "GPU_0, new, old" in found["peak_memory:old>+5%"].reason
    misspelt = found["peak_memory:GPU_1>+5%"].reason
    assert misspelt == "neither run has a memory that matches 'GPU_1'; did you mean 'GPU_0'?"
    before, after = (with_memories(run(name), {("a", name): size}) for name, size in (("cpu", 100), ("gpu", 300)))
    other = only(before, after, "peak_memory>+5%")
    assert other.outcome == "failed" and "cpu beside gpu" in other.reason


def test_input_latency_is_the_mean_call_of_the_slowest_pipeline_of_the_host():
    calls = {
        "Device:0": [9000.0] * 20,
        "Host:0": [*[10.0] * 19, 2000.0],
        "Host:1": [*series(100.0, 14), 100.0, *[1000.0] * 5],
    }
    one, other = (with_calls(run(name), calls) for name in ("one", "other"))
    finding = only(one, other, "input_latency>+5%")
    assert finding.candidate == pytest.approx(325, rel=0.02), "few long calls are what the program waits for"
    assert "20 calls per run" in finding.reason
    assert only(run("none"), one, "input_latency>+5%").outcome == "untested"


def test_launches_are_counted_per_step_and_only_where_steps_are_known():
    before, after = run("before", steps=10), run("after", steps=20)
    for fake, count in ((before, 100), (after, 220)):
        fake.frames["kernel_stats"] = table("kernel_stats", kernel_name=["k"], occurrences=[count])
    found = outcomes(before, after, "kernel_launches>+9.9%", "kernel_launches>+10%", "kernel_launches>=11")
    assert found == ["failed", "passed", "failed"]
    unmarked = run("unmarked", has_steps=False)
    unmarked.frames["kernel_stats"] = before.frames["kernel_stats"]
    found = outcomes(unmarked, after, "kernel_launches>+5%", "kernel_launches>=11")
    assert found == ["untested", "failed"], "the candidate alone counts"
    assert only(unmarked, unmarked, "kernel_launches>+5%").outcome == "passed"


CONV, MATMUL, CAST = ("model/Conv", 300.0), ("model/MatMul", 100.0), ("model/Cast", 50.0)


def looped(*ops: tuple[str, float], on_devices: int = 1, seed: int = 0):
    """20 steps of these ops, on as many devices or on the host."""
    return loop([("train", ops)] * 20, on_devices=on_devices, seed=seed)


@pytest.mark.parametrize("on_devices", [0, 1, 2])
def test_occurrences_are_counted_per_step_and_an_op_that_does_not_run_has_none(on_devices):
    places = max(on_devices, 1)
    once, twice, again = (
        looped(*ops, on_devices=on_devices, seed=seed)
        for seed, ops in enumerate([(CONV, MATMUL), (CONV, MATMUL, MATMUL, CAST), (CONV, MATMUL)])
    )
    finding = only(once, twice, "occurrences:model/MatMul>+99%")
    assert (finding.outcome, finding.measured.verdict.ratio) == ("failed", 2.0)
    assert (finding.measured.baseline, finding.candidate) == (1.0 * places, 2.0 * places), "on all devices"
    added = only(once, twice, "occurrences:*Cast>+0%")
    assert (added.measured.baseline, added.candidate, added.outcome) == (0.0, places, "failed")
    found = outcomes(twice, once, "occurrences:*Cast<-50%", "occurrences:model/MatMul<-50%", "occurrences:*Cast>0")
    assert found == ["failed", "passed", "passed"]
    assert only(once, again, "occurrences:*>+0%").outcome == "passed"
    assert only(once, twice, "occurrences:*Sum*>0").outcome == "missing"


def test_device_time_is_that_of_devices_alone_and_shows_what_the_step_hides():
    paused = ("", 9_000.0)
    longer = (MATMUL[0], 500.0)
    before, after, again = (
        looped(CONV, MATMUL, paused),
        looped(CONV, longer, paused),
        looped(CONV, MATMUL, paused, seed=1),
    )
    finding = only(before, after, "device_time>+50%")
    assert finding.outcome == "failed"
    assert (finding.measured.baseline, finding.candidate) == pytest.approx((400, 800), rel=0.01)
    assert outcomes(before, after, "step_time>+2%", "device_time<0.95ms", "device_time>1ms") == [
        "unclear",
        "failed",
        "passed",
    ]
    instead = only(before, after, "step_time>+2%").instead
    assert re.fullmatch(r"device_time shows changes above \d+ %; exact: occurrences:PATTERN, kernel_launches", instead)
    assert only(before, after, "step_time>9.43ms").instead == "", "nothing else tells how long the candidate takes"
    assert outcomes(before, again, "device_time>+5%", "device_time<-5%") == ["passed", "passed"]
    host = looped(CONV, on_devices=0)
    assert only(host, host, "device_time>1us").outcome == "missing"
    (added, removed) = (only(*sides, "device_time>+5%") for sides in ((host, after), (after, host)))
    assert (added.outcome, added.reason) == ("untested", "the baseline has no record of devices")
    assert (removed.outcome, removed.reason) == ("untested", "the candidate has no record of devices")
    assert math.isnan(added.measured.baseline) and math.isnan(removed.measured.candidate)
    assert only(host, after, "device_time>0.3ms").outcome == "failed", "the candidate alone counts"
    assert only(after, host, "device_time<1s").outcome == "untested"


def test_without_conditions_the_verdicts_are_told_and_nothing_fails():
    findings = check(run("before"), run("after", 2000.0), [])
    assert [(f.name, f.outcome) for f in findings.found] == [("step_time", "slower"), ("peak_memory", "untested")]
    assert findings.judge(strict=True) == Judgement("no conditions")
    assert findings.judge(strict=True).is_passed
    unlike = check(run("cpu"), run("gpu", device_type="GPU"), [parse_condition("step_time>+5%")])
    assert check_notes(unlike.pair) == ["the runs differ in device type, which alone can change times"]


def test_a_host_stands_beside_its_counterpart():
    before, after = run("before"), run("after", 2000.0)
    after.frames["steps"], after.host_names = after.frames["steps"].assign(host="other"), ("other",)
    findings = check(before, after, [parse_condition("step_time>+5%")], host="worker")
    assert findings.found[0].outcome == "failed"
    assert check_notes(findings.pair) == ["host worker of the baseline is compared with host other of the candidate"]
    with pytest.raises(Unknown, match="unknown host of before 'nobody'"):
        check(before, after, [], host="nobody")


@pytest.mark.parametrize("text", ["step_time>+5%", "op:*>+5%", "peak_memory>+5%", "input_latency>+5%"])
def test_sides_swapped_give_the_mirror_image(text):
    def sides():
        for name, factor in (("before", 1), ("after", 2)):
            fake = with_ops(run(name, 1000.0 * factor), {("MatMul", "dense"): 500.0 * factor})
            yield with_calls(with_memories(fake, {("a", "m"): 100 * factor}), {"Host:0": series(50.0 * factor)})

    before, after = sides()
    forth, back = only(before, after, text).measured.verdict, only(after, before, text).measured.verdict
    assert forth.ratio == pytest.approx(1 / back.ratio)
    assert (forth.low, forth.high) == (pytest.approx(1 / back.high), pytest.approx(1 / back.low))
