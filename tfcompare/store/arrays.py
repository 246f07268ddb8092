"""Arrow tables as bytes: the buffers of their arrays, one after the other.

Files of a store may be made by anybody. Nothing in the bytes says how to read them: types are those of a schema, and
the rows, the size of each buffer and that of all texts precede them, so that the memory they take is known before they
are read. The texts count as often as they occur: a label of some MB may be that of a million rows.

For each column the buffers are: of flags the values, as bits; of numbers the bits that are set where a value is known
(empty where all are), then the values; of texts the position of each row's text among the labels, then where each label
begins and the last ends, then the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.frames.arrow import TEXT, dense_text_bytes
from tfcompare.frames.grouping import combinations
from tfcompare.schema.arrays import Int64
from tfcompare.store.contents import Damaged

Sizes = tuple[int, ...]
"""The rows of a table, the bytes of its texts where each row has its own, then the length of each of its buffers."""

CODEC = "zstd"
_ALIGNMENT = 8
_LONGEST = 1 << 30
"""The largest number of rows, and of bytes of a buffer: offsets of texts are 32-bit numbers."""
_OFFSET_BYTES = 4


def encode(table: pa.Table) -> tuple[Sizes, list[bytes]]:
    """(the sizes, the buffers, each filled up to a multiple of 8 bytes)."""
    buffers = [buffer for column in table.columns for buffer in _buffers(column)]
    sizes = len(table), dense_text_bytes(table), *map(len, buffers)
    return sizes, [buffer.ljust(_align(len(buffer)), b"\0") for buffer in buffers]


class Encoded(NamedTuple):
    """A table that `encode` made bytes of, of sizes that `check_sizes` accepts: its buffers begin at `at` of `data`."""

    sizes: Sizes
    data: pa.Buffer
    at: int

    def buffers(self) -> list[pa.Buffer]:
        """The buffers, in order."""
        found, at = [], self.at
        for length in self.sizes[2:]:
            found.append(self.data.slice(at, length))
            at += _align(length)
        return found


def decode(schema: pa.Schema, tables: Sequence[Encoded]) -> pa.Table:
    """The tables with that schema, which have rows, as one: the rows of one after those of the other.

    The labels of a column of texts are those of one table after those of the other. Raises `Damaged` for arrays that
    cannot be.
    """
    rows = np.array([one.sizes[0] for one in tables])
    following = zip(*(one.buffers() for one in tables), strict=True)
    text_sizes = np.zeros(len(tables), np.int64)
    arrays = []
    for field in schema:
        try:
            if field.type == TEXT:
                array, sizes = _texts(rows, next(following), next(following), next(following))
                text_sizes += sizes
            elif field.type == pa.bool_():
                array = pa.Array.from_buffers(field.type, rows.sum(), [None, _joined_bits(next(following), rows)])
            else:
                known, values = next(following), next(following)
                bits = _joined_bits(known, rows) if any(one.size for one in known) else None
                array = pa.Array.from_buffers(field.type, rows.sum(), [bits, _join(values)])
            array.validate(full=True)
        except (pa.ArrowInvalid, Damaged) as error:
            raise Damaged(f"{field.name}: {error}") from None
        arrays.append(array)
    if (text_sizes != [text_bytes(one.sizes) for one in tables]).any():
        raise Damaged("its texts are of another size")
    return pa.Table.from_arrays(arrays, schema=schema)


def _texts(
    rows: Int64, indices: Sequence[pa.Buffer], offsets: Sequence[pa.Buffer], texts: Sequence[pa.Buffer]
) -> tuple[pa.DictionaryArray, Int64]:
    """(the texts of all tables, the bytes of those of each); raises `Damaged` or pa.ArrowInvalid."""
    of_each = [
        pa.Array.from_buffers(pa.string(), one.size // _OFFSET_BYTES - 1, [None, one, text])
        for one, text in zip(offsets, texts, strict=True)
    ]
    for labels in of_each:
        labels.validate(full=True)
    labels, count = pa.concat_arrays(of_each), np.array([*map(len, of_each)])
    starts, first_label = np.cumsum(rows) - rows, np.cumsum(count) - count
    code = np.frombuffer(_join(indices), np.int32)
    if (np.minimum.reduceat(code, starts) < 0).any() or (np.maximum.reduceat(code, starts) >= count).any():
        raise Damaged("a row has none of the labels")
    if len(rows) > 1:
        if len(labels) > _LONGEST:
            raise Damaged("there are more labels than 32-bit numbers")
        code = code + np.repeat(first_label, rows).astype(np.int32)
    table = np.repeat(np.arange(len(count)), count)
    if len(combinations(table, labels.dictionary_encode().indices.to_numpy())[0]) < len(labels):
        raise Damaged("labels repeat")
    lengths = pc.binary_length(labels).to_numpy().astype(np.int64)
    return pa.DictionaryArray.from_arrays(pa.array(code), labels), np.add.reduceat(lengths[code], starts)


def _join(buffers: Sequence[pa.Buffer]) -> pa.Buffer:
    return buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(buffers))


def _joined_bits(buffers: Sequence[pa.Buffer], rows: Int64) -> pa.Buffer:
    """The bits of all tables, as many of each as it has rows; all are set where there are none."""
    if len(buffers) == 1:
        return buffers[0]
    bits = [
        np.unpackbits(np.frombuffer(one, np.uint8), count=count, bitorder="little") if one.size else np.ones(count)
        for one, count in zip(buffers, rows.tolist(), strict=True)
    ]
    return pa.py_buffer(_bits(np.concatenate(bits).astype(np.bool_)))


def check_sizes(schema: pa.Schema, sizes: Sizes) -> None:
    """Raises `Damaged` unless a table with that schema may have so many rows and buffers of these sizes."""
    if len(sizes) < 2 or sizes[1] < 0 or any(not 0 <= size <= _LONGEST for size in (sizes[0], *sizes[2:])):
        raise Damaged("a size is out of range")
    rows, _, *lengths = sizes
    bits = -(-rows // 8)
    for field in schema:
        if field.type == TEXT:
            own, lengths = lengths[:3], lengths[3:]
            is_right = len(own) == 3 and own[0] == 4 * rows and own[1] >= _OFFSET_BYTES and own[1] % _OFFSET_BYTES == 0
        elif field.type == pa.bool_():
            own, lengths = lengths[:1], lengths[1:]
            is_right = own == [bits]
        else:
            own, lengths = lengths[:2], lengths[2:]
            may_be = (0, bits) if field.nullable else (0,)
            is_right = len(own) == 2 and own[0] in may_be and own[1] == rows * (field.type.bit_width // 8)
        if not is_right:
            raise Damaged(f"column {field.name} has another size")
    if lengths:
        raise Damaged("there are more columns")


def expanded_bytes(sizes: Sizes) -> int:
    """The bytes that the buffers take together."""
    return sum(map(_align, sizes[2:]))


def text_bytes(sizes: Sizes) -> int:
    """The bytes of the texts of a table where each row has its own."""
    return sizes[1]


def expanded(data: bytes | memoryview, size: int) -> pa.Buffer:
    """What a zstd frame of that expanded size holds; raises `Damaged` for another."""
    try:
        return pa.decompress(data, size, codec=CODEC)
    except (OSError, ValueError) as error:  # pa.ArrowInvalid is a ValueError
        raise Damaged(f"it is not of {size:,} bytes ({error})") from None


def _buffers(column: pa.ChunkedArray) -> list[bytes]:
    array = column.combine_chunks()
    if array.type == TEXT:
        labels = array.dictionary
        _, offsets, data = labels.buffers()
        ends = np.frombuffer(offsets, np.int32)[labels.offset : labels.offset + len(labels) + 1]
        text = bytes(memoryview(data)[int(ends[0]) : int(ends[-1])]) if data is not None else b""
        return [_values(array.indices).tobytes(), (ends - ends[0]).tobytes(), text]
    if array.type == pa.bool_():
        return [_bits(_values(array))]
    if array.null_count:
        return [_bits(_values(array.is_valid())), _values(array.fill_null(0)).tobytes()]
    return [b"", _values(array).tobytes()]


def _values(array: pa.Array) -> npt.NDArray[Any]:
    if array.null_count:
        raise ValueError("a value is missing")
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def _bits(flags: npt.NDArray[np.bool_]) -> bytes:
    return np.packbits(flags, bitorder="little").tobytes()


def _align(size: int) -> int:
    """The next multiple of 8."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT
