"""Shapes of the values of a program: element types, dimensions and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from tfcompare.errors import NotAProfile
from tfcompare.hlo.proto_fields import Content, fields, signed, unpacked
from tfcompare.xspace.texts import shortened

_ELEMENT_TYPE, _DIMENSIONS, _TUPLE_SHAPES, _LAYOUT = 2, 3, 4, 5
_ELEMENT_BITS = 7
TUPLE = 13
_MOST_DIMENSIONS, _MOST_ARRAYS = 64, 1 << 16
_MOST_SHOWN = 50
_TYPE_BITS = 63  # the numbers of all types are below
_LONGEST_KEPT = 128  # bytes of a shape that is read once however many instructions have it: arrays, small tuples
_MOST_ELEMENTS = 1 << 60
"""Far above what real programs have, so that shapes in a damaged file stay cheap to read and to calculate with."""

_NAMES = {
    0: {14: "opaque", 17: "token"},
    1: {30: "s1", 31: "u1"},
    2: {26: "s2", 27: "u2"},
    4: {21: "s4", 22: "u4", 32: "f4e2m1fn"},
    8: {1: "pred", 2: "s8", 6: "u8", 19: "f8e5m2", 20: "f8e4m3fn", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz"}
    | {23: "f8e4m3b11fnuz", 28: "f8e4m3", 29: "f8e3m4", 33: "f8e8m0fnu"},
    16: {3: "s16", 7: "u16", 10: "f16", 16: "bf16"},
    32: {4: "s32", 8: "u32", 11: "f32"},
    64: {5: "s64", 9: "u64", 12: "f64", 15: "c64"},
    128: {18: "c128"},
}
_PRIMITIVES = {number: (name, bits) for bits, names in _NAMES.items() for number, name in names.items()}
"""Name and bits per element of each `PrimitiveType` in `xla_data.proto`; tokens and opaque values have no bits."""

FLOATING = frozenset({10, 11, 12, 15, 16, 18, 19, 20, 23, 24, 25, 28, 29, 32, 33})
"""The floating-point types, complex ones included."""
COMPLEX = frozenset({15, 18})
"""`C64` and `C128`."""

_BITS_BY_NAME = dict(_PRIMITIVES.values())


def size_of_text(shape: str) -> float:
    """The size in bytes of an array such as `bf16[8,128]`, without padding; NaN for another text."""
    name, _, sizes = shape.removesuffix("]").partition("[")
    dimensions = [size for size in sizes.split(",") if size]
    if name not in _BITS_BY_NAME or not shape.endswith("]") or not all(size.isdecimal() for size in dimensions):
        return float("nan")
    size_bytes = _BITS_BY_NAME[name] / 8
    for size in dimensions:
        size_bytes *= float(size)
    return size_bytes


class Array(NamedTuple):
    """One array: its `PrimitiveType`, its dimensions, and the bits per element in memory."""

    type: int
    dimensions: tuple[int, ...]
    bits: int

    @property
    def elements(self) -> int:
        """The number of elements; 1 for a scalar."""
        count = 1
        for dimension in self.dimensions:
            count = min(count * dimension, _MOST_ELEMENTS)
        return count

    @property
    def size_bytes(self) -> int:
        """The size in bytes, without the padding of tiled layouts."""
        return (self.elements * self.bits + 7) // 8

    def __str__(self) -> str:
        name, _ = _PRIMITIVES.get(self.type, (f"type {self.type}", 0))
        return f"{name}[{','.join(map(str, self.dimensions))}]"


def mask_of(types: Iterable[int]) -> int:
    """Element types (`PrimitiveType`) as a bit mask: bit 11 is set for `F32`."""
    return sum(1 << number for number in set(types) if 0 <= number < _TYPE_BITS)


@dataclass(frozen=True, eq=False)
class Shape:
    """The shape of a value: its array, or all arrays of a tuple, in order."""

    arrays: tuple[Array, ...]

    @cached_property
    def elements(self) -> float:
        """The elements of all arrays."""
        return float(sum(array.elements for array in self.arrays))

    @cached_property
    def size_bytes(self) -> float:
        """The size of all arrays in bytes."""
        return float(sum(array.size_bytes for array in self.arrays))

    @cached_property
    def types(self) -> int:
        """The element types of all arrays, as `mask_of`."""
        return mask_of(array.type for array in self.arrays)

    @cached_property
    def text(self) -> str:
        """Type and dimensions; nested tuples are shown as one, long ones are cut: operands repeat them."""
        shown = [*map(str, self.arrays[:_MOST_SHOWN]), *(["…"] if len(self.arrays) > _MOST_SHOWN else [])]
        return shortened(shown[0] if len(shown) == 1 else f"({', '.join(shown)})")


def shape_of(shape: memoryview) -> Shape:
    """The shape in a `ShapeProto`.

    Raises `NotAProfile` if the bytes are invalid, or hold more arrays or dimensions than a program has.
    """
    return Shape(_read(shape)) if len(shape) > _LONGEST_KEPT else _read_once(shape.tobytes())


@lru_cache(maxsize=4096)
def _read_once(shape: bytes) -> Shape:
    return Shape(_read(memoryview(shape)))


def _read(shape: memoryview) -> tuple[Array, ...]:
    out: list[Array] = []
    waiting, seen = [shape], 0
    while waiting:
        seen += 1
        if seen > _MOST_ARRAYS:
            raise NotAProfile(None, 0, f"an HLO shape of at most {_MOST_ARRAYS:,} arrays", "a larger one")
        message = waiting.pop()
        kind, bits = 0, 0
        parts: list[memoryview] = []
        dimensions: list[Content] = []
        for number, content in fields(message):
            if number == _ELEMENT_TYPE and isinstance(content, int):
                kind = content
            elif number == _DIMENSIONS:
                dimensions.append(content)
            elif number == _TUPLE_SHAPES and not isinstance(content, int):
                parts.append(content)
            elif number == _LAYOUT and not isinstance(content, int):
                bits = next((n for key, n in fields(content) if key == _ELEMENT_BITS and isinstance(n, int)), 0)
        waiting += reversed(parts)
        if not parts and kind != TUPLE:
            own_bits = bits if 0 < bits <= 128 else _PRIMITIVES.get(kind, ("", 0))[1]
            sizes = unpacked(dimensions, _MOST_DIMENSIONS)
            out.append(Array(kind, tuple(max(0, signed(size)) for size in sizes), own_bits))
    return tuple(out)
