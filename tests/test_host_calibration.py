"""The slowest host is named as docs/verdicts.md promises: a short run of benchmarks/host_calibration.py."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.host_calibration import BUSY_US, CALM, RESTLESS, groups_named, named, simulated
from tests.laws import mostly_thorough
from tfcompare.compare.stats.host_significance import slowest

TRIALS = 200
CHANCE = 3 * np.sqrt(0.05 * 0.95 / TRIALS)


@pytest.mark.parametrize("hosts", mostly_thorough([2, 3, 8, 32, 128], 2, 32))
@pytest.mark.parametrize(("noise", "correlation"), [(0.002, 0.0), CALM, RESTLESS])
def test_a_host_of_a_balanced_run_is_named_in_at_most_one_of_twenty_runs(
    hosts: int, noise: float, correlation: float
) -> None:
    rng = np.random.default_rng(hosts)
    assert named(rng, TRIALS, hosts, 20, 0.04, 0.0, noise, correlation) <= 0.05 + CHANCE


@pytest.mark.parametrize("hosts", mostly_thorough([2, 3, 8, 32], 3, 8))
def test_a_host_that_takes_25_percent_longer_is_named_in_most_runs(hosts: int) -> None:
    assert named(np.random.default_rng(hosts), 60, hosts, 20, 0.02, 0.25) >= 0.9


@pytest.mark.parametrize("hosts", mostly_thorough([8, 32, 128], 32))
def test_a_host_that_takes_4_percent_longer_than_many_that_agree_is_named_in_most_runs(hosts: int) -> None:
    assert named(np.random.default_rng(hosts), 60, hosts, 20, 0.005, 0.04, 0.005) >= 0.8


def test_a_rack_is_named_where_it_is_slow_and_hardly_ever_else() -> None:
    rng = np.random.default_rng(6)
    assert groups_named(rng, TRIALS, 4, 4, 0.04, 0.0) <= 0.05 + CHANCE
    assert groups_named(rng, 60, 4, 4, 0.02, 0.2) >= 0.8


def test_the_interval_holds_the_true_excess() -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(TRIALS):
        times = simulated(rng, 4, 20, 0.04)
        times[2] *= 1.4
        found = slowest(times)
        inside += found.position == 2 and found.low <= 0.4 * BUSY_US <= found.high
    assert inside >= 0.9 * TRIALS
