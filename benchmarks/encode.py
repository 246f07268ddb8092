"""Events to the wire format of an XLine, many at a time."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from benchmarks.recording import DOUBLE, INT64, UINT64

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer, of Python or of numpy

MOST_BYTES_OF_EVENT = 40
MOST_BYTES_OF_STAT = 26


@numba.njit(cache=True)
def _size(value: Int) -> Int:
    """Bytes of a number as a varint."""
    bits, size = np.uint64(value), 1
    while bits >= np.uint64(128):
        bits >>= np.uint64(7)
        size += 1
    return size


@numba.njit(cache=True)
def _put(out: Array, at: Int, value: Int) -> Int:
    bits = np.uint64(value)
    while bits >= np.uint64(128):
        out[at] = np.uint8(bits & np.uint64(127)) | np.uint8(128)
        bits >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(bits)
    return at + 1


@numba.njit(cache=True)
def _stat_size(name: Int, kind: Int, value: Int) -> Int:
    return 1 + _size(name) + 1 + (8 if kind == DOUBLE else _size(value))


@numba.njit(cache=True)
def _put_stat(out: Array, at: Int, name: Int, kind: Int, value: Int) -> Int:
    at = _put(out, at, 1 << 3)
    at = _put(out, at, name)
    if kind == DOUBLE:
        at = _put(out, at, kind << 3 | 1)
        for i in range(8):
            out[at + i] = np.uint8((value >> (8 * i)) & 255)
        return at + 8
    written = INT64 if kind == UINT64 and value >= 0 else kind
    at = _put(out, at, written << 3)
    return _put(out, at, value)


@numba.njit(cache=True)
def put_events(
    out: Array,
    name: Array,
    offset_ps: Array,
    duration_ps: Array,
    stat_first: Array,
    stat_name: Array,
    stat_kind: Array,
    stat_value: Array,
) -> Int:
    """Write these events as field 4 of an XLine; returns the bytes written. `out` must have room: `MOST_BYTES_OF_EVENT`
    an event and `MOST_BYTES_OF_STAT` a stat."""
    at = 0
    for i in range(name.size):
        size = 3 + _size(name[i]) + _size(offset_ps[i]) + _size(duration_ps[i])
        for s in range(stat_first[i], stat_first[i + 1]):
            stat = _stat_size(stat_name[s], stat_kind[s], stat_value[s])
            size += 1 + _size(stat) + stat
        at = _put(out, at, 4 << 3 | 2)
        at = _put(out, at, size)
        at = _put(out, at, 1 << 3)
        at = _put(out, at, name[i])
        at = _put(out, at, 2 << 3)
        at = _put(out, at, offset_ps[i])
        at = _put(out, at, 3 << 3)
        at = _put(out, at, duration_ps[i])
        for s in range(stat_first[i], stat_first[i + 1]):
            at = _put(out, at, 4 << 3 | 2)
            at = _put(out, at, _stat_size(stat_name[s], stat_kind[s], stat_value[s]))
            at = _put_stat(out, at, stat_name[s], stat_kind[s], stat_value[s])
    return at


def number(field_number: int, value: int) -> bytes:
    """A field that holds a number."""
    return _varint(field_number << 3) + _varint(value)


def message(field_number: int, content: bytes) -> bytes:
    """A field that holds a message or a text."""
    return head(field_number, len(content)) + content


def head(field_number: int, size: int) -> bytes:
    """What stands before a field of `size` bytes."""
    return _varint(field_number << 3 | 2) + _varint(size)


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
