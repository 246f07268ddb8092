"""Compiled loops over the protobuf messages of an XLA program.

The place of a message is the row of its first byte and its length. Each loop also returns an error code and the byte of
the error (`proto_fields.check`).
"""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled
from tfcompare.xspace.decoding import OK, PAST_END, field

_VARINT, _BYTES = 0, 2


@compiled
def field_rows(buffer: Array, pos: Int, most: Int) -> tuple[Array, Int, Int]:
    """(rows of at most so many fields from `pos` on, the next position, the error code).

    A row is the field's number, the first byte and the length of its content; of a varint −1 and the value.
    """
    end = np.int64(len(buffer))
    rows = np.empty((min((end - pos) // 2 + 1, most), 3), np.int64)
    count, error = 0, np.int64(OK)
    while pos < end and count < len(rows) and error == OK:
        number, wire, content, begin, following, error = field(buffer, pos, end)
        pos = following if error == OK else begin
        if error == OK and wire in (_VARINT, _BYTES):
            rows[count, 0] = number
            rows[count, 1] = begin if wire == _BYTES else -1
            rows[count, 2] = content
            count += 1
    return rows[:count], pos, error


@compiled
def messages_in(buffer: Array, places: Array, wanted: Int, most: Int) -> tuple[Array, Array, Int, Int]:
    """(how many messages each of `places` has in the field `wanted`, the places of the first `most`, error code, its
    byte)."""
    counts, row = np.zeros(len(places), np.int64), np.int64(0)
    found = np.empty((min(places[:, 1].sum() // 2, most), 2), np.int64)  # at least two bytes each
    error, at = np.int64(OK), np.int64(0)
    for i in range(len(places)):
        pos, end = places[i, 0], places[i, 0] + places[i, 1]
        while pos < end and error == OK:
            at = pos
            number, wire, content, begin, pos, error = field(buffer, pos, end)
            if wire == _BYTES and number == wanted and error == OK:
                counts[i] += 1
                if row < len(found):
                    found[row, 0], found[row, 1] = begin, content
                    row += 1
    return counts, found[:row].copy(), error, at


@compiled
def fields_of(buffer: Array, places: Array, wanted: Array) -> tuple[Array, Int, Int]:
    """(the fields `wanted` of each of `places`, error code, its byte).

    A field is three numbers: the place of its last text or message, and its last integer; zeros where it is absent.
    """
    found = np.zeros((len(places), len(wanted), 3), np.int64)
    error, at = np.int64(OK), np.int64(0)
    for i in range(len(places)):
        pos, end = places[i, 0], places[i, 0] + places[i, 1]
        while pos < end and error == OK:
            at = pos
            number, wire, content, begin, pos, error = field(buffer, pos, end)
            for k in range(len(wanted)):
                if number == wanted[k] and wire == _VARINT:
                    found[i, k, 2] = content
                elif number == wanted[k] and wire == _BYTES:
                    found[i, k, 0], found[i, k, 1] = begin, content
    return found, error, at


@compiled
def numbers_in(buffer: Array, places: Array, wanted: Int, most: Int) -> tuple[Array, Array, Int, Int]:
    """(how many integers each of `places` has in the repeated field `wanted`, packed or not; the first `most` of all;
    error code, its byte)."""
    counts, row = np.zeros(len(places), np.int64), np.int64(0)
    found = np.empty(min(places[:, 1].sum(), most), np.int64)  # at least a byte each
    error, at = np.int64(OK), np.int64(0)
    for i in range(len(places)):
        pos, end = places[i, 0], places[i, 0] + places[i, 1]
        while pos < end and error == OK:
            at = pos
            number, wire, content, begin, pos, error = field(buffer, pos, end)
            if number != wanted or error != OK:
                continue
            if wire == _VARINT:
                counts[i] += 1
                if row < len(found):
                    found[row] = content
                    row += 1
            elif wire == _BYTES:
                value, shift = np.int64(0), 0
                for byte in range(begin, begin + content):
                    value |= np.int64(buffer[byte] & 127) << min(shift, 63)
                    shift += 7
                    if buffer[byte] < 128:
                        counts[i] += 1
                        if row < len(found):
                            found[row] = value
                            row += 1
                        value, shift = np.int64(0), 0
                if shift:
                    error = np.int64(PAST_END)
    return counts, found[:row].copy(), error, at
