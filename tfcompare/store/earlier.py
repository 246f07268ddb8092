"""Tables that other versions of tfcompare put into packs, with the columns of today."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import TEXT, arrow_schema, schema_of, table_of, texts
from tfcompare.schema import HOST_TABLES, STEP_PARTS
from tfcompare.store.contents import Damaged

_NAME = re.compile("[a-z][a-z0-9_]{0,63}")
_MOST_COLUMNS = 256


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
