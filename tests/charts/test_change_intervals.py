"""Intervals of the largest changes: drawn where they are, every row with its word and its numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tests.charts import chart_samples as samples
from tests.charts.chart_samples import FAST, METRIC, SLOW
from tfcompare.charts import style
from tfcompare.charts.change_intervals import change_intervals
from tfcompare.charts.ops import movers
from tfcompare.compare.aggregate import largest_changes
from tfcompare.units import format_ratio

LONG = "a_name_without_an_end/" * 12


def changes(verdicts: list[tuple[str, float, float]], diff: pd.DataFrame | None = None) -> pd.DataFrame:
    """The largest changes of the sample, the first of them with these verdicts and intervals."""
    rows = largest_changes(samples.diff() if diff is None else diff, n=len(verdicts))
    word, low, high = zip(*verdicts, strict=True)
    return rows.assign(verdict=word, interval_low=low, interval_high=high)


def drawn(rows: pd.DataFrame):
    return change_intervals(rows, rows[f"{METRIC}_ratio"])


def texts(figure) -> list[str]:
    return [annotation.text for annotation in figure.layout.annotations]


RATIOS = [4 / 120, 3 / 90, 2.5 / 60]
THREE = [("faster", 0.02, 0.05), ("unclear", 0.01, 1.2), ("untested", np.nan, np.nan)]


def test_each_row_is_a_point_with_its_interval_and_its_word() -> None:
    figure = drawn(changes(THREE))
    assert [len(trace.x) for trace in figure.data] == [3, 3, 1]
    points = [x for trace in figure.data for x in trace.x]
    assert points == pytest.approx([0.02, RATIOS[0], 0.05, 0.01, RATIOS[1], 1.2, RATIOS[2]])
    assert texts(figure)[3:] == [
        "▼ faster",
        "? inconclusive",
        "– not tested",
        "0.0333× (0.0200 to 0.0500)",
        "0.0333× (0.0100 to 1.20)",
        "0.0417×",
    ]


def test_only_what_is_faster_or_slower_is_coloured_and_all_are_of_one_size() -> None:
    four = [*THREE, ("slower", 1.5, 2.0)]
    figure = drawn(changes(four).assign(**{f"{METRIC}_ratio": [0.03, 0.03, 0.04, 1.7]}))
    colours = [trace.marker.color for trace in figure.data]
    assert colours == [style.BETTER, style.NEUTRAL, style.NEUTRAL, style.WORSE]
    assert {trace.marker.size for trace in figure.data} == {10}
    assert figure.data[2].marker.symbol[0].endswith("-open")


def test_rows_stand_in_the_order_and_at_the_places_of_the_bars_beside_them() -> None:
    rows = changes(THREE)
    bars, intervals = movers(rows, METRIC, per="step"), drawn(rows)
    assert texts(bars) == texts(intervals)[:3]
    places = sorted(float(y) for trace in bars.data for y in trace.y)
    assert places == pytest.approx([trace.y[0] for trace in intervals.data])
    assert bars.layout.height == intervals.layout.height
    assert bars.layout.yaxis.range == intervals.layout.yaxis.range
    assert bars.layout.margin.t == intervals.layout.margin.t


def test_what_only_one_side_has_is_named_and_has_no_point() -> None:
    diff = samples.diff(samples.op_stats(SLOW), samples.op_stats(FAST, without="conv2d_1/Conv2D"))
    rows = changes([(np.nan, np.nan, np.nan), ("faster", 0.02, 0.1)], diff)
    assert rows["status"].tolist() == ["removed", "removed"]
    figure = drawn(rows.assign(status=["removed", "matched"], **{f"{METRIC}_ratio": [np.nan, 0.05]}))
    assert len(figure.data) == 1
    assert texts(figure)[2:] == ["baseline only", "▼ faster", "0.0500× (0.0200 to 0.100)"]


def test_the_axis_holds_every_interval_and_no_untested_row_stretches_it() -> None:
    rows = changes([("slower", 1.5, 4.0), ("untested", np.nan, np.nan), ("untested", np.nan, np.nan)])
    figure = drawn(rows.assign(**{f"{METRIC}_ratio": [2.0, 5000.0, 1e-9]}))
    low, high = figure.layout.xaxis.range
    assert low < 0 < math.log10(4.0) < high < 1
    assert [trace.marker.symbol[0] for trace in figure.data[1:]] == ["triangle-right-open", "triangle-left-open"]
    assert [math.log10(trace.x[0]) for trace in figure.data[1:]] == pytest.approx([high, low])
    assert texts(figure)[-2] == format_ratio(5000.0)
    assert 1.0 in figure.layout.xaxis.tickvals


def test_a_long_name_is_cut_in_the_chart_and_whole_on_hovering() -> None:
    rows = changes(THREE[:1]).assign(op_name=f"{LONG}<b>")
    figure = drawn(rows)
    assert len(texts(figure)[0]) < 60
    assert figure.data[0].text.replace("<br>", "").startswith(f"<b>{LONG}&lt;b&gt;")


def test_the_line_at_no_change_leaves_out_the_names() -> None:
    figure = drawn(changes(THREE))
    names = [annotation.y for annotation in figure.layout.annotations[:3]]
    lines = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert [(line.x0, line.x1) for line in lines] == [(1, 1)] * 3
    assert not any(line.y0 - 0.2 < name < line.y1 + 0.2 for line in lines for name in names)
    assert all(any(line.y0 < trace.y[0] < line.y1 for line in lines) for trace in figure.data)
