"""What is shown of a series, and its chart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from tests.views.flat import flat, of_kind, words
from tfcompare.errors import NoRuns
from tfcompare.views.blocks import Links, Table
from tfcompare.views.options import declared
from tfcompare.views.series.changes import Series, changes
from tfcompare.views.series.charts import over_runs
from tfcompare.views.series.figures import COLUMNS, Metric
from tfcompare.views.series.view import VIEW, Options


def rows(values: list[float]) -> pd.DataFrame:
    n = len(values)
    return pd.DataFrame(
        {
            "run": [f"run{i}" for i in range(n)],
            "name": [f"<b>{i}" for i in range(n)],
            "recorded": pd.date_range("2026-01-01", periods=n, tz="UTC"),
            "label": [f"c{i}" for i in range(n)],
            "tags": "",
            "device": "CPU",
            "value": values,
            "low": np.array(values) * 0.9,
            "high": np.array(values) * 1.1,
            "problem": "",
            "versions": "steps 1",
        }
    ).astype(COLUMNS)


def gone(_run: object) -> NoReturn:
    raise NoRuns("they are gone")


def test_levels_and_changes_are_drawn_where_they_are() -> None:
    frame = rows([1000.0, 1010, 990, 1005, 995, 1000, 1500, 1510, 1490, 1505, 1495, 1500])
    found = changes(frame)
    figure = over_runs(frame, found, Metric("step_time"), "Step time")
    bars, points, levels = figure.data
    assert (len(bars.x), list(points.y)) == (36, [value / 1000 for value in frame["value"]])
    assert list(levels.x[:2]) == [-0.5, 5.5] and list(levels.x[3:5]) == [5.5, 11.5]
    assert figure.layout.shapes[0].x0 == 5.5
    assert figure.layout.annotations[-1].text == "<b>+50.0 %</b>"
    assert "<b>0" not in points.customdata[0]


def test_a_label_is_shown_unless_it_is_the_name_of_the_run() -> None:
    frame = rows([1000.0, 1010, 990])
    for label, is_shown in ((frame["label"], True), (frame["name"], False)):
        runs = frame.assign(label=label)
        series = Series([], Metric("step_time"), runs, changes(runs), 0, lambda _done, _all: None, gone)
        (table,) = [one for one in of_kind(flat(VIEW.make(series, Options())), Table) if one.title == "Runs"]
        assert ("label" in table.names) == is_shown


def test_runs_without_a_value_are_left_out() -> None:
    frame = rows([1.0, np.nan, 3.0])
    figure = over_runs(frame, changes(frame), Metric("peak_memory"), "Peak memory")
    assert list(figure.layout.xaxis.ticktext) == ["c0<br>2026-01-01", "c2<br>2026-01-03"]


def test_the_axis_does_not_begin_below_zero_and_shows_a_small_change() -> None:
    for values, least in (([1.0, 50.0, 100.0], 0), ([100.0] * 3, 0), ([0.0] * 3, 0), ([100.0, 101.0, 102.0], 90)):
        frame = rows(values)
        low, high = over_runs(frame, changes(frame), Metric("step_time"), "Step time").layout.yaxis.range
        assert least <= low < high


def test_all_changes_are_explained_unless_one_is_chosen() -> None:
    frame = rows([1000.0, 1010, 990, 1005, 995, 1000, 1500, 1510, 1490, 1505, 1495, 1500, 800, 805, 795, 800, 810])
    runs: list[Any] = [SimpleNamespace(id=run) for run in frame["run"]]

    series = Series(runs, Metric("step_time"), frame, changes(frame), 0, lambda _done, _all: None, gone)
    first, last = "run6", "run12"
    assert declared(Options)[0].offered(series, Options()) == {last: "c12 (−46.5 %)", first: "c6 (+50.0 %)"}
    for chosen, expected in (("", [(last, "run11"), (first, "run5")]), (first, [(first, "run5")])):
        found = list(flat(VIEW.make(series, Options(change=chosen))))
        links = [link.runs for block in of_kind(found, Links) for link in block.links]
        assert links == [(before, after) for after, before in expected]
        assert sum("so no ops explain it" in text for text in words(found)) == len(expected)
