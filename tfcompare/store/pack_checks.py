"""What holds of the tables in a pack. A pack that tfcompare made always passes; others are refused, not misread."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfcompare import schema
from tfcompare.frames.grouping import combinations
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.schema import HostColumn
from tfcompare.store.contents import Damaged


class Others(Protocol):
    """The tables of the same pack."""

    def __getitem__(self, name: str) -> pa.Table:
        """A table."""

    def rows(self, name: str) -> int:
        """The number of rows of a table, without reading it."""


def check_table(name: str, table: pa.Table, others: Others) -> None:
    """Raises `Damaged` unless the table, which has rows and valid arrays, may be one of tfcompare's."""
    declared = schema.HOST_TABLES[name]
    columns = {field.name: table[field.name].chunk(0) for field in table.schema}
    for column, values in columns.items():
        if isinstance(values, pa.DictionaryArray):
            if column == "host_or_device" and not set(values.dictionary.to_pylist()) <= {schema.HOST, schema.DEVICE}:
                raise Damaged(f"{name}.{column} is neither {schema.HOST} nor {schema.DEVICE}")
        elif values.type != pa.bool_():
            _check_numbers(f"{name}.{column}", declared.columns[column], values)
    for column, other in declared.rows_of.items():
        _check_range(
            f"{name}.{column}", columns[column].to_numpy(), declared.columns[column].least, others.rows(other) - 1
        )
    if declared.unique and len(table) > 1:
        firsts, _ = combinations(*(_codes(columns[column]) for column in declared.unique))
        if len(firsts) < len(table):
            raise Damaged(f"{name} has the same row twice")
    if declared.of_steps:
        _check_steps(name, columns["step"].to_numpy(), others)
    if name == "steps":
        _check_spans(columns)
    if name == "memory_events":
        _check_memory(columns)


def _check_numbers(where: str, declared: HostColumn, values: pa.Array) -> None:
    """Raises `Damaged` for numbers that are missing, infinite, negative or too large where they cannot be."""
    numbers = values.drop_null().to_numpy()
    if declared.may_be_nan:
        numbers = numbers[~np.isnan(numbers)]
    _check_range(where, numbers, declared.least, declared.most)
    if declared.is_summed and float(numbers.sum(dtype=np.float64)) > declared.most:
        raise Damaged(f"{where} cannot be added up")


def _check_range(where: str, numbers: npt.NDArray[Any], least: float, largest: float) -> None:
    if len(numbers) and not (least <= numbers.min() and numbers.max() <= largest):  # NaN is not either
        raise Damaged(f"{where} is out of range")


def _codes(values: pa.Array) -> npt.NDArray[np.int64]:
    """A number for each value, the same for equal ones."""
    numbers = values.indices if isinstance(values, pa.DictionaryArray) else values.fill_null(-1)
    codes: npt.NDArray[np.int64] = numbers.to_numpy().astype(np.int64)
    return codes


def _check_spans(steps: dict[str, pa.Array]) -> None:
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
    elif table in ("device_steps", "idle_gaps", "op_wall"):
        raise Damaged(f"{table} has rows, and there are no steps")


def _check_memory(events: dict[str, pa.Array]) -> None:
    """Sorted by memory id, each of which has events, and then by time."""
    memory, time_ps = events["memory_id"].indices.to_numpy(), events["time_ps"].to_numpy()
    change = np.diff(memory)
    is_complete = len(np.unique(memory)) == len(events["memory_id"].dictionary)
    if not is_complete or (change < 0).any() or (np.diff(time_ps)[change == 0] < 0).any():
        raise Damaged("memory_events are not in order")
