"""How iterators of tf.data were set up, as far as their events tell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.ops.op_parts import any_of, largest
from tfcompare.frames.tf_data.tf_data_executions import Analysis
from tfcompare.xspace import XSpace, wire

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Texts = npt.NDArray[np.object_]

_COLUMNS = {"autotune": "autotune", "name": "dataset", "shapes": "shapes", "types": "types"}
_ELSEWHERE = {
    "id", "parent_id", "element_id", "parallelism", "buffer_limit", "buffered_elements", "buffered_bytes_MB",
    "results_ready", "active_elements", "ram_usage_megabytes", "group_id", "is_eager",
}  # fmt: skip
"""Stats that have a column of their own, or change from call to call."""
_SIGNS_OF_A_BUFFER = ("buffer_limit", "buffer_size", "parallelism")
_LONGEST = 300


def texts_of_rows(space: XSpace, analysis: Analysis) -> dict[str, Texts]:
    """The columns `autotune`, `dataset`, `shapes`, `types` and `settings` (all else, as `name=value, …`).

    They are looked up once an iterator, in the first execution that it was in.
    """
    rows = analysis.rows
    event = analysis.calls.row[rows.first]
    kind = rows.iterator * len(space.metadata_names) + space.events.metadata[event]  # a used id may get another name
    _, at, code = np.unique(kind, return_index=True, return_inverse=True)
    events, place = np.unique(event[at], return_inverse=True)
    return {name: texts[place[code]] for name, texts in _texts_of_events(space, events).items()}


def largest_of_rows(space: XSpace, analysis: Analysis, stat: str) -> pd.arrays.IntegerArray:
    """The largest value of the integer stat among the calls of each row; absent where none of them tells it."""
    inside, of_call = _calls_inside(analysis)
    values = np.maximum(space.number_of(stat, analysis.calls.row[inside], -1), -1)
    return _or_absent(largest(of_call, values, len(analysis.rows.first)))


def element_sizes(space: XSpace, analysis: Analysis) -> pd.arrays.IntegerArray:
    """What the event around the call of a pipeline tells of the element's size; absent for other rows."""
    first = analysis.rows.first
    around = analysis.calls.around[first]
    sizes = space.number_of("element_size", around, -1)
    return _or_absent(np.where((analysis.calls.depth[first] == 0) & (around >= 0), sizes, -1))


def buffered_elements(space: XSpace, analysis: Analysis) -> Floats:
    """Mean over the calls of each row; NaN where nothing is told.

    tf.data tells a buffer's elements only when there are any, and only while it models the pipeline, which is told by
    the `algorithm` of the pipeline's own call. There, a buffer of which nothing is told was empty.
    """
    calls, executions, rows = analysis.calls, analysis.executions, analysis.rows
    inside, of_call = _calls_inside(analysis)
    count = space.number_of("buffered_elements", calls.row, -1)
    has_buffer = np.logical_or.reduce([space.have(name, calls.row[inside]) for name in _SIGNS_OF_A_BUFFER])
    is_modelled = space.have("algorithm", calls.row[executions.call[rows.execution]])
    is_told = any_of(calls.iterator, count >= 0, len(calls.ids))[rows.iterator]
    is_told |= is_modelled & any_of(of_call, has_buffer, len(rows.first))
    total = np.bincount(of_call, weights=np.maximum(count[inside], 0), minlength=len(rows.first))
    return np.where(is_told, total / np.maximum(rows.calls, 1), np.nan)


def _calls_inside(analysis: Analysis) -> tuple[Int64, Int64]:
    """(the calls in executions that are kept, the row of each)."""
    inside = np.flatnonzero(analysis.rows.of_call >= 0)
    return inside, analysis.rows.of_call[inside]


def _or_absent(values: Int64) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(np.maximum(values, 0), values < 0)


def _texts_of_events(space: XSpace, events: Int64) -> dict[str, Texts]:
    """As `texts_of_rows`, for distinct events in order of their rows."""
    stats = space.event_stats
    names = {number: name for name, number in space.stat_names.items()}
    wanted = np.zeros(len(space.events) + 1, np.bool_)
    wanted[events] = True
    rows = np.flatnonzero(wanted[stats.owner])
    found: list[dict[str, str]] = [{} for _ in events]
    for at, row in zip(np.searchsorted(events, stats.owner[rows]).tolist(), rows.tolist(), strict=True):
        name = names[int(stats.name[row])]
        if name not in _ELSEWHERE:
            found[at][name] = _text(space, row)
    out = {column: _array(f.pop(stat, "") for f in found) for stat, column in _COLUMNS.items()}
    return out | {"settings": _array(_cut(", ".join(f"{n}={v}" for n, v in f.items())) for f in found)}


def _text(space: XSpace, row: int) -> str:
    stats = space.event_stats
    kind, value = int(stats.kind[row]), int(stats.value[row])
    if kind == wire.STR:
        return _cut(space.text(value, min(int(stats.length[row]), 4 * _LONGEST)))
    if kind == wire.REF:
        return _cut(str(space.stat_labels[value]))
    if kind == wire.DOUBLE:
        return f"{float(np.int64(value).view(np.float64)):g}"
    return str(value & (1 << 64) - 1) if kind == wire.UINT64 else str(value) if kind == wire.INT64 else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _array(texts: Iterable[str]) -> Texts:
    return np.array(list(texts), np.object_)
