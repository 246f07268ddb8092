"""Tables as bytes: plain arrays, compressed together with zstd.

Files of a store may be made by anybody. These cannot use more memory than they are allowed: the number of rows and the
sizes of all texts precede them, so the expanded size is known, and nothing in the bytes themselves says how to read
them. A column is the little-endian array of its declared dtype. Nullable ones are followed by a byte per row that is 1
where a value is missing; texts are the lengths of all texts, then the texts; a category is the codes, then its labels.
Each array begins at a multiple of 8 bytes, since compiled code expects aligned arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from tfcompare.store.typed import Damaged

Dtypes = Mapping[str, str]
"""The dtype of each column: a NumPy dtype, `Int64`, `Float64`, `str` or `category`."""

_CODEC = "zstd"
_STR = pd.StringDtype(na_value=np.nan)
_LENGTH = np.dtype("<i4")
_LONGEST = 1 << 30
_ALIGNMENT = 8
_NULLABLE: dict[str, Any] = {"Int64": pd.arrays.IntegerArray, "Float64": pd.arrays.FloatingArray}


@dataclass(frozen=True)
class Shape:
    """The size of a table: its rows, and for each column of texts or labels, in order, their number and bytes."""

    rows: int
    texts: tuple[tuple[int, ...], ...]

    def expanded_bytes(self, dtypes: Dtypes) -> int:
        """The size of the table's arrays; raises `Damaged` if the shape is not that of a table with these columns."""
        sizes = [size for pair in self.texts for size in pair]
        if not 0 <= self.rows <= _LONGEST or any(not 0 <= size <= _LONGEST for size in sizes):
            raise Damaged("a table's size is out of range")
        if any(len(pair) != 2 for pair in self.texts) or len(self.texts) != sum(map(has_texts, dtypes.values())):
            raise Damaged("a table has other columns of texts")
        arrays = sum(_aligned(self.rows * width) for dtype in dtypes.values() for width in _widths(dtype))
        return arrays + sum(_aligned(count * _LENGTH.itemsize) + _aligned(size) for count, size in self.texts)


def encode(frame: pd.DataFrame, dtypes: Dtypes) -> tuple[Shape, bytes]:
    """(the table's shape, its compressed columns). `frame` has exactly these columns."""
    pieces: list[bytes] = []
    texts: list[tuple[int, int]] = []
    for name, dtype in dtypes.items():
        column = frame[name]
        if dtype == "category":
            _add(pieces, column.cat.codes.to_numpy().astype("<i4").tobytes())
            texts.append(_add_texts(pieces, column.cat.categories))
        elif dtype == "str":
            texts.append(_add_texts(pieces, column))
        elif dtype in _NULLABLE:
            _add(pieces, column.to_numpy(_value_dtype(dtype), na_value=0).tobytes())
            _add(pieces, column.isna().to_numpy().tobytes())
        else:
            _add(pieces, column.to_numpy(_value_dtype(dtype)).tobytes())
    data = b"".join(pieces)
    return Shape(len(frame), tuple(texts)), pa.compress(data, codec=_CODEC, asbytes=True)


def decode(shape: Shape, data: bytes | memoryview, dtypes: Dtypes) -> pd.DataFrame:
    """The table of that shape; raises `Damaged` if the bytes are not such a table."""
    size = shape.expanded_bytes(dtypes)
    try:
        expanded = memoryview(pa.decompress(data, size, codec=_CODEC)) if size else memoryview(b"")
    except (OSError, ValueError) as error:  # pa.ArrowInvalid is a ValueError
        raise Damaged(f"a table is not of {size:,} bytes ({error})") from None
    columns = dict(_columns(_Reader(expanded), shape, dtypes))
    return pd.DataFrame(columns, index=pd.RangeIndex(shape.rows), copy=False)


def _columns(reader: _Reader, shape: Shape, dtypes: Dtypes) -> Iterator[tuple[str, Any]]:
    texts = iter(shape.texts)
    for name, dtype in dtypes.items():
        if dtype == "category":
            codes, labels = reader.array(_LENGTH, shape.rows), reader.texts(*next(texts))
            if not labels.is_unique:
                raise Damaged(f"labels of {name} repeat")
            if len(codes) and not -1 <= codes.min() <= codes.max() < len(labels):
                raise Damaged(f"{name} refers to labels that do not exist")
            yield name, pd.Categorical.from_codes(codes, labels)
        elif dtype == "str":
            count, size = next(texts)
            if count != shape.rows:
                raise Damaged(f"{name} has another number of texts than rows")
            yield name, reader.texts(count, size)
        elif dtype in _NULLABLE:
            values = reader.array(_value_dtype(dtype), shape.rows)
            yield name, _NULLABLE[dtype](values, reader.flags(shape.rows))
        else:
            yield name, reader.flags(shape.rows) if dtype == "bool" else reader.array(_value_dtype(dtype), shape.rows)


class _Reader:
    """Reads arrays one after the other from bytes that are exactly as long as all of them."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def array(self, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        if not count:
            return np.zeros(0, dtype)
        start, self._at = self._at, self._at + _aligned(count * dtype.itemsize)
        return np.frombuffer(self._data, dtype, count, start)

    def flags(self, count: int) -> npt.NDArray[np.bool_]:
        values = self.array(np.dtype("u1"), count)
        if len(values) and values.max() > 1:
            raise Damaged("a flag is neither 0 nor 1")
        return values.view(np.bool_)

    def texts(self, count: int, size: int) -> pd.Index[Any]:
        lengths, data = self.array(_LENGTH, count), self.array(np.dtype("u1"), size)
        ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if (len(lengths) and lengths.min() < 0) or ends[-1] != size:
            raise Damaged("texts have other lengths than they say")
        texts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(data))
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise Damaged("a text is not UTF-8") from None
        return pd.Index(pd.arrays.ArrowStringArray(texts, dtype=_STR))  # type: ignore[call-arg]  # missing in the stubs


def _add_texts(pieces: list[bytes], texts: pd.Series | pd.Index) -> tuple[int, int]:
    """Append the lengths and bytes of the texts; returns (their number, the bytes of all of them)."""
    array = pa.array(texts, pa.large_string(), from_pandas=True)
    if array.null_count:
        raise ValueError("a text is missing")
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, "<i8")[array.offset : array.offset + len(array) + 1]
    texts_bytes = bytes(data[int(ends[0]) : int(ends[-1])]) if data is not None else b""
    _add(pieces, np.diff(ends).astype(_LENGTH).tobytes())
    _add(pieces, texts_bytes)
    return len(array), len(texts_bytes)


def _add(pieces: list[bytes], array: bytes) -> None:
    """Append the bytes of an array, up to where the next one begins."""
    pieces.append(array.ljust(_aligned(len(array)), b"\0"))


def has_texts(dtype: str) -> bool:
    """Whether columns of this dtype have entries in `Shape.texts`."""
    return dtype in ("str", "category")


@cache
def _value_dtype(dtype: str) -> np.dtype[Any]:
    return np.dtype(dtype.lower()).newbyteorder("<")


@cache
def _widths(dtype: str) -> tuple[int, ...]:
    """The bytes per row of each array of a column, apart from texts."""
    if dtype == "str":
        return ()
    if dtype == "category":
        return (_LENGTH.itemsize,)
    width = _value_dtype(dtype).itemsize
    return (width, 1) if dtype in _NULLABLE else (width,)


def _aligned(size: int) -> int:
    """The next multiple of 8."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT
