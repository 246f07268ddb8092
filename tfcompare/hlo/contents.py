"""What stands at places of the bytes of XLA programs: messages, fields, numbers and texts, of many places at once.

A place is the row of the first byte and the length (`scan`). Damage raises `NotAProfile`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfcompare.errors import NotAProfile
from tfcompare.hlo import scan
from tfcompare.hlo.proto_fields import check
from tfcompare.schema.arrays import Int64, Strings
from tfcompare.xspace import lookup
from tfcompare.xspace.texts import LONGEST_BYTES, text_of

_PRINTABLE = range(0x20, 0x7F)
"""Of ASCII: texts of these alone are as they are, others are decoded by `text_of`."""
INTEGER = 2  # of the three numbers of a field; the others are the place of its bytes
MOST_INSTRUCTIONS = 1_000_000
"""In one program; the largest real ones have a tenth of that."""
_MOST_NUMBERS = 4 * MOST_INSTRUCTIONS
"""Operands of all instructions."""
_FEW = 8
"""Texts that are decoded sooner than it is found which are equal; a profile may have thousands of tiny programs."""


@dataclass(frozen=True, eq=False)
class Lists:
    """A list of numbers for each row: those of row i are `items[first[i] : first[i + 1]]`."""

    first: Int64
    items: Int64

    @classmethod
    def grouped(cls, owner: Int64, items: Int64, size: int) -> Lists:
        """The lists of `size` rows, from the row of each number, in order, and the numbers."""
        return cls(from_counts(np.bincount(owner, minlength=size)), items)

    def of(self, row: int, most: int = _MOST_NUMBERS) -> list[int]:
        """The first numbers of one row."""
        begin = self.first[row]
        found: list[int] = self.items[begin : min(self.first[row + 1], begin + most)].tolist()
        return found

    def at(self, rows: Int64, place: int) -> Int64:
        """The number at that place in the list of each row, −1 if it is shorter."""
        at = self.first[rows] + place
        return np.where(at < self.first[rows + 1], np.append(self.items, -1)[np.minimum(at, len(self.items))], -1)

    def between(self, begin: int, end: int, change: Callable[[Int64], Int64]) -> Lists:
        """The lists of the rows from `begin` to `end`, with changed numbers."""
        first = self.first[begin : end + 1]
        return Lists(first - first[0], change(self.items[first[0] : first[-1]]))

    def flat(self, rows: Int64, most: int = _MOST_NUMBERS) -> tuple[Int64, Int64, Int64]:
        """(position in `rows`, position in the list, number) of the first numbers of each of these rows, in order."""
        begin, size = self.first[rows], np.minimum(self.first[rows + 1] - self.first[rows], most)
        owner = np.repeat(np.arange(len(rows)), size)
        place = np.arange(len(owner)) - (np.cumsum(size) - size)[owner]
        return owner, place, self.items[begin[owner] + place]

    def known(self, rows: Int64) -> tuple[Int64, Int64]:
        """(position in `rows`, number) of the numbers of each of these rows but −1, in order."""
        owner, _, numbers = self.flat(rows)
        return owner[numbers >= 0], numbers[numbers >= 0]


def messages_in(buffer: npt.NDArray[np.uint8], places: Int64, wanted: int) -> tuple[Int64, Int64]:
    """(how many messages each of `places` has in that field, the places of these)."""
    counts, found, error, at = scan.messages_in(buffer, np.ascontiguousarray(places), wanted, MOST_INSTRUCTIONS)
    check(error, at)
    if counts.sum() > MOST_INSTRUCTIONS:
        raise NotAProfile(None, 0, f"an HLO module of at most {MOST_INSTRUCTIONS:,} instructions", "more")
    return counts, found


def fields_of(buffer: npt.NDArray[np.uint8], places: Int64, *wanted: int) -> Int64:
    """As `scan.fields_of`."""
    found, error, at = scan.fields_of(buffer, places, np.array(wanted))
    check(error, at)
    return found


def numbers_in(buffer: npt.NDArray[np.uint8], places: Int64, wanted: int) -> Lists:
    """The integers in that repeated field of each of `places`."""
    counts, found, error, at = scan.numbers_in(buffer, places, wanted, _MOST_NUMBERS)
    check(error, at)
    if counts.sum() > _MOST_NUMBERS:
        raise NotAProfile(None, 0, f"at most {_MOST_NUMBERS:,} numbers in a field of an HLO module", "more")
    return Lists(from_counts(counts), found)


def from_counts(counts: Int64) -> Int64:
    """Where the items of each row begin, and the end of all."""
    return np.append(0, np.cumsum(counts))


def intern(buffer: npt.NDArray[np.uint8], places: Int64) -> tuple[Int64, Int64]:
    """(a code for the bytes at each place, equal ones for equal bytes; a row with each code)."""
    return lookup.intern_bytes(buffer, *places[:, :INTEGER].T)


def texts_at(buffer: npt.NDArray[np.uint8], places: Int64) -> Strings:
    """The texts at these places, empty where there is none; of many, equal ones are decoded once."""
    if len(places) <= _FEW:
        out = np.empty(len(places), object)
        out[:] = _each_decoded(buffer, places)
        return out
    codes, firsts = intern(buffer, places)
    labels: Strings = strings_at(buffer, places[firsts]).to_numpy(zero_copy_only=False)
    return labels[codes]


def strings_at(buffer: npt.NDArray[np.uint8], places: Int64) -> pa.LargeStringArray:
    """The texts at these places, empty where there is none."""
    if places[:, 1].max(initial=0) <= LONGEST_BYTES:
        starts, lengths = places[:, :INTEGER].T
        found = lookup.strings(buffer, starts, lengths, pa.large_string())
        content = np.frombuffer(found.buffers()[2], np.uint8)
        if content.min(initial=_PRINTABLE.start) in _PRINTABLE and content.max(initial=_PRINTABLE.start) in _PRINTABLE:
            return found
    return pa.array(_each_decoded(buffer, places), pa.large_string())


def _each_decoded(buffer: npt.NDArray[np.uint8], places: Int64) -> list[str]:
    return [text_of(buffer[begin : begin + size].data) for begin, size in places[:, :INTEGER].tolist()]
