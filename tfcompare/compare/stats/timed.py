"""Verdicts on single times of two runs: of their steps, or of the calls to an input pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfcompare.compare.stats.estimates import FEWEST_STEPS, Sides
from tfcompare.compare.stats.run_verdicts import NO_STEPS, Side
from tfcompare.compare.stats.series_verdict import Spread, verdict_on_series
from tfcompare.compare.stats.verdict import FASTER, IDENTICAL, SLOWER, Verdict

if TYPE_CHECKING:
    from tfcompare.run import Run

Floats = npt.NDArray[np.float64]

SAME_RECORDING = replace(IDENTICAL, ratio=1.0, low=1.0, high=1.0)


def verdict_on_times(
    sides: tuple[Side, Side],
    series: tuple[Sequence[Floats], Sequence[Floats]],
    spread: Spread,
    *,
    estimate: Callable[[Floats], Sides],
    of: str,
) -> Verdict:
    """Whether the candidate takes another time, by the series of baseline and candidate, one for each recording.

    `estimate` says what is typical, `of` what the series are of (`steps`, `calls`). What only one side does at all, is
    settled without an interval.
    """
    ours, theirs = (side.runs[0] for side in sides)
    if ours.content_id == theirs.content_id:
        return SAME_RECORDING
    if of == "steps" and not all(side.has_steps for side in sides):
        return NO_STEPS
    before, after = (_takes_time(side) for side in series)
    if min(len(one) for side in series for one in side) >= FEWEST_STEPS and before != after:
        return _one_sided(after)
    return verdict_on_series(*series, spread, estimate=estimate, of=of)


def _takes_time(side: Sequence[Floats]) -> bool:
    return any(bool((one > 0).any()) for one in side)


def _one_sided(candidate: bool) -> Verdict:
    """What only one run does, took no time at all in the other: that needs no interval."""
    if candidate:
        return Verdict(SLOWER, "only the candidate spends time on it", math.inf, math.inf, math.inf)
    return Verdict(FASTER, "only the baseline spends time on it", 0.0, 0.0, 0.0)


def calls_by_pipeline(run: Run, host: str | None) -> dict[tuple[str, str], Floats]:
    """For each (host, pipeline) of a run, how long each of its calls took, in µs and in the order of time."""
    calls = run.table("tf_data_calls", host=host)
    latencies = calls["latency_us"].to_numpy(np.float64)
    groups: dict[Any, Any] = calls.groupby(["host", "pipeline"]).indices
    return {(str(at), str(name)): latencies[positions] for (at, name), positions in groups.items()}


def slowest_pipeline(calls: dict[tuple[str, str], Floats]) -> tuple[str, str] | None:
    """The (host, pipeline) whose mean call is the longest, of those in which the program asks for elements."""
    asked = {key: latencies for key, latencies in calls.items() if key[1].startswith("Host:")}
    return max(asked, key=lambda key: asked[key].mean(), default=None)
