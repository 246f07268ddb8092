"""Arrow tables as bytes: the buffers of their arrays, one after the other.

Files of a store may be made by anybody. Nothing in the bytes says how to read them: types are those of a schema, and
the rows, the size of each buffer and that of all texts precede them, so that the memory they take is known before they
are read. The texts count as often as they occur: a label of some MB may be that of a million rows.

For each column the buffers are: of flags the values, as bits; of numbers the bits that are set where a value is known
(empty where all are), then the values; of texts the position of each row's text among the labels, then where each label
begins and the last ends, then the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.frames.arrow import TEXT, dense_text_bytes
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
    return sizes, [buffer.ljust(_aligned(len(buffer)), b"\0") for buffer in buffers]


def decode(schema: pa.Schema, sizes: Sizes, data: pa.Buffer, at: int) -> pa.Table:
    """The table with that schema whose buffers, of sizes that `check_sizes` accepts, begin at `at`.

    Raises `Damaged` for arrays that cannot be.
    """
    rows, text_size, *lengths = sizes
    left = iter(lengths)

    def following() -> pa.Buffer:
        nonlocal at
        length = next(left)
        found = data.slice(at, length)
        at += _aligned(length)
        return found

    arrays = []
    for field in schema:
        try:
            if field.type == TEXT:
                indices, offsets, text = following(), following(), following()
                labels = pa.Array.from_buffers(pa.string(), offsets.size // _OFFSET_BYTES - 1, [None, offsets, text])
                labels.validate(full=True)
                array = pa.DictionaryArray.from_buffers(TEXT, rows, [None, indices], labels)
            elif field.type == pa.bool_():
                array = pa.Array.from_buffers(field.type, rows, [None, following()])
            else:
                known = following()
                array = pa.Array.from_buffers(field.type, rows, [known if known.size else None, following()])
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise Damaged(f"{field.name}: {error}") from None
        if field.type == TEXT and pc.count_distinct(array.dictionary).as_py() < len(array.dictionary):
            raise Damaged(f"{field.name}: labels repeat")
        arrays.append(array)
    table = pa.Table.from_arrays(arrays, schema=schema)
    if dense_text_bytes(table) != text_size:
        raise Damaged("its texts are of another size")
    return table


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
    return sum(map(_aligned, sizes[2:]))


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


def _aligned(size: int) -> int:
    """The next multiple of 8."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT
