"""The metrics of steps, of what they could do, and of input pipelines: times with an interval, and rates of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tfcompare.compare.check.measured import (
    RATE,
    SHARE,
    TIME,
    Measured,
    by_time,
    missing,
    tested,
    time_result,
    unknown_time,
    untested_result,
    who_lacks,
    why_unrecorded,
)
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side, window_of
from tfcompare.compare.spreads import spread_on
from tfcompare.compare.stats.estimates import Estimates, Times, are_above_zero, estimates, quantile_estimates
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.compare.steps.step_time_verdict import no_steps
from tfcompare.compare.tf_data.call_verdicts import slowest_calls
from tfcompare.compare.utilization import Cost, time_at_peak_us
from tfcompare.schema import DEVICE, HOST

_US_PER_S = 1e6

Estimate = Callable[[Times], Estimates]
"""Estimates what is tested of the times of a capture."""


def quantile(share: float) -> Estimate:
    """The estimates of a quantile, such as 0.95."""
    return partial(quantile_estimates, share=share)


def step_time(pair: Pair, _: str, *, estimate: Estimate = estimates) -> Measured:
    """The mean of the included steps, or what else is estimated."""
    ours, theirs = (side.step_times_us for side in pair.sides)
    return time_result(pair, ours, theirs, "steps", estimate=estimate)


def step_time_in_each_kind(pair: Pair, *, estimate: Estimate = estimates) -> list[Measured]:
    """As `step_time`, of the steps of each kind."""
    return _in_each_kind(pair, [side.step_times_us for side in pair.sides], estimate=estimate)


def device_time(pair: Pair, _: str) -> Measured:
    """For how long devices are busy in a step: on the straggler of several hosts."""
    if not all(side.all_have_step_times for side in pair.sides):
        return untested_result(TIME, no_steps(*pair.sides).reason)
    ours, theirs = (side.device_times_us for side in pair.sides)
    lacking = [not are_above_zero(of_side) for of_side in (ours, theirs)]
    if not any(lacking):
        return time_result(pair, ours, theirs, "steps", place=DEVICE)
    reason = next(filter(None, map(why_unrecorded, pair.sides)), f"{who_lacks(*lacking)} record of devices")
    if all(lacking):
        return missing(TIME, reason)
    if lacking[1]:
        return untested_result(TIME, reason)
    found = time_result(pair, ours, theirs, "steps", place=DEVICE)
    return replace(found, baseline=math.nan, verdict=Verdict(UNTESTED, reason))


def device_time_in_each_kind(pair: Pair) -> list[Measured]:
    """For how long devices are busy in a step of each kind in which they are."""
    times = [side.device_times_us for side in pair.sides]
    return _in_each_kind(pair, times, place=DEVICE) if all(map(are_above_zero, times)) else []


def _in_each_kind(
    pair: Pair,
    times: Sequence[Sequence[Times]],
    *,
    place: str = "",
    estimate: Estimate = estimates,
) -> list[Measured]:
    """Times of steps of both sides in each kind of step that both have, tested together as `Pair.step_kinds` are.

    None where steps are of one kind, their times are unknown, or both sides are the same capture. With `place`, as for
    `time_result`, kinds in which all times are 0 are left out.
    """
    if pair.is_identical or not pair.step_kinds or not all(side.all_have_step_times for side in pair.sides):
        return []
    shared, common = [kind for kind in pair.step_kinds if all(kind.counts)], pair.common_kinds
    if not shared or common is None:
        return [untested_result(TIME, "the runs have no kind of step in common")]
    split = [
        dict(zip(common.shares, common.split(side, of), strict=True))
        for side, of in zip(pair.sides, times, strict=True)
    ]
    found = []
    for kind in shared:
        if kind.name not in common.shares:
            lacking = untested_result(TIME, f"a capture has no steps of {kind.name}")
            found.append(replace(lacking, kind=kind.name))
            continue
        ours, theirs = (of_side[kind.name] for of_side in split)
        test = replace(kind.test, estimate=estimate, can_be_absent=True)
        if place:
            test = replace(test, spread=spread_on(pair, place))
        if not place or are_above_zero(ours) or are_above_zero(theirs):
            found.append(tested(pair, ours, theirs, test, kind.name))
    return found


def throughput(pair: Pair, _: str) -> Measured:
    """Steps per second, from the start of each step to that of the next; on the straggler of several hosts."""
    if not all(side.all_have_steps for side in pair.sides):
        return untested_result(RATE, no_steps(*pair.sides).reason)
    ours, theirs = (_window_times(side, "periods_us") for side in pair.sides)
    return by_time(RATE, (_US_PER_S, _US_PER_S), time_result(pair, ours, theirs, "step periods", place=HOST))


def share_of_peak(cost: Cost) -> Callable[[Pair, str], Measured]:
    """What a step does by what the device could do in its time."""

    def measure(pair: Pair, _: str) -> Measured:
        if not all(side.all_have_step_times for side in pair.sides):
            return untested_result(SHARE, no_steps(*pair.sides).reason)
        needed = [side.mean_per_step(partial(time_at_peak_us, cost=cost)) for side in pair.sides]
        lacking = list(map(math.isnan, needed))
        if all(lacking):
            reason = "neither run has compiled programs of known cost on a device whose peak is known"
            return missing(SHARE, reason + unknown_time(pair, cost))
        ours, theirs = (side.step_times_us for side in pair.sides)
        found = by_time(SHARE, (needed[0], needed[1]), time_result(pair, ours, theirs, "steps"))
        if any(lacking):
            reason = f"{who_lacks(*lacking)} compiled program of known cost on a device whose peak is known"
            return replace(found, verdict=Verdict(UNTESTED, reason + unknown_time(pair, cost)))
        return found

    return measure


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
