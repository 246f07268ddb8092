"""Verdicts keep what docs/verdicts.md promises, on pairs, hosts and series: short runs of the calibrations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import calibration, kinds_of_steps, series_calibration
from benchmarks.host_calibration import BUSY_US, CALM, RESTLESS, groups_named, named, simulated
from tests.laws import mostly_thorough
from tfcompare.compare.stats.change_points import change_points
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.host_significance import slowest
from tfcompare.compare.stats.verdict import declared_spread

TRIALS = 2_000
CHANCE = 3 * np.sqrt(0.05 * 0.95 / TRIALS)
"""How far above 5 % a share of 5 % may come out in so many trials."""

EVERYDAY = [
    (9, 0.0, 0.02, 0.0),
    (9, 0.6, 0.12, 0.05),
    (20, 0.3, 0.05, 0.01),
    (40, 0.6, 0.02, 0.0),
    (40, 0.0, 0.12, 0.05),
]
"""Every number of steps, correlation, noise and spread occurs in one of them."""


@pytest.mark.parametrize("cell", mostly_thorough(calibration.cells(), *EVERYDAY), ids=str)
def test_a_change_is_claimed_where_there_is_none_in_one_pair_of_twenty_at_most(cell) -> None:
    share = calibration.claim_share(np.random.default_rng(11), TRIALS, cell)
    assert share <= 0.05 + CHANCE


@pytest.mark.parametrize("steps", mostly_thorough(calibration.STEPS, 20))
def test_one_percent_is_hardly_ever_claimed(steps: int) -> None:
    for correlation in (0.0, 0.3):
        cell = (steps, correlation, 0.02, 0.0)
        assert calibration.claim_share(np.random.default_rng(12), TRIALS, cell, change=0.01) <= 0.05 + CHANCE


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_five_percent_is_seen_through_little_noise(correlation: float) -> None:
    share = calibration.claim_share(np.random.default_rng(13), TRIALS, (20, correlation, 0.02, 0.0), change=0.05)
    assert share >= 0.9


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize(
    "cell",
    mostly_thorough([(9, 0.6, 0.12, 0.0), (20, 0.3, 0.05, 0.01), (40, 0.0, 0.02, 0.05)], (9, 0.6, 0.12, 0.0)),
    ids=str,
)
def test_ops_that_did_not_change_are_not_claimed_to(cell, common: bool) -> None:
    share = calibration.false_discovery_share(np.random.default_rng(14), 400, cell, common=common)
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_with_five_recordings_a_side_less_than_two_percent_can_be_seen() -> None:
    cell = (20, 0.3, 0.02, 0.002)
    rng = np.random.default_rng(15)
    assert calibration.claim_share(rng, TRIALS, cell, repeats=5) <= 0.05 + CHANCE
    assert calibration.claim_share(rng, TRIALS, cell, repeats=5, change=0.015) > 0.5


@pytest.mark.parametrize("slowdown", mostly_thorough(calibration.SLOWDOWNS, 0.3))
@pytest.mark.parametrize("captures", mostly_thorough([3, 5], 3))
def test_replicates_claim_no_change_of_a_busy_machine(captures: int, slowdown: float) -> None:
    cell = (20, 0.3, 0.05, 0.02)
    rng = np.random.default_rng(16)
    share = calibration.claim_share(rng, TRIALS, cell, repeats=captures, declared=0.1, slowdown=slowdown)
    assert share <= 0.05 + CHANCE


def test_replicates_on_a_quiet_machine_detect_what_single_captures_do_not() -> None:
    cell = (20, 0.3, 0.05, 0.02)
    rng = np.random.default_rng(17)
    single, three = (calibration.claim_share(rng, 500, cell, change=0.2, repeats=n, declared=0.1) for n in (1, 3))
    assert single < 0.2 and three > 0.9


VERDICTS = 600
CHANCE_OF_VERDICTS = 3 * np.sqrt(0.05 * 0.95 / VERDICTS)


@pytest.mark.parametrize("captures", kinds_of_steps.CAPTURES)
@pytest.mark.parametrize(
    "kind", mostly_thorough(kinds_of_steps.KINDS, *kinds_of_steps.KINDS[1:5:3]), ids=lambda kind: kind.name
)
def test_a_kind_of_step_with_heavy_tails_is_claimed_to_differ_from_itself_in_one_pair_of_twenty_at_most(
    kind: kinds_of_steps.Kind, captures: int
) -> None:
    rng = np.random.default_rng(18)
    claimed, covered = kinds_of_steps.outcomes(rng, VERDICTS, kind, captures)
    assert claimed <= 0.05 + CHANCE_OF_VERDICTS
    assert covered >= 0.94 - CHANCE_OF_VERDICTS


def test_a_device_that_takes_20_percent_longer_is_called_slower_by_single_captures() -> None:
    device = kinds_of_steps.KINDS[-1]
    found, covered = kinds_of_steps.outcomes(np.random.default_rng(19), 50, device, 1, 0.2)
    assert found >= 0.95
    assert covered >= 0.9


def test_another_clock_is_seldom_taken_for_a_change_of_the_program() -> None:
    rng = np.random.default_rng(20)
    claimed, hidden = kinds_of_steps.clock_states(rng, VERDICTS, 11, kinds_of_steps.DWELLS[0])
    assert claimed - hidden <= 0.05 + CHANCE_OF_VERDICTS
    assert hidden < claimed


def test_the_page_holds_figures_of_the_whole_run() -> None:
    page = calibration.PAGE.read_text(encoding="utf-8")
    assert "10,000 trials a cell" in page


HOST_TRIALS = 200
HOST_CHANCE = 3 * np.sqrt(0.05 * 0.95 / HOST_TRIALS)


@pytest.mark.parametrize("hosts", mostly_thorough([2, 3, 8, 32, 128], 2, 32))
@pytest.mark.parametrize(("noise", "correlation"), [(0.002, 0.0), CALM, RESTLESS])
def test_a_host_of_a_balanced_run_is_named_in_at_most_one_of_twenty_runs(
    hosts: int, noise: float, correlation: float
) -> None:
    rng = np.random.default_rng(hosts)
    assert named(rng, HOST_TRIALS, hosts, 20, 0.04, 0.0, noise, correlation) <= 0.05 + HOST_CHANCE


@pytest.mark.parametrize("hosts", mostly_thorough([2, 3, 8, 32], 3, 8))
def test_a_host_that_takes_25_percent_longer_is_named_in_most_runs(hosts: int) -> None:
    assert named(np.random.default_rng(hosts), 60, hosts, 20, 0.02, 0.25) >= 0.9


@pytest.mark.parametrize("hosts", mostly_thorough([8, 32, 128], 32))
def test_a_host_that_takes_4_percent_longer_than_many_that_agree_is_named_in_most_runs(hosts: int) -> None:
    assert named(np.random.default_rng(hosts), 60, hosts, 20, 0.005, 0.04, 0.005) >= 0.8


def test_a_rack_is_named_where_it_is_slow_and_hardly_ever_else() -> None:
    rng = np.random.default_rng(6)
    assert groups_named(rng, HOST_TRIALS, 4, 4, 0.04, 0.0) <= 0.05 + HOST_CHANCE
    assert groups_named(rng, 60, 4, 4, 0.02, 0.2) >= 0.8


def test_the_interval_holds_the_true_excess() -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(HOST_TRIALS):
        times = simulated(rng, 4, 20, 0.04)
        times[2] *= 1.4
        found = slowest(times)
        inside += found.position == 2 and found.low <= 0.4 * BUSY_US <= found.high
    assert inside >= 0.9 * HOST_TRIALS


SERIES_TRIALS = 100


@pytest.mark.parametrize(
    "kind", mostly_thorough(["normal", "heavy", "strays", "many strays", "load"], "normal", "load")
)
def test_a_series_of_100_runs_without_a_change_has_an_alarm_once_in_twenty_at_most(kind: str) -> None:
    rng = np.random.default_rng(1)
    alarms = [bool(change_points(series_calibration.simulated(rng, 100, kind=kind))) for _ in range(SERIES_TRIALS)]
    assert np.mean(alarms) <= 0.05


def test_neighbours_that_are_alike_raise_no_more_alarms() -> None:
    rng = np.random.default_rng(2)
    alarms = [
        bool(change_points(series_calibration.simulated(rng, 100, correlation=0.3))) for _ in range(SERIES_TRIALS)
    ]
    assert np.mean(alarms) <= 0.05


@pytest.mark.parametrize("looks", mostly_thorough([10, 40], 10))
def test_looking_after_each_run_raises_few_alarms(looks: int) -> None:
    _, ever = series_calibration.false_alarms(np.random.default_rng(3), 1, looks, 0.0, "normal")
    assert ever <= 0.1


def test_ten_percent_is_found_within_few_runs_and_its_size_is_in_the_interval() -> None:
    found, covered = series_calibration.delays(np.random.default_rng(4), 40, 50, 0.1)
    assert len(found) == 40
    assert np.median(found) <= 8
    assert covered / len(found) >= 0.85


def test_of_500_ops_the_changed_ones_are_found_and_hardly_any_other() -> None:
    rng = np.random.default_rng(5)
    right, wrong = np.sum([series_calibration.family(rng, 25, 0.1) for _ in range(5)], axis=0)
    assert right >= 0.95 * 5 * 25
    assert wrong <= 0.05 * (right + wrong)
    assert sum(series_calibration.family(rng, 0, 0.0)[1] > 0 for _ in range(20)) <= 2


def test_checks_of_runs_that_do_not_differ_seldom_fail() -> None:
    rng = np.random.default_rng(8)
    any_rise, by_5_percent, by_10_percent = series_calibration.checks(rng, 4, 0.0, "normal")
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
