"""`tf_data` and `tf_data_pipelines`: latency of tf.data calls, and the bottleneck iterator of each pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table, texts
from tfcompare.frames.tf_data.tf_data_executions import MOST_ROWS, Analysis, analyse
from tfcompare.frames.tf_data.tf_data_settings import (
    buffered_elements,
    element_sizes,
    largest_of_rows,
    spread_texts,
    texts_of_rows,
)
from tfcompare.schema.arrays import Floats, Int32, Int64
from tfcompare.schema.input import SLOW_CALL_US
from tfcompare.text import middle_ellipsis
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_MAX_NAME_LENGTH = 500


@dataclass(frozen=True, eq=False)
class TfData:
    """The host tables `tf_data_pipelines`, `tf_data_executions` and `tf_data_calls`."""

    pipelines: pa.Table
    executions: pa.Table
    calls: pa.Table

    @property
    def remarks(self) -> list[str]:
        """Notes on executions that were dropped, keeping only the slowest."""
        calls, kept = (self.pipelines[name].to_numpy() for name in ("calls", "executions_kept"))
        short = np.flatnonzero(kept < calls)
        if not len(short):
            return []
        first = self.pipelines["pipeline"][int(short[0])]
        which = f"pipeline {first}" if len(short) == 1 else f"{len(short):,} pipelines"
        return [f"tf.data, {which}: of {calls[short].sum():,} executions the slowest {kept[short].sum():,} are shown"]


def tf_data(space: XSpace, most_rows: int = MOST_ROWS, around: Int32 | None = None) -> TfData:
    """The pipelines of one host and their executions; only the slowest executions if all would exceed `most_rows` rows.

    `around` is the result of `links.directly_around`, computed if not given.
    """
    analysis = analyse(space, most_rows, around)
    if analysis is None:
        return TfData(*(empty(f"tf_data_{part}") for part in ("pipelines", "executions", "calls")))
    return TfData(_pipelines(space, analysis), _executions(space, analysis), _calls(space, analysis))


def _calls(space: XSpace, analysis: Analysis) -> pa.Table:
    executions = analysis.executions  # sorted by start
    order = np.argsort(executions.pipeline, kind="stable")
    pipeline = executions.pipeline[order]
    return host_table(
        "tf_data_calls",
        {
            "pipeline": texts(pipeline, analysis.pipelines.names()),
            "call": np.arange(len(order)) - np.searchsorted(pipeline, pipeline),
            "start_us": space.events.start_ps[analysis.calls.row[executions.call[order]]] / PS_PER_US,
            "latency_us": executions.latency_ps[order] / PS_PER_US,
        },
    )


def _pipelines(space: XSpace, analysis: Analysis) -> pa.Table:
    pipelines, executions = analysis.pipelines, analysis.executions
    count = len(pipelines.iterator)
    order = np.argsort(executions.pipeline, kind="stable")
    latency_us = executions.latency_ps[order] / PS_PER_US
    first = np.searchsorted(executions.pipeline[order], np.arange(count))
    calls = np.bincount(executions.pipeline, minlength=count)
    bottleneck, self_time_us = _bottlenecks_of_slowest(space, analysis)
    return host_table(
        "tf_data_pipelines",
        {
            "pipeline": pipelines.names(),
            "calls": calls,
            "slow_calls": np.add.reduceat(latency_us > SLOW_CALL_US, first, dtype=np.int64),
            "min_latency_us": np.minimum.reduceat(latency_us, first),
            "mean_latency_us": np.add.reduceat(executions.latency_ps[order], first) / calls / PS_PER_US,
            "max_latency_us": np.maximum.reduceat(latency_us, first),
            "bottleneck": bottleneck,
            "bottleneck_self_time_us": self_time_us,
            "feeds_device": pipelines.feeds_device,
            "executions_kept": np.bincount(executions.pipeline[executions.is_retained], minlength=count),
        },
    )


def _bottlenecks_of_slowest(space: XSpace, analysis: Analysis) -> tuple[list[str], Floats]:
    """(long name, self time) of the bottleneck in the slowest execution of each pipeline."""
    rows, executions = analysis.rows, analysis.executions
    blamed = np.flatnonzero(rows.is_bottleneck & (executions.rank[rows.execution] == 0))
    pipeline = executions.pipeline[rows.execution[blamed]]
    count = len(analysis.pipelines.iterator)
    long_name, self_time_us = [""] * count, np.zeros(count)
    self_time_us[pipeline] = rows.self_ps[blamed] / PS_PER_US
    code, names = _names(space, analysis)
    for at, name in zip(pipeline.tolist(), code[blamed].tolist(), strict=True):
        long_name[at] = names[name]
    return long_name, self_time_us


def _executions(space: XSpace, analysis: Analysis) -> pa.Table:
    calls, executions, rows = analysis.calls, analysis.executions, analysis.rows
    pipeline, rank = executions.pipeline[rows.execution], executions.rank[rows.execution]
    long_name, names = _names(space, analysis)
    ids = [*(str(i) for i in calls.ids.view(np.uint64).tolist()), ""]
    table = host_table(
        "tf_data_executions",
        {
            "pipeline": texts(pipeline, analysis.pipelines.names()),
            "execution": rank,
            "iterator_id": texts(rows.iterator, ids),
            "long_name": texts(long_name, names),
            "iterator": spread_texts([name.rpartition("::")[2] for name in names], long_name),
            "parent_id": texts(np.where(rows.caller < 0, len(calls.ids), rows.caller), ids),
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
        },
    )
    return table.take(np.lexsort((rows.start_ps, long_name, rank, pipeline)))


def _names(space: XSpace, analysis: Analysis) -> tuple[Int64, list[str]]:
    """(the long name of each iterator row, as a position among the names; these names, sorted)."""
    events = analysis.calls.row[analysis.rows.first]
    used, which = np.unique(space.events.metadata[events], return_inverse=True)
    # The end identifies the iterator.
    shown = [middle_ellipsis(str(name), _MAX_NAME_LENGTH) for name in space.metadata_names[used]]
    names = sorted(set(shown))
    place = {name: position for position, name in enumerate(names)}
    return np.array([place[name] for name in shown], np.int64)[which], names
