"""Change points keep what docs/verdicts.md promises: a short run of benchmarks/series_calibration.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import series_calibration as calibration
from tests.laws import mostly_thorough
from tfcompare.compare.stats.change_points import change_points
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import declared_spread

TRIALS = 100


@pytest.mark.parametrize(
    "kind", mostly_thorough(["normal", "heavy", "strays", "many strays", "load"], "normal", "load")
)
def test_a_series_of_100_runs_without_a_change_has_an_alarm_once_in_twenty_at_most(kind: str) -> None:
    rng = np.random.default_rng(1)
    alarms = [bool(change_points(calibration.simulated(rng, 100, kind=kind))) for _ in range(TRIALS)]
    assert np.mean(alarms) <= 0.05


def test_neighbours_that_are_alike_raise_no_more_alarms() -> None:
    rng = np.random.default_rng(2)
    alarms = [bool(change_points(calibration.simulated(rng, 100, correlation=0.3))) for _ in range(TRIALS)]
    assert np.mean(alarms) <= 0.05


@pytest.mark.parametrize("looks", mostly_thorough([10, 40], 10))
def test_looking_after_each_run_raises_few_alarms(looks: int) -> None:
    _, ever = calibration.false_alarms(np.random.default_rng(3), 1, looks, 0.0, "normal")
    assert ever <= 0.1


def test_ten_percent_is_found_within_few_runs_and_its_size_is_in_the_interval() -> None:
    found, covered = calibration.delays(np.random.default_rng(4), 40, 50, 0.1)
    assert len(found) == 40
    assert np.median(found) <= 8
    assert covered / len(found) >= 0.85


def test_of_500_ops_the_changed_ones_are_found_and_hardly_any_other() -> None:
    rng = np.random.default_rng(5)
    right, wrong = np.sum([calibration.family(rng, 25, 0.1) for _ in range(5)], axis=0)
    assert right >= 0.95 * 5 * 25
    assert wrong <= 0.05 * (right + wrong)
    assert sum(calibration.family(rng, 0, 0.0)[1] > 0 for _ in range(20)) <= 2


def test_checks_of_runs_that_do_not_differ_seldom_fail() -> None:
    rng = np.random.default_rng(8)
    any_rise, by_5_percent, by_10_percent = calibration.checks(rng, 4, 0.0, "normal")
    assert by_10_percent <= by_5_percent <= 0.02
    assert by_5_percent <= any_rise <= 0.05


def claims_of_one_run(rng: np.random.Generator, trials: int, spread: float, change: float = 0.0) -> float:
    """How often a run that takes `change` longer is called slower or faster than the ten runs before it."""
    claims = 0
    for _ in range(trials):
        logs = [spread * rng.standard_normal() + 0.03 * rng.standard_normal(20) for _ in range(11)]
        runs = [Times.of(np.exp(log + (np.log1p(change) if i == 10 else 0))) for i, log in enumerate(logs)]
        test = ChangeTest(declared_spread("CPU"))
        test = replace(test, spread=test.measured_spread(runs[:10]) or test.spread)
        claims += test(runs[:10], runs[10:]).is_claim
    return claims / trials


@pytest.mark.parametrize("spread", mostly_thorough([0.01, 0.05, 0.15], 0.05))
def test_one_run_is_seldom_told_wrongly_from_the_ten_before_it(spread: float) -> None:
    assert claims_of_one_run(np.random.default_rng(6), 400, spread) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert claims_of_one_run(np.random.default_rng(7), 50, spread, change=6 * spread) >= 0.9
