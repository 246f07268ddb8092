"""Makes the tables of one host: pyarrow tables with the columns that `schema.HOST_TABLES` declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema

Values: TypeAlias = "npt.NDArray[Any] | pa.Array | str | Sequence[Any]"
"""A NumPy array, an Arrow array, one text for all rows, or a list with a value for each row."""

TEXT = pa.dictionary(pa.int32(), pa.string())
_NUMBERS = {name: pa.type_for_alias(name) for name in ("bool", "int8", "int32", "int64", "float64")}
_TYPES = {"str": TEXT, "Int64": pa.int64(), "Float64": pa.float64(), **_NUMBERS}


@cache
def arrow_schema(name: str) -> pa.Schema:
    """The Arrow schema of a table of `schema.HOST_TABLES`: texts are dictionaries; `Int64`, `Float64` may be null."""
    columns = schema.HOST_TABLES[name].columns
    return schema_of({column: declared.dtype for column, declared in columns.items()})


def schema_of(dtypes: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of columns with these dtypes, as `arrow_schema` describes."""
    return pa.schema([pa.field(name, _TYPES[dtype], dtype in ("Int64", "Float64")) for name, dtype in dtypes.items()])


def host_table(name: str, columns: Mapping[str, Values]) -> pa.Table:
    """The table of that name in `schema.HOST_TABLES`, from all its columns, in any order; the first array or list among
    them gives the number of rows."""
    return table_of(arrow_schema(name), columns)


def table_of(declared: pa.Schema, columns: Mapping[str, Values]) -> pa.Table:
    """As `host_table`, for that schema."""
    rows = next(len(values) for values in columns.values() if not isinstance(values, str))
    return pa.Table.from_arrays([_array(columns[field.name], field.type, rows) for field in declared], schema=declared)


@cache
def empty(name: str) -> pa.Table:
    """The table of that name in `schema.HOST_TABLES` without rows."""
    return arrow_schema(name).empty_table()


def texts(codes: npt.NDArray[Any], labels: Iterable[str]) -> pa.DictionaryArray:
    """The texts `labels[codes[i]]`; labels are distinct, and each code is a position among them."""
    names = labels if isinstance(labels, pa.Array) else pa.array(list(labels), pa.string())
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32, copy=False), names)


def with_labels_once(table: pa.Table) -> pa.Table:
    """The table, in one piece, with each label of a column of texts once: concatenated tables repeat labels."""
    whole = table.unify_dictionaries().combine_chunks()
    columns = [column.combine_chunks() for column in whole.columns]
    for at, array in enumerate(columns):
        if array.type == TEXT:
            labels = array.dictionary.dictionary_encode()
            columns[at] = pa.DictionaryArray.from_arrays(labels.indices.take(array.indices), labels.dictionary)
    return pa.Table.from_arrays(columns, schema=table.schema)


def dense_text_bytes(table: pa.Table) -> int:
    """The bytes that the texts of a table take where each row has its own."""
    total = 0
    for column in table.columns:
        if column.type == TEXT:
            array = column.combine_chunks()
            lengths = pc.binary_length(array.dictionary).to_numpy()
            total += int(lengths[array.indices.to_numpy()].sum(dtype=np.int64))
    return total


def _array(values: Values, kind: pa.DataType, rows: int) -> pa.Array:
    if not rows:
        return pa.array([], kind)
    if isinstance(values, str):
        return texts(np.zeros(rows, np.int32), [values])
    if isinstance(values, pa.Array):
        return values if values.type == kind else values.dictionary_encode() if kind == TEXT else values.cast(kind)
    if kind == TEXT:
        return pa.array(list(values), pa.string()).dictionary_encode()
    return pa.array(values, kind)
