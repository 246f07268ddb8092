"""One step time: what the headline says, the figures show and the verdict judges is the same."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from tests.charts import chart_samples as samples
from tests.compare.compare_runs import run, steps
from tests.profiles import EACH_KIND, loaded_run
from tfcompare.compare import compare
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.run import Run
from tfcompare.tools.key_figures import key_figures
from tfcompare.tools.runs.many_runs import runs_table
from tfcompare.units import format_time_us


@pytest.fixture(scope="module")
def timed() -> list[Run]:
    """All profiles at hand that have steps."""
    every = [loaded_run(name) for name in EACH_KIND]
    return [one for one in every if one.info.has_steps]


def said_ratio(headline: str) -> tuple[float, float]:
    """(candidate ÷ baseline as the sentence says it, by how much its last digit may be off, as a share)."""
    if found := re.search(r" is (?:likely )?([\d.,]+)× (faster|slower) than ", headline):
        number = float(found[1].replace(",", ""))
        return (1 / number if found[2] == "faster" else number), 0.06
    if found := re.search(r" in ([\d.,]+)× the time ", headline):
        return float(found[1].replace(",", "")), 0.06
    found = re.search(r" takes ([\d.]+) % (less|more) time per step than", headline)
    assert found, headline
    ratio = 1 + float(found[1]) / 100 * (-1 if found[2] == "less" else 1)
    return ratio, 0.0051 / ratio  # half of the last digit


def test_on_all_real_pairs_every_place_says_what_the_verdict_says(timed: list[Run]) -> None:
    judged = 0
    for ours, theirs in combinations(timed, 2):
        comparison = compare(ours, theirs)
        verdict = comparison.verdict[theirs.id]
        times = comparison.step_time_us(ours), comparison.step_time_us(theirs)
        kind = comparison.main_kind(theirs)
        of_kind = times if kind is None else kind.times_us
        if comparison.headline_verdict(theirs).is_claim:
            ratio, tolerance = said_ratio(comparison.headline())
            assert ratio == pytest.approx(of_kind[1] / of_kind[0], rel=tolerance)
        else:
            assert comparison.headline().startswith(("Inconclusive", "Difference not tested: "))
        for of in (of_kind, times):
            assert f"{format_time_us(of[1])} vs {format_time_us(of[0])} per step" in comparison.headline()
        if verdict.has_interval:
            judged += 1
            assert times[1] / times[0] == pytest.approx(verdict.ratio, rel=1e-9)
            assert verdict.low < times[1] / times[0] < verdict.high
        assert runs_table(comparison)["ratio"].iloc[1] == pytest.approx(times[1] / times[0], rel=1e-9)
        figure = key_figures(samples.diff(), times)[0]
        assert (figure.baseline, figure.candidate) == times
    assert judged > 10


@pytest.mark.parametrize("number_of_repeats", [0, 2])
def test_check_holds_its_conditions_against_the_same_figures(number_of_repeats: int) -> None:
    ours, theirs, *more = (
        run(f"{name}{seed}", step_frame=varied(mean, seed), step_count=20)
        for seed, (name, mean) in enumerate([("a", 100.0), ("b", 80.0), ("a", 110.0), ("a", 120.0)])
    )
    repeats = {ours.id: more[:number_of_repeats]}
    comparison = compare(ours, theirs, repeats=repeats)
    (found,) = check(comparison, [parse_condition("step_time>+5%")]).found
    assert found.measured.baseline == pytest.approx(comparison.step_time_us(ours), rel=1e-12)
    assert found.measured.candidate == pytest.approx(comparison.step_time_us(theirs), rel=1e-12)
    assert found.measured.verdict.ratio == pytest.approx(comparison.verdict[theirs.id].ratio, rel=1e-12)


def varied(mean_us: float, seed: int) -> pd.DataFrame:
    noise = np.random.default_rng(seed).standard_normal(20)
    return steps((mean_us * np.exp(0.05 * noise)).tolist())


def test_with_repeats_the_figures_are_of_all_recordings_as_the_verdict_is() -> None:
    ours, theirs, *more = (
        run(name, step_frame=varied(mean, seed), step_count=20)
        for seed, (name, mean) in enumerate([("a", 100.0), ("b", 80.0), ("a2", 110.0), ("a3", 120.0), ("b2", 70.0)])
    )
    comparison = compare(ours, theirs, repeats={"a": more[:2], "b": more[2:]})
    times = comparison.step_time_us(ours), comparison.step_time_us(theirs)
    alone = compare(ours, theirs)
    assert times[0] > alone.step_time_us(ours) and times[1] < alone.step_time_us(theirs)
    assert times[1] / times[0] == pytest.approx(comparison.verdict["b"].ratio, rel=1e-9)
    table = runs_table_of(comparison)
    assert table["ratio"].iloc[1] == pytest.approx(comparison.verdict["b"].ratio, rel=1e-9)


def runs_table_of(comparison):
    for one in (comparison.baseline, *comparison.candidates):
        one.info.start_time, one.info.start_time_source = pd.Timestamp("2026-01-01", tz="UTC"), "profile"
    return runs_table(comparison)


def test_a_stray_step_moves_neither_the_sentence_nor_the_verdict() -> None:
    usual = varied(100.0, 1)
    stray = usual.assign(duration_us=usual["duration_us"].where(usual["step"] != 7, 50_000.0))
    comparison = compare(run("a", step_frame=usual, step_count=20), run("b", step_frame=stray, step_count=20))
    assert comparison.step_time_us(comparison.candidates[0]) < 110.0
    assert comparison.verdict["b"].word in ("same", "unclear")


def test_one_host_has_its_own_step_time() -> None:
    frame = pd.concat([steps([100.0] * 9, "x"), steps([900.0] * 9, "y")], ignore_index=True)
    ours, theirs = (
        run(name, step_frame=frame.assign(duration_us=frame["duration_us"] * by), hosts=("x", "y"), step_count=9)
        for name, by in (("a", 1.0), ("b", 2.0))
    )
    assert compare(ours, theirs).headline().endswith(": 1.80 ms vs 900 µs per step.")
    assert "200 µs vs 100 µs per step." in compare(ours, theirs, host="x").headline()
