"""Whether a run is input bound: how much of its steps it spends waiting for input, in numbers and in words.

Decided here for every page and for advice, in the classes of TensorBoard: of the step time, 20 % waiting for input is
highly, 5 % moderately input bound. Where steps tell nothing, the same shares hold for the profile and its calls to
tf.data. However slow a call is, it only counts by its share.
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
    """Average, standard deviation (of a sample; NaN for a single value), smallest and largest of one number a step."""

    average: float
    deviation: float
    smallest: float
    largest: float


NOTHING = Spread(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class InputWait:
    """How long a run's included steps wait for input, copies of it to the device included.

    Times are microseconds, shares fractions of 1. The average share is that of all step time together, as is
    `unexplained`, the share of the time that nothing in the profile explains. Where steps tell nothing, `why_unknown`
    is a clause that says why, and these numbers are NaN; `of_profile` is then the share of the profile that calls to
    tf.data took, NaN without any. `level` is `unknown` where neither share is known.
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
        """Whether the steps tell how long they wait."""
        return not self.why_unknown

    @property
    def is_bound(self) -> bool:
        """Whether the run is input bound, highly or moderately."""
        return self.level in BOUND


def wait_of(run: Run, host: str | None = None) -> InputWait:
    """How long a run waits for input, on one host or, of several, on the one that holds the others up."""
    found = input_wait(steps_of_straggler(run.table("steps", host=host)), run.info)
    if found.is_known:
        return found
    return wait_by_calls(run.table("tf_data_pipelines", host=host), run.info.duration_ms * 1e3, found.why_unknown)


def wait_by_calls(pipelines: pd.DataFrame, duration_us: float, why_unknown: str) -> InputWait:
    """The same of a run whose steps tell nothing, by its calls to tf.data; of several hosts, the one that waits most.

    `pipelines` are rows of `tf_data_pipelines`.
    """
    asked = _asked(pipelines)
    if asked.empty or not duration_us > 0:
        return unknown(why_unknown)
    waiting_us = (asked["calls"] * asked["mean_latency_us"]).groupby(asked["host"]).sum().max()
    share = min(float(waiting_us) / duration_us, 1.0)
    return replace(unknown(why_unknown), level=level_of(share), of_profile=share)


def input_wait(steps: pd.DataFrame, info: RunInfo) -> InputWait:
    """How long a run waits for input, by its steps.

    `steps` has one row a step with the columns of `schema.STEPS`, of one host or of the slowest of each step; `info`
    says what marked them.
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
    """The share of each step that is spent waiting for input; 0 for a step that takes no time."""
    duration = steps["duration_us"].astype("float64")
    return (steps["input_us"] / duration).where(duration > 0, 0.0)


def unknown(why: str) -> InputWait:
    """What is known of a run that does not tell how long it waits, for the reason that the clause gives."""
    return InputWait("unknown", 0, NOTHING, NOTHING, NOTHING, math.nan, why)


def why_unknown(info: RunInfo) -> str:
    """A clause on why the steps of a run of this kind do not tell how long they wait; empty where they do."""
    if not info.has_steps:
        return "it has no step markers"
    if info.step_source.startswith(XLA_MODULE):
        return "what counts as its step is the run time of an XLA module, in which there is no waiting"
    return ""


def level_of(input_share: float) -> Level:
    """The class of a run that waits for input for this share of its time."""
    if input_share >= HIGHLY_SHARE:
        return "highly"
    return "moderately" if input_share >= MODERATELY_SHARE else "not"


def _spread(values: pd.Series, average: float | None = None) -> Spread:
    mean = float(values.mean()) if average is None else average
    return Spread(mean, float(values.std(ddof=1)), float(values.min()), float(values.max()))


@dataclass(frozen=True)
class Calls:
    """The calls to tf.data in which a program asked for an element: the mean and the longest, in µs, and the share of
    slow ones. All are NaN where there is no call.
    """

    mean_us: float
    slowest_us: float
    slow_share: float


def calls_of(pipelines: pd.DataFrame) -> Calls:
    """The calls to all pipelines, rows of `tf_data_pipelines`, but for those that only take elements to a device."""
    asked = _asked(pipelines)
    calls = int(asked["calls"].sum())
    if not calls:
        return Calls(math.nan, math.nan, math.nan)
    mean_us = float((asked["calls"] * asked["mean_latency_us"]).sum()) / calls
    return Calls(mean_us, float(asked["max_latency_us"].max()), float(asked["slow_calls"].sum()) / calls)


def _asked(pipelines: pd.DataFrame) -> pd.DataFrame:
    return pipelines[~pipelines["feeds_device"].astype(bool)]


def words(wait: InputWait) -> str:
    """Whether one run is input bound, as the end of a sentence that begins with its name."""
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
    """Whether two runs are input bound, in a sentence or two; `identical`: both are one recording.

    It says what is true of each run, and claims no change: that takes a verdict.
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
    """What the shares alone hide: how long a step of either run waits, and how long it is."""
    if not (baseline.is_known and candidate.is_known):
        return ""
    ours, theirs = (
        f"{format_time_us(w.input_time_us.average)} of {format_time_us(w.step_time_us.average)}"
        for w in (baseline, candidate)
    )
    return f"Waiting per step: {theirs}, baseline {ours}."
