"""The bottleneck analysis of the TensorFlow guide for one run.

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
