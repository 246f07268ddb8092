"""The metrics of steps, of what they could do, and of input pipelines: times with an interval, and rates of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tfcompare.compare.check.measured import (
    RATE,
    SHARE,
    TIME,
    Measured,
    missing,
    time_result,
    untested_result,
    who_lacks,
)
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side, window_of
from tfcompare.compare.stats.change_test import Level
from tfcompare.compare.stats.estimates import Times, quantile_estimates
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.compare.step_time_verdict import no_steps
from tfcompare.compare.tf_data.call_verdicts import slowest_calls
from tfcompare.compare.utilization import Cost, instructions_in_steps, time_at_peak_us, unknown_share
from tfcompare.schema import HOST
from tfcompare.schema.hlo import MOST_UNKNOWN
from tfcompare.units import format_percent

if TYPE_CHECKING:
    from tfcompare.run import Run

_US_PER_S = 1e6


def step_time(pair: Pair, _: str) -> Measured:
    """The mean of the included steps."""
    ours, theirs = (side.step_times_us for side in pair.sides)
    return time_result(pair, ours, theirs, "steps")


def step_time_quantile(share: float) -> Callable[[Pair, str], Measured]:
    """A quantile of the included steps."""

    def measure(pair: Pair, _: str) -> Measured:
        ours, theirs = (side.step_times_us for side in pair.sides)
        return time_result(pair, ours, theirs, "steps", estimate=partial(quantile_estimates, share=share))

    return measure


def throughput(pair: Pair, _: str) -> Measured:
    """Steps per second, from the start of each step to that of the next; on the straggler of several hosts."""
    if not all(side.all_have_steps for side in pair.sides):
        return untested_result(RATE, no_steps(*pair.sides).reason)
    ours, theirs = (_window_times(side, "periods_us") for side in pair.sides)
    return _by_time(RATE, (_US_PER_S, _US_PER_S), time_result(pair, ours, theirs, "step periods", place=HOST))


def share_of_peak(cost: Cost) -> Callable[[Pair, str], Measured]:
    """What a step does by what the device could do in its time."""

    def measure(pair: Pair, _: str) -> Measured:
        if not all(side.all_have_step_times for side in pair.sides):
            return untested_result(SHARE, no_steps(*pair.sides).reason)
        needed = [side.mean_per_step(partial(time_at_peak_us, cost=cost)) for side in pair.sides]
        lacking = list(map(math.isnan, needed))
        if all(lacking):
            reason = "neither run has compiled programs of known cost on a device whose peak is known"
            return missing(SHARE, reason + _unknown_time(pair, cost))
        ours, theirs = (side.step_times_us for side in pair.sides)
        found = _by_time(SHARE, (needed[0], needed[1]), time_result(pair, ours, theirs, "steps"))
        if any(lacking):
            reason = f"{who_lacks(*lacking)} compiled program of known cost on a device whose peak is known"
            return replace(found, verdict=Verdict(UNTESTED, reason + _unknown_time(pair, cost)))
        return found

    return measure


def _unknown_time(pair: Pair, cost: Cost) -> str:
    """That instructions of unknown cost take a part of the time, if they do on either side."""

    def share(run: Run, host: str | None) -> float:
        return unknown_share(instructions_in_steps(run, host), [cost])

    shares = [found for side in pair.sides for found in side.each(share) if found > MOST_UNKNOWN]
    return f": {format_percent(max(shares))} of the device time has no known cost" if shares else ""


def _by_time(unit: str, amounts: tuple[float, float], found: Measured) -> Measured:
    """What each side does by the time in µs that was found for it."""
    (ours, theirs), time, level = amounts, found.verdict, found.level
    change = _per(theirs, ours)
    reason = f"from the time that it takes: {time.reason}" if time.has_interval else time.reason
    ratio, low, high = (_per(change, of) for of in (time.ratio, time.high, time.low))
    with_strays = None if time.ratio_with_strays is None else _per(change, time.ratio_with_strays)
    verdict = replace(time, reason=reason, ratio=ratio, low=low, high=high, ratio_with_strays=with_strays)
    value, low, high = (_per(theirs, of) for of in (level.value, level.high, level.low))
    with_strays = None if level.with_strays is None else _per(theirs, level.with_strays)
    of_candidate = Level(value, low, high, level.reason, with_strays)
    before, after = _per(ours, found.baseline), _per(theirs, found.candidate)
    return Measured(unit, before, after, verdict, of_candidate, samples=found.samples)


def _per(number: float, us: float) -> float:
    return number / us if us else math.inf


def _window_times(side: Side, series: str) -> list[Times]:
    """A series of the window of each capture, per iteration; empty for a capture without one."""
    windows = side.each(window_of)
    return [Times.of(np.zeros(0) if w is None else getattr(w.per(side.iterations), series)) for w in windows]


def time_between_steps(pair: Pair, _: str) -> Measured:
    """The time between steps, per step; on the straggler if there are several hosts."""
    if not all(side.all_have_step_times for side in pair.sides):
        return untested_result(TIME, no_steps(*pair.sides).reason)
    ours, theirs = (_window_times(side, "gaps_us") for side in pair.sides)
    return time_result(pair, ours, theirs, "gaps between steps", place=HOST)


def input_latency(pair: Pair, _: str) -> Measured:
    """The mean call of each side's slowest pipeline on the host."""
    every = map(slowest_calls, pair.sides)
    ours, theirs = ([Times.of(np.zeros(0) if one is None else one[1]) for one in of_side] for of_side in every)
    if not ours[0].steps and not theirs[0].steps:
        return missing(TIME, "neither run has calls of an input pipeline of tf.data")
    return time_result(pair, ours, theirs, "calls", place=HOST)
