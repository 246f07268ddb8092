"""How large a difference between two recordings is, and how sure that is.

A series holds one number a step: a step time, or what an op took in each step. The change is the ratio of the two
series' typical steps, with an interval made of both kinds of uncertainty:

- *Within a recording*: the steps' variance over the number of steps that would say as much if they knew nothing of one
  another. Neighbouring steps do; their lag-1 correlation is estimated from both sides together, its downward bias in
  short series taken out, and what remains unsure of it counted as correlation (`_CAUTION`).
- *Between recordings*: two recordings of one program differ by more than their steps let on, so the spread between
  recordings goes in twice: measured where each side has `FEWEST_REPEATS` or more recordings, else declared.

`docs/verdicts.md` shows how often the intervals hold the true change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Declared = float | Callable[[Floats], Floats]
"""The standard deviation of the logarithm between recordings of one program: one figure for every row, or what gives
each row's from its typical step."""

LEVEL = 0.95
FEWEST_STEPS = 9
FEWEST_REPEATS = 3
"""From so many captures a side on, the variation between captures is measured."""
FEWEST_REPLICATES = 5
"""From so many captures a side on, false claims stay below 5 % on a busy machine too (`docs/verdicts.md`)."""
POWER = 0.8

TYPICAL_STEP = (
    "The typical step: the mean of the steps that count, outlying ones moved to the edge of the usual (2.5 robust "
    "standard deviations from the median). The verdict and its interval are on the same figure."
)
"""What the typical step is, as pages explain it."""

_CAUTION = (0.45, 2.2)
"""Standard errors of the correlation that are added to it: so many, and so many ÷ the number of steps."""
_MOST_CORRELATION = 0.85
_FEWEST_EFFECTIVE = 1.5
_OUTLIER = 2.5
_MAD_OF_NORMAL = 1.4826
_ROUNDING = 1e-12
_LEAST_OF_THE_REST = 1e-6
"""Of a mean that one step makes up, what the others are taken to hold: none has no logarithm."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Series of one recording, a row each: what is estimated of each row by itself.

    `location`: the typical step, of which the steps' `variance` is a share squared; `products`: the sum of products of
    neighbouring deviations ÷ the sum of their squares, the raw lag-1 correlation.
    """

    location: Floats
    variance: Floats
    products: Floats
    steps: int


@dataclass(frozen=True, eq=False)
class Changes:
    """For each row candidate ÷ baseline: `ratio`, its interval `low` to `high` (at `LEVEL`), the two-sided `p` of no
    change, and how many effective steps the sides have.

    Of the logarithm of the ratio: `error`, its standard error, and `freedom`, that error's degrees of freedom.
    `capture_spread`: the standard deviation of one capture's typical step, as a logarithm, on average over both sides.
    """

    ratio: Floats
    low: Floats
    high: Floats
    p: Floats
    effective_steps: tuple[Floats, Floats]
    error: Floats
    freedom: Floats
    capture_spread: Floats


@dataclass(frozen=True, eq=False)
class Levels:
    """For each row its typical step, `location`, and the interval `low` to `high` that it lies in (at `LEVEL`)."""

    location: Floats
    low: Floats
    high: Floats


def typical(values: Floats) -> Floats:
    """Each row's mean once values far from its median are moved to the edge of what is usual.

    Usual is within 2.5 robust standard deviations; a row most of whose values are alike is not touched.
    """
    means: Floats = _winsorised(values).mean(axis=1)
    return means


def robust_sides(values: Floats) -> Sides:
    """Estimates of rows that may hold outlying steps: step times."""
    return _sides(_winsorised(values))


def plain_sides(values: Floats) -> Sides:
    """Estimates of rows whose mean is what is displayed, zeros and all: time of an op in each step."""
    return _sides(values)


def changes(baseline: Sequence[Sides], candidate: Sequence[Sides], spread: Declared) -> Changes:
    """The change of each row, judged by itself, from the baseline's recordings to the candidate's.

    `spread` is the declared standard deviation of the logarithm between recordings of one program; it is used where a
    side has fewer than `FEWEST_REPEATS` recordings. A row that is 0 on a side has no interval (NaN).
    """
    recordings = [*baseline, *candidate]
    return _changes((baseline, candidate), _at_most(_correlation(recordings) + _caution(recordings)), spread)


def changes_of_family(baseline: Sequence[Sides], candidate: Sequence[Sides], spread: Declared) -> Changes:
    """As `changes`, of rows that are judged together: the ops of a program.

    Among many rows some correlations are estimated far too low, and just those rows would stand out; so none counts as
    less correlated than the rows are on average.
    """
    recordings = [*baseline, *candidate]
    own = _correlation(recordings)
    common = float(np.mean(own)) if own.size else 0.0
    return _changes((baseline, candidate), _at_most(np.maximum(own + _caution(recordings), common)), spread)


def levels(side: Sequence[Sides], spread: Declared) -> Levels:
    """Each row's typical step on one side alone, to be compared with a fixed value.

    Of several recordings it is the geometric mean of theirs, which the ratios of `changes` are made of. `spread` is the
    declared standard deviation of the logarithm between recordings of one program; it is used for fewer than
    `FEWEST_REPEATS` recordings. A row that is 0 has no interval (NaN).
    """
    known = _estimate(side, _at_most(_correlation(side) + _caution(side)), spread)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.sqrt(np.where(np.isfinite(known.log), known.variance, np.nan))
        quantile, _ = _student(known.freedom, np.zeros_like(error))
        low, high = (np.exp(known.log + sign * quantile * error) for sign in (-1, 1))
        location = side[0].location if len(side) == 1 else np.exp(known.log)
    return Levels(location, low, high)


def _changes(sides: tuple[Sequence[Sides], Sequence[Sides]], correlation: Floats, spread: Declared) -> Changes:
    ours, theirs = (_estimate(side, correlation, spread) for side in sides)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = theirs.log - ours.log
        variance = np.where(np.isfinite(difference), ours.variance + theirs.variance, np.nan)
        freedom = variance**2 / (ours.variance**2 / ours.freedom + theirs.variance**2 / theirs.freedom)
        freedom = np.where(variance > 0, freedom, np.inf)
        error = np.sqrt(variance)
        quantile, p = _student(freedom, difference / error)
        low, high = (np.exp(difference + sign * quantile * error) for sign in (-1, 1))
        ratio = np.exp(difference)
        capture_spread = np.sqrt((ours.variance * len(sides[0]) + theirs.variance * len(sides[1])) / 2)
    p = np.where(variance > 0, p, np.where(np.isnan(variance), np.nan, (difference == 0) * 1.0))
    effective_steps = (ours.effective_steps, theirs.effective_steps)
    return Changes(ratio, low, high, p, effective_steps, error, freedom, capture_spread)


def detectable_log(error: Floats, freedom: Floats, margin: float = 0.0) -> Floats:
    """The logarithm of the smallest change whose interval keeps `margin` clear of no change with a chance of `POWER`.

    `error` and `freedom` as `Changes` has them.
    """
    from scipy.special import stdtrit

    bounded = np.minimum(freedom, 1e9)
    found: Floats = margin + (stdtrit(bounded, (1 + LEVEL) / 2) + stdtrit(bounded, POWER)) * error
    return found


def _sides(values: Floats) -> Sides:
    steps = values.shape[1]
    location = values.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = values / location[:, None] - 1
        squares = (deviations**2).sum(axis=1)
        squares = np.where(squares > steps * _ROUNDING**2, squares, 0.0)
        products = (deviations[:, 1:] * deviations[:, :-1]).sum(axis=1) / squares
    variance = np.maximum(squares / max(steps - 1, 1), _without_each_step(values, location))
    return Sides(location, variance, np.where(squares > 0, products, 0.0), steps)


def _without_each_step(values: Floats, location: Floats) -> Floats:
    """The steps' variance by how much the logarithm of each row's mean hangs on any one step (the jackknife).

    It is that of `Sides`, but where one step makes up most of the mean: then it is much larger, and nothing is claimed.
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


def _winsorised(values: Floats) -> Floats:
    middle = np.median(values, axis=1, keepdims=True)
    usual = _OUTLIER * _MAD_OF_NORMAL * np.median(np.abs(values - middle), axis=1, keepdims=True)
    usual_ones: Floats = np.where(usual > 0, np.clip(values, middle - usual, middle + usual), values)
    return usual_ones


def _correlation(recordings: Sequence[Sides]) -> Floats:
    """The lag-1 correlation of all recordings together, its bias in short series taken out (Kendall 1954)."""
    steps = np.array([r.steps for r in recordings])
    raw = np.average([r.products for r in recordings], axis=0, weights=steps)
    mean_steps = float(steps.mean())
    unbiased: Floats = np.clip((mean_steps * raw + 1) / max(mean_steps - 4, 1.0), -1.0, 1.0)
    return unbiased


def _caution(recordings: Sequence[Sides]) -> Floats:
    """What is added to the correlation since it is not known better."""
    steps = np.array([r.steps for r in recordings])
    error = np.sqrt(np.clip(1 - _correlation(recordings) ** 2, 0.05, 1.0) / steps.sum())
    caution: Floats = (_CAUTION[0] + _CAUTION[1] / float(steps.mean())) * error
    return caution


def _at_most(correlation: Floats) -> Floats:
    return np.clip(correlation, 0.0, _MOST_CORRELATION)


def _effective(steps: int, correlation: Floats) -> Floats:
    return np.maximum(steps * (1 - correlation) / (1 + correlation), _FEWEST_EFFECTIVE)


@dataclass(frozen=True, eq=False)
class _Estimate:
    """What is known of each row on one side: the logarithm of its typical step, and how sure that is."""

    log: Floats
    variance: Floats
    freedom: Floats
    effective_steps: Floats


def _estimate(side: Sequence[Sides], correlation: Floats, spread: Declared) -> _Estimate:
    logs = np.array([_log(recording.location) for recording in side])
    effective = np.array([_effective(recording.steps, correlation) for recording in side])
    if len(side) >= FEWEST_REPEATS:
        with np.errstate(invalid="ignore"):
            variance = logs.var(axis=0, ddof=1) / len(side)
        freedom = np.full(variance.shape, len(side) - 1.0)
    else:
        variance, freedom = _declared(side, effective, spread)
    return _Estimate(logs.mean(axis=0), variance, freedom, effective.sum(axis=0))


def _declared(side: Sequence[Sides], effective: Floats, spread: Declared) -> tuple[Floats, Floats]:
    """(variance of the mean of a side's recordings with a declared spread, its degrees of freedom)."""
    steps = np.array([[float(recording.steps)] for recording in side])
    variances = np.array([recording.variance for recording in side])
    # Steps that resemble one another vary less around their own mean than around the true one.
    hidden = (steps - 1) / np.maximum(steps - steps / effective, steps / 2)
    within = (variances * hidden / effective).sum(axis=0) / len(side) ** 2
    freedom = np.maximum(effective - 1, 1.0).sum(axis=0)
    between = spread(np.mean([r.location for r in side], axis=0)) if callable(spread) else spread
    total = within + between**2 / len(side)
    with np.errstate(divide="ignore", invalid="ignore"):
        return total, np.where(within > 0, freedom * (total / within) ** 2, np.inf)


def _log(location: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.log(location)
    return logs


def _student(freedom: Floats, t: Floats) -> tuple[Floats, Floats]:
    """(the quantile that an interval at `LEVEL` takes, the two-sided p of `t`)."""
    from scipy.special import stdtr, stdtrit  # what scipy.stats.t calls; importing that takes twice as long

    bounded = np.minimum(freedom, 1e9)
    return stdtrit(bounded, (1 + LEVEL) / 2), 2 * stdtr(bounded, -np.abs(t))


def outlying(values: Floats) -> npt.NDArray[np.bool_]:
    """Which values of each row `typical` moves to the edge of what is usual."""
    moved: npt.NDArray[np.bool_] = _winsorised(values) != values
    return moved


def outlying_steps(steps: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which included rows of a frame with `duration_us` and `included` are moved to the edge of the usual."""
    counted = steps["included"].to_numpy(np.bool_)
    found = np.zeros(len(steps), np.bool_)
    if counted.any():
        found[counted] = outlying(steps["duration_us"].to_numpy(np.float64)[counted][np.newaxis])[0]
    return found
