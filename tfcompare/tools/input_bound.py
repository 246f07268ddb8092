"""Classifies runs as input-bound by the share of step time spent waiting for input, in numbers and in words.

All pages and advice use this classification. It has TensorBoard's classes: 20 % of the step time is highly, 5 %
moderately input-bound. If steps do not show the waiting time, the same shares apply to the profile and its tf.data
calls. Slow calls matter only by their share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.frames.steps.steps import XLA_MODULE
from tfcompare.units import format_percent, format_time_us

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run, RunInfo

HIGHLY_SHARE = 0.20
MODERATELY_SHARE = 0.05

Level = Literal["highly", "moderately", "not", "unknown"]

BOUND: tuple[Level, ...] = ("highly", "moderately")


@dataclass(frozen=True)
class Spread:
    """Mean, sample standard deviation (NaN for a single value), minimum and maximum of a per-step value."""

    average: float
    deviation: float
    smallest: float
    largest: float


NOTHING = Spread(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class InputWait:
    """The time that a run's included steps wait for input, including copies of the input to the device.

    Times are microseconds, shares are fractions of 1. The average share refers to the total step time, and so does
    `unexplained`, the share of time that nothing in the profile explains. If steps do not show the waiting time,
    `why_unknown` is a clause with the reason, these numbers are NaN, and `of_profile` is the share of the profile spent
    in tf.data calls, NaN without calls. `level` is `unknown` if neither share is known.
    """

    level: Level
    steps: int
    step_time_us: Spread
    input_time_us: Spread
    share: Spread
    unexplained: float
    why_unknown: str = ""
    of_profile: float = math.nan

    @property
    def is_known(self) -> bool:
        """Whether the steps show how long they wait."""
        return not self.why_unknown

    @property
    def is_bound(self) -> bool:
        """Whether the run is highly or moderately input-bound."""
        return self.level in BOUND


def wait_of(run: Run, host: str | None = None) -> InputWait:
    """The time that a run waits for input on one host; by default, on the straggler."""
    found = input_wait(steps_of_straggler(run.table("steps", host=host)), run.info)
    if found.is_known:
        return found
    return wait_by_calls(run.table("tf_data_pipelines", host=host), run.info.duration_ms * 1e3, found.why_unknown)


def wait_by_calls(pipelines: pd.DataFrame, duration_us: float, why_unknown: str) -> InputWait:
    """The time that a run waits for input, from its tf.data calls; on the host that waits longest.

    For runs whose steps do not show the waiting time. `pipelines` are rows of `tf_data_pipelines`.
    """
    asked = _asked(pipelines)
    if asked.empty or not duration_us > 0:
        return unknown(why_unknown)
    waiting_us = (asked["calls"] * asked["mean_latency_us"]).groupby(asked["host"]).sum().max()
    share = min(float(waiting_us) / duration_us, 1.0)
    return replace(unknown(why_unknown), level=level_of(share), of_profile=share)


def input_wait(steps: pd.DataFrame, info: RunInfo) -> InputWait:
    """The time that a run waits for input, from its steps.

    `steps` has one row per step with the columns of `schema.STEPS`, for one host or the slowest host of each step;
    `info` contains the source of the step markers.
    """
    if why := why_unknown(info):
        return unknown(why)
    counted = steps[steps["included"].astype(bool)]
    duration, waiting = counted["duration_us"].astype("float64"), counted["input_us"].astype("float64")
    whole = float(duration.sum())
    if whole <= 0:
        return unknown("it has no step that takes any time")
    share = float(waiting.sum()) / whole
    unexplained = float(counted["other_us"].sum()) / whole
    return InputWait(
        level_of(share),
        len(counted),
        _spread(duration),
        _spread(waiting),
        _spread(share_by_step(counted), average=share),
        unexplained,
    )


def share_by_step(steps: pd.DataFrame) -> pd.Series:
    """The share of each step spent waiting for input; 0 for a step of duration 0."""
    duration = steps["duration_us"].astype("float64")
    return (steps["input_us"] / duration).where(duration > 0, 0.0)


def unknown(why: str) -> InputWait:
    """The result for a run with unknown waiting time; `why` is a clause with the reason."""
    return InputWait("unknown", 0, NOTHING, NOTHING, NOTHING, math.nan, why)


def why_unknown(info: RunInfo) -> str:
    """A clause on why the steps of such a run do not show how long they wait; empty if they do."""
    if not info.has_steps:
        return "it has no step markers"
    if info.step_source.startswith(XLA_MODULE):
        return "what counts as its step is the run time of an XLA module, in which there is no waiting"
    return ""


def level_of(input_share: float) -> Level:
    """The class of a run that spends this share of its time waiting for input."""
    if input_share >= HIGHLY_SHARE:
        return "highly"
    return "moderately" if input_share >= MODERATELY_SHARE else "not"


def _spread(values: pd.Series, average: float | None = None) -> Spread:
    mean = float(values.mean()) if average is None else average
    return Spread(mean, float(values.std(ddof=1)), float(values.min()), float(values.max()))


@dataclass(frozen=True)
class Calls:
    """The tf.data calls in which a program requested an element: mean and maximum in µs, and the share of slow calls.

    All are NaN if there are no calls.
    """

    mean_us: float
    slowest_us: float
    slow_share: float


def calls_of(pipelines: pd.DataFrame) -> Calls:
    """The calls to all pipelines (rows of `tf_data_pipelines`) except those that only transfer elements to a device."""
    asked = _asked(pipelines)
    calls = int(asked["calls"].sum())
    if not calls:
        return Calls(math.nan, math.nan, math.nan)
    mean_us = float((asked["calls"] * asked["mean_latency_us"]).sum()) / calls
    return Calls(mean_us, float(asked["max_latency_us"].max()), float(asked["slow_calls"].sum()) / calls)


def _asked(pipelines: pd.DataFrame) -> pd.DataFrame:
    return pipelines[~pipelines["feeds_device"].astype(bool)]


def words(wait: InputWait) -> str:
    """Whether a run is input-bound, as the end of a sentence that begins with its name."""
    if wait.level == "unknown":
        return f"does not tell how long it waits for input, since {wait.why_unknown}."
    is_bound = f"is {wait.level} input bound"
    if not wait.is_known:
        calls = f"calls to tf.data took {format_percent(wait.of_profile)} of the profile"
        return f"{is_bound}: {calls}. How long a step waits is unknown, since {wait.why_unknown}."
    share = f"{format_percent(wait.share.average)} of the step time"
    times = f"{format_time_us(wait.input_time_us.average)} of {format_time_us(wait.step_time_us.average)} per step"
    text = f"{is_bound}: it waits for input for {share}, {times} on average."
    if wait.is_bound or wait.unexplained < MODERATELY_SHARE:
        return text
    return f"{text} Another {format_percent(wait.unexplained)} is unexplained; reading in Python may be part of it."


def headline(baseline: InputWait, candidate: InputWait, *, identical: bool = False) -> str:
    """One or two sentences on whether two runs are input-bound; `identical`: both are the same capture.

    They describe each run without claiming a change, which would require a verdict.
    """
    if identical:
        return f"Both runs are the same recording, which {words(baseline)}"
    if baseline.level == candidate.level == "unknown" and baseline.why_unknown == candidate.why_unknown:
        return f"Neither run tells how long it waits for input, since {baseline.why_unknown}."
    if not (baseline.is_known and candidate.is_known):
        return f"The candidate {words(candidate)} The baseline {words(baseline)}"
    ours, theirs = (f"{format_percent(w.share.average)} ({w.level} input bound)" for w in (baseline, candidate))
    return f"Waiting for input as a share of the step time: {theirs}, baseline {ours}."


def in_time(baseline: InputWait, candidate: InputWait) -> str:
    """A sentence on the waiting time and the step time of both runs, which shares alone do not show."""
    if not (baseline.is_known and candidate.is_known):
        return ""
    ours, theirs = (
        f"{format_time_us(w.input_time_us.average)} of {format_time_us(w.step_time_us.average)}"
        for w in (baseline, candidate)
    )
    return f"Waiting per step: {theirs}, baseline {ours}."
