"""What a comparison could have detected, and how many captures would detect a given change."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.calibration import claim_share, simulated
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.spread import Spread
from tfcompare.compare.stats.verdict import Sensitivity

SPREAD = 0.03
STEPS = 20


def captures(rng: np.random.Generator, count: int) -> list[Times]:
    return list(map(Times.of, simulated(rng, (count, STEPS), 0.3, 0.05, SPREAD)))


def test_the_suggested_number_of_captures_detects_the_change_with_80_percent_power() -> None:
    rng = np.random.default_rng(4)
    found = ChangeTest(Spread(SPREAD, "set"))(captures(rng, 1), captures(rng, 1)).sensitivity
    assert found is not None
    count = found.captures_for(0.05)
    assert count is not None and 5 <= count <= 12
    power = claim_share(rng, 1_000, (STEPS, 0.3, 0.05, SPREAD), change=0.05, repeats=count)
    assert power == pytest.approx(0.8, abs=0.1)


def test_the_smallest_detectable_change_is_detected_in_about_80_percent() -> None:
    rng = np.random.default_rng(5)
    found = ChangeTest(Spread(SPREAD, "set"))(captures(rng, 1), captures(rng, 1)).sensitivity
    assert found is not None
    power = claim_share(rng, 2_000, (STEPS, 0.3, 0.05, SPREAD), change=found.smallest_change)
    assert power == pytest.approx(0.8, abs=0.15)


def test_swapped_sides_can_detect_the_same() -> None:
    rng = np.random.default_rng(6)
    ours, theirs = captures(rng, 1), captures(rng, 3)
    forth, back = (ChangeTest(Spread(SPREAD, "set"))(*s).sensitivity for s in ((ours, theirs), (theirs, ours)))
    assert forth is not None and back is not None
    assert forth.captures == back.captures[::-1]
    assert forth.smallest_change == pytest.approx(back.smallest_change)


@pytest.mark.parametrize(
    ("found", "summary", "advice"),
    [
        (
            Sensitivity((1, 1), 20, 0.1, 0.21),
            "1 capture per side; smallest detectable change: 21 %",
            "Detecting a change of 5 % takes about 67 captures of 20 steps per side (80 % power, assumed variation).",
        ),
        (
            Sensitivity((3, 1), 9, 0.5, 1e5),
            "3 and 1 captures; smallest detectable change: more than 1,000 %",
            "Detecting a change of 5 % takes more than 100 captures of 9 steps per side "
            "(80 % power, assumed variation).",
        ),
        (
            Sensitivity((5, 5), 20, 0.6, 2.4),
            "5 captures per side; smallest detectable change: 240 %",
            "Detecting a change of 5 % takes more than 100 captures of 20 steps per side "
            "(80 % power, measured variation).",
        ),
        (
            Sensitivity((5, 5), 20, 0.02, 0.04),
            "5 captures per side; smallest detectable change: 4 %",
            "Detecting a change of 5 % takes about 5 captures of 20 steps per side (80 % power, measured variation).",
        ),
    ],
)
def test_in_words(found: Sensitivity, summary: str, advice: str) -> None:
    assert (found.summary(), found.how_to_detect()) == (summary, advice)
