"""The bottleneck analysis of the TensorFlow guide for one run, and what changed from one run to another in a sentence.

The guide's five steps: the most input-bound host, its slowest execution, the graph of that, the critical path through
it, the slowest transformation on that path (https://www.tensorflow.org/guide/data_performance_analysis).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from tfcompare.compare.headline import BETWEEN_RECORDINGS
from tfcompare.compare.iterator_tree import display_name
from tfcompare.compare.iterators import pair_iterators
from tfcompare.compare.pipelines import iterators_of
from tfcompare.schema.input import SLOW_CALL_US
from tfcompare.units import format_time_us

Input = Literal["none", "to devices only", "not input bound", "input bound"]
"""What tf.data means for a run: nothing was recorded; only what hands elements to devices was; no call of a pipeline
took longer than 50 µs; one did."""


@dataclass(frozen=True)
class Analysis:
    """The five steps for one run.

    `input` is the run's; `hosts` are those with pipelines of tf.data, `host` the most input-bound of them, or the one
    that was asked for, like `pipeline` and `rank`. `calls`, `slow_calls`, `mean_us` and `longest_us` are the
    pipeline's, `latency_us` the execution's. `iterators` are its rows of `tf_data`, none where it was not kept.
    """

    input: Input
    hosts: tuple[str, ...]
    host: str
    pipeline: str
    rank: int
    calls: int
    slow_calls: int
    mean_us: float
    longest_us: float
    latency_us: float
    iterators: pd.DataFrame

    @property
    def critical_path(self) -> pd.DataFrame:
        """The iterators that the execution waited for, from the pipeline's own one down."""
        return self.iterators[self.iterators["on_critical_path"]]

    @property
    def bottleneck(self) -> pd.Series | None:
        """The slowest of these, or None."""
        found = self.iterators[self.iterators["is_bottleneck"]]
        return None if found.empty else found.iloc[0]

    @property
    def exceeds_call(self) -> bool:
        """Whether some iterator took longer than the whole execution: its calls overlap, or began before it."""
        times = self.iterators[["self_time_us", "total_duration_us"]]
        return bool((times > self.latency_us).any(axis=None))


def analyse(
    pipelines: pd.DataFrame, executions: pd.DataFrame, *, host: str = "", pipeline: str = "", rank: int = 0
) -> Analysis | None:
    """The analysis of a run with these `tf_data_pipelines` and `tf_data`; None where it has no pipeline of that name.

    Without a host that of the longest call, without a pipeline the one that it was a call of. Pipelines that only take
    elements to a device are looked at where there is no other.
    """
    own = pipelines[~pipelines["feeds_device"]]
    state: Input = "none" if pipelines.empty else "to devices only"
    if not own.empty:
        state = "input bound" if own["max_latency_us"].max() > SLOW_CALL_US else "not input bound"
    asked = pipelines if pipeline else pipelines if own.empty else own
    for column, wanted in (("host", host), ("pipeline", pipeline)):
        asked = asked[asked[column] == wanted] if wanted else asked
    if asked.empty:
        return None
    row = asked.sort_values("max_latency_us", ascending=False, kind="stable").iloc[0]
    rows = executions[
        (executions["host"] == row["host"])
        & (executions["pipeline"] == row["pipeline"])
        & (executions["execution"] == rank)
    ].reset_index(drop=True)
    return Analysis(
        input=state,
        hosts=tuple(pipelines["host"].unique()),
        host=row["host"],
        pipeline=row["pipeline"],
        rank=rank,
        calls=int(row["calls"]),
        slow_calls=int(row["slow_calls"]),
        mean_us=float(row["mean_latency_us"]),
        longest_us=float(row["max_latency_us"]),
        latency_us=float(rows.loc[rows["parent_id"] == "", "total_duration_us"].max()),
        iterators=rows,
    )


def change(baseline: Analysis | None, candidate: Analysis | None, *, identical: bool) -> str:
    """What happened to the input, in a sentence or two of plain text; `None` is a run without calls of tf.data."""
    if baseline is None or candidate is None:
        return _without_tf_data(baseline, candidate)
    if identical:
        return f"Both are the same recording: {_finding(candidate)}."
    if "to devices only" in (baseline.input, candidate.input):
        return _to_devices_only(baseline, candidate)
    latency = _latency(baseline, candidate)
    sides = baseline.input, candidate.input
    if sides == ("not input bound", "not input bound"):
        return (
            f"Neither run waits for its input, since no call took longer than {SLOW_CALL_US:.0f} µs. {_upper(latency)}."
        )
    if sides == ("input bound", "not input bound"):
        return f"The candidate no longer waits for its input: {latency}, and up to {SLOW_CALL_US:.0f} µs delay nothing."
    if sides == ("not input bound", "input bound"):
        return f"The candidate now waits for its input{_blamed(candidate)}: {latency}."
    return f"{_bottlenecks(baseline, candidate)}{latency}."


def time_change(before_us: float, after_us: float) -> str:
    """`fell from 3.30 to 0.212 ms`, `rose from 41.7 µs to 3.30 ms`, `stayed at 3.30 ms`."""
    before, after = format_time_us(before_us), format_time_us(after_us)
    if before == after:
        return f"stayed at {after}"
    unit = before.rpartition(" ")[2]
    if unit == after.rpartition(" ")[2]:
        before = before.rpartition(" ")[0]
    return f"{'fell' if after_us < before_us else 'rose'} from {before} to {after}"


def _without_tf_data(baseline: Analysis | None, candidate: Analysis | None) -> str:
    there = baseline or candidate
    if there is None:
        return "Neither profile holds calls of tf.data."
    missing, other = ("candidate", "baseline") if candidate is None else ("baseline", "candidate")
    return f"The {missing}'s profile holds no calls of tf.data. In the {other}, {_finding(there)}."


def _to_devices_only(baseline: Analysis, candidate: Analysis) -> str:
    sides = {"baseline": baseline, "candidate": candidate}
    only = [role for role, side in sides.items() if side.input == "to devices only"]
    others = [f" In the {role}, {_finding(side)}." for role, side in sides.items() if role not in only]
    who = "Both profiles hold" if len(only) == 2 else f"The {only[0]}'s profile holds"
    return f"{who} only pipelines that hand elements to a device, not the ones that make them.{''.join(others)}"


def _finding(analysis: Analysis) -> str:
    """`the longest next-element latency is 8.22 ms, with Map the bottleneck`."""
    return f"the longest next-element latency is {format_time_us(analysis.longest_us)}{_blamed(analysis)}"


def _blamed(analysis: Analysis) -> str:
    bottleneck = analysis.bottleneck
    return "" if bottleneck is None else f", with {display_name(bottleneck['iterator'])} the bottleneck"


def _bottlenecks(baseline: Analysis, candidate: Analysis) -> str:
    """Where the bottleneck was and is, up to what follows on the latency."""
    ours, theirs = baseline.bottleneck, candidate.bottleneck
    if ours is None or theirs is None:
        return "Both runs wait for their input: "
    was, now = display_name(ours["iterator"]), display_name(theirs["iterator"])
    if not _is_paired(baseline, candidate):
        where = [
            f" ({side.pipeline})" if baseline.pipeline != candidate.pipeline else "" for side in (baseline, candidate)
        ]
        if was == now:
            return f"The bottleneck moved from one {was}{where[0]} to another{where[1]}; "
        return f"The bottleneck moved from {was}{where[0]} to {now}{where[1]}; "
    if was != now:
        return f"The bottleneck is still the same step, now {now} (it was {was}); "
    return f"The bottleneck is still {now}; "


def _is_paired(baseline: Analysis, candidate: Analysis) -> bool:
    """Whether the two bottlenecks stand at the same place."""
    sides = baseline.iterators, candidate.iterators
    blamed = [int(side["is_bottleneck"].to_numpy().argmax()) for side in sides]
    pairs = pair_iterators(*(iterators_of(side) for side in sides))
    return any([pair.baseline, pair.candidate] == blamed for pair in pairs)


def _latency(baseline: Analysis, candidate: Analysis) -> str:
    longest = time_change(baseline.longest_us, candidate.longest_us)
    mean = time_change(baseline.mean_us, candidate.mean_us)
    text = (
        f"the longest next-element latency {longest}, the mean {mean.removeprefix(longest.partition(' ')[0]).strip()}"
    )
    if _is_small(baseline.longest_us, candidate.longest_us) and _is_small(baseline.mean_us, candidate.mean_us):
        text += f" (two recordings of one program often differ by {BETWEEN_RECORDINGS:.0%}".replace("%", " %)")
    return text


def _is_small(before: float, after: float) -> bool:
    return (
        before > 0 and after > 0 and before != after and abs(math.log(after / before)) <= math.log1p(BETWEEN_RECORDINGS)
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
