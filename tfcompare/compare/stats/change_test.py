"""`ChangeTest`: the test of whether times changed, and the sentences that explain its results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tfcompare.compare.stats.estimates import (
    FEWEST_REPEATS,
    FEWEST_STEPS,
    LEVEL,
    Changes,
    Estimates,
    Times,
    are_above_zero,
    changes,
    changes_of_family,
    estimates,
    levels,
)
from tfcompare.compare.stats.verdict import (
    FASTER,
    SLOWER,
    SMALLEST_EFFECT,
    UNCLEAR,
    UNTESTED,
    Sensitivity,
    Spread,
    Verdict,
    claimed_together,
    evidence_of,
    percent,
    smallest_change,
    words,
)
from tfcompare.schema.arrays import Bools, Floats
from tfcompare.units import format_ratio

SMALLEST_SHARE = 0.005
"""Rows with a smaller share of the time on both sides are not tested: there are many, and they hardly matter."""

_ROUNDING = 1e-9
_LEAST_GAP, _WIDE_GAP = 1.05, 3.0
"""The least gap between two speeds, and in standard deviations of the steps at either: of steps that vary at random,
about one capture in a thousand has such a gap."""
_MOST_OF_SPEEDS = math.log(1.5)
"""Clocks change by less. From there on steps are slow ones, for which there is a rule (`tables.slow_steps`)."""
_FEW_RUNS = 0.75
"""Of the number of runs that steps of two speeds have by chance. Those of two kinds that alternate have more."""
_FEW_SLOW = 2, 5
"""From so many slow steps on they limit the degrees of freedom, and up to so many that matters."""
_CORRELATED = 0.75
"""It is said how much steps tell if their effective sample size is below this share of their number."""


@dataclass(frozen=True)
class Level:
    """A single mean with its confidence interval (NaN if there is none); `reason` explains either case.

    `with_strays`: the mean if strays are counted, None where no stray was excluded.
    """

    value: float
    low: float
    high: float
    reason: str
    with_strays: float | None = None

    @property
    def has_interval(self) -> bool:
        """Whether the value has a confidence interval."""
        return not math.isnan(self.low)


@dataclass(frozen=True)
class ChangeTest:
    """The parameters of a test of whether times changed; calling it with the series of both sides returns the verdict.

    A side is a sequence of `Times`, one per capture of the same program, with one time per step or call.

    `spread`: the variation between captures of one program; `estimate`: estimates what is tested, the mean by default,
    and its uncertainty; `of`: what the values belong to, as texts name it;
    `can_be_absent`: times that are all 0 mean that the side lacks what is timed, a change that needs no interval;
    `min_steps`: shorter series are not tested; `margin`: the equivalence margin; `family`: how many such tests are made
    together, whose intervals all hold with a probability of 95 % (Bonferroni).
    """

    spread: Spread
    estimate: Callable[[Times], Estimates] = estimates
    of: str = "steps"
    can_be_absent: bool = False
    min_steps: int = FEWEST_STEPS
    margin: float = SMALLEST_EFFECT
    family: int = 1

    @property
    def confidence(self) -> float:
        """The level of the interval of one test of the family."""
        return 1 - (1 - LEVEL) / self.family

    def __call__(self, baseline: Sequence[Times], candidate: Sequence[Times]) -> Verdict:
        """The verdict on whether the candidate's value differs from the baseline's."""
        both = (*baseline, *candidate)
        few = min((times.steps for times in both), default=0)
        if few < self.min_steps:
            return Verdict(UNTESTED, f"too few {self.of}: {few}; a verdict needs {self.min_steps} on each side")
        if self.can_be_absent:
            before, after = map(are_above_zero, (baseline, candidate))
            if after and not before:
                return Verdict(SLOWER, "only the candidate spends time on it", math.inf, math.inf, math.inf)
            if before and not after:
                return Verdict(FASTER, "only the baseline spends time on it", 0.0, 0.0, 0.0)
        if any(not np.isfinite(times.every).all() or not (times.included > 0).any() for times in both):
            return Verdict(UNTESTED, "a side has no time above zero")
        ours, theirs = (self._estimates(side) for side in (baseline, candidate))
        found = changes(ours, theirs, self.spread.declared, self.confidence)
        is_measured = _is_measured(ours, theirs)
        captures = len(ours), len(theirs)
        smallest = float(smallest_change(found, measured_spread=is_measured)[0])
        steps = round(sum(one.steps for one in (*ours, *theirs)) / sum(captures))
        return Verdict(
            str(words(found, measured_spread=is_measured, margin=self.margin)[0]),
            _basis(ours, theirs, self, found),
            ratio=float(found.ratio[0]),
            low=float(found.low[0]),
            high=float(found.high[0]),
            evidence=evidence_of(captures),
            sensitivity=Sensitivity(captures, steps, float(found.capture_spread[0]), smallest, self.confidence),
            ratio_with_strays=float(found.ratio_with_strays[0]) if _have_strays((*ours, *theirs)) else None,
        )

    def level(self, side: Sequence[Times]) -> Level:
        """The candidate's value alone, with its confidence interval."""
        value = self.value(side)
        few = min(times.steps for times in side)
        if few < self.min_steps:
            too_few = f"too few {self.of}: {few} in the candidate; an interval needs {self.min_steps}"
            return Level(value, math.nan, math.nan, too_few if few else f"the candidate has no {self.of}")
        if value == 0:
            return Level(value, value, value, "the candidate spends no time on it")
        captures = self._estimates(side)
        found = levels(captures, self.spread.declared, self.confidence)
        with_strays = float(found.with_strays[0]) if _have_strays(captures) else None
        basis = _level_basis(captures, self)
        return Level(value, float(found.low[0]), float(found.high[0]), basis, with_strays)

    def _estimates(self, side: Sequence[Times]) -> list[Estimates]:
        """The estimates of each capture of a side, for a single row."""
        return [self.estimate(with_speeds(times)) for times in side]

    def value(self, side: Sequence[Times]) -> float:
        """The value of one capture; of several, their mean, as used by the ratio. NaN without steps."""
        if not all(times.included.size for times in side):
            return math.nan
        return float(np.mean([self.estimate(times).location[0] for times in side]))

    def measured_spread(self, captures: Sequence[Times]) -> Spread | None:
        """The spread between these captures, to be assumed for another one of their program; None if unknown.

        An assumed spread counts as known, so it is widened by as much as an interval is whose variation is measured.
        """
        from scipy.special import ndtri, stdtrit

        if any(times.steps < self.min_steps or not (times.included > 0).any() for times in captures):
            return None
        share = _measured_spread(list(map(self.estimate, captures)))
        quantile = (1 + self.confidence) / 2
        return Spread(
            share * float(stdtrit(len(captures) - 1, quantile) / ndtri(quantile)), "as in the series", is_known=True
        )

    def rows(
        self,
        baseline: Sequence[Times],
        candidate: Sequence[Times],
        spreads: Sequence[Spread] | None = None,
        displayed: Floats | None = None,
    ) -> pd.DataFrame:
        """Tests many rows as one family, controlling the false discovery rate.

        `spreads`: the spread of each row, instead of the test's;
        `displayed`: the displayed ratio (candidate ÷ baseline) of each row's time per step, if that includes more than
        these steps.

        Columns: `verdict`, `evidence` (missing without a test), `interval_low` and `interval_high` (NaN without one).
        Rows are `untested` if they are below `SMALLEST_SHARE`, if their displayed ratio lies outside the interval, or
        if any capture has too few steps.
        """
        result = rows_without_interval(len(baseline[0].included))
        if min(times.steps for times in (*baseline, *candidate)) < self.min_steps:
            return result
        means = [np.mean([times.included.mean(axis=1) for times in side], axis=0) for side in (baseline, candidate)]
        is_large = np.any([mean >= SMALLEST_SHARE * mean.sum() for mean in means], axis=0)
        tested = np.flatnonzero(np.all([mean > 0 for mean in means], axis=0) & is_large)
        if not tested.size:
            return result
        ours, theirs = ([self.estimate(times.rows(tested)) for times in side] for side in (baseline, candidate))
        own = [self.spread if spreads is None else spreads[int(row)] for row in tested]

        def assumed(mean_us: Floats) -> Floats:
            number = np.array(list(map(id, own)))
            found = np.zeros(len(own))
            for spread in {id(spread): spread for spread in own}.values():  # a few, each of many rows
                rows = number == id(spread)
                found[rows] = spread.of(mean_us[rows])
            return found

        found = changes_of_family(ours, theirs, self.spread.share if self.spread.is_known else assumed)
        word = words(found, measured_spread=_is_measured(ours, theirs), margin=self.margin)
        word[np.isin(word, [FASTER, SLOWER]) & ~claimed_together(found.p)] = UNCLEAR
        known = np.isfinite(found.low)
        if displayed is not None:  # if excluded steps and the time between steps dominate, tested steps say little
            ratio = displayed[tested]
            with np.errstate(invalid="ignore"):
                known &= (ratio >= found.low * (1 - _ROUNDING)) & (ratio <= found.high * (1 + _ROUNDING))
        result.loc[tested[known], "verdict"] = word[known]
        result.loc[tested[known], "interval_low"] = found.low[known]
        result.loc[tested[known], "interval_high"] = found.high[known]
        result.loc[tested[known], "evidence"] = evidence_of((len(ours), len(theirs)))
        return result


def with_speeds(times: Times, together: Sequence[Bools] = ()) -> Times:
    """The times with the number of runs of steps at one speed: in the sum of each of these sets of rows, or of all.

    A clock changes all that a device does, so such runs are looked for in the sum.
    """
    if not together:
        runs = _runs_at_one_speed(times.included[0] if len(times.included) == 1 else times.included.sum(axis=0))
        return times if runs == 1 else Times(times.included, times.stray, np.full(len(times.included), float(runs)))
    speeds = np.ones(len(times.included))
    for rows in together:
        speeds[rows] = _runs_at_one_speed(times.included[rows].sum(axis=0))
    return Times(times.included, times.stray, speeds)


def _runs_at_one_speed(times: Floats) -> int:
    """How many runs of steps there are that alternate between two speeds; 1 if the steps are not of two speeds.

    They are if a gap in the sorted times, with two steps or more on either side, is wide by itself and for what the
    steps on either side differ by, and if steps of one speed follow one another more than chance has it.
    """
    steps, in_order = len(times), times.copy()
    in_order.sort()
    if steps < FEWEST_STEPS or not in_order[0] > 0 or math.isnan(in_order[-1]):
        return 1
    gaps = in_order[2:-1] / in_order[1:-2]
    at = int(gaps.argmax()) + 2
    if gaps[at - 2] < _LEAST_GAP:
        return 1
    faster, slower = np.log(in_order[:at]), np.log(in_order[at:])
    if slower[0] - faster[-1] < _WIDE_GAP * max(slower.std(), faster.std()):
        return 1
    is_slower = times >= in_order[at]
    runs = 1 + int((is_slower[1:] != is_slower[:-1]).sum())
    by_chance = 1 + 2 * len(slower) * len(faster) / steps
    is_clock = slower.mean() - faster.mean() <= _MOST_OF_SPEEDS and runs <= _FEW_RUNS * by_chance
    return runs if is_clock else 1


def _have_strays(captures: Sequence[Estimates]) -> bool:
    return any(capture.with_stray is not None for capture in captures)


def rows_without_interval(rows: int, word: str = UNTESTED) -> pd.DataFrame:
    """The result of `ChangeTest.rows` without per-step data; with `SAME`, that for two copies of one capture."""
    cells = {"verdict": pd.Series(word, index=range(rows), dtype="str")}
    evidence = pd.Series(None, index=range(rows), dtype="str")
    return pd.DataFrame(cells).assign(evidence=evidence, interval_low=np.nan, interval_high=np.nan)


def _is_measured(ours: Sequence[Estimates], theirs: Sequence[Estimates]) -> bool:
    """Whether both sides have enough captures to measure the variation between them."""
    return min(len(ours), len(theirs)) >= FEWEST_REPEATS


def _basis(ours: Sequence[Estimates], theirs: Sequence[Estimates], test: ChangeTest, found: Changes) -> str:
    """The sample sizes and variation behind the interval, in one or two sentences without the final full stop."""
    of = test.of
    interval = f"{format_ratio(float(found.low[0]))}–{format_ratio(float(found.high[0]))}{_jointly(test)}"
    correlated = _correlation(ours, theirs, found, of)
    variation = f"Run-to-run variation is {_variation(ours, theirs, test.spread)}"
    second = ". ".join(filter(None, [correlated, variation]))
    few = _few_slow(ours, theirs, of)
    if _have_strays((*ours, *theirs)):
        few += f"With strays counted, the ratio is {format_ratio(float(found.ratio_with_strays[0]))}. "
    counts = _counts(ours, theirs, of)
    what = f"{LEVEL * 100:.0f} % confidence interval of the ratio between captures {interval}"
    return f"{what}, from {counts}. {few}{second}"


def _jointly(test: ChangeTest) -> str:
    """That an interval holds together with others, if it does."""
    return f" (joint for {test.family} tests)" if test.family > 1 else ""


def _few_slow(ours: Sequence[Estimates], theirs: Sequence[Estimates], of: str) -> str:
    """`Few slow steps (0 and 2) make the interval wide. `, where that is so; else empty."""
    if _is_measured(ours, theirs):
        return ""
    slow = [sum(int(one.slow[0]) for one in side) for side in (ours, theirs)]
    fewest = min((count for count in slow if count), default=0)
    if max(slow) < _FEW_SLOW[0] or fewest > _FEW_SLOW[1]:
        return ""
    return f"Few slow {of} ({slow[0]} and {slow[1]}) make the interval wide. "


def _level_basis(side: Sequence[Estimates], test: ChangeTest) -> str:
    """The sample size and variation behind the interval of one side's mean, in one line."""
    steps = sum(one.steps for one in side)
    captures = f" of {len(side)} captures" if len(side) > 1 else ""
    variation = f"measured: {percent(_measured_spread(side))}" if len(side) >= FEWEST_REPEATS else ""
    return (
        f"{LEVEL * 100:.0f} % confidence interval{_jointly(test)} from {steps} {test.of}{captures} of the candidate; "
        f"run-to-run variation is {variation or test.spread.assumed(_mean(side))}"
    )


def _counts(ours: Sequence[Estimates], theirs: Sequence[Estimates], of: str) -> str:
    """`20 steps per run`, `60 steps per side` of several captures, `20 and 18 steps`."""
    before, after = (sum(one.steps for one in side) for side in (ours, theirs))
    if before != after:
        return f"{before} and {after} {of}"
    return f"{before} {of} per {'run' if len(ours) == len(theirs) == 1 else 'side'}"


def _correlation(ours: Sequence[Estimates], theirs: Sequence[Estimates], found: Changes, of: str) -> str:
    """`Neighbouring steps resemble each other, so 20 steps count as 2.0 independent ones`, if that affects the
    interval; else empty."""
    if _is_measured(ours, theirs):
        return ""
    effective = [float(n[0]) for n in found.effective_steps]
    share = min(n / sum(one.steps for one in side) for n, side in zip(effective, (ours, theirs), strict=True))
    if share >= _CORRELATED:
        return ""
    steps = " and ".join(dict.fromkeys(f"{sum(one.steps for one in side)}" for side in (ours, theirs)))
    counts = " and ".join(dict.fromkeys(map(_count, effective)))
    return f"Neighbouring {of} resemble each other, so {steps} {of} count as {counts} independent ones"


def _count(effective: float) -> str:
    return f"{effective:.0f}" if effective >= 10 else f"{effective:.1f}"


def _variation(ours: Sequence[Estimates], theirs: Sequence[Estimates], spread: Spread) -> str:
    """`assumed to be 5 % (CPU default)`, or the variation measured between the captures of either side."""
    measured = [_measured_spread(side) for side in (ours, theirs) if len(side) >= FEWEST_REPEATS]
    if not measured:
        return spread.assumed(_mean(ours), _mean(theirs))
    figures = f"measured: {' and '.join(map(percent, measured))}"
    if len(measured) == 2:
        return figures
    single = ours if len(ours) < FEWEST_REPEATS else theirs
    return f"{figures}; that of the other side is {spread.assumed(_mean(single))}"


def _mean(side: Sequence[Estimates]) -> float:
    return float(np.mean([one.location[0] for one in side]))


def _measured_spread(side: Sequence[Estimates]) -> float:
    """The standard deviation of the means of a side's captures, as a share of their mean."""
    means = np.array([float(one.location[0]) for one in side])
    return float(np.std(means, ddof=1) / means.mean())
