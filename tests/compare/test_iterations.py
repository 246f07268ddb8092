"""Steps of unlike work: each of one side runs its ops n times, as with Keras' `steps_per_execution`."""

from __future__ import annotations

from functools import cache, partial

import pytest

from tests.compare.loops import Step, loop
from tfcompare.compare.check.conditions import Finding, check, parse_condition
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.verdict import FASTER, SAME, SLOWER
from tfcompare.compare.steps.iterations import ALIKE, iterations_per_step
from tfcompare.compare.steps.step_time_verdict import step_time_us
from tfcompare.comparison import compare
from tfcompare.run import Run
from tfcompare.views.answer import advice, headline
from tfcompare.views.blocks import Items, Text
from tfcompare.views.candidates.figures import fastest_and_next, fastest_first, runs_table, side_by_side
from tfcompare.views.steps.attribution import attribution_of, within
from tfcompare.views.steps.dashboard import dashboard
from tfcompare.views.steps.headline import headline as step_headline
from tfcompare.views.steps.verdict_words import check_notes

OPS = (("model/dense_1", 700.0), ("model/dense_2", 300.0))
WHERE = pytest.mark.parametrize("on_devices", [0, 1], ids=["host", "device"])
COMPARED = partial(compare, spread=0.004)


def step(times: int, *, slowness: float = 1.0, once_us: float = 0.0, scope: str = "") -> Step:
    """Runs the ops so many times in a scope, each `slowness` as long; then an op of `once_us` once."""
    ops = [(f"{scope}{name}", time_us * slowness) for name, time_us in OPS]
    once = [("model/update", once_us)] if once_us else []
    return "train", ops * times + once


@cache
def run(times: int, on_devices: int = 1, *, slowness: float = 1.0, once_us: float = 0.0) -> Run:
    made = step(times, slowness=slowness, once_us=once_us)
    return loop([made] * 20, on_devices=on_devices, seed=times)


def pair(ours: Run, theirs: Run) -> Pair:
    return pair_with(COMPARED(ours, theirs))


def found(one: Pair, condition: str) -> Finding:
    (finding,) = check(one.among, [parse_condition(condition)]).found
    return finding


@WHERE
def test_steps_of_eight_iterations_are_compared_per_iteration(on_devices: int) -> None:
    one = pair(run(1, on_devices), run(8, on_devices))
    assert one.iterations == (1, 8)
    assert one.verdict.ratio == pytest.approx(1.0, abs=0.03), "what begins and ends a step is one in eight"
    assert headline(one).startswith("Each step of `B` does 8 times the work of one of `A`; per iteration, ")
    ours, theirs = map(step_time_us, one.sides)
    assert theirs / ours == pytest.approx(one.verdict.ratio)
    assert theirs == pytest.approx(8 * 1_006 / 8, rel=0.02)


@WHERE
def test_exchanged_sides_are_a_mirror_image(on_devices: int) -> None:
    there, back = (
        pair(*of) for of in ((run(1, on_devices), run(8, on_devices)), (run(8, on_devices), run(1, on_devices)))
    )
    assert back.iterations == (8, 1)
    assert step_headline(back, ("A", "B")).text.startswith(
        "Each step of `A` does 8 times the work of one of `B`; per iteration, "
    )
    assert there.verdict.ratio * back.verdict.ratio == pytest.approx(1.0)
    assert (there.verdict.low, there.verdict.high) == pytest.approx((1 / back.verdict.high, 1 / back.verdict.low))


@WHERE
def test_headline_verdict_ops_parts_and_checks_agree(on_devices: int) -> None:
    """Each iteration takes 1.3 times as long, each step 10.4 times."""
    one = pair(run(1, on_devices), run(8, on_devices, slowness=1.3))
    assert one.verdict.word == SLOWER and one.verdict.ratio == pytest.approx(1.3, rel=0.03)
    assert "; per iteration, `B` takes 2" in headline(one) and " % more time than `A` (2" in headline(one)
    diff = one.diff().query("op_type == 'MatMul'").set_index("op_name")
    diff = diff[diff["host_or_device"] == ("Device" if on_devices else "Host")]
    assert diff["self_time_us_ratio"].tolist() == pytest.approx([1.3, 1.3], rel=3e-3)
    assert set(diff["verdict"]) == {SLOWER} and diff["occurrences_ratio"].tolist() == [1.0, 1.0]
    parts = attribution_of(one).parts
    for side, name in zip(one.sides, ("baseline", "candidate"), strict=True):
        assert parts[f"mean_us_{name}"].sum() == pytest.approx(step_time_us(side))
    figures = {figure.label: (figure.baseline, figure.candidate) for figure in dashboard(one, parts)}
    assert figures["Step time"] == pytest.approx(tuple(map(step_time_us, one.sides)))
    assert figures["Throughput"][1] / figures["Throughput"][0] == pytest.approx(1 / 1.3, rel=0.03)
    for condition, outcome in (
        *(("step_time>+25%", "failed"), ("step_time>+40%", "passed"), ("step_time_p95>+40%", "passed")),
        *(("throughput<-20%", "failed"), ("throughput<-30%", "passed"), ("op:*dense_1>+40%", "passed")),
        *(("step_time<1.4ms", "failed"), ("kernel_launches>+10%", "passed" if on_devices else "missing")),
    ):
        assert found(one, condition).outcome == outcome, condition
    notes = check_notes(one)
    told = "Each step of the candidate does 8 times the work of one of the baseline; what a step does is judged per"
    assert f"{told} iteration" in notes
    assert [(of.baseline, of.candidate, of.is_hard) for of in one.mismatches] == [("1×", "8×", False)]
    row = runs_table(one.among).iloc[1]
    assert row["interval_low"] < row["ratio"] < row["interval_high"] < 2, "beside other candidates"


def test_a_gap_is_named_for_what_it_takes_of_an_iteration() -> None:
    (first, first_us), second = OPS
    ours = loop([("train", [(first, first_us), ("", 10.0), second])] * 20, on_devices=1)

    def of_eight(pause_us: float, last_us: float) -> Pair:
        ops = [(first, first_us), ("", pause_us), second] * 8
        return pair(ours, loop([("train", [*ops, ("", last_us)])] * 20, on_devices=1))

    named = [of_eight(*pauses) for pauses in ((10, 800), (150, 160))]
    causes = [[one.words for one in attribution_of(one).causes if one.part == "idle_us"] for one in named]
    assert causes == [["until the end of the step"], []]
    assert "811 µs in a step of 8 iterations, after `model/dense_2`" in within(named[0], "idle_us").sentence


def test_advice_says_that_its_figures_are_of_whole_steps() -> None:
    ours, theirs = (loop([("train", [*OPS * times, ("", 900.0 * times)])] * 20, on_devices=1) for times in (1, 8))
    whole, found = list(advice(pair(ours, theirs)))
    assert isinstance(whole, Text) and isinstance(found, Items)
    told = "Each step of B does 8 times the work of one of A: here, times and counts per step are those of whole steps."
    assert whole.text == told
    assert "Unexplained per step: A 924 µs, B 7.25 ms." in found.items[0][1]
    (alike,) = advice(pair(ours, loop([("train", [*OPS, ("", 950.0)])] * 20, on_devices=1)))
    assert isinstance(alike, Items)


@pytest.mark.parametrize(
    ("before", "loop_scope"),
    [
        ("StatefulPartitionedCall/", "while/body/_1/while/cond/then/_111/while/cond/StatefulPartitionedCall/"),
        ("jit(step)/", "jit(step)/while/body/closed_call/"),
        ("jit(step)/jit(main)/", "jit(eight_steps)/jit(main)/while/body/"),
    ],
    ids=["Keras' steps_per_execution", "a scan in JAX", "a scan in older JAX"],
)
def test_the_loop_of_a_framework_around_the_iterations_hides_no_op(before: str, loop_scope: str) -> None:
    ours = loop([step(1, scope=before)] * 20, on_devices=1)
    theirs = loop([step(8, scope=loop_scope)] * 20, on_devices=1)
    assert pair(ours, theirs).iterations == (1, 8)


def test_what_runs_once_a_step_may_take_a_tenth_of_the_time_and_no_more() -> None:
    eight = [run(8, once_us=us) for us in (600.0, 2_000.0)]
    one = run(1, once_us=75.0), run(1, once_us=250.0)
    assert pair(one[0], eight[0]).iterations == (1, 8)
    assert pair(one[1], eight[1]).iterations == ALIKE, "80 % of the time runs eight times as often"
    assert "times the work" not in step_headline(pair(one[1], eight[1])).text


def test_an_op_that_runs_twice_as_often_or_takes_twice_as_long_is_a_change() -> None:
    twice = loop([("train", [*OPS, OPS[1]])] * 20, on_devices=1)
    assert pair(run(1), twice).iterations == ALIKE
    longer = pair(run(4), run(4, slowness=2.0))
    assert longer.iterations == ALIKE and longer.verdict.word == SLOWER
    assert step_headline(longer, ("A", "B")).text.startswith("`B` is 2.0× slower than `A`")


def test_iterations_of_both_sides_are_set_against_each_other() -> None:
    assert pair(run(2), run(8)).iterations == (1, 4)
    assert pair(run(8), run(2)).iterations == (4, 1)
    assert pair(run(2), run(3)).iterations == ALIKE, "no step does a whole number of times the work of the other"


def test_more_devices_and_another_mix_of_steps_are_no_iterations() -> None:
    assert pair(run(1), run(1, 2)).iterations == ALIKE
    assert pair(run(1), run(8, 2)).iterations == (1, 8)
    other = ("train", [("model/evaluate", 500.0)])
    mixed = loop([step(2), other] * 20, on_devices=1)
    assert pair(run(2), mixed).iterations == ALIKE, "the mean of all steps has half as many"


def test_equal_counts_need_no_matching() -> None:
    sides = pair(run(8), run(8, slowness=1.3)).sides
    assert iterations_per_step(sides, lambda: pytest.fail("ops were matched")) == ALIKE


def test_per_run_and_per_device_verdicts_are_still_per_iteration() -> None:
    one = pair_with(COMPARED(run(1), run(8), per="run"))
    diff = one.diff().query("host_or_device == 'Device' and op_type == 'MatMul'")
    assert set(diff["verdict"]) == {SAME} and diff["occurrences_ratio"].tolist() == [8.0, 8.0]
    assert pair(run(8, slowness=1.3), run(1)).verdict.word == FASTER


def test_of_several_runs_the_fastest_does_a_step_of_the_baseline_in_the_least_time() -> None:
    runs = run(1), run(8, slowness=0.5), run(1, slowness=0.9)
    comparison = COMPARED(*runs)
    assert fastest_first(runs_table(comparison))["run"].tolist() == [runs[i].id for i in (1, 2, 0)]
    found = fastest_and_next(comparison)
    assert found is not None and [one.id for one in found.runs] == [runs[2].id, runs[1].id]


def test_rows_beside_those_of_steps_of_unlike_work_are_of_as_much_work() -> None:
    rows = side_by_side(COMPARED(run(8), run(8, slowness=2.0), run(1)), "op_stats").set_index("op_name")
    dense = rows.loc["model/dense_1"]
    assert [dense["ratio_1"], dense["ratio_2"]] == pytest.approx([2.0, 1.0], abs=0.02)
    assert dense["value_0"] == pytest.approx(8 * 700.0, rel=0.02)


def test_texts_of_sums_are_per_iteration() -> None:
    assert [pair(run(1), run(times)).per_what for times in (1, 8)] == ["step", "iteration"]
