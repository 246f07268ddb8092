"""Distinct values and combinations of integer columns, and sums over the rows of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfcompare.schema.arrays import Bools, Int8, Int32, Int64
from tfcompare.xspace.lookup import numbered

_MAX_DENSE_RATIO = 4
"""A table of all possible values is used unless they are more than this many times as many as there are rows."""

_LARGEST_CODE = 1 << 62


def combinations(*columns: Int8 | Int32 | Int64) -> tuple[Int64, Int64]:
    """(row of the first occurrence of each distinct combination, in order of appearance; the combination of each
    row). Columns of 8 bits hold no negative numbers."""
    code, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        codes, count = _codes(column)
        if size * count > _LARGEST_CODE:
            code, size = numbered(pa.array(code))[0], len(code)
        code *= count
        code += codes
        size *= count
    code, rows = _numbered_densely(code, size) if size <= len(code) else numbered(pa.array(code))
    return rows, code


def _codes(column: Int8 | Int32 | Int64) -> tuple[Int8 | Int32 | Int64, int]:
    """(a code from 0 for each row, the number of possible codes)."""
    least, most = int(column.min(initial=0)), int(column.max(initial=0))
    if most - least <= _MAX_DENSE_RATIO * len(column):
        return column - least if least else column, most - least + 1
    code, rows = numbered(pa.array(column))
    return code, len(rows)


def _numbered_densely(codes: Int64, size: int) -> tuple[Int64, Int64]:
    """As `numbered`, of codes from 0 to `size` − 1."""
    first, places = np.full(size, -1, np.int32), np.arange(len(codes), dtype=np.int32)
    first[codes[::-1]] = places[::-1]  # of equal ones the last is left
    is_first = np.zeros(len(codes), np.bool_)
    is_first[first[first >= 0]] = True
    rows = is_first.nonzero()[0]
    first[codes[rows]] = places[: len(rows)]
    return first.take(codes).astype(np.int64), rows


def distinct(keys: Int32 | Int64, size: int) -> tuple[Int64, Int64]:
    """(the distinct keys, in order; the position of each key among them). Keys are from 0 to `size` − 1."""
    if size > _MAX_DENSE_RATIO * len(keys) + 1024:
        found, position = np.unique(keys, return_inverse=True)
        return found.astype(np.int64, copy=False), position
    is_used = np.zeros(size, np.bool_)
    is_used[keys] = True
    position = np.cumsum(is_used, dtype=np.int32).take(keys).astype(np.int64)
    position -= 1
    return np.flatnonzero(is_used), position


def cells_by_step(row: Int64, step: Int32, numbers: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """The cells of a table by step: (the row of each cell, its step's number; the events within steps, and the cell of
    each), from the row and the position of the step of each event, −1 outside all steps. `numbers` are the steps'."""
    inside = np.flatnonzero(step >= 0)
    width = max(len(numbers), 1)
    cell, code = distinct(row[inside] * width + step[inside], (int(row.max()) + 1) * width)
    return cell // width, numbers[cell % width] if len(cell) else cell, inside, code


def sums(code: Int32 | Int64, values: Int64, size: int) -> Int64:
    """The sum of the values of each code, for codes from 0 to `size` − 1."""
    out = np.zeros(size, np.int64)
    np.add.at(out, code, values)
    return out


def largest(code: Int32 | Int64, values: Int64, size: int) -> Int64:
    """The largest value of each code, for codes from 0 to `size` − 1."""
    out = np.full(size, np.iinfo(np.int64).min)
    np.maximum.at(out, code, values)
    return out


def smallest(code: Int32 | Int64, values: Int64, size: int) -> Int64:
    """The smallest value of each code, for codes from 0 to `size` − 1."""
    out = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(out, code, values)
    return out


def any_of(code: Int64, flags: Bools, size: int) -> Bools:
    """Whether any flag of each code is set."""
    out = np.zeros(size, np.bool_)
    out[code[flags]] = True
    return out
