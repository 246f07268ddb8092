"""The bottleneck analysis of the TensorFlow guide for one run, and a sentence that compares the input of two runs.

The guide has five steps: find the most input-bound host, its slowest execution, the graph of that execution, the
critical path through the graph, and the slowest transformation on that path
(https://www.tensorflow.org/guide/data_performance_analysis). A single slow call may be an exception, so sentences and
advice name the iterator for which all calls together waited the longest.

Which iterator is the bottleneck of each execution, `is_bottleneck`, is decided when a profile is read: see `find_rows`
in `frames/tf_data/tf_data_executions.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from tfcompare.compare.tf_data.iterator_tree import display_name
from tfcompare.compare.tf_data.iterators import pair_iterators
from tfcompare.compare.tf_data.pipelines import iterators_of
from tfcompare.units import format_time_us

_OF_FILE_OR_EPOCH = re.compile(r"((?:Repeat|FlatMap|Interleave)\w*)\[\d+\]")
"""Matches the numbers of iterators that do the same work for successive files or epochs."""


@dataclass(frozen=True)
class Analysis:
    """The result of the five steps for one run.

    `feeds_device_only`: the run has only pipelines that transfer elements to a device. `hosts` are those with tf.data
    pipelines; `host` is the most input-bound of them unless another was requested, and likewise `pipeline` and `rank`.
    `calls` and `mean_us` describe the pipeline, `latency_us` the execution. `iterators` are the execution's rows of
    `tf_data`, empty if it was not stored. `usual_bottleneck` is the iterator with the largest self time on the critical
    paths of all stored executions: a row of `tf_data` whose `self_time_us` is the mean per execution; None if there is
    none.
    """

    feeds_device_only: bool
    hosts: tuple[str, ...]
    host: str
    pipeline: str
    rank: int
    calls: int
    mean_us: float
    latency_us: float
    iterators: pd.DataFrame
    usual_bottleneck: pd.Series | None

    @property
    def critical_path(self) -> pd.DataFrame:
        """The iterators that the execution waited for, from the pipeline's top iterator down."""
        return self.iterators[self.iterators["on_critical_path"]]

    @property
    def bottleneck(self) -> pd.Series | None:
        """The slowest iterator on the critical path, or None."""
        found = self.iterators[self.iterators["is_bottleneck"]]
        return None if found.empty else found.iloc[0]


def analyse(
    pipelines: pd.DataFrame, executions: pd.DataFrame, *, host: str = "", pipeline: str = "", rank: int = 0
) -> Analysis | None:
    """The analysis of a run with these `tf_data_pipelines` and `tf_data`; None if it has no matching pipeline.

    By default, the host and the pipeline are those of the longest call. Pipelines that only transfer elements to a
    device are analysed only if there is no other.
    """
    own = pipelines[~pipelines["feeds_device"].astype(bool)]
    asked = pipelines if pipeline else pipelines if own.empty else own
    for column, wanted in (("host", host), ("pipeline", pipeline)):
        asked = asked[asked[column] == wanted] if wanted else asked
    if asked.empty:
        return None
    row = asked.sort_values("max_latency_us", ascending=False, kind="stable").iloc[0]
    every = executions[(executions["host"] == row["host"]) & (executions["pipeline"] == row["pipeline"])]
    rows = every[every["execution"] == rank].reset_index(drop=True)
    return Analysis(
        feeds_device_only=own.empty,
        hosts=tuple(pipelines["host"].unique()),
        host=row["host"],
        pipeline=row["pipeline"],
        rank=rank,
        calls=int(row["calls"]),
        mean_us=float(row["mean_latency_us"]),
        latency_us=float(rows.loc[rows["parent_id"] == "", "total_duration_us"].max()),
        iterators=rows,
        usual_bottleneck=None if row["feeds_device"] else _usual_bottleneck(every),
    )


def _usual_bottleneck(executions: pd.DataFrame) -> pd.Series | None:
    waited_for = executions[executions["on_critical_path"].astype(bool)]
    stage = stages(waited_for["long_name"])
    times = waited_for["self_time_us"].groupby(stage).sum()
    if times.empty or not times.max() > 0:
        return None
    row = waited_for[stage == times.idxmax()].sort_values("execution", kind="stable").iloc[0].copy()
    row["self_time_us"] = times.max() / executions["execution"].nunique()
    return row


def stages(long_names: pd.Series) -> pd.Series:
    """The long names without file and epoch numbers, so that iterators with the same function share a name."""
    return long_names.str.replace(_OF_FILE_OR_EPOCH, r"\1", regex=True)


AnalysisPair = tuple[Analysis | None, Analysis | None]
"""The analyses of baseline and candidate; None for a run without tf.data calls."""

RunNames = tuple[str, str]
"""What sentences call the baseline and the candidate."""


def change(sides: AnalysisPair, are_bound: tuple[bool, bool], names: RunNames, *, identical: bool = False) -> str:
    """The input bottlenecks of two runs, candidate first, in one or two sentences of plain text without the last full
    stop.

    `are_bound`: whether each run is input-bound; a run that is not has no bottleneck. `identical`: both runs are the
    same capture.
    """
    ours, theirs = names
    baseline, candidate = sides
    if baseline is None or candidate is None:
        return _without_tf_data(sides, are_bound, names)
    if identical:
        return f"{ours} and {theirs} are the same capture: {finding(candidate, are_bound[1])}"
    if baseline.feeds_device_only or candidate.feeds_device_only:
        return _to_devices_only((baseline, candidate), are_bound, names)
    mean = f"Mean call: {theirs} {format_time_us(candidate.mean_us)}, {ours} {format_time_us(baseline.mean_us)}"
    if are_bound == (True, True):
        return f"{_of_both_bound(baseline, candidate, names)} {mean}"
    if are_bound == (False, False):
        return f"Neither run is input-bound. {mean}"
    if are_bound[1]:
        return f"{theirs} is input-bound{_blamed(candidate)}, {ours} is not. {mean}"
    return f"{theirs} is not input-bound, {ours} is{_blamed(baseline)}. {mean}"


def _without_tf_data(sides: AnalysisPair, are_bound: tuple[bool, bool], names: RunNames) -> str:
    for there, is_bound, name, missing in zip(sides, are_bound, names, names[::-1], strict=True):
        if there is not None:
            return f"No tf.data calls in {missing}. In {name}, {finding(there, is_bound)}"
    return "No tf.data calls in either profile"


def _to_devices_only(sides: tuple[Analysis, Analysis], are_bound: tuple[bool, bool], names: RunNames) -> str:
    known = list(zip(names, sides, are_bound, strict=True))
    only = [name for name, side, _ in known if side.feeds_device_only]
    others = [f"In {name}, {finding(side, bound)}" for name, side, bound in known if not side.feeds_device_only]
    text = f"{' and '.join(only)}: only pipelines that pass elements to a device were recorded"
    return ". ".join([text, *others])


def finding(analysis: Analysis, is_bound: bool) -> str:
    """`the mean call takes 8.22 ms (bottleneck: Map)`."""
    return f"the mean call takes {format_time_us(analysis.mean_us)}{_blamed(analysis) if is_bound else ''}"


def _blamed(analysis: Analysis) -> str:
    bottleneck = analysis.usual_bottleneck
    return "" if bottleneck is None else f" (bottleneck: {display_name(bottleneck['iterator'])})"


def _of_both_bound(baseline: Analysis, candidate: Analysis, names: RunNames) -> str:
    """The bottlenecks of two input-bound runs."""
    ours, theirs = baseline.usual_bottleneck, candidate.usual_bottleneck
    if ours is None or theirs is None:
        return "Both runs are input-bound."
    was, now = display_name(ours["iterator"]), display_name(theirs["iterator"])
    if _is_paired(baseline, candidate, ours, theirs):
        return (
            f"Bottleneck of both runs: {now}." if was == now else f"Bottleneck: {now}, in {names[0]} {was} (same step)."
        )
    own, of_baseline = (f" ({side.pipeline})" for side in (candidate, baseline))
    if baseline.pipeline == candidate.pipeline:
        own, of_baseline = "", " (another step)" if was == now else ""
    return f"Bottleneck: {now}{own}, in {names[0]} {was}{of_baseline}."


def _is_paired(baseline: Analysis, candidate: Analysis, ours: pd.Series, theirs: pd.Series) -> bool:
    """Whether the two bottlenecks are matched iterators."""
    sides = baseline.iterators, candidate.iterators
    pairs = pair_iterators(*(iterators_of(side) for side in sides))
    names = [side["long_name"].tolist() for side in sides]
    return any(
        names[0][pair.baseline] == ours["long_name"] and names[1][pair.candidate] == theirs["long_name"]
        for pair in pairs
    )
