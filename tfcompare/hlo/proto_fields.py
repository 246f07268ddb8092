"""Reads the fields of protobuf messages of an XLA program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tfcompare.errors import NotAProfile
from tfcompare.hlo.scan import field_rows
from tfcompare.xspace.decoding import BAD_TAG, OK, PAST_END

_LONGEST_LIST = 1 << 20  # far above what real programs have, so that lists in a damaged file cannot fill the memory
_ROWS_AT_ONCE = 1 << 10
_ERRORS = {
    PAST_END: ("a field that ends within its HLO module", "one that runs past its end"),
    BAD_TAG: ("the beginning of a field of an HLO module", "bytes that begin none"),
}
_NO_NUMBER = ("a number in an HLO module", "the end of its message, or more than ten bytes")

Content = memoryview | int


def fields(message: memoryview) -> Iterator[tuple[int, Content]]:
    """(field number, content) of each length-delimited field, (field number, value) of each varint; skips others.

    Values are signed 64-bit integers. Raises `NotAProfile` if the bytes are invalid.
    """
    buffer, at = np.frombuffer(message, np.uint8), 0
    while at < len(message):
        rows, at, error = field_rows(buffer, at, _ROWS_AT_ONCE)
        for number, begin, size in rows.tolist():
            yield number, size if begin < 0 else message[begin : begin + size]
        check(error, at)


def check(error: int, at: int) -> None:
    """Raise `NotAProfile` for the error code of a scan that ended at that byte."""
    if error != OK:
        raise NotAProfile(None, at, *_ERRORS.get(error, _NO_NUMBER))


def messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The messages in that field. Raises `NotAProfile` if the bytes are invalid."""
    return (content for number, content in fields(message) if number == wanted and not isinstance(content, int))


def integers(message: memoryview, wanted: int, longest: int = _LONGEST_LIST) -> list[int]:
    """The integers in that repeated field, packed or not.

    Raises `NotAProfile` if the bytes are invalid or there are more than `longest`.
    """
    return unpacked((content for number, content in fields(message) if number == wanted), longest)


def unpacked(contents: Iterable[Content], longest: int = _LONGEST_LIST) -> list[int]:
    """The integers in the contents of a repeated field, each an integer or some packed ones; raises as `integers`."""
    out: list[int] = []
    for content in contents:
        if isinstance(content, int):
            out.append(content)
            continue
        at = 0
        while at < len(content) and len(out) <= longest:
            value, at = _varint(content, at)
            out.append(value)
        if len(out) > longest:
            raise NotAProfile(None, 0, f"at most {longest:,} numbers in a field of an HLO module", "more")
    return out


def integer_fields(message: memoryview) -> dict[int, int]:
    """The last integer in each field that is one. Raises `NotAProfile` if the bytes are invalid."""
    return {number: content for number, content in fields(message) if isinstance(content, int)}


def signed(value: int) -> int:
    """A varint as a signed 64-bit integer."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise NotAProfile(None, at, *_NO_NUMBER)
