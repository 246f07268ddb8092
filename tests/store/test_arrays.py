"""Arrow tables as bytes: the same comes out, and bytes that no table has are damage."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tfcompare.frames.arrow import schema_of, table_of, texts
from tfcompare.store.arrays import Encoded, Sizes, check_sizes, decode, encode, expanded, expanded_bytes, text_bytes
from tfcompare.store.contents import Damaged

SCHEMA = schema_of(
    {
        "text": "str",
        "flag": "bool",
        "small": "int8",
        "row": "int32",
        "count": "int64",
        "maybe": "Int64",
        "share": "float64",
        "rate": "Float64",
    }
)
TEXT, OFFSETS, LABELS, FLAG, MAYBE, COUNT = 0, 1, 2, 3, 10, 9
"""Positions of buffers; columns of numbers that are all known have an empty one before their values."""


def table() -> pa.Table:
    return table_of(
        SCHEMA,
        {
            "text": texts(np.array([0, 2, 1, 0, 2]), ["", "é\n", "a longer one"]),
            "flag": [True, False, True, True, False],
            "small": [-128, 127, 0, 1, 2],
            "row": [-(2**31), 2**31 - 1, 0, 1, 2],
            "count": [-(2**63), 2**63 - 1, 0, 1, 2],
            "maybe": pa.array([None, 1, 2, None, 3]),
            "share": [float("nan"), float("inf"), -0.0, 1e-300, 1.0],
            "rate": pa.array([0.5, None, None, 1.0, 2.0]),
        },
    )


def again(sizes: Sizes, buffers: list[bytes]) -> pa.Table:
    check_sizes(SCHEMA, sizes)
    data = b"".join(buffers)
    assert len(data) == expanded_bytes(sizes)
    return decode(SCHEMA, [Encoded(sizes, pa.py_buffer(data), 0)])


def test_the_same_comes_out() -> None:
    sizes, buffers = encode(table())
    assert all(len(buffer) % 8 == 0 for buffer in buffers), "each begins at a multiple of eight"
    found = again(sizes, buffers)
    assert encode(found) == (sizes, buffers)
    assert found.to_pydict() | {"share": ""} == table().to_pydict() | {"share": ""}
    np.testing.assert_array_equal(found["share"].to_numpy(), table()["share"].to_numpy())
    assert text_bytes(sizes) == 2 * 12 + 3
    assert encode(table()[1:3])[0][0] == 2
    assert again(*encode(table()[1:3]))["text"].to_pylist() == ["a longer one", "é\n"]


def _with(at: int, *numbers: int, dtype: str = "<i4") -> Callable[[list[bytes]], None]:
    """Replace the numbers at the beginning of a buffer."""

    def change(buffers: list[bytes]) -> None:
        new = np.array(numbers, dtype).tobytes()
        buffers[at] = new + buffers[at][len(new) :]

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_with(TEXT, 3), "text"),
        (_with(TEXT, -1), "text"),
        (_with(TEXT, 2**31 - 1), "text"),
        (_with(TEXT, 1), "its texts are of another size"),
        (_with(OFFSETS, 0, 3, 0), "text"),
        (_with(OFFSETS, 0, -1), "text"),
        (_with(OFFSETS, 0, 0, 3, 2**31 - 1), "text"),
        (_with(OFFSETS, 0, 0, 3, 16), "text"),
        (_with(OFFSETS, 0, 0, 0, 15), "text: labels repeat"),
        (_with(OFFSETS, 0, 0, 1, 15), "text"),
        (_with(LABELS, 0xFF, dtype="u1"), "text"),
        (_with(LABELS, 0xED, 0xA0, 0x80, dtype="u1"), "text"),
    ],
)
def test_texts_that_cannot_be_are_damage(change: Callable[[list[bytes]], None], why: str) -> None:
    sizes, buffers = encode(table())
    change(buffers)
    with pytest.raises(Damaged, match=re.escape(why)):
        again(sizes, buffers)


@pytest.mark.parametrize(
    ("at", "size"),
    [
        *((0, -1), (0, 4), (0, 6), (0, 1 << 31), (0, 1 << 62), (1, -1), (2 + TEXT, 16), (2 + TEXT, 24)),
        *((2 + OFFSETS, 0), (2 + OFFSETS, 15), (2 + LABELS, 1 << 31), (2 + LABELS, -1), (2 + FLAG, 0), (2 + FLAG, 5)),
        *((2 + COUNT, 32), (2 + COUNT, 48), (2 + COUNT - 1, 1), (2 + COUNT - 1, 5), (2 + MAYBE, 2), (2 + MAYBE, -1)),
    ],
)
def test_sizes_that_cannot_be_are_damage(at: int, size: int) -> None:
    sizes = [*encode(table())[0]]
    sizes[at] = size
    with pytest.raises(Damaged):
        check_sizes(SCHEMA, tuple(sizes))


@pytest.mark.parametrize("sizes", [(), (0,), (0, 0)])
def test_sizes_of_another_number_of_buffers_are_damage(sizes: Sizes) -> None:
    whole = encode(table())[0]
    for wrong in (sizes, whole[:-1], (*whole, 0)):
        with pytest.raises(Damaged):
            check_sizes(SCHEMA, wrong)


def test_a_value_is_missing_only_where_it_may_be() -> None:
    sizes, buffers = encode(table())
    with_bits = [*sizes]
    with_bits[2 + COUNT - 1] = 1
    with pytest.raises(Damaged, match="column count has another size"):
        check_sizes(SCHEMA, tuple(with_bits))
    buffers[MAYBE] = bytes(8)
    assert again(sizes, buffers)["maybe"].null_count == 5
    buffers[MAYBE] = b"\xff" * 8
    assert again(sizes, buffers)["maybe"].to_pylist() == [0, 1, 2, 0, 3]


@pytest.mark.parametrize("size", [0, 1, 99, 101, 1 << 20])
def test_a_frame_of_another_size_is_damage(size: int) -> None:
    frame = pa.compress(bytes(100), codec="zstd", asbytes=True)
    assert expanded(frame, 100) == pa.py_buffer(bytes(100))
    with pytest.raises(Damaged, match="it is not of"):
        expanded(frame, size)
    with pytest.raises(Damaged, match="it is not of"):
        expanded(b"no frame", size)
