"""One step time: what the headline says, the figures show and the verdict judges is the same."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tests.compare.compare_runs import run, steps
from tests.profiles import compared_runs
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.units import format_time_us
from tfcompare.views.candidates.figures import runs_table


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


PAIRS = [
    ("tf_cpu_base", "tf_cpu_zoo"),
    ("filters_512_128_simulated", "filters_16_8_simulated"),
    ("h100_store_activations", "h100_recompute_activations"),
    ("workers_balanced", "workers_slow_input"),
    pytest.param("jax_filters_16_8", "workers_balanced", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("baseline", "candidate"), PAIRS)
def test_on_real_pairs_every_place_says_what_the_verdict_says(baseline: str, candidate: str) -> None:
    comparison = compared_runs(baseline, candidate)
    ours, theirs = comparison.baseline, comparison.candidates[0]
    verdict = comparison.verdict[theirs.id]
    times = comparison.step_time_us(ours), comparison.step_time_us(theirs)
    kind = pair_with(comparison).main_kind
    of_kind = times if kind is None else kind.times_us
    if pair_with(comparison).headline_verdict.is_claim:
        ratio, tolerance = said_ratio(comparison.headline())
        assert ratio == pytest.approx(of_kind[1] / of_kind[0], rel=tolerance)
    else:
        assert comparison.headline().startswith(("Inconclusive", "Difference not tested: "))
    for of in (of_kind, times):
        assert f"{format_time_us(of[1])} vs {format_time_us(of[0])} per step" in comparison.headline()
    assert verdict.has_interval
    assert times[1] / times[0] == pytest.approx(verdict.ratio, rel=1e-9)
    assert verdict.low < times[1] / times[0] < verdict.high
    assert runs_table(comparison)["ratio"].iloc[1] == pytest.approx(times[1] / times[0], rel=1e-9)


def varied(mean_us: float, seed: int) -> pd.DataFrame:
    noise = np.random.default_rng(seed).standard_normal(20)
    return steps((mean_us * np.exp(0.05 * noise)).tolist())


@pytest.mark.parametrize("are_repeated", [False, True])
def test_the_figures_the_verdict_the_check_and_the_table_are_of_all_recordings(are_repeated: bool) -> None:
    ours, theirs, *more = (
        run(name, step_frame=varied(mean, seed), step_count=20)
        for seed, (name, mean) in enumerate([("a", 100.0), ("b", 80.0), ("a2", 110.0), ("a3", 120.0), ("b2", 70.0)])
    )
    comparison = compare(ours, theirs, repeats={"a": more[:2], "b": more[2:]} if are_repeated else {})
    times = comparison.step_time_us(ours), comparison.step_time_us(theirs)
    alone = compare(ours, theirs)
    assert (times[0] > alone.step_time_us(ours)) is (times[1] < alone.step_time_us(theirs)) is are_repeated
    ratio = comparison.verdict["b"].ratio
    assert times[1] / times[0] == pytest.approx(ratio, rel=1e-9)
    (found,) = check(comparison, [parse_condition("step_time>+5%")]).found
    assert (found.measured.baseline, found.measured.candidate) == pytest.approx(times, rel=1e-12)
    assert found.measured.verdict.ratio == pytest.approx(ratio, rel=1e-12)
    for one in (ours, theirs, *more):
        one.info.start_time, one.info.start_time_source = pd.Timestamp("2026-01-01", tz="UTC"), "profile"
    assert runs_table(comparison)["ratio"].iloc[1] == pytest.approx(ratio, rel=1e-9)


def test_one_host_has_its_own_step_time() -> None:
    frame = pd.concat([steps([100.0] * 9, "x"), steps([900.0] * 9, "y")], ignore_index=True)
    ours, theirs = (
        run(name, step_frame=frame.assign(duration_us=frame["duration_us"] * by), hosts=("x", "y"), step_count=9)
        for name, by in (("a", 1.0), ("b", 2.0))
    )
    assert compare(ours, theirs).headline().endswith(": 1.80 ms vs 900 µs per step.")
    assert "200 µs vs 100 µs per step." in compare(ours, theirs, host="x").headline()
