"""What holds of the tables in a pack. A pack that tfcompare made always passes; others are refused, not misread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tfcompare import schema
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.store.typed import Damaged

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.store.columns import Dtypes

_INT, _FLOAT, _TEXT, _FLAG = "int64", "float64", "str", "bool"
_SUMMED = {"occurrences": _INT, "total_time_ps": _INT, "self_time_ps": _INT, "is_eager": _FLAG}
_NAMES = ("op_name", "region_type", "data_type", "shape")
_SIDES = (schema.HOST, schema.DEVICE)


def _declared(table: schema.Table, **others: str) -> dict[str, str]:
    return {column.name: column.dtype for column in table.columns} | others


DTYPES: dict[str, Dtypes] = {
    "steps": _declared(schema.STEPS),
    "device_steps": {"device": _TEXT, "step": _INT, **dict.fromkeys(schema.STEP_PARTS, _FLOAT)},
    "idle_gaps": _declared(schema.IDLE_GAPS, op_before="category", op_after="category"),
    "op_parts": {
        **dict.fromkeys(("device", "host_or_device", "op_type", "op_name", "part"), _TEXT),
        "earliest": _INT,
        "latest": _INT,
        "shapes": _TEXT,
    },
    "op_cells": {"part": _INT, "step": _INT, **_SUMMED},
    "op_wall": {"part": "int32", "step": _INT, "step_part": "int8", "stage": "int32", "wall_time_ps": _FLOAT},
    "op_totals": {"part": _INT, "step": _INT, **_SUMMED},
    "op_wall_totals": {"part": "int32", "step": _INT, "step_part": _INT, "stage": _INT, "wall_time_ps": _FLOAT},
    "idle": {"device": _TEXT, "host_or_device": _TEXT, "idle_ps": _INT},
    "kernel_stats": _declared(schema.KERNEL_STATS),
    "kernel_cells": {"row": _INT, "step": _INT, "occurrences": _INT, "time_us": _FLOAT},
    "copies": _declared(schema.COPIES),
    "hlo_ops": _declared(schema.HLO_OPS),
    "hlo_texts": _declared(schema.HLO_TEXTS),
    "hlo_memory": _declared(schema.HLO_MEMORY),
    "compilations": _declared(schema.COMPILATIONS),
    "memory_events": {
        **dict.fromkeys(("memory", "row", "time_ps"), _INT),
        "is_allocation": _FLAG,
        **dict.fromkeys(("following", "stack_bytes", "heap_bytes", "free_bytes", "lifetime_peak_bytes"), _INT),
        "fragmentation": _FLOAT,
        **dict.fromkeys(("requested_bytes", "allocation_bytes", *_NAMES, "step"), _INT),
        "in_step": _FLAG,
    },
    "memory_summary": _declared(schema.MEMORY_SUMMARY),
    "memory_peak": _declared(schema.MEMORY_PEAK),
    "tf_data_pipelines": _declared(schema.TF_DATA_PIPELINES),
    "tf_data_executions": _declared(schema.TF_DATA),
    "tf_data_calls": _declared(schema.TF_DATA_CALLS),
    "timeline_lanes": {"plane": _TEXT, "line": _TEXT, "line_id": _TEXT, "is_recorded": _FLAG},
    "timeline_spans": {
        "lane": "int32",
        **dict.fromkeys(("start_ps", "duration_ps"), _INT),
        **dict.fromkeys(("name", "op_type", "op_name"), "category"),
        "step": _INT,
        "launch": "int32",
    },
}
"""The columns of each table of `HostFrames`."""

_UNIQUE: dict[str, tuple[str, ...]] = {
    "steps": ("step",),
    "device_steps": ("device", "step"),
    "idle_gaps": ("step",),
    "op_cells": ("part", "step"),
    "op_totals": ("part",),
    "op_wall_totals": ("part",),
    "kernel_stats": schema.KERNEL_STATS.keys,
    "kernel_cells": ("row", "step"),
    "hlo_ops": schema.HLO_OPS.keys,
    "hlo_texts": schema.HLO_TEXTS.keys,
    "hlo_memory": schema.HLO_MEMORY.keys,
    "compilations": schema.COMPILATIONS.keys,
    "memory_events": ("row",),
    "memory_summary": ("memory_id",),
    "memory_peak": schema.MEMORY_PEAK.keys,
    "tf_data_pipelines": ("pipeline",),
    "tf_data_calls": ("pipeline", "call"),
}
"""The columns that identify a row."""

_ROWS_OF = {("op_cells", "part"): "op_parts", ("op_wall", "part"): "op_parts", ("op_totals", "part"): "op_parts",
            ("op_wall_totals", "part"): "op_parts", ("kernel_cells", "row"): "kernel_stats",
            ("timeline_spans", "lane"): "timeline_lanes"}  # fmt: skip
"""Columns that are rows of another table."""

_OF_STEPS = ("device_steps", "idle_gaps", "op_cells", "op_wall", "kernel_cells")
_MAY_BE_MISSING = (
    *("host_start_us", "host_span_us", "device_span_us", "buffered_elements", "fragmentation"),
    *schema.STEP_PRECISIONS,
    *("flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"),
    *("peak_flops_per_s", "peak_bytes_per_s"),
)
_ANY_NUMBER = ("fragmentation",)
"""Recorded by a profiler and shown as recorded, whatever it is."""
_SIGNED = ("step", "start_us", "start_ps", "host_start_us", "time_ps", "peak_time_us")
_OR_NONE = (
    *("earliest", "latest", "stage", "step_part", "launch", "following", "requested_bytes", "allocation_bytes"), *_NAMES
)  # fmt: skip
"""Integers for which −1 means none."""
_ADDED_UP = ("occurrences", "total_time_ps", "self_time_ps", "idle_ps", "calls")
_LARGEST_SUM = 1 << 62
_LARGEST_NUMBER = 1e18


class Others(Protocol):
    """The tables of the same pack."""

    def __getitem__(self, name: str) -> pd.DataFrame:
        """A table."""

    def rows(self, name: str) -> int:
        """The number of rows of a table, without reading it."""


@dataclass(frozen=True)
class Checks:
    """The checks of a pack of that host, whose memory events refer to those labels."""

    host: str
    labels: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        if set(self.labels) != {"memory", *_NAMES} or any(self.labels[name][-1:] != ("",) for name in _NAMES):
            raise Damaged("the labels of its memory events are not those of a pack")

    def check(self, name: str, frame: pd.DataFrame, others: Others) -> None:
        """Raises `Damaged` unless the table may be one of tfcompare's."""
        if name == "memory_events":
            self._check_memory(frame)
        if frame.empty:
            return
        for column, values in frame.items():
            self._check_values(name, str(column), values)
        if name in _UNIQUE and len(frame) > 1 and frame.duplicated(list(_UNIQUE[name])).any():
            raise Damaged(f"{name} has the same row twice")
        for (table, column), other in _ROWS_OF.items():
            if table == name:
                _check_range(f"{name}.{column}", frame[column].to_numpy(), 0, others.rows(other) - 1)
        if name in _OF_STEPS:
            _check_steps(name, frame["step"].to_numpy(), others)
        if name == "steps":
            _check_spans(frame)
        if name == "op_wall":
            _check_range("op_wall.step_part", frame["step_part"].to_numpy(), 0, len(schema.STEP_PARTS) - 1)
            _check_range("op_wall.stage", frame["stage"].to_numpy(), -1, others.rows("op_parts") - 1)
        if name == "timeline_spans":
            _check_range("timeline_spans.launch", frame["launch"].to_numpy(), -1, len(frame) - 1)

    def _check_values(self, table: str, name: str, column: pd.Series) -> None:
        where = f"{table}.{name}"
        if name == "host" and not set(column.unique()) <= {self.host}:
            raise Damaged(f"{where} is another host than {self.host}")
        if name == "host_or_device" and not set(column.unique()) <= {*_SIDES}:
            raise Damaged(f"{where} is neither {' nor '.join(_SIDES)}")
        if DTYPES[table][name] not in (_TEXT, "category", _FLAG):
            _check_numbers(where, name, column)

    def _check_memory(self, events: pd.DataFrame) -> None:
        """Sorted by memory id, each of which has events, and then by time; texts are positions in the labels."""
        memory, time = events["memory"].to_numpy(), events["time_ps"].to_numpy()
        used = np.unique(memory)
        is_complete = len(used) == len(self.labels["memory"]) and (not len(used) or used[-1] == len(used) - 1)
        change = np.diff(memory)
        if not is_complete or (change < 0).any() or (np.diff(time)[change == 0] < 0).any():
            raise Damaged("memory_events are not in order")
        _check_range("memory_events.following", events["following"].to_numpy(), -1, len(events) - 1)
        for name in _NAMES:
            _check_range(f"memory_events.{name}", events[name].to_numpy(), -1, len(self.labels[name]) - 1)


def _check_numbers(where: str, name: str, column: pd.Series) -> None:
    """Raises `Damaged` for numbers that are missing, infinite, negative or too large where they cannot be."""
    if name in _ANY_NUMBER or (name == "step" and column.dtype == _INT):
        return
    is_whole = column.dtype.kind == "i"
    numbers = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.dropna().to_numpy()
    if numbers.dtype.kind == "f" and name in _MAY_BE_MISSING:
        numbers = numbers[~np.isnan(numbers)]
    least = -_LARGEST_NUMBER if name in _SIGNED else -1 if name in _OR_NONE else 0
    _check_range(where, numbers, least, _LARGEST_SUM if is_whole else _LARGEST_NUMBER)
    if name in _ADDED_UP and float(numbers.sum(dtype=_FLOAT)) > _LARGEST_SUM:
        raise Damaged(f"{where} cannot be added up")


def _check_range(where: str, numbers: npt.NDArray[Any], least: float, largest: float) -> None:
    if len(numbers) and not (least <= numbers.min() and numbers.max() <= largest):  # NaN is not either
        raise Damaged(f"{where} is out of range")


def _check_spans(steps: pd.DataFrame) -> None:
    """Each step has a span on the host, on devices or both, and the former has a start."""
    has_start, on_host, on_device = (
        ~np.isnan(steps[name].to_numpy()) for name in ("host_start_us", "host_span_us", "device_span_us")
    )
    if (on_host != has_start).any() or not (on_host | on_device).all():
        raise Damaged("steps have no span")


def _check_steps(table: str, step: npt.NDArray[np.int64], others: Others) -> None:
    """Each step is one of the steps, or outside all of them. Without steps, only ops and kernels are put into any."""
    if others.rows("steps"):
        if not np.isin(step[step != NO_STEP], others["steps"]["step"].to_numpy()).all():
            raise Damaged(f"{table} has steps that do not exist")
    elif len(step) and table in ("device_steps", "idle_gaps", "op_wall"):
        raise Damaged(f"{table} has rows, and there are no steps")
