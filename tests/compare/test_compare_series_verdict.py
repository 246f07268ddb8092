"""The word on two series, and what it says it rests on."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.spread import DECLARED_SPREAD, Spread, declared_spread

RNG = np.random.default_rng(3)
QUIET = Spread(0.0, "set for this test")


def series(mean: float, steps: int = 20, noise: float = 0.02):
    return Times.of(mean * np.exp(noise * RNG.standard_normal(steps)))


def test_a_large_change_is_called_and_its_mirror_image_is_the_other_word() -> None:
    before, after = [series(100.0)], [series(50.0)]
    forth, back = (ChangeTest(QUIET)(*sides) for sides in ((before, after), (after, before)))
    assert (forth.word, back.word) == ("faster", "slower")
    assert forth.low < 0.5 < forth.high
    assert (forth.low, forth.high) == pytest.approx((1 / back.high, 1 / back.low))


def test_what_the_declared_spread_can_explain_is_unclear() -> None:
    before, after = [series(300_000.0)], [series(324_000.0)]
    assert ChangeTest(QUIET)(before, after).word == "slower"
    verdict = ChangeTest(declared_spread("CPU"))(before, after)
    assert verdict.word == "unclear"
    assert re.fullmatch(
        r"95 % confidence interval of the ratio 0\.\d+×–1\.\d+×, from 20 steps per run\. "
        r"(The 20 steps carry the information of [\d.]+\. )?"
        r"Run-to-run variation is assumed to be 5 % \(CPU default\)",
        verdict.reason,
    )


def test_strong_correlation_is_mentioned() -> None:
    drifting = 100.0 * np.exp(np.linspace(0, 0.2, 20))
    verdict = ChangeTest(QUIET)([Times.of(drifting)], [Times.of(drifting[::-1])])
    assert "The 20 steps carry the information of 1.6. " in verdict.reason


def test_under_load_the_assumed_spread_is_wider() -> None:
    busy = declared_spread("CPU").under_load()
    assert busy.share == pytest.approx(0.25)
    assert busy.assumed(300_000.0) == "assumed to be 25 % (CPU default, widened for captures under load)"


def test_little_noise_and_no_spread_can_show_that_nothing_changed() -> None:
    one = series(100.0, 60, 0.005)
    assert ChangeTest(QUIET)([one], [one]).word == "same"


@pytest.mark.parametrize("steps", [0, 1, 8])
def test_too_few_steps_are_said_in_words(steps: int) -> None:
    verdict = ChangeTest(QUIET)([series(100.0, steps)], [series(50.0)])
    assert (verdict.word, verdict.has_interval) == ("untested", False)
    assert verdict.reason == f"too few steps: {steps}; a verdict needs 9 on each side"


def test_a_side_of_zeros_is_not_judged() -> None:
    assert ChangeTest(QUIET)([Times.of(np.zeros(20))], [series(1.0)]).word == "untested"


def test_recordings_of_one_program_measure_their_spread() -> None:
    ours, theirs = ([series(mean * f) for f in (0.99, 1.0, 1.01, 1.0, 1.0)] for mean in (100.0, 105.0))
    measured = ChangeTest(Spread(0.5, "declared far too large"))(ours, theirs)
    assert measured.word == "slower"
    assert (measured.evidence, measured.text) == ("replicates", "slower")
    assert "from 100 and 100 steps (5 captures each). " in measured.reason
    assert "un-to-run variation is measured: " in measured.reason
    mixed = ChangeTest(declared_spread("GPU"))(ours, [series(200.0)])
    assert mixed.evidence == "single"
    assert "from 100 and 20 steps (5 and 1 captures)" in mixed.reason
    assert "that of the other side is assumed to be 3 % (GPU default)" in mixed.reason


def test_of_two_kinds_of_devices_the_larger_spread_counts() -> None:
    assert declared_spread("TPU", "CPU") == DECLARED_SPREAD["CPU"]
    assert declared_spread("abacus") == declared_spread("CPU")


def test_what_takes_shorter_on_a_host_is_spread_wider_down_to_what_was_measured() -> None:
    cpu, times = declared_spread("CPU"), np.array([1e6, 200_000.0, 12_500.0, 100.0, 1.0])
    assert cpu.of(times) == pytest.approx([0.05, 0.05, 0.1, 0.05 * 2000**0.25, 0.05 * 2000**0.25])
    assert declared_spread("GPU").of(times) == pytest.approx([0.03] * 5)
    assert cpu.assumed(12_500.0, 300_000.0) == "assumed to be 10 % and 5 % (CPU default for steps this short)"
