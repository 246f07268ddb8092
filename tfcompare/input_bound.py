"""Whether a run is input bound: how much of its steps it spends waiting for input, in numbers and in words.

The classes are those of the TensorFlow Profiler: of the step time, 20 % waiting for input is highly, 5 % moderately
input bound. Below that a run may still be, where 3 % of its step time or more is explained by nothing in the profile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfcompare.frames.steps import XLA_MODULE
from tfcompare.schema.input import SLOW_CALL_US
from tfcompare.units import format_percent, format_time_us

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import RunInfo

HIGHLY_SHARE = 0.20
MODERATELY_SHARE = 0.05
UNEXPLAINED_SHARE = 0.03

Level = Literal["highly", "moderately", "perhaps", "not", "unknown"]

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
    `unexplained`, the share of the time that nothing in the profile explains. Where nothing can be told, `level` is
    `unknown`, `why_unknown` a clause that says why, and the numbers are NaN.
    """

    level: Level
    steps: int
    step_time_us: Spread
    input_time_us: Spread
    share: Spread
    unexplained: float
    why_unknown: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the run tells how long it waits."""
        return self.level != "unknown"


def input_wait(steps: pd.DataFrame, info: RunInfo) -> InputWait:
    """How long a run waits for input.

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
        level_of(share, unexplained),
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
    """A clause on why a run of this kind does not tell how long it waits for input; empty for one that does."""
    if not info.has_steps:
        return "it has no step markers"
    if info.step_source.startswith(XLA_MODULE):
        return "what counts as its step is the run time of an XLA module, in which there is no waiting"
    return ""


def level_of(input_share: float, unexplained: float) -> Level:
    """The class of a run that waits for input, and of whose step time nothing is known, for these shares."""
    if input_share >= HIGHLY_SHARE:
        return "highly"
    if input_share >= MODERATELY_SHARE:
        return "moderately"
    return "perhaps" if unexplained >= UNEXPLAINED_SHARE else "not"


def _spread(values: pd.Series, average: float | None = None) -> Spread:
    mean = float(values.mean()) if average is None else average
    return Spread(mean, float(values.std(ddof=1)), float(values.min()), float(values.max()))


@dataclass(frozen=True)
class Calls:
    """The calls to tf.data in which a program asked for an element: the longest, in µs, and the share of slow ones.

    Both are NaN where there is no call.
    """

    slowest_us: float
    slow_share: float


def calls_of(pipelines: pd.DataFrame) -> Calls:
    """The calls to all pipelines, rows of `tf_data_pipelines`, but for those that only take elements to a device."""
    asked = pipelines[~pipelines["feeds_device"].astype(bool)]
    calls = int(asked["calls"].sum())
    slow_share = float(asked["slow_calls"].sum()) / calls if calls else math.nan
    return Calls(float(asked["max_latency_us"].max()), slow_share)


def words(wait: InputWait, slowest_call_us: float = math.nan) -> str:
    """What is to be said of one run, as the end of a sentence that begins with its name."""
    if not wait.is_known:
        return f"does not tell how long it waits for input, since {wait.why_unknown}.{_by_its_calls(slowest_call_us)}"
    share = format_percent(wait.share.average)
    if wait.level == "perhaps":
        return (
            f"may be input bound: it waits for input only {share} of its step time, but nothing in the profile "
            f"explains another {format_percent(wait.unexplained)}, which may be reading or Python."
        )
    times = f"{format_time_us(wait.input_time_us.average)} of {format_time_us(wait.step_time_us.average)} in each step"
    only = "only " if wait.level == "not" else ""
    return f"is {wait.level} input bound: it waits for input {only}{share} of its step time, {times} on average."


def _by_its_calls(slowest_call_us: float) -> str:
    if math.isnan(slowest_call_us):
        return ""
    limit, took = format_time_us(SLOW_CALL_US), format_time_us(slowest_call_us)
    if slowest_call_us > SLOW_CALL_US:
        return f" The slowest call to tf.data took {took}: above {limit} the program waits for its input."
    return f" Even the slowest call to tf.data took {took}, no more than {limit}: its input was ready."


def headline(baseline: InputWait, candidate: InputWait, *, identical: bool = False) -> str:
    """What became of the waiting for input, in a sentence; `identical`: both are one recording."""
    if identical:
        return f"Both runs are the same recording, which {words(baseline)}"
    if not baseline.is_known and not candidate.is_known:
        why, its_why = baseline.why_unknown, candidate.why_unknown
        whys = f", since {why}" if why == its_why else f": the baseline, since {why}; the candidate, since {its_why}"
        return f"Neither run tells how long it waits for input{whys}."
    for name, known, other, untold in (
        ("candidate", candidate, "baseline", baseline),
        ("baseline", baseline, "candidate", candidate),
    ):
        if not untold.is_known:
            return (
                f"The {name} waits for input {format_percent(known.share.average)} of its step time: it "
                f"{_ALONE[known.level]}. Of the {other} that cannot be told, since {untold.why_unknown}."
            )
    ours, theirs = (format_percent(wait.share.average) for wait in (baseline, candidate))
    outcome = _outcome(baseline.level, candidate)
    return f"The candidate waits for input {theirs} of its step time against {ours} of the baseline: {outcome}."


_ALONE = {
    "highly": "is highly input bound",
    "moderately": "is moderately input bound",
    "perhaps": "may be input bound",
    "not": "is not input bound",
}
_BOTH = {
    "highly": "both are highly input bound",
    "moderately": "both are moderately input bound",
    "perhaps": "both may be input bound, since some of their step time is unexplained",
    "not": "neither is input bound",
}


def _outcome(before: Level, candidate: InputWait) -> str:
    now = candidate.level
    if before == now:
        return _BOTH[now]
    if now == "not":
        return "it is no longer input bound" if before in BOUND else "it is not input bound, which the baseline may be"
    if now == "perhaps":
        unexplained = f"{format_percent(candidate.unexplained)} of its step time is unexplained"
        if before in BOUND:
            return f"it is no longer clearly input bound, though {unexplained}"
        return f"it may be input bound, since {unexplained}"
    if before in BOUND:
        return "it has become highly input bound" if now == "highly" else "it still is input bound, but less so"
    return f"it {'has become' if before == 'not' else 'clearly is'} {now} input bound"


def in_time(baseline: InputWait, candidate: InputWait) -> str:
    """What the shares alone hide: how long a step waits in either run, and whether that or the rest changed."""
    if not (baseline.is_known and candidate.is_known):
        return ""
    ours, theirs = baseline.input_time_us.average, candidate.input_time_us.average
    text = f"On average a step waits {format_time_us(theirs)} against {format_time_us(ours)}"
    if candidate.share.average > baseline.share.average and theirs <= ours:
        if theirs == ours:
            return f"{text}: no longer than before, but the rest of the step got shorter."
        return f"{text}: less than before, but the rest of the step got shorter still."
    if candidate.share.average < baseline.share.average and theirs >= ours:
        if theirs == ours:
            return f"{text}: no less than before, but the rest of the step got longer."
        return f"{text}: more than before, but the rest of the step got longer still."
    return f"{text}."
