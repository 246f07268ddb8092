"""The table of tf.data iterators, with the settings that the file records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table, texts
from tfcompare.frames.grouping import any_of, largest
from tfcompare.frames.tf_data.tf_data_executions import MOST_ROWS, Analysis, analyse
from tfcompare.schema.arrays import Floats, Int32, Int64
from tfcompare.schema.input import SLOW_CALL_US
from tfcompare.text import middle_ellipsis
from tfcompare.xspace import XSpace, decoding
from tfcompare.xspace.space import PS_PER_US

_MAX_NAME_LENGTH = 500
_COLUMNS = {"autotune": "autotune", "name": "dataset", "shapes": "shapes", "types": "types"}
_EXCLUDED_STATS = {
    *("id", "parent_id", "element_id", "parallelism", "buffer_limit", "buffered_elements", "buffered_bytes_MB"),
    *("results_ready", "active_elements", "ram_usage_megabytes", "group_id", "is_eager"),
}
"""Stats that have their own column, or change from call to call."""
_BUFFER_STATS = ("buffer_limit", "buffer_size", "parallelism")
_MAX_LENGTH = 300


@dataclass(frozen=True, eq=False)
class TfData:
    """The host tables `tf_data_pipelines`, `tf_data_executions` and `tf_data_calls`."""

    pipelines: pa.Table
    executions: pa.Table
    calls: pa.Table

    @property
    def remarks(self) -> list[str]:
        """Notes on executions that were dropped, keeping only the slowest."""
        calls, shown = (self.pipelines[name].to_numpy() for name in ("calls", "executions_kept"))
        short = np.flatnonzero(shown < calls)
        if not len(short):
            return []
        first = self.pipelines["pipeline"][int(short[0])]
        which = f"pipeline {first}" if len(short) == 1 else f"{len(short):,} pipelines"
        return [f"tf.data, {which}: of {calls[short].sum():,} executions the slowest {shown[short].sum():,} are shown"]


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
    columns = {
        "pipeline": texts(pipeline, analysis.pipelines.names()),
        "call": np.arange(len(order)) - np.searchsorted(pipeline, pipeline),
        "start_us": space.events.start_ps[analysis.calls.row[executions.call[order]]] / PS_PER_US,
        "latency_us": executions.latency_ps[order] / PS_PER_US,
    }
    return host_table("tf_data_calls", columns)


def _pipelines(space: XSpace, analysis: Analysis) -> pa.Table:
    pipelines, executions = analysis.pipelines, analysis.executions
    count = len(pipelines.iterator)
    order = np.argsort(executions.pipeline, kind="stable")
    latency_us = executions.latency_ps[order] / PS_PER_US
    first = np.searchsorted(executions.pipeline[order], np.arange(count))
    calls = np.bincount(executions.pipeline, minlength=count)
    bottleneck, self_time_us = _bottlenecks_of_slowest(space, analysis)
    columns = {
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
    }
    return host_table("tf_data_pipelines", columns)


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
    around = calls.around[rows.first]  # the event around a pipeline's call has the size of the element
    sizes = np.where((calls.depth[rows.first] == 0) & (around >= 0), space.number_of("element_size", around, -1), -1)
    columns = {
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
        "element_size_bytes": _nullable(sizes),
        **texts_of_rows(space, analysis),
    }
    table = host_table("tf_data_executions", columns)
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


def texts_of_rows(space: XSpace, analysis: Analysis) -> dict[str, pa.DictionaryArray]:
    """The columns `autotune`, `dataset`, `shapes`, `types` and `settings` (all other stats, as `name=value, …`).

    Each iterator's are read once, from the first execution that contains it.
    """
    rows = analysis.rows
    event = analysis.calls.row[rows.first]
    kind = rows.iterator * len(space.metadata_names) + space.events.metadata[event]  # ids are reused under other names
    _, at, code = np.unique(kind, return_index=True, return_inverse=True)
    events, position = np.unique(event[at], return_inverse=True)
    return {name: spread_texts(texts, position[code]) for name, texts in _texts_of_events(space, events).items()}


def spread_texts(texts: Iterable[str], positions: Int64) -> pa.DictionaryArray:
    """The texts at these positions."""
    return pa.array(list(texts), pa.string()).dictionary_encode().take(positions)


def largest_of_rows(space: XSpace, analysis: Analysis, stat: str) -> pa.Array:
    """The largest value of the integer stat among the calls of each row; missing if none has it."""
    inside, of_call = _retained_calls(analysis)
    values = np.maximum(space.number_of(stat, analysis.calls.row[inside], -1), -1)
    return _nullable(largest(of_call, values, len(analysis.rows.first)))


def buffered_elements(space: XSpace, analysis: Analysis) -> Floats:
    """Mean buffer size over the calls of each row, in elements; NaN if unknown.

    tf.data records the size only if the buffer is not empty, and only while it models the pipeline, which shows in the
    `algorithm` stat of the pipeline's call. While it does, a buffer without a recorded size was empty.
    """
    calls, executions, rows = analysis.calls, analysis.executions, analysis.rows
    inside, of_call = _retained_calls(analysis)
    count = space.number_of("buffered_elements", calls.row, -1)
    has_buffer = np.logical_or.reduce([space.have(name, calls.row[inside]) for name in _BUFFER_STATS])
    is_modelled = space.have("algorithm", calls.row[executions.call[rows.execution]])
    is_known = any_of(calls.iterator, count >= 0, len(calls.ids))[rows.iterator]
    is_known |= is_modelled & any_of(of_call, has_buffer, len(rows.first))
    total = np.bincount(of_call, weights=np.maximum(count[inside], 0), minlength=len(rows.first))
    return np.where(is_known, total / np.maximum(rows.calls, 1), np.nan)


def _retained_calls(analysis: Analysis) -> tuple[Int64, Int64]:
    """(the calls in retained executions, the row of each)."""
    inside = np.flatnonzero(analysis.rows.of_call >= 0)
    return inside, analysis.rows.of_call[inside]


def _nullable(values: Int64) -> pa.Array:
    return pa.array(np.maximum(values, 0), mask=values < 0)


def _texts_of_events(space: XSpace, events: Int64) -> dict[str, list[str]]:
    """Like `texts_of_rows`, for distinct events sorted by row."""
    stats = space.event_stats
    names = {number: name for name, number in space.stat_names.items()}
    wanted = np.zeros(len(space.events) + 1, np.bool_)
    wanted[events] = True
    rows = np.flatnonzero(wanted[stats.owner])
    found: list[dict[str, str]] = [{} for _ in events]
    for at, row in zip(np.searchsorted(events, stats.owner[rows]).tolist(), rows.tolist(), strict=True):
        name = names[int(stats.name[row])]
        if name not in _EXCLUDED_STATS:
            found[at][name] = _text(space, row)
    out = {column: [f.pop(stat, "") for f in found] for stat, column in _COLUMNS.items()}
    return out | {"settings": [_cut(", ".join(f"{n}={v}" for n, v in f.items())) for f in found]}


def _text(space: XSpace, row: int) -> str:
    stats = space.event_stats
    kind, value = int(stats.kind[row]), int(stats.value[row])
    if kind == decoding.STR:
        return _cut(space.text(value, min(int(stats.length[row]), 4 * _MAX_LENGTH)))
    if kind == decoding.REF:
        return _cut(str(space.stat_labels[value]))
    if kind == decoding.DOUBLE:
        return f"{float(np.int64(value).view(np.float64)):g}"
    return str(value & (1 << 64) - 1) if kind == decoding.UINT64 else str(value) if kind == decoding.INT64 else ""


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
