"""Ids and texts to dense codes, and ids to rows."""

from __future__ import annotations

import secrets

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled

SEED = secrets.randbits(62)
"""Makes where things fall in a hash table unknown to whoever writes a file; no result depends on it."""


@compiled
def intern_bytes(buffer: Array, starts: Array, lengths: Array, seed: Int, codes: Array, firsts: Array) -> Int:
    """Give equal byte strings equal codes: fills `codes`, and `firsts` with one row of each; returns how many.

    `starts` and `lengths` must lie within `buffer`.
    """
    size = 16
    while size < 2 * starts.size:
        size *= 2
    slots = np.full(size, -1, np.int64)
    found = 0
    for row in range(starts.size):
        start, length = starts[row], lengths[row]
        hashed = np.uint64(14695981039346656037) ^ np.uint64(seed)
        for i in range(start, start + length):
            hashed = (hashed ^ np.uint64(buffer[i])) * np.uint64(1099511628211)
        slot = np.int64((hashed ^ (hashed >> np.uint64(29))) & np.uint64(size - 1))
        while True:
            code = slots[slot]
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


@compiled
def dense_rows(ids: Array, rows: Array, first: Int, last: Int, wanted: Array, missing: Int, out: Array) -> None:
    """For `wanted[first:last]`, the row of the entry with that id (`ids` sorted, `rows` along); `missing` for none."""
    low, high = (ids[0], ids[-1]) if ids.size else (np.int64(0), np.int64(-1))
    direct = ids.size > 0 and low >= 0 and high < 8 * ids.size + 1024
    table = np.full(high + 1 if direct else 1, missing, np.int32)
    if direct:
        for i in range(ids.size):
            table[ids[i]] = rows[i]
    for i in range(first, last):
        key = wanted[i]
        if key < low or key > high:
            out[i] = missing
        elif direct:
            out[i] = table[key]
        else:
            at = np.searchsorted(ids, key)
            out[i] = rows[at] if ids[at] == key else missing
