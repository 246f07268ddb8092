"""How input-bound a run is, by the shares that the TensorFlow Profiler uses, and the verdict on its waits.

All pages and advice use this classification. It has TensorBoard's classes: 20 % of the step time is highly, 5 %
moderately input-bound. If steps do not show the waiting time, the same shares apply to the profile and its tf.data
calls. Slow calls matter only by their share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from tfcompare.compare.pooling import mean_of
from tfcompare.compare.side import StepsOf
from tfcompare.compare.spreads import spread_on
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.frames.planes import HOST_PLANE
from tfcompare.frames.steps.steps import XLA_MODULE
from tfcompare.schema import DEVICE, DEVICE_BUSY_PARTS, HOST, SIDES, UNEXPLAINED_PARTS
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.text import capitalized
from tfcompare.units import format_percent, format_time_us
from tfcompare.views.hosts.figures import steps_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
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


def wait_of_side(side: Side) -> InputWait:
    """`wait_of` all captures of a run: means are those of their means, and the share is that of the mean step."""
    waits = side.each(wait_of)
    known = [wait for wait in waits if wait.is_known]
    if (len(waits) == 1 and side.iterations == 1) or not known:
        return waits[0]
    step = _pool_captures([wait.step_time_us for wait in known], side.iterations)
    waiting = _pool_captures([wait.input_time_us for wait in known], side.iterations)
    share = _pool_captures([wait.share for wait in known], 1)
    of_step = waiting.average / step.average
    unexplained = mean_of([wait.unexplained for wait in known])
    steps = sum(wait.steps for wait in known)
    return InputWait(level_of(of_step), steps, step, waiting, replace(share, average=of_step), unexplained)


def _pool_captures(spreads: Sequence[Spread], iterations: int) -> Spread:
    average, deviation = mean_of([one.average for one in spreads]), mean_of([one.deviation for one in spreads])
    ends = min(one.smallest for one in spreads), max(one.largest for one in spreads)
    return Spread(*(value / iterations for value in (average, deviation, *ends)))


def wait_by_calls(pipelines: pd.DataFrame, duration_us: float, why_unknown: str) -> InputWait:
    """The time that a run waits for input, from its tf.data calls; on the host that waits longest.

    For runs whose steps do not show the waiting time. `pipelines` are rows of `tf_data_pipelines`.
    """
    called = _called_by_program(pipelines)
    if called.empty or not duration_us > 0:
        return unknown(why_unknown)
    waiting_us = (called["calls"] * called["mean_latency_us"]).groupby(called["host"]).sum().max()
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
        return unknown("no step takes any time")
    share = float(waiting.sum()) / whole
    unexplained = float(counted[list(UNEXPLAINED_PARTS)].to_numpy().sum()) / whole
    shares = _spread(share_by_step(counted), average=share)
    return InputWait(level_of(share), len(counted), _spread(duration), _spread(waiting), shares, unexplained)


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
        return "no step markers were found"
    if info.step_source.startswith(XLA_MODULE):
        return "its steps are run times of an XLA module, which include no waiting"
    if not info.has_step_times:
        return "the time of its steps is unknown"
    return ""


def level_of(input_share: float) -> Level:
    """The class of a run that spends this share of its time waiting for input."""
    if input_share >= HIGHLY_SHARE:
        return "highly"
    return "moderately" if input_share >= MODERATELY_SHARE else "not"


def _spread(values: pd.Series, average: float | None = None) -> Spread:
    mean = float(values.mean()) if average is None else average
    return Spread(mean, float(values.std(ddof=1)), float(values.min()), float(values.max()))


def mean_call_us(pipelines: pd.DataFrame) -> float:
    """The mean tf.data call in which a program requested an element, in µs; NaN without calls.

    Of all pipelines (rows of `tf_data_pipelines`) except those that only transfer elements to a device.
    """
    called = _called_by_program(pipelines)
    calls = int(called["calls"].sum())
    return float((called["calls"] * called["mean_latency_us"]).sum()) / calls if calls else math.nan


def _called_by_program(pipelines: pd.DataFrame) -> pd.DataFrame:
    return pipelines[~pipelines["feeds_device"].astype(bool)]


def finding(wait: InputWait) -> str:
    """Whether a run is input-bound and why, as a clause: `highly input-bound: it waits 62.2 % of the step time …`."""
    if wait.level == "unknown":
        return f"input wait unknown: {wait.why_unknown}"
    level = f"{wait.level} input-bound"
    if not wait.is_known:
        return f"{level}: tf.data calls take {format_percent(wait.of_profile)} of the profile ({wait.why_unknown})"
    times = f"{format_time_us(wait.input_time_us.average)} of {format_time_us(wait.step_time_us.average)}"
    text = f"{level}: it waits for input {format_percent(wait.share.average)} of the step time ({times})"
    if wait.is_bound or wait.unexplained < MODERATELY_SHARE:
        return text
    return f"{text}; another {format_percent(wait.unexplained)} is unexplained and may be input that Python reads"


def words(wait: InputWait) -> str:
    """As `finding`, as the end of a sentence that begins with the run's name."""
    if wait.level == "unknown":
        return f"does not show how long it waits for input: {wait.why_unknown}"
    return f"is {finding(wait)}"


def headline(
    baseline: InputWait,
    candidate: InputWait,
    names: tuple[str, str] = ("the baseline", "the candidate"),
    *,
    identical: bool = False,
) -> str:
    """How long two runs wait for input, candidate first, without the last full stop; `identical`: both are one capture.

    It describes each run without claiming a change, which would require a verdict. `names` are those of the runs.
    """
    ours, theirs = names
    if identical:
        text = f"{ours} and {theirs} are the same capture: {finding(baseline)}"
    elif baseline.level == candidate.level == "unknown" and baseline.why_unknown == candidate.why_unknown:
        text = f"Input wait unknown for {ours} and {theirs}: {baseline.why_unknown}"
    elif not (baseline.is_known and candidate.is_known):
        text = f"{theirs} {words(candidate)}. {capitalized(ours)} {words(baseline)}"
    else:
        shares = [format_percent(wait.share.average) for wait in (baseline, candidate)]
        text = (
            f"{theirs} waits for input {shares[1]} of the step time ({candidate.level} input-bound), "
            f"{ours} {shares[0]} ({baseline.level} input-bound)"
        )
    return capitalized(text)


def share_by_core(run: Run, host: str | None) -> pd.DataFrame:
    """How the wait for input differs between devices, or between hosts without any, of all hosts or of one.

    One row for each included step, by its position `step` from 1: `least`, `mean` and `largest`, the shares of the
    step's time that its devices wait for input, or copy it there, `largest_on`, the name of the device or host with the
    largest, and `cores`, how many they are. As the range in TensorBoard's input pipeline analyzer, which has it for the
    cores of TPUs.
    """
    rows = steps_by(run, "device")
    rows = rows[rows["included"].astype(bool) & (rows["duration_us"] > 0)]
    if host is not None:
        rows = rows[rows["host"] == host]
    rows = rows.assign(share=rows["input_us"] / rows["duration_us"])
    by_step = rows.groupby("place")["share"]
    shares = by_step.agg(["min", "mean", "max", "size"]).set_axis(["least", "mean", "largest", "cores"], axis=1)
    name = rows["name"].str.removesuffix(f" {HOST_PLANE}")
    return shares.assign(largest_on=name[by_step.idxmax()].to_numpy()).rename_axis("step").reset_index()


def on_waiting(pair: Pair) -> Verdict:
    """The verdict on whether the candidate's steps wait longer or shorter for input: `input_us` of included steps.

    With several hosts, the straggler is used, as in `input_wait`, so the ratio is that of the means there.
    """
    for role, run in zip(SIDES, pair.runs, strict=True):
        if why := why_unknown(run.info):
            return Verdict(UNTESTED, f"the {role}'s input wait is unknown: {why}")
    return on_part(pair, "input_us", (pair.sides[0].host, pair.sides[1].host))


def on_part(pair: Pair, part: str, hosts: tuple[str | None, str | None]) -> Verdict:
    """The verdict on a part of the included steps, one of `schema.STEP_PARTS`, on a host of baseline and candidate;
    None: on the straggler."""
    place = DEVICE if part in DEVICE_BUSY_PARTS else HOST
    return pair.time_verdict(_times(pair, part, hosts), "steps", place)


def part_means_us(pair: Pair, part: str, hosts: tuple[str | None, str | None]) -> tuple[float, float]:
    """The mean times of a part on both sides, of all captures, as `on_part` compares them; NaN without steps."""
    test = ChangeTest(spread_on(pair, HOST))
    ours, theirs = _times(pair, part, hosts)
    return test.value(ours), test.value(theirs)


def _times(pair: Pair, part: str, hosts: tuple[str | None, str | None]) -> tuple[list[Times], list[Times]]:
    kinds = pair.common_kinds

    def of_capture(iterations: int, run: Run, host: str | None) -> Times:
        steps = StepsOf.of(steps_of_straggler(run.table("steps", host=host)), iterations)
        times = steps.times(part)
        return times if kinds is None else kinds.leveled(run, host, steps.numbers, times)

    ours, theirs = (
        side.on(host).each(partial(of_capture, side.iterations)) for side, host in zip(pair.sides, hosts, strict=True)
    )
    return ours, theirs
