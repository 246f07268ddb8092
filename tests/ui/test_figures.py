"""Figures are made once for a comparison, and those on a page are the ones that would be made anew."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.profiles import loaded_run
from tests.views.flat import shown as blocks_of
from tfcompare import compare
from tfcompare.compare.pairs import MOST_KEPT, pair_with, pairs_of
from tfcompare.comparison import Comparison
from tfcompare.ui.widgets import figures
from tfcompare.views.blocks import Chart
from tfcompare.views.registry import view

CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("op_stats", {}),
    ("op_stats", {"by": "op_type"}),
    ("op_stats", {"filter": "conv2d"}),
    ("op_stats", {"part": "input_us"}),
    ("input_pipeline", {}),
    ("input_pipeline", {"wait_as": "share"}),
    ("memory", {}),
    ("memory", {"level": "free_bytes"}),
    ("memory", {"span": "run", "parts": True, "parts_by": "region"}),
]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(*map(loaded_run, ("filters_512_128", "filters_16_8", "filters_16_8_better_input")))


def test_charts_that_would_share_a_place_in_the_cache_are_the_same(comparison: Comparison) -> None:
    """Whatever is chosen."""
    kept: dict[Hashable, Any] = {}
    pair, _ = pairs_of(comparison)
    for name, options in CHOICES:
        for chart in blocks_of(view(name), pair, Chart, **options):
            key = figures.origin(chart.draw), chart.name, chart.on
            figure = chart.draw()
            assert kept.setdefault(key, figure) == figure, (name, options, chart.name)
    assert len(kept) > 2 * len(CHOICES), "choices draw other charts"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What `draw` shows, in order."""
    found: list[object] = []
    monkeypatch.setattr(figures, "show", lambda figure, *_: found.append(figure))
    return found


def test_a_figure_is_made_once_and_anew_for_what_it_depends_on(comparison: Comparison, shown: list[object]) -> None:
    made, pair = [], pair_with(comparison)

    def make(number: int) -> int:
        made.append(number)
        return number

    assert all(figures.draw(pair, "a", partial(make, i), i) for i in (1, 2, 1, 2))
    assert shown == [1, 2, 1, 2]
    assert made == [1, 2]


def test_candidates_and_places_in_the_code_do_not_share_what_they_make(
    comparison: Comparison, shown: list[object]
) -> None:
    pairs = pairs_of(comparison)
    for pair in pairs:
        figures.draw(pair, "key", lambda pair=pair: pair.position)
    figures.draw(pairs[0], "key", _other)
    assert shown == [1, 2, "other"]
    assert pairs[0].cached("key", lambda: "of the pair") == "of the pair"
    assert comparison.cached("key", _other) == "other"


def _other() -> str:
    return "other"


def test_the_cache_is_bounded() -> None:
    own = compare(*map(loaded_run, ("filters_512_128", "filters_16_8")))
    for i in range(MOST_KEPT + 10):
        own.cached(i, lambda i=i: i)
    assert len(own._cache) == MOST_KEPT
    assert own.cached(MOST_KEPT + 9, lambda: "made anew") == MOST_KEPT + 9
    assert own.cached(0, lambda: "made anew") == "made anew"


def test_the_memory_of_a_comparison_includes_frames_that_are_kept() -> None:
    own = compare(*map(loaded_run, ("filters_512_128", "filters_16_8")))
    before = own.memory_bytes
    frame = own.cached("frame", lambda: pd.DataFrame({"a": np.zeros(1000)}))
    assert own.memory_bytes >= before + frame["a"].nbytes


def test_text_comes_before_the_first_chart_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(figures, "TEXT_FIRST_S", 0.4)
    monkeypatch.setattr(figures, "sleep", seen.append)
    monkeypatch.setattr(figures.st, "plotly_chart", lambda *_, key, **__: seen.append(key))
    for state in ({}, {}):
        monkeypatch.setattr(figures.st, "session_state", state)
        for key in ("first", "second"):
            figures.show(go.Figure(layout={"title": {"text": key}}), key)
    assert seen == [0.4, "first", "second"] * 2


def test_a_click_on_a_point_chooses_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(selection=SimpleNamespace(points=[{"x": 7, "y": "worker1"}]))
    session = {"hosts": state}
    monkeypatch.setattr(figures.st, "session_state", session)
    figures._choose("hosts", "at_step")
    assert session["at_step"] == 7
    state.selection.points = []
    figures._choose("hosts", "at_step")
    assert session["at_step"] == 7, "a click beside all points keeps what was chosen"
