"""Maps ids and texts to dense codes, and ids to rows."""

from __future__ import annotations

import secrets

import numpy as np
import pyarrow as pa

from tfcompare.xspace.compilation import Array, Int, compiled

SEED = secrets.randbits(62)
"""A random seed, so that a crafted file cannot cause hash collisions; results do not depend on it."""


def used(codes: Array, size: int) -> Array:
    """The codes from 0 to `size` that occur, in ascending order."""
    occurs = np.zeros(size, np.bool_)
    occurs[codes] = True
    return np.flatnonzero(occurs)


def grouped(codes: Array, size: int) -> tuple[Array, Array]:
    """(where the rows of each code from 0 to `size` begin, and the end; the rows sorted by code)."""
    first, rows = np.zeros(size + 2, np.int32), np.empty(len(codes), np.int32)
    count_each(codes, first[2:])
    np.cumsum(first, out=first)
    put_each(codes, first[1:], rows)
    return first[:-1], rows


def ranges(codes: Array, size: int) -> Array:
    """Where the rows of each code from 0 to `size` begin, and the end; `codes` are sorted."""
    return np.searchsorted(codes, np.arange(size + 1)).astype(np.int64)


@compiled
def count_each(codes: Array, counts: Array) -> None:
    """Add the number of occurrences of each code to `counts`."""
    for i in range(codes.size):
        if codes[i] >= 0:
            counts[codes[i]] += 1


@compiled
def put_each(codes: Array, place: Array, rows: Array) -> None:
    """Write the rows of each code into `rows`, from the code's `place` on; advances `place`."""
    for i in range(codes.size):
        if codes[i] >= 0:
            at = place[codes[i]]
            rows[at] = i
            place[codes[i]] = at + 1


@compiled
def last_of_each(stats: Array, owner: Array, kind: Array, wanted: Array, kinds: Int, out: Array) -> None:
    """For each owner in `wanted`, write to `out` the last row of `stats` that belongs to it and whose kind is set in
    the bit mask `kinds`, −1 for none. `stats`: rows of `owner` and `kind`, sorted by owner. The search is fastest if
    `wanted` is almost sorted."""
    at = np.int64(0)  # the number of `stats` whose owners are up to the previously wanted one
    for i in range(wanted.size):
        low, high, reach = at, at, np.int64(1)
        while high < stats.size and owner[stats[high]] <= wanted[i]:
            low = high + 1
            high = min(high + reach, np.int64(stats.size))
            reach *= 2
        reach = np.int64(1)
        while low > 0 and owner[stats[low - 1]] > wanted[i]:
            high = low - 1
            low = max(low - reach, np.int64(0))
            reach *= 2
        while low < high:
            middle = (low + high) // 2
            if owner[stats[middle]] <= wanted[i]:
                low = middle + 1
            else:
                high = middle
        at = low
        while low > 0 and owner[stats[low - 1]] == wanted[i] and not (kinds >> kind[stats[low - 1]]) & 1:
            low -= 1
        out[i] = stats[low - 1] if low > 0 and owner[stats[low - 1]] == wanted[i] else -1


def intern_bytes(buffer: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Give equal byte strings equal codes: (the code of each string, a row with each code).

    `starts` and `lengths` must lie within `buffer`.
    """
    return numbered(strings(buffer, starts, lengths, pa.large_binary()))


def strings(buffer: Array, starts: Array, lengths: Array, kind: pa.DataType) -> pa.Array:
    """The byte strings at these places, as an array of that type, which has 64-bit offsets."""
    offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
    content = np.empty(offsets[-1], np.uint8)
    _gather(buffer, np.ascontiguousarray(starts), offsets, content)
    return pa.Array.from_buffers(kind, len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(content)])


@compiled
def _gather(buffer: Array, starts: Array, offsets: Array, out: Array) -> None:
    for i in range(starts.size):
        at = starts[i] - offsets[i]
        for to in range(offsets[i], offsets[i + 1]):
            out[to] = buffer[at + to]


def numbered(values: pa.Array) -> tuple[Array, Array]:
    """(a code from 0 for each value, in order of appearance; the first row of each code)."""
    encoded = values.dictionary_encode()
    code = encoded.indices.to_numpy()
    rows = np.empty(len(encoded.dictionary), np.int64)
    rows[code[::-1]] = np.arange(len(code) - 1, -1, -1)  # of equal ones the first is left
    return code.astype(np.int64), rows


def last_rows(keys: Array, wanted: Array) -> Array:
    """The last row of `keys` with each wanted number, −1 for none."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    row = order[np.searchsorted(keys, wanted, side="right", sorter=order) - 1]
    return np.where(keys[row] == wanted, row, -1)
