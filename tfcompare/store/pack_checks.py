"""What is checked before a pack is read, and packs that earlier versions wrote."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfcompare import schema
from tfcompare.frames.arrow import TEXT, arrow_schema, schema_of, table_of, texts
from tfcompare.frames.grouping import combinations
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.schema import HOST_TABLES, STEP_PARTS, HostColumn
from tfcompare.schema.arrays import Int64
from tfcompare.store.contents import Damaged

_PLACES = frozenset({schema.DEVICE, schema.HOST, schema.SPARSE_CORE})
_NAME = re.compile("[a-z][a-z0-9_]{0,63}")
_MOST_COLUMNS = 256


class Packs(Protocol):
    """Packs whose tables are read together."""

    def table(self, name: str) -> pa.Table:
        """A table of all packs, the rows of one after those of the other."""

    def rows(self, name: str) -> Int64:
        """The number of rows of a table in each pack, without reading it."""


def check_table(name: str, table: pa.Table, packs: Packs) -> None:
    """Raises `Damaged` unless the table, which has rows of each pack and valid arrays, may be one of tfcompare's."""
    declared = schema.HOST_TABLES[name]
    columns = {field.name: table[field.name].chunk(0) for field in table.schema}
    rows = packs.rows(name)
    pack = np.repeat(np.arange(len(rows)), rows)
    for column, values in columns.items():
        if isinstance(values, pa.DictionaryArray):
            if column == "host_or_device" and not _PLACES.issuperset(values.dictionary.to_pylist()):
                raise Damaged(f"{name}.{column} is none of {', '.join(sorted(_PLACES))}")
        elif values.type != pa.bool_():
            _check_numbers(f"{name}.{column}", declared.columns[column], values)
    for column, other in declared.rows_of.items():
        last = packs.rows(other) - 1
        _check_range(f"{name}.{column}", columns[column].to_numpy(), declared.columns[column].least, last[pack])
    if declared.unique and len(table) > 1:
        keys = [pack, *(_codes(columns[column]) for column in declared.unique)]
        if not _are_ascending(keys) and len(combinations(*keys)[0]) < len(table):
            raise Damaged(f"{name} has the same row twice")
    if declared.of_steps:
        _check_steps(name, columns["step"].to_numpy(), pack, packs)
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


def _check_range(where: str, numbers: npt.NDArray[Any], least: float, largest: float | Int64) -> None:
    if len(numbers) and not (least <= numbers.min() and (numbers <= largest).all()):  # NaN is not either
        raise Damaged(f"{where} is out of range")


def _codes(values: pa.Array) -> npt.NDArray[np.int64]:
    """A number for each value, the same for equal ones."""
    numbers = values.indices if isinstance(values, pa.DictionaryArray) else values.fill_null(-1)
    codes: npt.NDArray[np.int64] = numbers.to_numpy().astype(np.int64)
    return codes


def _are_ascending(keys: Sequence[Int64]) -> bool:
    """Whether each row comes after the one before it, by the first key, then by the next: so no two are the same."""
    is_after, is_same = np.zeros(len(keys[0]) - 1, np.bool_), np.ones(len(keys[0]) - 1, np.bool_)
    for key in keys:
        is_after |= is_same & (key[1:] > key[:-1])
        is_same &= key[1:] == key[:-1]
    return bool(is_after.all())


def _check_spans(steps: dict[str, pa.Array]) -> None:
    """Each step has a span on the host, on devices or both, and the former has a start."""
    has_start, on_host, on_device = (
        ~np.isnan(steps[name].to_numpy()) for name in ("host_start_us", "host_span_us", "device_span_us")
    )
    if (on_host != has_start).any() or not (on_host | on_device).all():
        raise Damaged("steps have no span")


def _check_steps(table: str, step: Int64, pack: Int64, packs: Packs) -> None:
    """Each step is one of the pack's, or outside all of them. Without steps, only ops and kernels are put into any."""
    count = packs.rows("steps")
    if table in ("device_steps", "idle_gaps", "op_wall") and not count.all():
        raise Damaged(f"{table} has rows, and there are no steps")
    inside = (step != NO_STEP) & (count > 0)[pack]
    known = packs.table("steps")["step"].to_numpy() if count.any() else step[:0]
    of_known = np.repeat(np.arange(len(count)), count)
    _, code = combinations(np.append(of_known, pack[inside]), np.append(known, step[inside]))
    if code.max(initial=-1) > code[: len(known)].max(initial=-1):
        raise Damaged(f"{table} has steps that do not exist")


def _check_memory(events: dict[str, pa.Array]) -> None:
    """Sorted by memory id, each of which has events, and then by time."""
    memory, time_ps = events["memory_id"].indices.to_numpy(), events["time_ps"].to_numpy()
    change = np.diff(memory)
    is_complete = len(np.unique(memory)) == len(events["memory_id"].dictionary)
    if not is_complete or (change < 0).any() or (np.diff(time_ps)[change == 0] < 0).any():
        raise Damaged("memory_events are not in order")


@cache
def first_columns() -> Mapping[str, Mapping[str, str]]:
    """The dtypes of the columns that a table in a pack has unless the pack says others. This never changes."""
    found: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("first_columns.json").read_text())
    return found


@cache
def columns_now(name: str) -> Mapping[str, str]:
    """The dtypes of the columns that a table of `schema.HOST_TABLES` has today."""
    return {column: declared.dtype for column, declared in HOST_TABLES[name].columns.items()}


def packed_schema(name: str, said: Mapping[str, Mapping[str, str]]) -> pa.Schema:
    """The schema of a table in a pack that says these columns. Raises `Damaged` for columns that cannot be."""
    return _schema(name, said[name]) if name in said else _first_schema(name)


@cache
def _first_schema(name: str) -> pa.Schema:
    return _schema(name, first_columns().get(name, {}))


def _schema(name: str, columns: Mapping[str, str]) -> pa.Schema:
    if not 0 < len(columns) <= _MOST_COLUMNS or not all(map(_NAME.fullmatch, (name, *columns))):
        raise Damaged("a table in it has no columns, too many, or another name than tables and columns have")
    try:
        return schema_of(columns)
    except KeyError:
        raise Damaged("a column in it is of an unknown type") from None


def lacking(name: str, packed: pa.Schema) -> list[pa.Field]:
    """The columns of today that a packed table does not have with the same type."""
    now = arrow_schema(name)
    return [] if packed == now else [field for field in now if field not in list(packed)]


def may_be_missing(name: str, column: str) -> bool:
    """Whether a column is declared to have a value for what is not known."""
    declared = HOST_TABLES[name].columns[column]
    has_value = declared.may_be_nan or declared.least == -1 or declared.dtype in ("str", "Int64", "Float64")
    return has_value or _is_new_part(name, column)


def _is_new_part(name: str, column: str) -> bool:
    """Whether a column is a part of the step that earlier versions did not tell from another part, which then has its
    time: the parts add up to the step."""
    return column in STEP_PARTS and column not in first_columns().get(name, {})


def as_today(name: str, packed: pa.Table) -> pa.Table:
    """A packed table, which has rows, with the columns of today. Those that it lacks, which may be missing, are."""
    now = arrow_schema(name)
    if packed.schema == now:
        return packed
    has = {column: packed[column].chunk(0) for column in packed.column_names}
    return table_of(
        now, has | {field.name: _missing(name, field, len(packed)) for field in lacking(name, packed.schema)}
    )


def _missing(name: str, field: pa.Field, rows: int) -> pa.Array:
    if field.type == TEXT:
        return texts(np.zeros(rows, np.int32), [""])
    value = None if field.nullable else math.nan if HOST_TABLES[name].columns[field.name].may_be_nan else -1
    if _is_new_part(name, field.name):
        value = 0.0
    return pa.repeat(pa.scalar(value, field.type), rows)
