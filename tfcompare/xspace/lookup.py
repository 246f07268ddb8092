"""Maps ids and texts to dense codes, and ids to rows."""

from __future__ import annotations

import secrets

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled

SEED = secrets.randbits(62)
"""A random seed, so that a crafted file cannot cause hash collisions; results do not depend on it."""


@compiled
def replace(codes: Array, by: Array) -> None:
    """Replace each code in place by the element of `by` at that index."""
    for i in range(codes.size):
        codes[i] = by[codes[i]]


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
    codes, firsts = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    slots = np.full(1 << max(4, (2 * len(starts) - 1).bit_length()), -1, np.int32)
    return codes, firsts[: _intern(buffer, starts, lengths, SEED, slots, codes, firsts)]


@compiled
def _intern(buffer: Array, starts: Array, lengths: Array, seed: Int, slots: Array, codes: Array, firsts: Array) -> Int:
    """`slots`: filled with −1; its size is a power of two and at least twice the number of strings."""
    size = np.int64(slots.size)
    found = np.int64(0)
    for row in range(starts.size):
        start, length = np.int64(starts[row]), np.int64(lengths[row])
        hashed = np.uint64(14695981039346656037) ^ np.uint64(seed)
        for i in range(start, start + length):
            hashed = (hashed ^ np.uint64(buffer[i])) * np.uint64(1099511628211)
        slot = np.int64((hashed ^ (hashed >> np.uint64(29))) & np.uint64(size - 1))
        while True:
            code = np.int64(slots[slot])
            if code < 0:
                slots[slot] = found
                firsts[found] = row
                codes[row] = found
                found += 1
                break
            other = firsts[code]
            if lengths[other] == length:
                same = True
                other_start = starts[other]
                for i in range(length):
                    if buffer[start + i] != buffer[other_start + i]:
                        same = False
                        break
                if same:
                    codes[row] = code
                    break
            slot = (slot + 1) & (size - 1)
    return found


def rows_of_ids(ids: Array, rows: Array, wanted: Array, missing: Int, out: Array) -> None:
    """Write to `out` the row of each id in `wanted`, `missing` for none; `ids` are sorted, and have these `rows`."""
    if not len(ids):
        out[:] = missing
    elif ids[0] >= 0 and ids[-1] < 8 * len(ids) + 1024:
        table = np.full(ids[-1] + 1, missing, np.int32)
        table[ids] = rows
        _look_up(table, wanted, missing, out)
    else:
        _search(ids, rows, wanted, missing, out)


@compiled
def _look_up(table: Array, wanted: Array, missing: Int, out: Array) -> None:
    for i in range(wanted.size):
        key = wanted[i]
        out[i] = table[key] if 0 <= key < table.size else missing


@compiled
def _search(ids: Array, rows: Array, wanted: Array, missing: Int, out: Array) -> None:
    for i in range(wanted.size):
        key, low, high = wanted[i], 0, ids.size
        while low < high:
            middle = (low + high) // 2
            if ids[middle] < key:
                low = middle + 1
            else:
                high = middle
        out[i] = rows[low] if low < ids.size and ids[low] == key else missing
