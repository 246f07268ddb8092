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
    """(how many messages each of `places` has in the field `wanted`, the places of these, error code, its byte).

    The places are left out if there are more than `most`.
    """
    counts, total = np.zeros(len(places), np.int64), np.int64(0)
    error, at = np.int64(OK), np.int64(0)
    for i in range(len(places)):
        pos, end = places[i, 0], places[i, 0] + places[i, 1]
        while pos < end and error == OK:
            at = pos
            number, wire, content, begin, pos, error = field(buffer, pos, end)
            if wire == _BYTES and number == wanted:
                counts[i] += 1
                total += 1
    found = np.empty((total if error == OK and total <= most else 0, 2), np.int64)
    row = 0
    for i in range(len(places) if len(found) else 0):
        pos, end = places[i, 0], places[i, 0] + places[i, 1]
        while pos < end:
            number, wire, content, begin, pos, error = field(buffer, pos, end)
            if wire == _BYTES and number == wanted:
                found[row, 0], found[row, 1] = begin, content
                row += 1
    return counts, found, error, at


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
    """(how many integers each of `places` has in the repeated field `wanted`, packed or not; the integers; error code,
    its byte). The integers are left out if there are more than `most`."""
    counts, total = np.zeros(len(places), np.int64), np.int64(0)
    error, at = np.int64(OK), np.int64(0)
    for i in range(len(places)):
        pos, end = places[i, 0], places[i, 0] + places[i, 1]
        while pos < end and error == OK:
            at = pos
            number, wire, content, begin, pos, error = field(buffer, pos, end)
            if number == wanted and wire == _VARINT:
                counts[i] += 1
            elif number == wanted and wire == _BYTES and error == OK:
                for byte in range(begin, begin + content):
                    counts[i] += buffer[byte] < 128
                if content and buffer[begin + content - 1] >= 128:
                    error = np.int64(PAST_END)
        total += counts[i]
    found = np.empty(total if error == OK and total <= most else 0, np.int64)
    row = 0
    for i in range(len(places) if len(found) else 0):
        pos, end = places[i, 0], places[i, 0] + places[i, 1]
        while pos < end:
            number, wire, content, begin, pos, error = field(buffer, pos, end)
            if number == wanted and wire == _VARINT:
                found[row] = content
                row += 1
            elif number == wanted and wire == _BYTES:
                value, shift = np.int64(0), 0
                for byte in range(begin, begin + content):
                    value |= np.int64(buffer[byte] & 127) << min(shift, 63)
                    shift += 7
                    if buffer[byte] < 128:
                        found[row] = value
                        row += 1
                        value, shift = np.int64(0), 0
    return counts, found, error, at
