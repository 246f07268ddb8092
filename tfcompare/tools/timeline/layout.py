"""The spans of a timeline in rows: a row for each level of nesting, so that no two spans of a row overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tfcompare.schema.arrays import Int64
from tfcompare.xspace.compilation import Array, compiled

MOST_ROWS = 64
"""Rows of one lane; spans that would need another share the last one."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The spans of a timeline, sorted by lane, row and start.

    `span` is the position of each in the table of spans, `start_ps` and `end_ps` its time. Row `i` holds the spans from
    `first[i]` to before `first[i + 1]`; `lane[i]` is its lane and `number[i]` its number within the lane, 0 at the top.
    Starts and ends increase within a row, except in row `MOST_ROWS - 1` of a lane.
    """

    span: Int64
    start_ps: Int64
    end_ps: Int64
    first: Int64
    lane: Int64
    number: Int64


def lay_out(spans: pd.DataFrame) -> Layout:
    """Rows for spans with the columns `lane`, `start_ps`, `duration_ps`, sorted by lane and start, longer ones first.

    A span goes to the first row of its lane that is free: nested spans are below the one around them, and so are spans
    that overlap without nesting.
    """
    lane, start = (spans[name].to_numpy(np.int64) for name in ("lane", "start_ps"))
    end = start + spans["duration_ps"].to_numpy(np.int64)
    row = np.zeros(len(spans), np.int64)
    _place(lane, start, end, np.empty(MOST_ROWS, np.int64), row)
    key = lane * MOST_ROWS + row
    order = np.argsort(key, kind="stable")
    rows, first = np.unique(key[order], return_index=True)
    return Layout(order, start[order], end[order], np.append(first, len(spans)), rows // MOST_ROWS, rows % MOST_ROWS)


@compiled
def _place(lane: Array, start: Array, end: Array, ends: Array, out: Array) -> None:
    """`ends` holds the end of the last span in each of the `used` rows of the current lane."""
    used = 0
    for i in range(start.size):
        if i == 0 or lane[i] != lane[i - 1]:
            used = 0
        row = 0
        while row < used and row < ends.size - 1 and ends[row] > start[i]:
            row += 1
        used = max(used, row + 1)
        ends[row] = end[i]
        out[i] = row
