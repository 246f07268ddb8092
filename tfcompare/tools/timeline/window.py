"""What to draw of a timeline: the spans within a window of time, with those narrower than a pixel joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcompare.schema.arrays import Bools, Int64
from tfcompare.tools.timeline.layout import MOST_ROWS, Layout
from tfcompare.xspace.compilation import Array, Int, compiled

_COLUMNS = (
    "row", "start_ps", "end_ps", "busy_ps", "count", "span", "matched_ps", "partner_ps", "alone_ps",
)  # fmt: skip
MOST_RECTANGLES = 15_000
"""A browser draws this many in about 20 ms."""

NEUTRAL, ALONE = -2, -1
"""In place of a partner's duration: a span that is compared with nothing, and one that only this run has."""


@dataclass(frozen=True, eq=False)
class Rectangles:
    """What to draw: one row for each rectangle, which stands for one span or for several neighbours of a row.

    `row` is a row of the layout, `start_ps` and `end_ps` the extent, `busy_ps` the sum of the durations of its spans,
    `count` their number, and `span` the longest of them. `matched_ps` is the duration of those with a partner,
    `partner_ps` that of the partners, and `alone_ps` that of spans that only this run has. `is_marked`: whether any of
    them is marked.
    """

    row: Int64
    start_ps: Int64
    end_ps: Int64
    busy_ps: Int64
    count: Int64
    span: Int64
    matched_ps: Int64
    partner_ps: Int64
    alone_ps: Int64
    is_marked: Bools


def rectangles(
    layout: Layout,
    rows: Int64,
    window_ps: tuple[int, int],
    pixel_ps: int,
    partner_ps: Int64,
    marked: Bools,
    *,
    most: int = MOST_RECTANGLES,
) -> Rectangles:
    """The rectangles of these `rows` of a layout that overlap a window of time.

    Spans narrower than a pixel that begin within the same pixel of a row are joined. If that leaves more than `most`
    rectangles, pixels are made twice as wide until it does not; each row keeps one at least. `partner_ps` is the
    duration of the partner of each span, or `NEUTRAL` or `ALONE`; `marked` says which spans to mark. Both are in the
    order of the table of spans.
    """
    pixel_ps, most = max(pixel_ps, 1), max(most, len(rows))
    while True:
        found = np.zeros((len(_COLUMNS) + 1, most), np.int64)
        count = _join(
            layout.first, layout.number, layout.span, layout.start_ps, layout.end_ps, rows, window_ps[0], window_ps[1],
            pixel_ps, partner_ps, marked, found,
        )  # fmt: skip
        if count >= 0:
            columns = dict(zip(_COLUMNS, found[:-1, :count], strict=True))
            return Rectangles(**columns, is_marked=found[-1, :count] > 0)
        pixel_ps *= 2


@compiled
def _join(
    first: Array, number: Array, span: Array, start: Array, end: Array, rows: Array, begin: Int, until: Int,
    pixel: Int, partner: Array, marked: Array, out: Array,
) -> int:  # fmt: skip
    """Fills `out`: `_COLUMNS`, and whether any is marked; returns their number, −1 if too many."""
    k = -1
    for row in rows:
        at, last = first[row], first[row + 1]
        if number[row] < MOST_ROWS - 1:
            at += np.searchsorted(end[at:last], begin)
        joining, longest = np.int64(-1), np.int64(-1)  # the pixel of spans that may join the rectangle; its longest one
        while at < last and start[at] <= until:
            which, duration = span[at], end[at] - start[at]
            pixel_here = start[at] // pixel if duration < pixel else np.int64(-1)
            if end[at] >= begin:
                if pixel_here < 0 or pixel_here != joining:
                    k += 1
                    if k == out.shape[1]:
                        return -1
                    out[0, k], out[1, k], out[2, k] = row, start[at], end[at]
                    joining, longest = pixel_here, np.int64(-1)
                if duration > longest:
                    longest, out[5, k] = duration, which
                out[2, k] = max(out[2, k], end[at])
                out[3, k] += duration
                out[4, k] += 1
                if partner[which] >= 0:
                    out[6, k] += duration
                    out[7, k] += partner[which]
                elif partner[which] == ALONE:
                    out[8, k] += duration
                out[9, k] |= marked[which]
            at += 1
    return k + 1
