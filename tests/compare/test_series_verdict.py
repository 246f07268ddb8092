"""Verdicts on two series or on many rows, the changes that they could have shown, and change points of one series."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.calibration import claim_share, simulated
from tfcompare.compare.stats.change_points import FEWEST_RUNS, change_points, change_points_of_family
from tfcompare.compare.stats.change_test import ChangeTest, rows_without_interval, with_speeds
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.step_series import step_series
from tfcompare.compare.stats.verdict import BESIDE_DEVICES, OF_HOSTS, UNDER_LOAD, Sensitivity, Spread, declared_spread
from tfcompare.tables.step_times import StepCells

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
        r"95 % confidence interval of the ratio between captures 0\.\d+×–1\.\d+×, from 20 steps per run\. "
        r"(Neighbouring steps resemble each other, so 20 steps count as [\d.]+ independent ones\. )?"
        r"Run-to-run variation is assumed to be 5 % \(CPU default\)",
        verdict.reason,
    )


def test_tests_made_together_have_joint_intervals() -> None:
    sides = [Times.of(np.full(20, 100.0))], [Times.of(np.full(20, 107.0))]
    alone = ChangeTest(Spread(0.02, "set for this test", is_known=True))
    of_two = replace(alone, family=2)
    for test, deviations in ((alone, 1.960), (of_two, 2.241)):  # of a normal distribution: 2.5 % or 1.25 % lie above
        found, level = test(*sides), test.level(sides[1])
        assert np.log(found.high / found.ratio) == pytest.approx(deviations * 0.02 * np.sqrt(2), rel=1e-3)
        assert np.log(level.high / level.value) == pytest.approx(deviations * 0.02, rel=1e-3)
    one, two = alone(*sides), of_two(*sides)
    assert (one.word, two.word) == ("slower", "unclear")
    assert "(joint for 2 tests)" in two.reason and "joint" not in one.reason
    assert one.sensitivity and two.sensitivity
    assert one.sensitivity.smallest_change < two.sensitivity.smallest_change
    assert (one.sensitivity.captures_for(0.02), two.sensitivity.captures_for(0.02)) == (18, 21)


def test_an_assumed_variation_has_heavy_tails() -> None:
    sides = [Times.of(np.full(20, 100.0))], [Times.of(np.full(20, 107.0))]
    found, known = (
        ChangeTest(Spread(0.02, "set for this test", is_known=is_known))(*sides) for is_known in (False, True)
    )
    assert np.log(found.high / found.ratio) == pytest.approx(2.306 * 0.02 * np.sqrt(2), rel=1e-3)  # t, 8 degrees
    assert known.high < found.high


def test_strong_correlation_is_mentioned() -> None:
    drifting = 100.0 * np.exp(np.linspace(0, 0.2, 20))
    verdict = ChangeTest(QUIET)([Times.of(drifting)], [Times.of(drifting[::-1])])
    assert "Neighbouring steps resemble each other, so 20 steps count as 1.6 independent ones. " in verdict.reason


def test_under_load_the_assumed_spread_is_wider() -> None:
    busy = declared_spread("CPU").under_load()
    assert busy.of(np.array(300_000.0)) == pytest.approx(math.hypot(0.05, UNDER_LOAD))
    assert busy.assumed(300_000.0) == "assumed to be 50 % (CPU default, widened for captures under load)"


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
    assert "from 100 steps per side. " in measured.reason
    assert "un-to-run variation is measured: " in measured.reason
    mixed = ChangeTest(declared_spread("TPU"))(ours, [series(200.0)])
    assert mixed.evidence == "single"
    assert "from 100 and 20 steps. " in mixed.reason
    assert "that of the other side is assumed to be 2 % (TPU default)" in mixed.reason


def test_of_two_kinds_of_devices_the_larger_spread_counts() -> None:
    assert declared_spread("TPU", "CPU") == OF_HOSTS
    assert declared_spread("abacus") == declared_spread("CPU")


def test_what_takes_shorter_on_a_host_is_spread_wider_down_to_what_was_measured() -> None:
    cpu, times = declared_spread("CPU"), np.array([1e6, 200_000.0, 12_500.0, 100.0, 1.0])
    assert cpu.of(times) == pytest.approx([0.05, 0.05, 0.1, 0.05 * 2000**0.25, 0.05 * 2000**0.25])
    assert declared_spread("GPU").of(times) == pytest.approx([0.03, 0.03, 0.03, 0.06, 0.03 * 80**0.5])
    assert declared_spread("TPU").of(times) == pytest.approx([0.02] * 5)
    assert cpu.assumed(12_500.0, 300_000.0) == "assumed to be 10 % and 5 % (CPU default for times this short)"


def test_a_step_varies_as_what_devices_and_the_rest_take_of_it() -> None:
    gpu, step_us = declared_spread("GPU"), np.array(10_000.0)
    assert BESIDE_DEVICES.beside(gpu, 0.0) == BESIDE_DEVICES
    assert BESIDE_DEVICES.beside(gpu, 1.0).of(step_us) == pytest.approx(0.03)
    half = BESIDE_DEVICES.beside(gpu, 0.5)
    on_host = 0.05 * (200 / 6) ** 0.25  # as work of 6 ms: 5 ms are not more uncertain
    assert half.of(step_us) == pytest.approx(math.hypot(0.5 * on_host, 0.5 * 0.03))
    loaded = BESIDE_DEVICES.under_load().beside(gpu, 0.5)
    assert loaded.of(step_us) == pytest.approx(
        math.hypot(0.5 * math.hypot(on_host, UNDER_LOAD * (20 / 6) ** 0.25), 0.5 * 0.03)
    ), "a device is not slower"
    assert half.assumed(10_000.0) == "assumed to be 6.2 % (50 % of the step is not on a device)"


def at_two_speeds(steps: int, first: int, ratio: float, noise: float = 0.005) -> Times:
    """The first steps at one speed, the others at another."""
    speed = np.where(np.arange(steps) < first, 1.0, ratio)
    return Times.of(1000 * speed * np.exp(np.random.default_rng(1).normal(0, noise, steps)))


@pytest.mark.parametrize(
    ("times", "runs"),
    [
        (at_two_speeds(12, 5, 1.2), 2),
        (at_two_speeds(20, 17, 1.1), 2),
        (at_two_speeds(20, 10, 1.02), 1),
        (at_two_speeds(20, 10, 2.0), 1),
        (at_two_speeds(20, 20, 1.0, noise=0.1), 1),
        (Times.of(np.tile([1000.0, 1200.0], 10)), 1),
        (Times.of(np.repeat([1000.0, 1200.0, 1000.0, 1200.0], 5)), 4),
    ],
)
def test_runs_of_steps_at_two_speeds_are_told_from_chance_slow_steps_and_steps_that_alternate(
    times: Times, runs: int
) -> None:
    found = with_speeds(times).speeds
    assert (1 if found is None else found[0]) == runs


def test_a_clock_that_changed_within_a_capture_is_no_change_of_the_program() -> None:
    test, even, mixed = ChangeTest(declared_spread("GPU")), at_two_speeds(20, 20, 1.0), at_two_speeds(20, 3, 1.2)
    (there, back) = test([even], [mixed]), test([mixed], [even])
    assert (there.word, there.ratio) == ("unclear", pytest.approx(1.17, abs=0.01))
    assert there.low == pytest.approx(1 / back.high)
    assert test([even], [Times(even.included * 1.17)]).word == "slower"
    assert test([mixed], [Times(mixed.included * 2)]).word == "slower", "a large change is certain all the same"


def test_a_clock_is_looked_for_in_what_ops_of_a_device_take_together() -> None:
    one_op = np.vstack([at_two_speeds(20, 10, 1.3).included, np.full((9, 20), 1000.0)])
    of_all = np.tile(at_two_speeds(20, 10, 1.3).included, (4, 1))
    both = Times(np.vstack([one_op, of_all]))
    device = np.arange(14) >= 10
    assert with_speeds(both, [device, ~device]).speeds.tolist() == [1] * 10 + [2] * 4


MEASURED = 0.03
COUNT = 20


def captures(rng: np.random.Generator, count: int) -> list[Times]:
    return list(map(Times.of, simulated(rng, (count, COUNT), 0.3, 0.05, MEASURED)))


def test_the_suggested_number_of_captures_detects_the_change_with_80_percent_power() -> None:
    rng = np.random.default_rng(4)
    found = ChangeTest(Spread(MEASURED, "set"))(captures(rng, 1), captures(rng, 1)).sensitivity
    assert found is not None
    count = found.captures_for(0.05)
    assert count is not None and 5 <= count <= 12
    power = claim_share(rng, 400, (COUNT, 0.3, 0.05, MEASURED), change=0.05, repeats=count)
    assert power == pytest.approx(0.8, abs=0.1)


def test_the_smallest_detectable_change_is_detected_in_about_80_percent() -> None:
    rng = np.random.default_rng(5)
    found = ChangeTest(Spread(MEASURED, "set"))(captures(rng, 1), captures(rng, 1)).sensitivity
    assert found is not None
    power = claim_share(rng, 400, (COUNT, 0.3, 0.05, MEASURED), change=found.smallest_change)
    assert power == pytest.approx(0.8, abs=0.15)


def test_swapped_sides_can_detect_the_same() -> None:
    rng = np.random.default_rng(6)
    ours, theirs = captures(rng, 1), captures(rng, 3)
    forth, back = (ChangeTest(Spread(MEASURED, "set"))(*s).sensitivity for s in ((ours, theirs), (theirs, ours)))
    assert forth is not None and back is not None
    assert forth.captures == back.captures[::-1]
    assert forth.smallest_change == pytest.approx(back.smallest_change)


@pytest.mark.parametrize(
    ("found", "summary", "advice"),
    [
        (
            Sensitivity((1, 1), 20, 0.1, 0.21),
            "1 capture per side; smallest detectable change: 21 %",
            "about 67 captures of 20 steps per side (80 % power, assumed variation)",
        ),
        (
            Sensitivity((3, 1), 9, 0.5, 1e5),
            "3 and 1 captures; smallest detectable change: more than 1,000 %",
            "more than 100 captures of 9 steps per side (80 % power, assumed variation)",
        ),
        (
            Sensitivity((5, 5), 20, 0.02, 0.04),
            "5 captures per side; smallest detectable change: 4 %",
            "about 5 captures of 20 steps per side (80 % power, measured variation)",
        ),
    ],
)
def test_in_words(found: Sensitivity, summary: str, advice: str) -> None:
    assert (found.summary(), found.how_to_detect()) == (summary, f"Detecting a change of 5 % takes {advice}")


# --- rows

CELLS = StepCells(
    pd.DataFrame({"host": "all", "op_name": ["a", "b", "b"]}),
    pd.DataFrame({"row": [0, 0, 1, 2, 2], "step": [7, 9, 7, 7, 8], "occurrences": 1, "time_us": [1.0, 2, 10, 20, 30]}),
)


def many(*rows: tuple[float, float], steps: int = 20, seed: int = 5):
    """Rows of (mean, noise as a share)."""
    rng = np.random.default_rng(seed)
    return Times(np.array([mean * np.exp(noise * rng.standard_normal(steps)) for mean, noise in rows]))


def with_spread(share: float) -> ChangeTest:
    return ChangeTest(Spread(share, "declared for this test"))


def test_a_row_is_laid_out_over_the_steps_that_count_and_rows_of_one_name_add_up() -> None:
    found = step_series(pd.DataFrame({"op_name": ["b", "a", "c"]}), CELLS, np.array([9, 7]))
    assert found.tolist() == [[0, 30], [2, 1], [0, 0]]
    assert step_series(pd.DataFrame({"op_name": ["a"]}), CELLS, np.array([], np.int64)).shape == (1, 0)


def test_rows_have_a_verdict_and_an_interval_around_the_change_of_their_mean() -> None:
    before, after = many((100.0, 0.02), (100.0, 0.02), (0.1, 0.02)), many((50.0, 0.02), (100.0, 0.3), (9.0, 0.02))
    found = with_spread(0.01).rows([before], [after])
    assert found["verdict"].tolist() == ["faster", "unclear", "slower"]
    ratio = after.included.mean(axis=1) / before.included.mean(axis=1)
    assert (found["interval_low"] < ratio).all()
    assert (ratio < found["interval_high"]).all()


def test_small_rows_and_rows_of_one_side_are_not_tested() -> None:
    before, after = many((100.0, 0.02), (0.1, 0.02), (0.0, 0.0)), many((50.0, 0.02), (0.2, 0.02), (40.0, 0.02))
    found = with_spread(0.01).rows([before], [after])
    assert found["verdict"].tolist() == ["faster", "untested", "untested"]
    assert found["interval_low"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize("steps", [0, 8])
def test_too_few_steps_test_nothing(steps: int) -> None:
    found = with_spread(0.01).rows([many((100.0, 0.02), steps=steps)], [many((50.0, 0.02))])
    assert found["verdict"].tolist() == ["untested"]


def test_one_chance_claim_among_many_is_taken_back() -> None:
    """A row whose own interval is clear of 1, but not clear enough to be the only one of a hundred."""
    quiet, again = many(*[(1.0, 0.1)] * 100), many(*[(1.0, 0.1)] * 100, seed=6)
    for factor in np.arange(1.0, 1.5, 0.005):
        moved = Times(np.vstack([again.included[:1] * factor, again.included[1:]]))
        if with_spread(0.0).rows([quiet.rows([0])], [moved.rows([0])])["verdict"][0] == "slower":
            break
    among = with_spread(0.0).rows([quiet], [moved])
    assert among["verdict"][0] == "unclear"
    assert among["interval_low"][0] > 1


def test_each_row_has_the_spread_of_where_it_runs_and_how_long_it_takes() -> None:
    before, after = many((1e6, 0.01), (1e6, 0.01), (2e4, 0.01)), many((1.3e6, 0.01), (1.3e6, 0.01), (2.4e4, 0.01))
    found = with_spread(0.01).rows([before], [after], spreads=[Spread(0.01, "a device"), OF_HOSTS, OF_HOSTS])
    assert found["verdict"].tolist() == ["slower", "slower", "unclear"]
    width = found["interval_high"] / found["interval_low"]
    assert width[0] < width[1] < width[2]


def test_copies_of_one_recording_are_the_same() -> None:
    assert rows_without_interval(2, "same")["verdict"].tolist() == ["same", "same"]


def noisy(levels: list[tuple[int, float]], noise: float = 0.03, seed: int = 0) -> np.ndarray:
    """So many runs at each level."""
    values = np.concatenate([np.full(runs, level) for runs, level in levels])
    return values * np.exp(noise * np.random.default_rng(seed).standard_normal(len(values)))


def test_a_step_is_found_where_it_is_with_its_size() -> None:
    (point,) = change_points(noisy([(40, 10.0), (20, 12.0)]))
    assert (point.at, point.first, point.end) == (40, 0, 60)
    assert point.low < 1.2 < point.high
    assert point.high / point.low < 1.06
    assert point.p < 1e-6


def test_a_regression_that_was_reverted_has_two_change_points() -> None:
    points = change_points(noisy([(40, 10.0), (10, 12.0), (50, 10.0)]))
    assert [point.at for point in points] == [40, 50]
    assert points[0].ratio > 1 > points[1].ratio
    assert (points[0].end, points[1].first) == (50, 40)
    several = change_points(noisy([(20, 10.0), (20, 12.0), (20, 9.0), (20, 15.0)]))
    assert [point.at for point in several] == [20, 40, 60]


def test_scale_and_order_do_not_matter() -> None:
    values = noisy([(30, 10.0), (30, 12.0)])
    (point,), (larger,), (backwards,) = (change_points(v) for v in (values, 1e6 * values, values[::-1]))
    assert (larger.at, larger.ratio) == (point.at, pytest.approx(point.ratio))
    assert (backwards.at, backwards.ratio) == (30, pytest.approx(1 / point.ratio))


@pytest.mark.parametrize(("strays", "factor"), [([30, 59], 5), ([28, 30, 31], 2)])
def test_strays_are_no_change(strays: list[int], factor: int) -> None:
    values = noisy([(60, 10.0)])
    values[strays] *= factor
    assert change_points(values) == []


def test_short_and_constant_series_have_none() -> None:
    assert change_points(np.array([1.0, 1, 1, 9, 9])) == []
    assert change_points(np.full(50, 3.0)) == []
    assert change_points(np.zeros(0)) == []


def test_bytes_that_never_vary_change_at_once() -> None:
    values = np.array([1e6] * 10 + [1.1e6] * 4)
    (point,) = change_points(values)
    assert (point.at, point.ratio) == (10, pytest.approx(1.1))


def test_a_family_is_tested_together() -> None:
    rows = np.array([noisy([(60, 10.0)], seed=i) for i in range(100)])
    rows[7, 30:] *= 1.2
    found = change_points_of_family(rows)
    assert [i for i, points in enumerate(found) if points] == [7]
    assert found[7][0].at == 30
    assert change_points_of_family(rows[:, : FEWEST_RUNS - 1]) == [[]] * 100
