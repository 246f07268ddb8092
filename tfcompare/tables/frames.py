"""The tables of several hosts as one pandas frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from tfcompare.frames import HostTables, table_of_hosts
from tfcompare.schema import HOST_TABLES

_STR = pd.StringDtype(na_value=np.nan)


def frame_bytes(frame: pd.DataFrame) -> int:
    """Memory used by a frame and its texts, in bytes."""
    return int(frame.memory_usage(deep=True).sum())


@dataclass(frozen=True, eq=False)
class Held:
    """A frame that is kept. How much memory it takes is measured once, when it is first asked for."""

    frame: pd.DataFrame

    @cached_property
    def memory_bytes(self) -> int:
        """See `frame_bytes`."""
        return frame_bytes(self.frame)


def of_hosts(name: str, hosts: Sequence[HostTables]) -> pd.DataFrame:
    """The table of that name in `schema.HOST_TABLES`, the rows of one host after those of the other, with a column
    `host` in front."""
    table, rows = table_of_hosts(name, hosts)
    of_host = {"host": repeated([host.host for host in hosts], rows)}
    return pd.DataFrame(of_host | _columns(name, table), index=pd.RangeIndex(len(table)), copy=False)


def frame_of(name: str, table: pa.Table) -> pd.DataFrame:
    """A table of that name in `schema.HOST_TABLES` as a frame with its declared dtypes."""
    return pd.DataFrame(_columns(name, table), index=pd.RangeIndex(len(table)), copy=False)


def with_categories(table: pa.Table) -> pd.DataFrame:
    """The table as a frame with texts as categoricals, so that each is stored once."""
    frame: pd.DataFrame = table.unify_dictionaries().combine_chunks().to_pandas()
    return frame


def repeated(names: Sequence[str], counts: Iterable[int]) -> pd.arrays.ArrowStringArray:
    """Each name as often as its count says, one after the other."""
    codes = np.repeat(np.arange(len(names), dtype=np.int32), list(counts))
    return texts_of(pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))]))


def texts_of(column: pa.ChunkedArray) -> pd.arrays.ArrowStringArray:
    """A column of texts as an array of dtype `str`, in one piece: pandas cannot merge arrays of none."""
    return pd.arrays.ArrowStringArray(column.cast(pa.large_string()).combine_chunks(), dtype=_STR)  # type: ignore[call-arg]


def arrays_of(table: pa.Table) -> dict[str, npt.NDArray[Any]]:
    """The columns of a table without texts."""
    return {name: table[name].to_numpy() for name in table.column_names}


def _columns(name: str, table: pa.Table) -> dict[str, Any]:
    declared = HOST_TABLES[name].columns
    return {column: _array(table[column], declared[column].dtype) for column in table.column_names}


def _array(column: pa.ChunkedArray, dtype: str) -> object:
    if dtype == "str":
        return texts_of(column)
    if dtype in ("Int64", "Float64"):
        kind = pd.arrays.IntegerArray if dtype == "Int64" else pd.arrays.FloatingArray
        return kind(column.fill_null(0).to_numpy(), column.is_null().to_numpy())
    return column.to_numpy()
