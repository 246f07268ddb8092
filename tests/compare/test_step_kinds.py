"""Captures that hold several kinds of steps, their ops and kernels: recorded programs that alternate, and small series.

Another mix alone changes no op; a change is found in its kind, by its true ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
import pytest
from compare_runs import run as made_up
from compare_runs import steps

import tfcompare as tfc
from tests.compare.loops import loop
from tests.profiles import ALL_RUNS, TRANSFORMER_RUNS, compared_runs, loaded_run
from tests.test_known_truth import FOLDER, recorded
from tests.views.flat import flat
from tfcompare.compare.check.conditions import Finding, Findings, check, parse_condition
from tfcompare.compare.comparability import mismatches
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.compare.side import Side
from tfcompare.compare.spreads import spread_of_steps, spread_on
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import FASTER, SAME, SLOWER, UNCLEAR, UNTESTED, Verdict
from tfcompare.compare.steps.step_kinds import StepKind, is_other_mix, kinds_of, slow_steps_are_a_kind, step_kinds
from tfcompare.comparison import Comparison, compare
from tfcompare.run import Run
from tfcompare.tables.step_kinds import kinds_among, step_programs
from tfcompare.tables.step_times import StepCells
from tfcompare.views.answer import answer as blocks_of_answer
from tfcompare.views.blocks import Beside, Chart, Facts, Links, Text
from tfcompare.views.blocks import Verdict as VerdictBlock
from tfcompare.views.steps.headline import doubt, kinds_headline
from tfcompare.views.steps.view import VIEW
from tfcompare.views.steps.words import blocks, sentences

FIFTH, SECOND = (f"jax_every_{which}_evaluates" for which in ("fifth", "second"))


@cache
def compared(baseline: str = FIFTH, candidate: str = SECOND) -> Comparison:
    return compare(recorded(baseline), recorded(candidate))


def kinds(comparison: Comparison) -> list[StepKind]:
    pair = pair_with(comparison)
    return step_kinds(*pair.sides, lambda _: spread_of_steps(pair))


def test_each_step_is_of_the_program_that_ran_in_it() -> None:
    for name, every in ((FIFTH, 5), (SECOND, 2)):
        programs = recorded(name).tables.kinds.programs()
        assert len(programs) == 20
        for number, program in programs.items():
            assert program == ("evaluate" if number % every == every - 1 else "multiply")


def test_kinds_are_compared_with_their_own_steps_and_the_one_with_most_time_is_first() -> None:
    longer, shorter = kinds(compared())
    assert (longer.name, longer.counts) == ("multiply", (14, 9))
    assert (shorter.name, shorter.counts) == ("evaluate", (4, 9))
    assert all(time > 2 * other for time, other in zip(longer.times_us, shorter.times_us, strict=True))
    assert longer.verdict.low < 1 < longer.verdict.high, "the program is the same"
    assert shorter.verdict.word == UNTESTED, "four steps are too few"
    step_us = recorded(FIFTH).info.step_time_ms_mean * 1000
    assert sum(one.counts[0] * one.times_us[0] for one in (longer, shorter)) == pytest.approx(18 * step_us)


def test_exchanged_sides_are_a_mirror_image() -> None:
    for there, back in zip(kinds(compared()), kinds(compared(SECOND, FIFTH)), strict=True):
        assert (there.name, there.counts, there.times_us) == (back.name, back.counts[::-1], back.times_us[::-1])
        assert there.verdict.has_interval == back.verdict.has_interval == (there.name == "multiply")
        if there.verdict.has_interval:
            assert there.verdict.ratio == pytest.approx(1 / back.verdict.ratio)


def test_another_mix_makes_the_step_times_incomparable() -> None:
    (found,) = [one for one in mismatches(recorded(FIFTH), recorded(SECOND)) if one.label == "Mix of steps"]
    assert (found.baseline, found.candidate) == ("14 multiply, 4 evaluate", "9 multiply, 9 evaluate") and found.is_hard
    assert "mix of steps" in compared().verdict[recorded(SECOND).id].caveat


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        (["train", "evaluate"] * 19, ["train"] * 38, [("Mix of steps", "19 train, 19 evaluate", "38 train", True)]),
        (["train"] * 20, ["evaluate"] * 30, [("Kind of the steps", "train", "evaluate", False)]),
        (["train"] * 20, ["train"] * 30, []),
        (["train"] * 20, [""] * 30, []),  # the kind is unknown
    ],
)
def test_runs_differ_in_their_mix_or_in_the_program_of_all_steps(
    monkeypatch: pytest.MonkeyPatch,
    baseline: list[str],
    candidate: list[str],
    expected: list[tuple[str, str, str, bool]],
) -> None:
    programs = {"a": baseline, "b": candidate}
    ours, theirs = (made_up(name, step_frame=steps([1e3] * len(of_run))) for name, of_run in programs.items())
    monkeypatch.setattr(type(ours), "programs", lambda run, _=None: pd.Series(programs[run.id], dtype="str"))
    assert [(one.label, one.baseline, one.candidate, one.is_hard) for one in mismatches(ours, theirs)] == expected
    assert [(one.label, one.candidate, one.baseline, one.is_hard) for one in mismatches(theirs, ours)] == expected


def test_captures_that_begin_elsewhere_in_the_loop_have_the_same_mix() -> None:
    assert not is_other_mix({"train": 9, "eval": 9}, {"train": 10, "eval": 8})
    assert not is_other_mix({"train": 90, "eval": 10}, {"train": 9, "eval": 1})
    assert is_other_mix({"train": 90, "eval": 10}, {"train": 8, "eval": 2, "save": 1})
    assert is_other_mix({"train": 5, "eval": 5}, {})


def test_kinds_are_tested_together_without_those_of_too_few_steps() -> None:
    """One by one, the evaluation that both of these programs share would be likely faster: 0.919–0.995."""
    folders = (TRANSFORMER_RUNS[f"h100_{name}_activations"].parent for name in ("store", "recompute"))
    store, recompute = ([tfc.load(path) for path in sorted(folder.iterdir())] for folder in folders)
    found = compare(store[0], recompute[0], repeats={side[0].id: side[1:] for side in (store, recompute)})
    train, evaluate = kinds(found)
    assert (train.name, train.verdict.word) == ("train_step", SLOWER)
    assert (evaluate.name, evaluate.verdict.word) == ("evaluate", UNCLEAR)
    (alone, _) = kinds(compared())
    assert "joint" in evaluate.verdict.reason and "joint" not in alone.verdict.reason


CHOSEN = ("h100_store_activations", "filters_16_8", "jax_filters_16_8")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in CHOSEN else pytest.mark.thorough) for name in ALL_RUNS]
)
def test_real_runs_have_a_kind_of_step_for_each_of_their_programs(name: str) -> None:
    run = loaded_run(name)
    expected = {"train_step": 11, "evaluate": 11} if name in TRANSFORMER_RUNS else {}
    assert not run.info.has_steps or kinds_of(run, None) == expected


def test_the_answer_has_a_row_for_each_kind_and_says_that_the_mix_differs() -> None:
    text, beside, links = blocks(pairs_of(compared())[0])
    assert isinstance(beside, Beside)
    (facts,), (memory,) = beside.parts
    assert isinstance(text, Text) and isinstance(facts, Facts) and isinstance(links, Links)
    assert isinstance(memory, Facts)
    assert [one.id for one in memory.findings] == ["step_kind_memory:multiply", "step_kind_memory:evaluate"]
    assert [one.baseline for one in memory.findings] == [one.candidate for one in memory.findings], "equal programs"
    assert [link.parameters["step_kind"] for link in links.links] == ["multiply", "evaluate"]
    assert text.text == (
        "The steps are of 2 kinds, in another mix on each side, so the time of all of them says little. Ops and "
        "kernels are compared in the same mix."
    )
    assert [row[:2] for row in facts.rows] == [["multiply", "14 / 9"], ["evaluate", "4 / 9"]]
    assert [one.id for one in facts.findings] == ["step_kind:multiply", "step_kind:evaluate"]


def test_the_headline_is_on_the_kind_with_most_time() -> None:
    """All steps together take 20 % less time, which is another mix only: each kind takes as long as before."""
    comparison = compared()
    said = comparison.headline(names=("A", "B"))
    assert said.startswith("Inconclusive for steps of `multiply`: `B` vs `A`, ")
    assert said.endswith(" All steps together: 7.84 ms vs 9.78 ms per step, in another mix of kinds.")
    assert pair_with(comparison).headline_verdict == kinds(comparison)[0].verdict
    told = next(one for one in blocks_of_answer(pairs_of(comparison)[0]) if isinstance(one, VerdictBlock))
    assert told.badge == "? inconclusive" and "mix of steps" not in " ".join(told.sentences)
    assert doubt(pair_with(comparison)) == "", "the mix is no reason to doubt what is said of one kind"
    one = compared_runs("jax_filters_128_32", "jax_filters_16_8")
    assert pair_with(one).headline_verdict == one.verdict[one.candidates[0].id]


def kind(program: str, counts: tuple[int, int], times_us: tuple[float, float], verdict: Verdict) -> StepKind:
    return StepKind(program, counts, times_us, verdict)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (
            kind("eval", (5, 5), (1e3, 2e3), Verdict(SLOWER, "", 2.0, 1.8, 2.2)),
            " In steps of `eval`, B is 2.0× slower than A (1.8×–2.2×): 2.00 ms vs 1.00 ms per step.",
        ),
        (kind("eval", (5, 0), (1e3, math.nan), Verdict(UNTESTED, "absent")), " No steps of `eval` in B."),
        (kind("eval", (5, 5), (1e3, 1e3), Verdict(UNTESTED, "few")), ""),
    ],
)
def test_other_kinds_are_named_where_they_changed(second: StepKind, told: str) -> None:
    first = kind("train", (20, 20), (4e3, 3e3), Verdict(FASTER, "", 0.75, 0.7, 0.8))
    info = loaded_run("jax_filters_16_8").info
    mixed = ", in another mix of kinds" if not second.counts[1] else ""
    assert kinds_headline([first, second], (info, info), (5e3, 4e3), ("A", "B")).text == (
        "In steps of `train`, B takes 25 % less time per step than A (20–30 %): 3.00 ms vs 4.00 ms per step."
        f"{told} All steps together: 4.00 ms vs 5.00 ms per step{mixed}."
    )


def test_steps_of_a_longer_kind_are_not_called_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fifth step is long, and at first nothing tells why."""
    times = [4_000.0 if number % 5 == 4 else 1_000.0 + number for number in range(30)]
    slow = made_up("a", step_ms=1.6, step_frame=steps(times))
    programs = pd.Series(["train" if time < 2_000 else "evaluate" for time in times], index=range(30))
    for of_steps, is_told in ((programs, False), (programs.replace("evaluate", "train"), True)):
        monkeypatch.setattr(type(slow), "programs", lambda *_, of=of_steps: of)
        assert slow_steps_are_a_kind(slow, None) is not is_told
        assert any("are slow" in one for one in sentences(slow, None, "A")) is is_told


def test_a_run_alone_lists_its_kinds_and_one_of_a_single_kind_nothing() -> None:
    facts, memory, _ = flat(blocks(pairs_of(compared(FIFTH, FIFTH))[0]))
    assert isinstance(facts, Facts) and [row[0] for row in facts.rows] == ["multiply", "evaluate"]
    assert isinstance(memory, Facts) and all(len(row) == 2 for row in memory.rows)
    assert not list(blocks(pairs_of(compared_runs("jax_filters_128_32", "jax_filters_16_8"))[0]))


def listed(comparison: Comparison) -> Facts:
    """The facts of the chart of step times on the Overview."""
    found = flat(VIEW.blocks(pairs_of(comparison)[0]))
    (facts,) = (one.facts for one in found if isinstance(one, Chart) and one.name == "step_times")
    assert facts is not None
    return facts


def test_times_of_steps_are_listed_by_kind_where_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = listed(compared()).rows
    assert [str(row[0]).partition(", ")[2] for row in rows] == ["", "multiply", "evaluate"] * 2
    assert [row[1] for row in rows[:3]] == ["18 of 20", "14 of 20", "4 of 20"]
    for least, is_listed in ((18, True), (19, False)):
        monkeypatch.setattr("tfcompare.views.steps.view.STEPS_OF_A_HUNDREDTH", least)
        facts = listed(compared())
        assert ("99th percentile" in facts.header) is is_listed, "it takes enough steps"
        assert {len(row) for row in facts.rows} == {len(facts.header)}


def cells(*steps_of_ops: tuple[str, int, float]) -> StepCells:
    """Ops by name, step and time."""
    names, numbers, times = zip(*steps_of_ops, strict=True)
    every = list(dict.fromkeys(names))
    rows = pd.DataFrame({"row": map(every.index, names), "step": numbers, "occurrences": 1, "time_us": times})
    return StepCells(pd.DataFrame({"op_name": pd.Series(every, dtype="str")}), rows)


def test_programs_that_run_in_every_step_make_one_kind_whichever_is_longer() -> None:
    """Two programs of a GAN: the longer one differs from step to step, by chance."""
    found = step_programs(
        cells(
            *[
                (f"jit({name})/dot", step, 10.0 + (step + shift) % 2)
                for step in range(10)
                for shift, name in enumerate(("judge", "generate"))
            ]
        )
    )
    assert found.to_dict() == dict.fromkeys(range(10), "generate + judge")


def test_steps_of_both_programs_are_a_kind_of_their_own_and_helpers_make_none() -> None:
    ran = {0: ["train"], 1: ["evaluate"], 2: ["train", "evaluate"]}
    took = {"train": 30.0, "evaluate": 20.0}
    every = [(f"jit({name})/dot", step, took[name]) for step in range(30) for name in ran[step % 3]]
    every += [("jit(helper)/add", step, 0.5) for step in range(0, 30, 5)]
    kinds = step_programs(cells(*every, ("jit(helper)/add", 30, 0.5)))
    assert [kinds[step] for step in range(3)] == ["train", "evaluate", "evaluate + train"]
    assert kinds[30] == "helper", "nothing else ran"
    assert kinds_among(kinds) == dict.fromkeys(("train", "evaluate", "evaluate + train"), 10)


def test_a_capture_compared_with_a_copy_of_itself_has_equal_kinds() -> None:
    for one in pair_with(compare(recorded(FIFTH), tfc.load(FOLDER / FIFTH))).step_kinds:
        assert one.verdict.word == "same"


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


def findings(one: Pair, condition: str) -> list[Finding]:
    return list(check(one.among, [parse_condition(condition)]).found)


@pytest.mark.parametrize("metric", ["step_time", "step_time_median", "step_time_p95", "device_time"])
def test_conditions_on_steps_are_judged_in_each_kind(metric: str) -> None:
    changed, mixed = (pair(MOSTLY_TRAIN, MOSTLY_EVAL, 1, eval_us=eval_us) for eval_us in (800.0, 500.0))
    train, evaluate = findings(changed, f"{metric}>+5%")
    assert [one.name for one in (train, evaluate)] == [f"{metric} (train)", f"{metric} (eval)"]
    assert [one.text for one in (train, evaluate)] == [f"{metric}>+5% (train)", f"{metric}>+5% (eval)"]
    assert (train.outcome, evaluate.outcome) == ("passed", "failed")
    assert "joint for 2 tests" in train.reason
    value = train.measured.baseline
    assert findings(changed, f"{metric}<{value * 1.1:.0f}us")[0].outcome == "failed", "a value is of the candidate"
    for condition in (f"{metric}>+1%", f"{metric}<-1%"):
        assert [one.outcome for one in findings(mixed, condition)] == ["passed", "passed"]
    back = findings(pair_with(compare(changed.candidate, changed.baseline, spread=0.004)), f"{metric}>+5%")
    assert [one.name for one in back] == [one.name for one in (train, evaluate)]
    assert [one.measured.verdict.ratio for one in back] == pytest.approx(
        [1 / one.measured.verdict.ratio for one in (train, evaluate)]
    )
    (itself,) = findings(pair_with(compare(changed.baseline, changed.baseline)), f"{metric}>+0%")
    assert (itself.outcome, itself.reason) == ("passed", "identical file")


def test_a_kind_of_too_few_steps_is_not_judged_and_the_others_are() -> None:
    few = ["train"] * 40 + ["eval"] * 6
    found = check(pair(few, few, 1, eval_us=510.0).among, [parse_condition("step_time>+5%")])
    assert [(one.name, one.outcome) for one in found.found] == [
        ("step_time (train)", "passed"),
        ("step_time (eval)", "untested"),
    ]
    assert "joint" not in found.found[0].reason, "one kind can be tested"
    assert found.judge(strict=False).reasons == (
        "step_time>+5% (eval): 5 steps of eval, 9 needed on each side; record more steps, or judge another kind of "
        "steps alone (--step-kind)",
    )


def test_kinds_of_one_side_or_of_steps_without_devices_are_not_compared() -> None:
    (found,) = findings(pair(["train"] * 40, MOSTLY_TRAIN, 1), "step_time>+5%")
    assert (found.name, found.outcome) == ("step_time (train)", "passed")
    other = pair_with(compare(recorded(FIFTH), loaded_run("jax_filters_16_8")))
    (found,) = findings(other, "step_time>+5%")
    assert (found.name, found.outcome) == ("step_time", "untested")
    assert found.reason == "the runs have no kind of step in common"
    steps_of = {"train": ("train", [(SHARED, 400.0)]), "eval": ("eval", [("host/read", 300.0)])}
    idle = loop([steps_of[kind] for kind in MOSTLY_TRAIN], on_devices=1)
    again = loop([steps_of[kind] for kind in MOSTLY_TRAIN], on_devices=1, seed=1)
    (found,) = findings(pair_with(compare(idle, again, spread=0.004)), "device_time>+5%")
    assert (found.name, found.outcome) == ("device_time (train)", "passed")


def test_occurrences_are_of_one_mix_too() -> None:
    one = pair(MOSTLY_TRAIN, MOSTLY_EVAL, 1)
    conditions = [f"occurrences:{name}{sign}1%" for name in (SHARED, TRAIN, EVAL) for sign in (">+", "<-")]
    assert outcomes(one, *conditions) == ["passed"] * 6


@pytest.mark.parametrize(("busy_us", "place"), [(0.0, "Host"), (math.nan, "Device")])
def test_steps_vary_as_hosts_do_where_no_device_is_busy_and_as_devices_where_that_is_unknown(
    busy_us: float, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pair,) = pairs_of(compared_runs("h100_16_8", "h100_512_128"))
    assert spread_of_steps(pair).device_share == pytest.approx(0.08, abs=0.02), "the smaller one of both"
    busy = [Times.of(np.full(18, busy_us))]
    monkeypatch.setattr(Side, "device_times_us", property(lambda _: busy))
    assert spread_of_steps(pair) == spread_on(pair, place)
