"""The interval of a change, by its laws; the headline, the figures and the verdict are of one step time."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tests.compare.compare_runs import run, steps
from tests.laws import law
from tests.profiles import compared_runs
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.estimates import Times, changes, changes_of_family, estimates, levels, quantile_estimates
from tfcompare.compare.stats.verdict import FASTER, SAME, SLOWER, UNCLEAR, UNTESTED, claimed_together, words
from tfcompare.comparison import compare
from tfcompare.units import format_time_us
from tfcompare.views.candidates.figures import runs_table

RNG = np.random.default_rng(7)


def rows(*values):
    return np.array(values, dtype=np.float64)


def plain_sides(values):
    return estimates(Times(values))


def test_uncorrelated_steps_and_a_known_spread_by_hand():
    """Alternating steps have no positive correlation, so that every step counts in full, but for the caution."""
    ours, theirs = rows([0.9, 1.1] * 500), rows([1.8, 2.2] * 500)
    found = changes([plain_sides(ours)], [plain_sides(theirs)], 0.03)
    assert found.ratio[0] == pytest.approx(2.0)
    assert found.effective_steps[0][0] == 1000
    error = np.sqrt(2 * (0.1**2 / 1000 + 0.03**2))
    assert np.log(found.high[0] / found.ratio[0]) == pytest.approx(stats.norm.ppf(0.975) * error, rel=0.01)
    assert found.p[0] < 1e-9


def test_three_recordings_a_side_measure_the_spread_themselves():
    ours, theirs = ([rows([level] * 9) for level in levels] for levels in ((1.0, 1.1, 0.9), (2.0, 2.2, 1.8)))
    found = changes([plain_sides(r) for r in ours], [plain_sides(r) for r in theirs], spread=99.0)
    half = stats.t.ppf(0.975, 4) * np.sqrt(2 * np.var([1.0, 1.1, 0.9], ddof=1) / 3)
    assert (found.low[0], found.high[0]) == pytest.approx((2 * np.exp(-half), 2 * np.exp(half)))


def test_correlated_steps_say_less():
    slow_drift = rows(1 + 0.05 * np.sin(np.arange(40) / 6))
    shuffled = rows(RNG.permutation(slow_drift[0]))
    wide, narrow = (changes([plain_sides(r)], [plain_sides(r)], 0.0) for r in (slow_drift, shuffled))
    assert wide.effective_steps[0][0] < 6 < narrow.effective_steps[0][0]
    assert wide.high[0] > narrow.high[0]


def test_an_op_among_many_counts_as_correlated_as_they_are_on_average():
    drifting = 1 + 0.05 * np.sin(np.arange(40) / 6)
    values = np.vstack([np.tile(drifting, (9, 1)), RNG.permutation(drifting)])
    alone = changes([plain_sides(values)], [plain_sides(values)], 0.0)
    together = changes_of_family([plain_sides(values)], [plain_sides(values)], 0.0)
    assert together.effective_steps[0][-1] < alone.effective_steps[0][-1]
    assert together.effective_steps[0][0] == pytest.approx(alone.effective_steps[0][0])


POSITIVE = st.floats(0.1, 100.0)


@law(40)
@given(arrays(np.float64, (2, 12), elements=POSITIVE), arrays(np.float64, (2, 17), elements=POSITIVE))
def test_sides_swapped_give_the_mirror_image_and_scale_does_not_matter(ours, theirs):
    one, other = plain_sides(ours), plain_sides(theirs)
    forth, back = changes([one], [other], 0.05), changes([other], [one], 0.05)
    np.testing.assert_allclose(forth.ratio, 1 / back.ratio)
    np.testing.assert_allclose(forth.low, 1 / back.high)
    np.testing.assert_allclose(forth.p, back.p)
    scaled = changes([plain_sides(ours * 1000)], [plain_sides(theirs * 1000)], 0.05)
    np.testing.assert_allclose(scaled.low, forth.low, rtol=1e-6)
    assert (forth.low <= forth.ratio).all()
    assert (forth.ratio <= forth.high).all()


def test_steps_all_alike_leave_the_declared_spread_and_zeros_leave_nothing():
    same = changes([plain_sides(rows([5.0] * 9))], [plain_sides(rows([5.0] * 9))], 0.05)
    assert (same.ratio[0], np.log(same.high[0])) == (1.0, pytest.approx(1.96 * 0.05 * np.sqrt(2), rel=1e-3))
    known = changes([plain_sides(rows([5.0] * 9))], [plain_sides(rows([6.0] * 9))], 0.0)
    assert (known.low[0], known.high[0], known.p[0]) == (pytest.approx(1.2), pytest.approx(1.2), 0.0)
    assert changes([plain_sides(rows([5.0] * 9))], [plain_sides(rows([5.0] * 9))], 0.0).p[0] == 1.0
    with np.errstate(all="raise"):
        nothing = changes([plain_sides(rows([0.0] * 9))], [plain_sides(rows([1.0] * 9))], 0.05)
    assert np.isnan(nothing.low[0]) or not np.isfinite(nothing.ratio[0])
    assert words(nothing, measured_spread=False).tolist() == [UNTESTED]


@pytest.mark.parametrize(
    ("low", "ratio", "high", "with_strays", "measured", "word"),
    [
        (1.02, 1.05, 1.08, 1.05, False, SLOWER),
        (1.005, 1.05, 1.10, 1.05, False, UNCLEAR),
        (1.012, 1.018, 1.024, 1.018, False, UNCLEAR),
        (1.012, 1.018, 1.024, 1.018, True, SLOWER),
        (0.92, 0.95, 0.98, 0.95, False, FASTER),
        (0.99, 1.0, 1.01, 1.0, False, SAME),
        (0.97, 1.0, 1.01, 1.0, False, UNCLEAR),
        (np.nan, 1.0, np.nan, 1.0, False, UNTESTED),
        # A claim holds with strays counted, too.
        (0.79, 0.8, 0.81, 0.7, True, FASTER),
        (0.79, 0.8, 0.81, 1.1, True, UNCLEAR),
        (1.29, 1.3, 1.31, 1.4, True, SLOWER),
        (1.29, 1.3, 1.31, 0.9, True, UNCLEAR),
        (0.99, 1.0, 1.01, 1.3, True, SAME),
    ],
)
def test_the_word_follows_the_interval(low, ratio, high, with_strays, measured, word):
    found = SimpleNamespace(low=rows(low), ratio=rows(ratio), high=rows(high), ratio_with_strays=rows(with_strays))
    assert words(found, measured_spread=measured).tolist() == [word]


def test_claims_are_held_against_one_another():
    assert claimed_together(rows(0.01, 0.02, 0.03, np.nan, 0.9)).tolist() == [False] * 5
    assert claimed_together(rows(0.001, 0.015, 0.9, 0.9, 0.9)).tolist() == [True, True, False, False, False]
    assert claimed_together(rows()).tolist() == []


def test_one_side_alone_has_the_spread_of_one_recording():
    found = levels([plain_sides(rows([1.8, 2.2] * 500, [0.0] * 1000))], 0.03)
    error = np.sqrt(0.1**2 / 1000 + 0.03**2)
    half = stats.norm.ppf(0.975) * error
    assert found.location.tolist() == [pytest.approx(2.0), 0.0]
    assert np.log(found.high[0] / 2) == pytest.approx(half, rel=0.01)
    assert np.log(found.low[0] / 2) == pytest.approx(-half, rel=0.01)
    assert np.isnan([found.low[1], found.high[1]]).all(), "of what is 0 there is no logarithm"


def test_the_interval_of_equal_steps_has_their_time_in_it() -> None:
    times = np.linspace(0.1, 300, 1000)
    found = levels([plain_sides(np.repeat(times[:, np.newaxis], 20, axis=1))], 0.0)
    assert (found.low <= found.location).all() and (found.location <= found.high).all()
    np.testing.assert_allclose([found.low, found.high], [times, times])


def test_a_mean_that_one_step_makes_up_is_not_sure_of_anything() -> None:
    usual = 0.5 * np.exp(0.05 * np.random.default_rng(8).standard_normal((1, 20)))
    spike = usual.copy()
    spike[0, 7] = 2_500.0
    once = np.zeros((1, 20))
    once[0, 3] = 10.0
    for odd in (spike, once):
        found = changes([plain_sides(usual)], [plain_sides(odd)], 0.05)
        assert found.low[0] < 1 < found.high[0]
    by_steps = np.var(usual / usual.mean(), ddof=1)
    assert plain_sides(usual).variance[0] == pytest.approx(by_steps, rel=0.05)


CALM = [1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 1.0]


def test_a_stray_leaves_the_estimate_alone_and_widens_it_where_the_other_side_has_slow_steps() -> None:
    alone, stray = estimates(Times(rows(CALM))), estimates(Times(rows(CALM), rows(10.0)[0]))
    assert (stray.location[0], stray.slow[0]) == (pytest.approx(1.0), 1)
    against_calm = changes([alone], [stray], 0.0)
    assert (against_calm.ratio[0], against_calm.high[0]) == pytest.approx((1.0, changes([alone], [alone], 0.0).high[0]))
    slow = plain_sides(rows([*CALM, 10.0, 10.0]))
    against_slow, without = changes([slow], [stray], 0.0), changes([slow], [alone], 0.0)
    assert against_slow.ratio[0] == without.ratio[0], "point estimates never depend on the partner"
    assert against_slow.error[0] > without.error[0]


def test_few_slow_steps_leave_few_degrees_of_freedom() -> None:
    calm, two, four = (plain_sides(rows([*CALM, *CALM, *[10.0] * slow])) for slow in (0, 2, 4))
    assert changes([calm], [two], 0.0).freedom[0] == pytest.approx(2.0, abs=0.01)
    assert changes([calm], [four], 0.0).freedom[0] == pytest.approx(3.0, abs=0.03)
    assert 1.9 <= changes([two], [four], 0.0).freedom[0] <= 4.01, "those of the smaller number, on both sides"
    assert changes([calm], [two], 0.2).freedom[0] > 2, "an assumed spread counts as known"


def test_noise_is_not_slow() -> None:
    noisy = np.exp(0.4 * RNG.standard_normal((1, 200)))
    assert (noisy > 1.5 * np.median(noisy)).sum() > 10
    assert plain_sides(noisy).slow[0] == 0


def test_a_quantile_has_the_interval_of_its_rank() -> None:
    steps = np.arange(1.0, 401.0)[np.newaxis]
    middle = quantile_estimates(Times(RNG.permutation(steps[0])[np.newaxis]), 0.5)
    assert middle.location[0] == 200.5
    assert np.sqrt(middle.variance[0] / 400) == pytest.approx(10 / 200.5, rel=0.02), "√(400 · ½ · ½) ranks"
    assert quantile_estimates(Times(steps), 0.95).location[0] == pytest.approx(381, abs=1)


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
    ("gpu_filters_512_128", "gpu_filters_16_8"),
    ("h100_store_activations", "h100_recompute_activations"),
    ("workers_balanced", "workers_slow_input"),
    pytest.param("jax_filters_16_8", "jax_filters_128_32", marks=pytest.mark.thorough),
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
