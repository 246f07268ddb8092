"""Makes the tables of one host: pyarrow tables with the columns that `schema.HOST_TABLES` declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from tfcompare import schema

Values = npt.NDArray[Any] | pa.Array | str | Iterable[str]
"""A NumPy array, an Arrow array, one text for all rows, or a text for each row."""

TEXT = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    "str": TEXT,
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "Int64": pa.int64(),
    "float64": pa.float64(),
    "Float64": pa.float64(),
}


@cache
def arrow_schema(name: str) -> pa.Schema:
    """The Arrow schema of a table of `schema.HOST_TABLES`: texts are dictionaries, no other type has a choice."""
    columns = schema.HOST_TABLES[name].columns
    return pa.schema([pa.field(column, _TYPES[declared.dtype]) for column, declared in columns.items()])


def host_table(name: str, columns: Mapping[str, Values]) -> pa.Table:
    """The table of that name in `schema.HOST_TABLES`, from all its columns, in any order; the first array or list among
    them gives the number of rows."""
    declared = arrow_schema(name)
    rows = next(len(values) for values in columns.values() if not isinstance(values, str))  # type: ignore[arg-type]
    return pa.Table.from_arrays([_array(columns[field.name], field.type, rows) for field in declared], schema=declared)


def empty(name: str) -> pa.Table:
    """The table of that name in `schema.HOST_TABLES` without rows."""
    return _empty(name)


def frame_of(name: str, table: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """For now: the table as a frame, its texts decoded but for those that are categoricals."""
    if isinstance(table, pd.DataFrame):
        return table
    kept = {"idle_gaps": ("op_before", "op_after"), "timeline_spans": ("name", "op_type", "op_name")}.get(name, ())
    dtypes = {column: c.dtype for column, c in schema.HOST_TABLES[name].columns.items() if column not in kept}
    frame = table.to_pandas(integer_object_nulls=True).astype(dtypes)
    no_texts = pd.CategoricalDtype(pd.Index([], dtype="str"))  # Arrow's categories have no dtype without rows
    return frame if len(frame) else frame.astype(dict.fromkeys(kept, no_texts))


def texts(codes: npt.NDArray[Any], labels: Iterable[str]) -> pa.DictionaryArray:
    """The texts `labels[codes[i]]`; labels are distinct, and each code is a position among them."""
    names = labels if isinstance(labels, pa.Array) else pa.array(list(labels), pa.string())
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32, copy=False), names)


def _array(values: Values, kind: pa.DataType, rows: int) -> pa.Array:
    if isinstance(values, str):
        return texts(np.zeros(rows, np.int32), [values])
    if isinstance(values, pa.Array):
        return values if values.type == kind else values.dictionary_encode() if kind == TEXT else values.cast(kind)
    if kind == TEXT:
        return pa.array(list(values), pa.string()).dictionary_encode()
    return pa.array(values, kind)


@cache
def _empty(name: str) -> pa.Table:
    return arrow_schema(name).empty_table()
