"""Every span has a place of its own in the layout: rows do not overlap, and what is nested is below."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.views.timeline.cases import spans_table
from tfcompare.views.timeline.lanes import MOST_ROWS, Layout, lay_out

Spans = list[tuple[int, int, int]]
SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 30)), max_size=60)


def row_numbers(layout: Layout) -> np.ndarray:
    """The number of the row of each span, in the order of the table of spans."""
    found = np.full(len(layout.span), -1)
    found[layout.span] = np.repeat(layout.number, np.diff(layout.first))
    return found


def check(spans: pd.DataFrame, layout: Layout) -> None:
    """Every span once, in its lane, with its times; spans of a row follow one another."""
    assert np.sort(layout.span).tolist() == list(range(len(spans)))
    lane, start, duration = (
        spans[name].to_numpy(np.int64)[layout.span] for name in ("lane", "start_ps", "duration_ps")
    )
    assert (layout.start_ps == start).all()
    assert (layout.end_ps == start + duration).all()
    assert (np.repeat(layout.lane, np.diff(layout.first)) == lane).all()
    number = np.repeat(layout.number, np.diff(layout.first))
    follows = (np.diff(lane) == 0) & (np.diff(number) == 0) & (number[1:] < MOST_ROWS - 1)
    assert (layout.end_ps[:-1][follows] <= layout.start_ps[1:][follows]).all()
    for one in np.unique(layout.lane):
        rows = layout.number[layout.lane == one]
        assert rows.tolist() == list(range(len(rows)))


@law(40)
@given(SPANS)
def test_rows_hold_every_span_once_and_no_two_overlap(spans: Spans) -> None:
    table = spans_table(spans)
    check(table, lay_out(table))


@law(40)
@given(SPANS)
def test_a_span_is_in_the_first_row_that_is_free(spans: Spans) -> None:
    table = spans_table(spans)
    rows = row_numbers(lay_out(table))
    for i, (lane, start, _) in enumerate(table.itertuples(index=False)):
        before = table.iloc[:i].assign(row=rows[:i])
        running = before[(before["lane"] == lane) & (before["start_ps"] + before["duration_ps"] > start)]
        assert rows[i] not in set(running["row"])
        assert set(range(rows[i])) <= set(running["row"])


def test_spans_that_only_overlap_are_below_as_well() -> None:
    table = spans_table([(0, 0, 10), (0, 5, 10), (0, 10, 5), (1, 7, 1)])
    assert row_numbers(lay_out(table)).tolist() == [0, 1, 0, 0]


def test_nesting_deeper_than_the_rows_loses_no_span() -> None:
    depth = MOST_ROWS + 100
    table = spans_table([(0, i, 3 * depth - 2 * i) for i in range(depth)])
    layout = lay_out(table)
    check(table, layout)
    assert np.diff(layout.first).tolist() == [1] * (MOST_ROWS - 1) + [101]


def test_no_spans_have_no_rows() -> None:
    layout = lay_out(spans_table([]))
    assert (len(layout.lane), layout.first.tolist()) == (0, [0])
