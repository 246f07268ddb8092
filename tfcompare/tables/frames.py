"""Arrow tables, such as those of hosts, as pandas frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tfcompare.frames import HostTables, table_of_hosts
from tfcompare.frames.arrow import dense_text_bytes
from tfcompare.schema import HOST_TABLES, Table
from tfcompare.schema.arrays import Int64

_STR = pd.StringDtype(na_value=np.nan)
_CELL_BYTES = 8
"""Of a number, or of the place of a text."""


def frame_bytes(frame: pd.DataFrame) -> int:
    """Memory used by a frame and its texts, in bytes."""
    return int(frame.memory_usage(deep=True).sum())


def frame_of_hosts(name: str, hosts: Sequence[HostTables]) -> pd.DataFrame:
    """The table of that name in `schema.HOST_TABLES`, the rows of one host after those of the other, with a column
    `host` in front. Numbers that are rows of another table are counted over all of these hosts."""
    table, rows = table_of_hosts(name, hosts)
    columns = {"host": repeated([host.host for host in hosts], rows)} | _columns(_dtypes(name), table)
    for column, other in HOST_TABLES[name].rows_of.items():
        first = np.cumsum([0, *(host.rows(other) for host in hosts)])[:-1]
        own = columns[column]
        columns[column] = np.where(own >= 0, own + np.repeat(first, rows), own).astype(own.dtype)
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)), copy=False)


def frame_of(name: str, table: pa.Table) -> pd.DataFrame:
    """A table of that name in `schema.HOST_TABLES` as a frame with its declared dtypes."""
    return pd.DataFrame(_columns(_dtypes(name), table), index=pd.RangeIndex(len(table)), copy=False)


def frame_of_declared(declared: Table, table: pa.Table) -> pd.DataFrame:
    """A table that users see, with its declared dtypes; its texts are dictionaries or plain."""
    dtypes = {column.name: column.dtype for column in declared.columns}
    return pd.DataFrame(_columns(dtypes, table), index=pd.RangeIndex(len(table)), copy=False)


def bytes_of_frame_of(table: pa.Table) -> int:
    """About the memory that `frame_of_declared` would take, in bytes, where each row has texts of its own."""
    return _CELL_BYTES * len(table.column_names) * len(table) + dense_text_bytes(table)


def _dtypes(name: str) -> dict[str, str]:
    return {column: declared.dtype for column, declared in HOST_TABLES[name].columns.items()}


def _columns(dtypes: Mapping[str, str], table: pa.Table) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for column in table.column_names:
        dtype, values = dtypes[column], table[column]
        if dtype == "str":
            columns[column] = texts_of(values)
        elif dtype in ("Int64", "Float64"):
            kind = pd.arrays.IntegerArray if dtype == "Int64" else pd.arrays.FloatingArray
            columns[column] = kind(values.fill_null(0).to_numpy(), values.is_null().to_numpy())
        else:
            columns[column] = values.to_numpy()
    return columns


def codes_of(*columns: pd.Series) -> Int64:
    """A number for each cell of the columns, one after the other, the same for equal cells."""
    parts = [pa.table({"cell": pa.array(column)}) for column in columns]
    cells = pa.concat_tables(parts, promote_options="permissive")["cell"].combine_chunks()
    codes: Int64 = cells.dictionary_encode("encode").indices.to_numpy().astype(np.int64)
    return codes


def repeated(names: Sequence[str], counts: Iterable[int]) -> pd.arrays.ArrowStringArray:
    """Each name as often as its count says, one after the other."""
    codes = np.repeat(np.arange(len(names), dtype=np.int32), list(counts))
    return texts_of(pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))]))


def texts_of(column: pa.ChunkedArray) -> pd.arrays.ArrowStringArray:
    """A column of texts as an array of dtype `str`, in one piece: pandas cannot merge arrays of none."""
    return pd.arrays.ArrowStringArray(column.cast(pa.large_string()).combine_chunks(), dtype=_STR)  # type: ignore[call-arg]
