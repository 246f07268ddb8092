"""Programs with slow steps, whose truth is known: what is said of their step time, and of the slow steps themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.checked import checked as check
from tests.laws import mostly_thorough
from tests.profiles import loaded_run
from tests.step_programs import (
    SLOW_OP,
    STEPS,
    capture,
    capture_of_hosts,
    captures,
    drifting,
    even,
    every,
    halves,
    loaded,
    some,
)
from tests.views.flat import step_links
from tests.views.test_views import findings
from tfcompare.compare.check.conditions import check as judge
from tfcompare.compare.check.conditions import parse_condition
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.comparison import Comparison, compare
from tfcompare.errors import Unknown
from tfcompare.run import Run, load
from tfcompare.schema import STEP_PARTS
from tfcompare.units import format_time_us
from tfcompare.views.candidates.figures import runs_table
from tfcompare.views.run_listing import listing, summary_of
from tfcompare.views.series.figures import measured, parse_metric
from tfcompare.views.steps.attribution import attribution, attribution_of
from tfcompare.views.steps.dashboard import dashboard
from tfcompare.views.steps.words import sentences

AT_RANDOM = sorted(np.random.default_rng(3).choice(STEPS, 4, replace=False).tolist())
PROGRAMS = {
    "each 5th 42, others 2": (every(5, 42, 2), {"slower"}),
    "each 10th 30, others 3.6": (every(10, 30, 3.6), {"slower", "unclear"}),
    "two of 60, others 4": (some([11, 30], 60, 4), {"slower", "unclear"}),
    "each 3rd 6, others 3.6": (every(3, 6, 3.6), {"slower", "unclear"}),
    "each 7th 25, others 3": (every(7, 25, 3), {"slower", "unclear"}),
    "each 2nd 6.5, others 2.5": (every(2, 6.5, 2.5), {"slower"}),
    "four at random 20, others 3.5": (some(AT_RANDOM, 20, 3.5), {"slower", "unclear"}),
    "half 3, half 7": (halves(3, 7), {"slower"}),
    "drift from 4 to 6": (drifting(4, 6), {"slower"}),
    "even 4": (even(4), {"same", "unclear"}),
    "even 3": (even(3), {"faster"}),
    "each 8th 6, others 3": (every(8, 6, 3), {"faster"}),
}
"""The steps of candidates in ms, and what may be said of them against even steps of 4 ms."""
EVERYDAY = ("each 5th 42, others 2", "even 4", "even 3")


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captures(tmp_path_factory.mktemp("even") / "before", even(4), seed=1)


def compared(ours: Sequence[Run], theirs: Sequence[Run]) -> Comparison:
    return compare(ours[0], theirs[0], repeats={ours[0].id: ours[1:], theirs[0].id: theirs[1:]})


@pytest.mark.parametrize("name", mostly_thorough(PROGRAMS, *EVERYDAY))
def test_single_captures_claim_nothing_that_the_mean_does_not_bear_out(
    name: str, baseline: Path, tmp_path: Path
) -> None:
    steps, allowed = PROGRAMS[name]
    ours, theirs = load(baseline / "run-1"), load(capture(tmp_path / "run", steps, seed=2))
    verdict = compare(ours, theirs).verdict[theirs.id]
    assert verdict.word in allowed | {"unclear"}
    assert verdict.low < np.mean(steps) / 4 < verdict.high


@pytest.mark.parametrize("name", mostly_thorough(PROGRAMS, *EVERYDAY))
def test_nothing_is_claimed_that_the_mean_does_not_bear_out(
    name: str, baseline: Path, tmp_path: Path, tfcompare: Callable[..., tuple[int, str, str]]
) -> None:
    steps, allowed = PROGRAMS[name]
    after = captures(tmp_path / "after", steps, seed=2)
    ours, theirs = loaded(baseline), loaded(after)
    comparison = compared(ours, theirs)
    verdict = comparison.verdict[theirs[0].id]
    assert verdict.word in allowed
    assert verdict.ratio == pytest.approx(np.mean(steps) / 4, rel=0.02)
    assert verdict.low < np.mean(steps) / 4 < verdict.high
    places = [str(baseline), str(after)]
    status, out, _ = tfcompare("check", *places, "--fail-if", "step_time>+5%")
    slower = np.mean(steps) > 4 * 1.05
    assert ("passed (1 passed)" in out) is not slower
    assert status == (1 if verdict.word == "slower" else 0), out
    headline = comparison.headline()
    assert ("faster" in headline or "less time" in headline) == (verdict.word == "faster")


def test_slow_steps_are_counted_with_their_period_and_what_they_do(tmp_path: Path) -> None:
    run = load(capture(tmp_path / "run", every(5, 42, 2)))
    (row,) = run.table("slow_steps").to_dict("records")
    assert (row["steps"], row["slow_steps"], row["every"]) == (40, 8, 5)
    assert row["slow_step_us"] == pytest.approx(42_000, rel=0.02)
    assert row["usual_step_us"] == pytest.approx(2_000, rel=0.02)
    assert row["slow_share"] == pytest.approx(8 * 42 / (8 * 42 + 32 * 2), rel=0.01)
    mean_us = run.info.step_time_ms_mean * 1000
    assert row["usual_step_us"] + row["slow_excess_us"] == pytest.approx(mean_us)
    assert (row["part"], row["op_name"]) == ("host_compute_us", SLOW_OP)
    assert row["op_share"] > 0.95
    assert sentences(run, None, "it") == [
        f"8 of 40 steps of it, every 5th, are slow: {format_time_us(row['slow_step_us'])} instead of "
        f"{format_time_us(row['usual_step_us'])}, 84.0 % of the time; all of the extra is host compute, all in "
        f"`{SLOW_OP}`."
    ]


def test_of_a_host_that_has_none_but_slow_steps_it_is_said_how_much_they_add_and_not_what(tmp_path: Path) -> None:
    run = load(capture_of_hosts(tmp_path / "run", {"a": even(4), "b": [60.0] * 4}))
    (row,) = run.table("slow_steps").to_dict("records")
    assert (row["steps"], row["slow_steps"], row["part"], row["op_name"]) == (39, 4, "", "")
    assert row["usual_step_us"] + row["slow_excess_us"] == pytest.approx(run.info.step_time_ms_mean * 1000)


@pytest.mark.parametrize(
    ("steps", "slow", "period"),
    [
        (even(4), 0, None),
        (every(3, 9, 4), 13, 3),
        (some([3, 20], 20, 4), 2, None),
        (some([3, 9, 30], 20, 4), 3, None),
        (some([10, 11, 12, 13], 20, 4), 4, 1),
        (drifting(4, 6), 0, None),
        (halves(4, 7), 0, None),
    ],
)
def test_only_what_is_regular_has_a_period(steps: list[float], slow: int, period: int | None, tmp_path: Path) -> None:
    (row,) = load(capture(tmp_path / "run", steps)).table("slow_steps").to_dict("records")
    assert (row["slow_steps"], None if row["every"] is None or row["every"] != row["every"] else row["every"]) == (
        slow,
        period,
    )


def test_the_headline_says_it_in_its_second_clause_and_diff_in_its_first_lines(
    baseline: Path, tmp_path: Path, tfcompare: Callable[..., tuple[int, str, str]]
) -> None:
    after = captures(tmp_path / "after", every(5, 42, 2), seed=2)
    comparison = compared(loaded(baseline), loaded(after))
    assert re.fullmatch(
        r"`run-1` is 2\.5× slower than `run-1` \(2\.\d+×–2\.\d+×, 5 captures each\): 10\.\d ms vs 4\.\d+ ms per step; "
        r"every 5th step of `run-1` takes "
        r"42\.\d ms, the others [12]\.\d+ ms\.",
        comparison.headline(names=("run-1", "run-1")),
    )
    _, out, _ = tfcompare("diff", str(baseline), str(after))
    first = out.splitlines()[:4]
    assert "every 5th step of" in first[0]
    assert any("8 of 40 steps of" in line and SLOW_OP in line for line in first)
    back = compared(loaded(after), loaded(baseline)).headline(names=("slow", "even"))
    assert "`even` is 2.5× faster than `slow`" in back and "every 5th step of `slow` takes 42" in back
    rows = comparison.table("slow_steps").to_dict("records")
    assert [(row["slow_steps_baseline"], row["slow_steps_candidate"], row["slow_steps_delta"]) for row in rows] == [
        (0, 8, 8)
    ]


def test_a_stray_is_excluded_named_and_counted_on_request(tmp_path: Path) -> None:
    place = capture(tmp_path / "run", some([6], 60, 4))
    run, counted = load(place), load(place, stray="include")
    assert (run.info.step_count, run.info.steps_included, counted.info.steps_included) == (42, 39, 40)
    assert run.info.step_time_ms_mean == pytest.approx(4, rel=0.01)
    assert counted.info.step_time_ms_mean == pytest.approx((39 * 4 + 60) / 40, rel=0.01)
    assert run.content_id != counted.content_id
    (stray,) = run.table("steps").query("stray").to_dict("records")
    assert (stray["step"], stray["included"]) == (8, False)
    (text,) = sentences(run, None, "it")
    assert text.startswith(f"Step 8 of it is excluded as a stray: {format_time_us(stray['duration_us'])} instead of ")
    assert text.endswith(f"; all of the extra is host compute, all in `{SLOW_OP}`.")
    (text,) = sentences(counted, None, "it")
    assert text.startswith("Step 8 of it is far longer than all others: ")
    with pytest.raises(Unknown, match="use of a stray 'perhaps'"):
        load(place, stray="perhaps")  # type: ignore[arg-type]


def test_a_stray_of_one_host_is_excluded_on_the_others_without_being_long_there(tmp_path: Path) -> None:
    run = load(capture_of_hosts(tmp_path / "run", {"a": even(4), "b": some([6], 60, 4)}))
    assert sentences(run, "a", "it") == ["Step 8 of it is excluded: it is a stray on another host."]
    (text,) = sentences(run, "b", "it")
    assert text.startswith("Step 8 of it is excluded as a stray: ")
    counted = load(tmp_path / "run", stray="include")
    assert sentences(counted, "a", "it") == []
    (pair_of_a,), (pair_of_b,) = (pairs_of(compare(run, run, host=host)) for host in "ab")
    assert not [link for link in step_links(pair_of_a) if "a usual one" in link.label]
    assert [link.label for link in step_links(pair_of_b) if "a usual one" in link.label] != []


def test_what_a_host_does_in_the_stray_of_another_is_told_beside_its_own_steps(tmp_path: Path) -> None:
    """Step 8 is a stray on host b, and takes 6.8 ms on host a, which has longer ones."""
    on_a = [6.8 if i == 6 else 12.0 if i in (20, 30) else 4.0 for i in range(STEPS)]
    capture_of_hosts(tmp_path / "run", {"a": on_a, "b": some([6], 60, 4)})
    counted = load(tmp_path / "run", stray="include")
    (text,) = sentences(counted, "a", "it")
    assert " of 40 steps of it" in text and "longer than all others" not in text
    excluded = sentences(load(tmp_path / "run"), "a", "it")
    assert excluded[-1] == "Step 8 of it is excluded: it is a stray on another host."


def test_one_slow_step_of_a_host_is_told_where_another_host_has_the_stray(tmp_path: Path) -> None:
    capture_of_hosts(tmp_path / "run", {"a": some([20], 12, 4), "b": some([6], 60, 4)})
    (text,) = sentences(load(tmp_path / "run", stray="include"), "a", "it")
    assert text.startswith("1 of 40 steps of it is slow: ")


@pytest.mark.parametrize(
    "steps",
    [some([6, 20], 60, 4), some([6], 5.5, 4), [4.0, 4.0, 60.0], [*even(4)[:-1], 0.1], [0.0] * 9],
    ids=["two", "not far", "few", "short", "no time"],
)
def test_nothing_else_is_a_stray(steps: list[float], tmp_path: Path) -> None:
    run = load(capture(tmp_path / "run", [max(ms, 0.1) for ms in steps]))
    assert not run.table("steps")["stray"].any()


def test_a_stray_counts_towards_the_steps_that_a_verdict_needs(tmp_path: Path) -> None:
    ours, theirs = (
        load(capture(tmp_path / name, [*[ms] * 4, 50.0, *[ms] * 4])) for name, ms in (("a", 4.0), ("b", 1.0))
    )
    assert ours.info.steps_included == 8
    assert compare(ours, theirs).verdict[theirs.id].has_interval
    fewer = load(capture(tmp_path / "c", [1.0] * 8))
    assert compare(ours, fewer).verdict[fewer.id].word == "untested"


def test_a_chosen_range_loses_nothing_but_a_stray(tmp_path: Path) -> None:
    place = capture(tmp_path / "run", some([6], 60, 4))
    assert load(place, steps="1:20").info.steps_included == 19
    assert load(place, steps="10:20").info.steps_included == 11


def test_a_claim_that_a_stray_overturns_is_none(baseline: Path, tmp_path: Path) -> None:
    """One slow step of 40 may be an accident or a rare slow step: 3.6 ms without it, 4.9 ms with it."""
    ours, theirs = load(baseline / "run-1"), load(capture(tmp_path / "run", some([6], 55, 3.6)))
    found = compare(ours, theirs, spread=0.0).verdict[theirs.id]
    assert found.ratio == pytest.approx(0.9, rel=0.01) and found.high < 0.95
    assert found.word == "unclear"
    assert "With strays counted, the ratio is 1.2" in found.reason
    assert compare(ours, load(baseline / "run-2"), spread=0.0).verdict["run-2"].ratio_with_strays is None


CHECKS = {
    "step_time": lambda steps: np.mean(steps),
    "step_time_median": lambda steps: np.median(steps),
    "step_time_p95": lambda steps: np.quantile(steps, 0.95),
}


def test_conditions_can_be_on_the_mean_the_median_and_the_95th_percentile(baseline: Path, tmp_path: Path) -> None:
    steps = every(10, 30, 3.6)
    comparison = compared(loaded(baseline), loaded(captures(tmp_path / "after", steps, seed=2)))
    findings = judge(comparison, [parse_condition(f"{metric}>+5%") for metric in CHECKS]).found
    for found, truth_of in zip(findings, CHECKS.values(), strict=True):
        truth = truth_of(steps) / 4
        assert found.measured.verdict.ratio == pytest.approx(truth, rel=0.05)
        assert found.outcome == ("failed" if truth > 1.05 else "passed")


def test_throughput_counts_the_time_between_steps_and_is_worse_where_it_falls(tmp_path: Path) -> None:
    ours, theirs = (loaded(captures(tmp_path / name, even(4), 3, seed=seed)) for name, seed in (("a", 1), ("b", 2)))
    slower = [load(capture(tmp_path / "c" / f"run-{i}", even(4), seed=50 + i, between_ms=2.0)) for i in range(3)]
    condition = parse_condition("throughput<-5%")
    repeats = {run[0].id: run[1:] for run in (ours, theirs, slower)}
    passed, failed = (check(ours[0], of[0], [condition], repeats=repeats).found[0] for of in (theirs, slower))
    assert (passed.outcome, failed.outcome) == ("passed", "failed")
    assert failed.measured.verdict.ratio == pytest.approx(4.1 / 6, rel=0.02)
    assert failed.measured.candidate == pytest.approx(1000 / 6, rel=0.02)
    assert passed.measured.unit == "steps/s"


def test_parts_and_ops_of_the_included_steps_add_up_to_the_step_time(tmp_path: Path) -> None:
    ours, theirs = (load(capture(tmp_path / name, steps)) for name, steps in (("a", every(5, 42, 2)), ("b", even(4))))
    comparison = compare(ours, theirs)
    ops, parts = comparison.table("op_stats"), attribution(pair_with(comparison, theirs.id)).parts
    for side, run in (("baseline", ours), ("candidate", theirs)):
        step_us = run.info.step_time_ms_mean * 1000
        assert parts[f"mean_us_{side}"].sum() == pytest.approx(step_us)
        assert ops[f"wall_time_us_per_step_{side}"].sum() + 40 == pytest.approx(step_us), "40 µs of each are no op"
        steps = run.table("steps").query("included")
        assert steps[list(STEP_PARTS)].sum(axis=1).mean() == pytest.approx(step_us)
    per_run = compare(ours, theirs, per="run").table("op_stats").set_index("op_name")["self_time_us_baseline"]
    whole = ours.table("op_stats").set_index("op_name")["self_time_us"]
    assert per_run[SLOW_OP] == whole[SLOW_OP], "totals of a whole run stay those of all steps"


def test_what_ran_only_outside_of_the_included_steps_is_matched_with_0(tmp_path: Path) -> None:
    steps = [60.0, *even(4), 4.0]  # the slow op runs in the stray alone
    ours, theirs = (load(capture(tmp_path / name, steps, seed=seed)) for name, seed in (("a", 1), ("b", 2)))
    row = compare(ours, theirs).table("op_stats").set_index("op_name").loc[SLOW_OP]
    assert (row["status"], row["self_time_us_per_step_baseline"], row["self_time_us_per_step_ratio"]) == (
        "matched",
        0.0,
        1.0,
    )
    assert row["verdict"] == "untested"


RECORDED = [("filters_512_128", "filters_16_8"), ("workers_balanced", "workers_slow_input")]


@pytest.mark.parametrize("names", [(), *(pytest.param(pair, marks=pytest.mark.thorough) for pair in RECORDED)])
def test_the_step_time_has_one_value_on_every_surface(
    names: tuple[str, ...], tfcompare: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    if names:
        ours, theirs = map(loaded_run, names)
    else:
        hosts = {"a": {"x": even(4), "y": every(5, 9, 4)}, "b": {"x": some([6], 60, 3), "y": even(3)}}
        ours, theirs = (load(capture_of_hosts(tmp_path / name, steps)) for name, steps in hosts.items())
    comparison = compare(ours, theirs)
    pair = pair_with(comparison)
    for side, run in (("baseline", ours), ("candidate", theirs)):
        steps_us = run.steps.loc[run.steps["included"], "duration_us"]
        truth_us = float(steps_us.mean())
        found = {
            "run_info": run.info.step_time_ms_mean * 1000,
            "comparison": comparison.step_time_us(run),
            "parts": attribution_of(pair).parts[f"mean_us_{side}"].sum(),
            "card": next(
                getattr(figure, side)
                for figure in dashboard(pair, attribution_of(pair).parts)
                if figure.label == "Step time"
            ),
            "all runs": runs_table(comparison).set_index("run").loc[run.id, "step_time_us_mean"],
            "list of runs": listing([run.found], {run.id: run})["step_time_ms_mean"][0] * 1000,
            "index of a store": (summary_of(run).step_time_ms_mean or 0) * 1000,
            "series": measured(run, parse_metric("step_time")).value,
            "slow steps": run.table("slow_steps")[["usual_step_us", "slow_excess_us"]].sum(axis=1).iloc[0],
            "check": getattr(judge(comparison, []).found[0].measured, side),
        }
        assert found == pytest.approx(dict.fromkeys(found, truth_us))
    shown = [format_time_us(comparison.step_time_us(run)) for run in (ours, theirs)]
    assert f"{shown[1]} vs {shown[0]} per step" in comparison.headline()
    paths = [str(run.path) for run in (ours, theirs)]
    _, diff, _ = tfcompare("diff", *paths)
    assert f"{shown[1]} vs {shown[0]} per step" in diff
    for path, time in zip(paths, shown, strict=True):
        _, summary, _ = tfcompare("show", path)
        assert re.search(rf"Step time +{re.escape(time)}\n", summary)
    _, checked, _ = tfcompare("check", *paths, "--format", "json")
    assert [json.loads(checked)["findings"][0][side] for side in ("baseline", "candidate")] == pytest.approx(
        [comparison.step_time_us(run) for run in (ours, theirs)]
    )
    (content,) = json.loads(comparison.report(tmp_path / "report.json").read_text())["candidates"]
    figure = next(findings(content["blocks"]))
    assert [figure["baseline"], figure["candidate"]] == pytest.approx(
        [comparison.step_time_us(run) for run in (ours, theirs)]
    )
    assert f"{shown[1]} vs {shown[0]} per step" in comparison.report(tmp_path / "report.md").read_text()
    assert f"{shown[1]} vs {shown[0]} per step" in comparison._repr_html_().replace("<code>", "").replace("</code>", "")
