"""Estimates the change between two captures, with a confidence interval.

A series holds one value per step: the step time, or the time of an op in each step. The change is the ratio of the
means of two series. Its confidence interval covers three kinds of uncertainty:

- *Within a capture*: the variance of the steps divided by the effective sample size. Neighbouring steps are correlated.
  Their lag-1 correlation is estimated from both sides together, corrected for its downward bias in short series, and
  increased by a multiple of its standard error (`_CAUTION`).
- *Between captures*: two captures of one program differ by more than the variance of their steps suggests. The
  variation between captures is therefore included for each side: measured if the side has `FEWEST_REPEATS` or more
  captures, else assumed.
- *Speeds*: where a device ran at two speeds, each for some steps on end, a run of these tells no more than one step,
  and what ran at one speed meanwhile may as well run at two.
- *Slow steps*: a mean of which a few slow steps make up much is as uncertain as their number. A stray is excluded from
  the mean, but if both sides have slow steps, it belongs to a population, and the standard error is the larger of those
  with and without it. Where the variation between captures is assumed, the degrees of freedom of that of the steps are
  limited by the number of slow steps.

`docs/verdicts.md` shows how often the intervals contain the true change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tfcompare.schema.arrays import Bools, Floats
from tfcompare.tables.slow_steps import is_slow

Declared = float | Callable[[Floats], Floats]
"""The standard deviation of the logarithm between captures of one program: a value that is known, or a function that
assumes one for each row from its mean, with the tails of `TAILS`."""

LEVEL = 0.95
FEWEST_STEPS = 9
"""The fewest for which simulated false claims stay below 5 % (`docs/verdicts.md`): with fewer, the correlation of steps
cannot be told from chance."""
FEWEST_REPEATS = 3
"""With at least this many captures per side, the variation between captures is measured: of two, their difference is
all that is known of it."""
FEWEST_REPLICATES = 5
"""With at least this many captures per side, false claims stay below 5 % even under load (`docs/verdicts.md`)."""
POWER = 0.8
"""The usual chance with which a trial is to find an effect of the size that it was planned for."""

STEP_TIME = "Step time: the mean of the included steps. The verdict and its interval are on the same figure."
"""The definition of the step time, as shown on pages."""

_CAUTION = (0.45, 2.2)
"""How many standard errors are added to the correlation: the first value plus the second ÷ the number of steps. Short
series hide their correlation; with these, false claims stay below 5 % in simulations from nine steps on
(`benchmarks/calibration.py`)."""
_MOST_CORRELATION = 0.85
"""Twelve steps then count as one; the simulated programs reach 0.6."""
_LEAST_FREEDOM = 2.0
"""For one degree, an interval is so wide that two slow steps hide any change; two keep false claims below 5 % as well
(`docs/verdicts.md`), three do not."""
_FEWEST_EFFECTIVE = 1.5
"""However correlated, several steps are worth more than one; at one, a variance could not be estimated at all."""
TAILS = 4.0
"""The degrees of freedom that an assumed variation between captures has for each capture: as if it was that of five.
Its tails are heavy: on H100s, one op in some hundred differs by ten times as much as most."""
_ROUNDING = 1e-12
_LEAST_OF_THE_REST = 1e-6
"""Minimum share of the mean assumed for the other steps if one step makes up all of it: log 0 is undefined."""


@dataclass(frozen=True, eq=False)
class Times:
    """The times of one capture, one series per row: `included` (rows, steps), in order, and those of the step that is
    excluded as a stray: `stray` (rows), None if there is none. `speeds` (rows): how many runs of steps at one speed
    there are, as a device has whose clock changes; None if that was not looked for."""

    included: Floats
    stray: Floats | None = None
    speeds: Floats | None = None

    @classmethod
    def of(cls, series: Floats, stray: float | None = None) -> Times:
        """The times of a single row."""
        return cls(series[np.newaxis], None if stray is None else np.array([stray]))

    @property
    def every(self) -> Floats:
        """The included steps and the stray."""
        return self.included if self.stray is None else np.column_stack([self.included, self.stray])

    @property
    def steps(self) -> int:
        """The number of steps that count towards those that a verdict needs: the stray does."""
        return int(self.included.shape[1]) + (self.stray is not None)

    def rows(self, chosen: npt.NDArray[np.intp]) -> Times:
        """The series of some of the rows."""
        stray, speeds = (None if of is None else of[chosen] for of in (self.stray, self.speeds))
        return Times(self.included[chosen], stray, speeds)

    def in_steps(self, chosen: Bools) -> Times:
        """The series in some of the steps, given for the included ones, in order, then for the stray."""
        included = self.included[:, chosen[: self.included.shape[1]]]
        return Times(included, self.stray if self.stray is not None and chosen[-1] else None)


def are_above_zero(side: Sequence[Times]) -> bool:
    """Whether any time of any capture of a side is above 0."""
    return any((times.every > 0).any() for times in side)


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimates of each row of one capture, one series per row.

    `location`: the mean; `variance`: the steps' variance relative to the squared mean; `products`: the raw lag-1
    correlation, which is the sum of products of neighbouring deviations ÷ the sum of squared deviations; `slow`: the
    number of slow steps, the stray included; `most_effective`: the largest effective sample size; `with_stray`: the
    estimates with the stray, None without one.
    """

    location: Floats
    variance: Floats
    products: Floats
    steps: int
    slow: Floats
    most_effective: Floats
    with_stray: Estimates | None = None


@dataclass(frozen=True, eq=False)
class Changes:
    """The estimated change of each row, candidate ÷ baseline.

    `ratio`; `low` and `high`, its confidence interval at `level`; `p`, the two-sided p-value of no change;
    `effective_steps`, the effective sample sizes of the two sides; `error` and `freedom`, the standard error of the
    logarithm of the ratio and its degrees of freedom; `ratio_with_strays`, the ratio if strays are counted;
    `capture_spread`, the standard deviation of the logarithm of one
    capture's mean, averaged over both sides.
    """

    ratio: Floats
    low: Floats
    high: Floats
    p: Floats
    effective_steps: tuple[Floats, Floats]
    error: Floats
    freedom: Floats
    ratio_with_strays: Floats
    capture_spread: Floats
    level: float = LEVEL


@dataclass(frozen=True, eq=False)
class Levels:
    """The mean of each row, `location`, and its confidence interval `low` to `high`.

    `error` and `freedom` are the standard error of its logarithm and its degrees of freedom; `with_strays` is the mean
    if strays are counted.
    """

    location: Floats
    low: Floats
    high: Floats
    error: Floats
    freedom: Floats
    with_strays: Floats


def estimates(times: Times) -> Estimates:
    """The estimates of the rows of one capture."""
    slow = is_slow(times.every).sum(axis=1).astype(np.float64)
    with_stray = None if times.stray is None else _row_moments(times.every, slow, times.speeds)
    return _row_moments(times.included, slow, times.speeds, with_stray)


def quantile_estimates(times: Times, share: float) -> Estimates:
    """As `estimates`, for a quantile of the included steps, such as 0.95.

    Its standard error is half the distance between the values one standard deviation of its rank below and above it
    (Woodruff 1952).
    """
    values = times.included
    steps = values.shape[1]
    reach = np.sqrt(share * (1 - share) / max(steps, 1))
    below, location, above = (
        np.quantile(values, min(max(at, 0.0), 1.0), axis=1) for at in (share - reach, share, share + reach)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        error = (above - below) / 2 / location
    known = _row_moments(values, np.zeros(len(values)), times.speeds)
    return replace(known, location=location, variance=error**2 * steps)


def changes(
    baseline: Sequence[Estimates], candidate: Sequence[Estimates], spread: Declared, level: float = LEVEL
) -> Changes:
    """The change of each row from the baseline's captures to the candidate's, each row estimated independently.

    `spread` is the assumed standard deviation of the logarithm between captures of one program. It is used for a side
    with fewer than `FEWEST_REPEATS` captures. A row that is 0 on a side has no interval (NaN). `level` is that of the
    interval.
    """
    captures = [*baseline, *candidate]
    return _changes((baseline, candidate), _correlation(captures) + _correlation_error(captures), spread, level)


def changes_of_family(baseline: Sequence[Estimates], candidate: Sequence[Estimates], spread: Declared) -> Changes:
    """As `changes`, for rows that are tested together: the ops of a program.

    Among many rows, some correlations are greatly underestimated by chance, and exactly those rows would look
    significant. The correlation of each row is therefore at least the mean over all rows.
    """
    captures = [*baseline, *candidate]
    own = _correlation(captures)
    common = float(np.mean(own)) if own.size else 0.0
    return _changes((baseline, candidate), np.maximum(own + _correlation_error(captures), common), spread)


def levels(side: Sequence[Estimates], spread: Declared, level: float = LEVEL) -> Levels:
    """The mean of each row on one side, for comparison with a fixed value.

    For several captures it is the mean of theirs, as used by the ratios of `changes`. `spread` is the assumed
    standard deviation of the logarithm between captures of one program; it is used for fewer than `FEWEST_REPEATS`
    captures. A row that is 0 has no interval (NaN). `level` is that of the interval.
    """
    slow = _slow_in(side)
    correlation = np.clip(_correlation(side) + _correlation_error(side), 0.0, _MOST_CORRELATION)
    known = _estimate(side, correlation, spread, _most_freedom(slow, slow))
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.sqrt(np.where(np.isfinite(known.log), known.variance, np.nan))
        quantile, _ = _student(known.freedom, np.zeros_like(error), level)
        low, high = (np.exp(known.log + sign * quantile * error) for sign in (-1, 1))
        location = _location(side)
    # of equal values, the interval is one number, which rounding must not move off the location
    low, high = np.minimum(low, location), np.maximum(high, location)
    with_strays = _location([capture.with_stray or capture for capture in side])
    return Levels(location, low, high, error, known.freedom, with_strays)


def _changes(
    sides: tuple[Sequence[Estimates], Sequence[Estimates]],
    correlation: Floats,
    spread: Declared,
    level: float = LEVEL,
) -> Changes:
    sides = _at_all_speeds(sides)
    correlation = np.clip(correlation, 0.0, _MOST_CORRELATION)
    slow = [_slow_in(side) for side in sides]
    is_population, most_freedom = (slow[0] > 0) & (slow[1] > 0), _most_freedom(*slow)
    ours, theirs = (_with_strays(side, correlation, spread, most_freedom, is_population) for side in sides)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = theirs.log - ours.log
        variance = np.where(np.isfinite(difference), ours.variance + theirs.variance, np.nan)
        freedom = variance**2 / (ours.variance**2 / ours.freedom + theirs.variance**2 / theirs.freedom)
        freedom = np.where(variance > 0, freedom, np.inf)
        error = np.sqrt(variance)
        quantile, p = _student(freedom, difference / error, level)
        low, high = (np.exp(difference + sign * quantile * error) for sign in (-1, 1))
        ratio = np.exp(difference)
        with_strays = np.exp(_log_with_strays(sides[1]) - _log_with_strays(sides[0]))
        capture_spread = np.sqrt((ours.variance * len(sides[0]) + theirs.variance * len(sides[1])) / 2)
    p = np.where(variance > 0, p, np.where(np.isnan(variance), np.nan, (difference == 0) * 1.0))
    effective_steps = (ours.effective_steps, theirs.effective_steps)
    return Changes(ratio, low, high, p, effective_steps, error, freedom, with_strays, capture_spread, level)


def _at_all_speeds(
    sides: tuple[Sequence[Estimates], Sequence[Estimates]],
) -> tuple[Sequence[Estimates], Sequence[Estimates]]:
    """The estimates, those of captures at one speed with the variance that captures at two have, if there are any."""
    captures = [*sides[0], *sides[1]]
    most = np.array([capture.most_effective for capture in captures])
    if np.isinf(most).all():
        return sides
    variances = np.where(np.isinf(most), 0.0, [capture.variance for capture in captures]).max(axis=0)
    fewest = most.min(axis=0)

    def at_all(capture: Estimates) -> Estimates:
        is_at_one = np.isinf(capture.most_effective) & np.isfinite(fewest)
        variance = np.where(is_at_one, np.maximum(capture.variance, variances), capture.variance)
        return replace(capture, variance=variance, most_effective=np.where(is_at_one, fewest, capture.most_effective))

    return [at_all(capture) for capture in sides[0]], [at_all(capture) for capture in sides[1]]


def detectable_log(error: Floats, freedom: Floats, margin: float = 0.0, level: float = LEVEL) -> Floats:
    """The logarithm of the smallest change that is detected with probability `POWER`.

    A change is detected if its interval, at `level`, is more than `margin` away from no change. `error` and `freedom`
    are those of `Changes`.
    """
    from scipy.special import stdtrit

    bounded = np.minimum(freedom, 1e9)
    found: Floats = margin + (stdtrit(bounded, (1 + level) / 2) + stdtrit(bounded, POWER)) * error
    return found


def _slow_in(side: Sequence[Estimates]) -> Floats:
    """The number of slow steps of each row in all captures of a side."""
    total: Floats = np.add.reduce([capture.slow for capture in side])
    return total


def _log_with_strays(side: Sequence[Estimates]) -> Floats:
    """The logarithm of the mean of each row of a side, strays included."""
    return _log(_location([capture.with_stray or capture for capture in side]))


def _location(side: Sequence[Estimates]) -> Floats:
    """The mean of each row over the captures of a side."""
    mean: Floats = np.add.reduce([capture.location for capture in side]) / len(side)
    return mean


def _most_freedom(ours: Floats, theirs: Floats) -> Floats:
    """The degrees of freedom that these numbers of slow steps allow: the smaller number that is not 0, less one.

    One slow step on either side sets no limit: the jackknife already makes its interval wide.
    """
    smaller, larger = np.minimum(ours, theirs), np.maximum(ours, theirs)
    fewest = np.where(smaller > 0, smaller, larger)
    allowed: Floats = np.where(larger >= 2, np.maximum(fewest - 1, _LEAST_FREEDOM), np.inf)
    return allowed


def _with_strays(
    side: Sequence[Estimates], correlation: Floats, spread: Declared, most_freedom: Floats, is_population: Bools
) -> _Estimate:
    """The estimate of a side, with the larger of the variances with and without strays where `is_population`."""
    known = _estimate(side, correlation, spread, most_freedom)
    if not is_population.any() or all(capture.with_stray is None for capture in side):
        return known
    wider = _estimate([capture.with_stray or capture for capture in side], correlation, spread, most_freedom)
    is_wider = is_population & (wider.variance > known.variance)
    return _Estimate(
        known.log,
        np.where(is_wider, wider.variance, known.variance),
        np.where(is_wider, wider.freedom, known.freedom),
        known.effective_steps,
    )


def _row_moments(values: Floats, slow: Floats, speeds: Floats | None, with_stray: Estimates | None = None) -> Estimates:
    steps = values.shape[1]
    location = values.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = values / location[:, None] - 1
        squares = (deviations**2).sum(axis=1)
        squares = np.where(squares > steps * _ROUNDING**2, squares, 0.0)
        products = (deviations[:, 1:] * deviations[:, :-1]).sum(axis=1) / squares
    variance = np.maximum(squares / max(steps - 1, 1), _jackknife_variance(values, location))
    most = np.full(len(values), math.inf) if speeds is None else np.where(speeds > 1, speeds, math.inf)
    return Estimates(location, variance, np.where(squares > 0, products, 0.0), steps, slow, most, with_stray)


def _jackknife_variance(values: Floats, location: Floats) -> Floats:
    """The jackknife estimate of the steps' variance: from the logarithm of each row's mean without each step in turn.

    It is close to the sample variance unless one step makes up most of the mean. Then it is much larger, and nothing is
    claimed.
    """
    steps = values.shape[1]
    if steps < 2:
        return np.zeros(len(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        others = (location[:, None] * steps - values) / (steps - 1) / location[:, None]
        logs = np.log(np.maximum(others, _LEAST_OF_THE_REST))
    deviations = logs - logs.mean(axis=1, keepdims=True)
    variance: Floats = np.where(location > 0, (steps - 1) * (deviations**2).sum(axis=1), 0.0)
    return variance


def _correlation(captures: Sequence[Estimates]) -> Floats:
    """The lag-1 correlation of all captures together, corrected for its bias in short series (Kendall 1954)."""
    steps = np.array([r.steps for r in captures])
    raw = np.average([r.products for r in captures], axis=0, weights=steps)
    mean_steps = float(steps.mean())
    unbiased: Floats = np.clip((mean_steps * raw + 1) / max(mean_steps - 4, 1.0), -1.0, 1.0)
    return unbiased


def _correlation_error(captures: Sequence[Estimates]) -> Floats:
    """The allowance for the estimation error of the correlation."""
    steps = np.array([r.steps for r in captures])
    error = np.sqrt(np.clip(1 - _correlation(captures) ** 2, 0.05, 1.0) / steps.sum())
    caution: Floats = (_CAUTION[0] + _CAUTION[1] / float(steps.mean())) * error
    return caution


@dataclass(frozen=True, eq=False)
class _Estimate:
    """The estimates of each row on one side: the logarithm of its mean, and its uncertainty."""

    log: Floats
    variance: Floats
    freedom: Floats
    effective_steps: Floats


def _estimate(side: Sequence[Estimates], correlation: Floats, spread: Declared, most_freedom: Floats) -> _Estimate:
    independent = (capture.steps * (1 - correlation) / (1 + correlation) for capture in side)
    effective = np.array([np.maximum(steps, _FEWEST_EFFECTIVE) for steps in independent])
    effective = np.minimum(effective, [capture.most_effective for capture in side])
    location = _location(side)
    if len(side) >= FEWEST_REPEATS:
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.array([capture.location for capture in side]) / location
            variance = each.var(axis=0, ddof=1) / len(side)
        freedom = np.full(variance.shape, len(side) - 1.0)
    else:
        variance, freedom = _assumed_variance(side, effective, spread, most_freedom)
    is_in_all = np.all([capture.location > 0 for capture in side], axis=0)
    return _Estimate(_log(location), np.where(is_in_all, variance, np.nan), freedom, effective.sum(axis=0))


def _assumed_variance(
    side: Sequence[Estimates], effective: Floats, spread: Declared, most_freedom: Floats
) -> tuple[Floats, Floats]:
    """(variance of a mean given an assumed spread, its degrees of freedom: of the steps at most `most_freedom`)."""
    steps = np.array([[float(capture.steps)] for capture in side])
    variances = np.array([capture.variance for capture in side])
    # Correlated steps vary less around their own mean than around the true one.
    hidden = (steps - 1) / np.maximum(steps - steps / effective, steps / 2)
    within = (variances * hidden / effective).sum(axis=0) / len(side) ** 2
    freedom = np.minimum(np.maximum(effective - 1, 1.0).sum(axis=0), most_freedom)
    assumed = spread(_location(side)) if callable(spread) else spread
    between = assumed**2 / len(side)
    total = within + between
    with np.errstate(divide="ignore", invalid="ignore"):
        uncertain = within**2 / freedom + (between**2 / (TAILS * len(side)) if callable(spread) else 0.0)
        return total, np.where(uncertain > 0, total**2 / uncertain, np.inf)


def _log(location: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.log(location)
    return logs


def _student(freedom: Floats, t: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """(the quantile for an interval at `level`, the two-sided p-value of `t`)."""
    from scipy.special import stdtr, stdtrit  # what scipy.stats.t calls; importing that takes twice as long

    bounded = np.minimum(freedom, 1e9)
    return stdtrit(bounded, (1 + level) / 2), 2 * stdtr(bounded, -np.abs(t))
