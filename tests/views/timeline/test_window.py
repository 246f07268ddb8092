"""Joining spans narrower than a pixel loses no time, no span and no mark; a window shows what overlaps it."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from operator import itemgetter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.views.timeline.cases import spans_table
from tfcompare.views.timeline.aligned import ALONE, NEUTRAL, Rectangles, rectangles
from tfcompare.views.timeline.lanes import MOST_ROWS, Layout, lay_out

SUMS = ("busy_ps", "count", "matched_ps", "partner_ps", "alone_ps")
SPAN = st.tuples(st.integers(0, 2), st.integers(0, 200), st.integers(0, 40), st.integers(NEUTRAL, 50), st.booleans())
WINDOW = st.tuples(st.integers(-20, 260), st.integers(-20, 260)).map(lambda ends: (min(ends), max(ends)))
WHOLE = (-1_000, 1_000)


class Drawn:
    """Spans of (lane, start, duration, duration of the partner, is marked), laid out."""

    def __init__(self, spans: list[tuple[int, int, int, int, bool]]) -> None:
        spans = sorted(spans, key=lambda span: (span[0], span[1], -span[2]))
        self.layout = lay_out(spans_table([span[:3] for span in spans]))
        self.partner = np.array([span[3] for span in spans], np.int64)
        self.marked = np.array([span[4] for span in spans], np.bool_)

    def rectangles(
        self, window: tuple[int, int], pixel: int, rows: np.ndarray | None = None, **options: int
    ) -> Rectangles:
        chosen = np.arange(len(self.layout.lane)) if rows is None else rows
        return rectangles(self.layout, chosen, window, pixel, self.partner, self.marked, **options)

    def expected(self, window: tuple[int, int], pixel: int) -> list[dict[str, int]]:
        """The rectangles, the slow way."""
        found = []
        for row, (first, last) in enumerate(zip(self.layout.first[:-1], self.layout.first[1:], strict=True)):
            here = [i for i in range(first, last) if self.start(i) <= window[1] and self.end(i) >= window[0]]
            pixels = [(0, self.start(i) // pixel) if self.length(i) < pixel else (1, i) for i in here]
            for _, group in groupby(zip(pixels, here, strict=True), key=itemgetter(0)):
                found.append(self.joined(row, [i for _, i in group]))
        return found

    def start(self, i: int) -> int:
        return int(self.layout.start_ps[i])

    def end(self, i: int) -> int:
        return int(self.layout.end_ps[i])

    def length(self, i: int) -> int:
        return self.end(i) - self.start(i)

    def joined(self, row: int, group: list[int]) -> dict[str, int]:
        spans = [int(self.layout.span[i]) for i in group]
        partners = self.partner[spans].tolist()
        lengths = [self.length(i) for i in group]
        matched = [length for length, partner in zip(lengths, partners, strict=True) if partner >= 0]
        alone = [length for length, partner in zip(lengths, partners, strict=True) if partner == ALONE]
        return {
            "row": row,
            "start_ps": self.start(group[0]),
            "end_ps": max(map(self.end, group)),
            "busy_ps": sum(lengths),
            "count": len(group),
            "span": spans[lengths.index(max(lengths))],
            "matched_ps": sum(matched),
            "partner_ps": sum(one for one in partners if one >= 0),
            "alone_ps": sum(alone),
            "is_marked": bool(self.marked[spans].any()),
        }


def listed(found: Rectangles) -> list[dict[str, int]]:
    columns = {name: values.tolist() for name, values in asdict(found).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@law(40)
@given(st.lists(SPAN, max_size=40), WINDOW, st.integers(1, 60))
def test_a_window_is_cut_and_joined_as_a_slow_reference_does(spans, window, pixel) -> None:
    drawn = Drawn(spans)
    assert listed(drawn.rectangles(window, pixel)) == drawn.expected(window, pixel)


def sums(layout: Layout, found: Rectangles) -> dict[str, list[int]]:
    """The sums of each row."""
    rows = len(layout.lane)
    return {
        name: np.bincount(found.row, getattr(found, name), minlength=rows).astype(np.int64).tolist() for name in SUMS
    }


@law(40)
@given(st.lists(SPAN, max_size=60), st.integers(3, 12))
def test_pixels_grow_until_the_rectangles_are_few_enough(spans, most) -> None:
    drawn = Drawn(spans)
    top = np.flatnonzero(drawn.layout.number == 0)
    found = drawn.rectangles(WHOLE, 1, top, most=most)
    assert len(found.row) <= most
    assert sums(drawn.layout, found) == sums(drawn.layout, drawn.rectangles(WHOLE, 1, top))


def test_the_smallest_pixel_that_is_coarse_enough_is_taken() -> None:
    drawn = Drawn([(0, 2 * i, 1, NEUTRAL, i == 3) for i in range(16)])
    assert len(drawn.rectangles(WHOLE, 1).row) == 16
    found = drawn.rectangles(WHOLE, 1, most=8)
    assert found.count.tolist() == [2] * 8
    assert found.is_marked.tolist() == [False, True] + [False] * 6


def test_more_rows_than_rectangles_have_one_each() -> None:
    drawn = Drawn([(lane, at, 1, NEUTRAL, False) for lane in range(20) for at in (0, 50)])
    assert drawn.rectangles(WHOLE, 1, most=10).count.tolist() == [2] * 20


def test_rows_that_are_not_asked_for_are_left_out() -> None:
    drawn = Drawn([(0, 0, 10, NEUTRAL, False), (0, 2, 3, NEUTRAL, False), (1, 0, 10, NEUTRAL, False)])
    assert drawn.rectangles(WHOLE, 1, np.array([2])).row.tolist() == [2]


def test_a_window_within_spans_that_share_the_last_row_holds_all_that_overlap_it() -> None:
    depth = MOST_ROWS + 100
    drawn = Drawn([(0, i, 3 * depth - 2 * i, NEUTRAL, False) for i in range(depth)])
    middle = 3 * depth // 2
    assert drawn.rectangles((middle, middle + 1), 1).count.sum() == depth
