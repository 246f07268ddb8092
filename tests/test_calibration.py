"""Verdicts keep what docs/verdicts.md promises: a short run of benchmarks/calibration.py, the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import calibration
from tests.laws import mostly_thorough

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


def test_the_page_holds_figures_of_the_whole_run() -> None:
    page = calibration.PAGE.read_text(encoding="utf-8")
    assert "10,000 trials a cell" in page
