"""`tf_data` and `tf_data_pipelines`: latency of tf.data calls, and the bottleneck iterator of each pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.tf_data.tf_data_executions import MOST_ROWS, Analysis, analyse
from tfcompare.frames.tf_data.tf_data_settings import buffered_elements, element_sizes, largest_of_rows, texts_of_rows
from tfcompare.schema.input import SLOW_CALL_US, TF_DATA, TF_DATA_CALLS, TF_DATA_PIPELINES
from tfcompare.units import middle_ellipsis
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Texts = npt.NDArray[np.object_]

_MAX_NAME_LENGTH = 500


@dataclass(frozen=True, eq=False)
class TfData:
    """Columns of `schema.TF_DATA_PIPELINES`, `schema.TF_DATA` (the executions) and `schema.TF_DATA_CALLS`."""

    pipelines: pd.DataFrame
    executions: pd.DataFrame
    calls: pd.DataFrame

    @property
    def remarks(self) -> list[str]:
        """Notes on executions that were dropped, keeping only the slowest."""
        short = self.pipelines[self.pipelines["executions_kept"] < self.pipelines["calls"]]
        if short.empty:
            return []
        which = f"pipeline {short['pipeline'].item()}" if len(short) == 1 else f"{len(short):,} pipelines"
        calls, kept = short["calls"].sum(), short["executions_kept"].sum()
        return [f"tf.data, {which}: of {calls:,} executions the slowest {kept:,} are shown"]


def tf_data(space: XSpace, host: str, most_rows: int = MOST_ROWS, around: Int32 | None = None) -> TfData:
    """The pipelines of one host and their executions; only the slowest executions if all would exceed `most_rows` rows.

    `around` is the result of `links.directly_around`, computed if not given.
    """
    analysis = analyse(space, most_rows, around)
    if analysis is None:
        return TfData(TF_DATA_PIPELINES.empty(), TF_DATA.empty(), TF_DATA_CALLS.empty())
    return TfData(_pipelines(space, analysis, host), _executions(space, analysis, host), _calls(space, analysis, host))


def _calls(space: XSpace, analysis: Analysis, host: str) -> pd.DataFrame:
    executions = analysis.executions  # sorted by start
    names = np.array(analysis.pipelines.names(), np.object_)
    start_ps = space.events.start_ps[analysis.calls.row[executions.call]]
    frame = pd.DataFrame(
        {
            "host": host,
            "pipeline": names[executions.pipeline],
            "call": pd.Series(executions.pipeline).groupby(executions.pipeline).cumcount(),
            "start_us": start_ps / PS_PER_US,
            "latency_us": executions.latency_ps / PS_PER_US,
        }
    )
    order = np.argsort(executions.pipeline, kind="stable")
    return TF_DATA_CALLS.conform(frame.iloc[order].reset_index(drop=True))


def _pipelines(space: XSpace, analysis: Analysis, host: str) -> pd.DataFrame:
    pipelines, executions = analysis.pipelines, analysis.executions
    latency_us = pd.Series(executions.latency_ps / PS_PER_US)
    of_pipeline = latency_us.groupby(executions.pipeline)
    bottleneck, self_time_us = _bottlenecks(space, analysis)
    return TF_DATA_PIPELINES.conform(
        pd.DataFrame(
            {
                "host": host,
                "pipeline": pipelines.names(),
                "calls": of_pipeline.size(),
                "slow_calls": (latency_us > SLOW_CALL_US).groupby(executions.pipeline).sum(),
                "min_latency_us": of_pipeline.min(),
                "mean_latency_us": of_pipeline.mean(),
                "max_latency_us": of_pipeline.max(),
                "bottleneck": bottleneck,
                "bottleneck_self_time_us": self_time_us,
                "feeds_device": pipelines.feeds_device,
                "executions_kept": np.bincount(executions.pipeline, weights=executions.is_retained),
            }
        )
    )


def _bottlenecks(space: XSpace, analysis: Analysis) -> tuple[Texts, npt.NDArray[np.float64]]:
    """(long name, self time) of the bottleneck in the slowest execution of each pipeline."""
    rows, executions = analysis.rows, analysis.executions
    blamed = np.flatnonzero(rows.is_bottleneck & (executions.rank[rows.execution] == 0))
    pipeline = executions.pipeline[rows.execution[blamed]]
    names = np.full(len(analysis.pipelines.iterator), "", np.object_)
    names[pipeline] = _names(space, analysis, blamed)
    self_time_us = np.zeros(len(names))
    self_time_us[pipeline] = rows.self_ps[blamed] / PS_PER_US
    return names, self_time_us


def _executions(space: XSpace, analysis: Analysis, host: str) -> pd.DataFrame:
    calls, executions, rows = analysis.calls, analysis.executions, analysis.rows
    pipeline, rank = executions.pipeline[rows.execution], executions.rank[rows.execution]
    long_name = _names(space, analysis, np.arange(len(rows.first)))
    own_names = {name: name.rpartition("::")[2] for name in dict.fromkeys(long_name)}
    ids = np.array(
        [*(str(i) for i in calls.ids.view(np.uint64).tolist()), ""], np.object_
    )  # the last element is for index −1
    frame = pd.DataFrame(
        {
            "host": host,
            "pipeline": np.array(analysis.pipelines.names(), np.object_)[pipeline],
            "execution": rank,
            "iterator_id": ids[rows.iterator],
            "long_name": long_name,
            "iterator": [own_names[name] for name in long_name],
            "parent_id": ids[rows.caller],
            "calls": rows.calls,
            "start_us": rows.start_ps / PS_PER_US,
            "total_duration_us": rows.total_ps / PS_PER_US,
            "self_time_us": rows.self_ps / PS_PER_US,
            "on_critical_path": rows.is_waited_for,
            "is_bottleneck": rows.is_bottleneck,
            "parallelism": largest_of_rows(space, analysis, "parallelism"),
            "buffer_limit": largest_of_rows(space, analysis, "buffer_limit"),
            "buffered_elements": buffered_elements(space, analysis),
            "element_size_bytes": element_sizes(space, analysis),
            **texts_of_rows(space, analysis),
        }
    )
    name_rank = pd.factorize(frame["long_name"], sort=True)[0]
    return TF_DATA.conform(frame.iloc[np.lexsort((rows.start_ps, name_rank, rank, pipeline))].reset_index(drop=True))


def _names(space: XSpace, analysis: Analysis, rows: Int64) -> list[str]:
    """The long names of these iterator rows."""
    events = analysis.calls.row[analysis.rows.first[rows]]
    used, which = np.unique(space.events.metadata[events], return_inverse=True)
    names = [str(name) for name in space.metadata_names[used]]
    names = [middle_ellipsis(name, _MAX_NAME_LENGTH) for name in names]  # the end identifies the iterator
    return [names[i] for i in which.tolist()]
