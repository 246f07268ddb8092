"""What is sent of a figure: drawn once by Plotly, in the colours of the page, with the ranges that Plotly finds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.profiles import ROOT
from tfcompare.charts import style
from tfcompare.ui.widgets.figure_theme import AXIS_PIXELS, LABELS_PIXELS, sent


def figure(*traces: Any, **layout: Any) -> go.Figure:
    return go.Figure(data=list(traces), layout={"height": 400, "title": {"text": "one"}, **layout})


def lines(**more: Any) -> go.Scatter:
    return go.Scatter(x=np.arange(3.0), y=np.array([2.0, np.nan, 4.0]), mode="lines", **more)


def test_nothing_is_sent_that_plotly_takes_for_another_thing_each_time() -> None:
    spec = sent(figure(lines(), lines().update(x=np.arange(3, dtype=np.float32) / 3)), "light")
    assert "template" not in spec["layout"]
    assert "bdata" not in json.dumps(spec)
    assert [trace["y"] for trace in spec["data"]] == [[2.0, None, 4.0]] * 2
    assert spec["data"][1]["x"] == [0.0, 0.33333334, 0.6666667]


def test_other_numbers_make_another_revision_and_the_same_the_same() -> None:
    specs = [sent(figure(go.Scatter(x=[0, 1], y=[0, high])), "light") for high in (1, 1, 2)]
    first, again, other = (spec["layout"]["datarevision"] for spec in specs)
    assert first == again != other


def test_what_the_figure_says_wins_over_the_theme() -> None:
    layout = sent(figure(lines(), xaxis={"showgrid": True}, font_color="#123456"), "dark")["layout"]
    assert (layout["xaxis"]["showgrid"], layout["font"]["color"]) == (True, "#123456")
    assert layout["font"]["size"] == 12


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_s_own_colours_are_taken_from_where_the_page_has_them(
    theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfcompare.ui.widgets.figure_theme.st.get_option", lambda name: name)
    layout = sent(figure(lines()), theme)["layout"]
    assert layout["paper_bgcolor"] == layout["hoverlabel"]["bgcolor"] == f"theme.{theme}.backgroundColor"
    assert f"[theme.{theme}]" in (ROOT / ".streamlit" / "config.toml").read_text()


@pytest.mark.parametrize(
    ("traces", "layout", "expected"),
    [
        ([lines()], {"yaxis": {"rangemode": "tozero"}}, ([0, 2], [0, 4 / 0.95])),
        ([lines()], {}, ([0, 2], [2 - 0.05 * 2 / 0.9, 4 + 0.05 * 2 / 0.9])),
        (
            [go.Scatter(x=[0, 1], y=[high, 1], stackgroup="a", mode="lines") for high in (1, 4)],
            {"yaxis": {"rangemode": "tozero"}},
            ([0, 1], [0, 5 / 0.95]),
        ),
        (
            [go.Bar(y=[0, 1], x=[part, 1], orientation="h") for part in (3, 5)],
            {"barmode": "stack", "yaxis": {"range": [2, -1]}},
            ([0, 8 / 0.95], [2, -1]),
        ),
    ],
)
def test_ranges_are_those_that_plotly_finds(traces: list[Any], layout: dict[str, Any], expected: Any) -> None:
    found = sent(figure(*traces, **layout), "light")["layout"]
    assert [found[name]["range"] for name in ("xaxis", "yaxis")] == [pytest.approx(range_) for range_ in expected]
    assert "datarevision" in found


@pytest.mark.parametrize(
    ("traces", "layout"),
    [
        ([go.Box(x=[1, 2])], {}),
        ([lines(error_y={"array": [1, 1, 1]})], {}),
        ([go.Bar(x=["a", "b"], y=[1, 2])], {}),
        ([lines()], {"shapes": [{"type": "line", "x0": 9, "x1": 9, "y0": 0, "y1": 1, "yref": "paper"}]}),
        ([lines()], {"yaxis": {"autorange": "reversed"}}),
    ],
    ids=["boxes", "error bars", "names", "a shape", "reversed"],
)
def test_what_has_other_ranges_is_left_to_plotly_which_then_draws_it_again(
    traces: list[Any], layout: dict[str, Any]
) -> None:
    assert "datarevision" not in sent(figure(*traces, **layout), "light")["layout"]


def test_margins_have_room_for_labels_and_titles() -> None:
    titled = {"title": {"text": "Time"}, "range": [0, 1]}
    plain = sent(figure(lines(), xaxis={"range": [0, 1]}), "light")["layout"]["margin"]
    full = sent(figure(lines(), xaxis=titled, yaxis=titled), "light")["layout"]["margin"]
    assert (plain["b"], full["b"], full["l"]) == (LABELS_PIXELS, AXIS_PIXELS, AXIS_PIXELS)
    low = sent(style.figure("one", height=100, xaxis=titled).add_trace(lines()), "light")["layout"]
    assert low["height"] - low["margin"]["t"] - low["margin"]["b"] == pytest.approx(64, abs=1)


def test_a_treemap_has_no_axes_to_make_room_for() -> None:
    tree = go.Treemap(labels=["a"], parents=[""], values=[1])
    assert sent(style.figure("one", height=300).add_trace(tree), "light")["layout"]["margin"]["b"] == 8
