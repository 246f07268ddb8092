"""The settings of tf.data iterators that their events record."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tfcompare.frames.grouping import any_of, largest
from tfcompare.frames.tf_data.tf_data_executions import Analysis
from tfcompare.schema.arrays import Floats, Int64
from tfcompare.xspace import XSpace, decoding

_COLUMNS = {"autotune": "autotune", "name": "dataset", "shapes": "shapes", "types": "types"}
_EXCLUDED_STATS = {
    "id", "parent_id", "element_id", "parallelism", "buffer_limit", "buffered_elements", "buffered_bytes_MB",
    "results_ready", "active_elements", "ram_usage_megabytes", "group_id", "is_eager",
}  # fmt: skip
"""Stats that have their own column, or change from call to call."""
_BUFFER_STATS = ("buffer_limit", "buffer_size", "parallelism")
_MAX_LENGTH = 300


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


def element_sizes(space: XSpace, analysis: Analysis) -> pa.Array:
    """The element size recorded by the event around a pipeline's call; missing for other rows."""
    first = analysis.rows.first
    around = analysis.calls.around[first]
    sizes = space.number_of("element_size", around, -1)
    return _nullable(np.where((analysis.calls.depth[first] == 0) & (around >= 0), sizes, -1))


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
