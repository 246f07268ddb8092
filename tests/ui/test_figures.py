"""Figures are made once for a comparison, and those on a page are the ones that would be made anew."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLES
from tfcompare import compare, load, settings
from tfcompare.charts.pair import Pair
from tfcompare.compare import Comparison
from tfcompare.compare.cache import MOST_KEPT
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.ui.frame.loading import _comparisons
from tfcompare.ui.widgets import figures

RUNS = list(find_runs(SAMPLES / "autoencoder"))[:3]
VIEWS: list[tuple[str, dict[str, str]]] = [
    ("1_Overview", {}),
    ("2_Op_stats", {}),
    ("5_Input_pipeline", {}),
    ("4_Memory", {}),
    ("6_tf_data", {}),
    ("2_Op_stats", {"by": "op_type"}),
    ("2_Op_stats", {"filter": "conv2d"}),
    ("2_Op_stats", {"idle": "true"}),
    ("1_Overview", {"part": "host_compute_us"}),
    ("1_Overview", {"part": "input_us"}),
    ("5_Input_pipeline", {"filter": "map"}),
    ("4_Memory", {"span": "the whole run", "align": "by time", "parts": "true", "parts_by": "region"}),
    ("4_Memory", {"level": "fragmentation"}),
]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(*map(load, RUNS))


def drawn(page: str, query: dict[str, str], *candidates: str) -> list[str]:
    """The figures of a page as they are sent."""
    app = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=120)
    app.query_params["baseline"] = RUNS[0].id
    app.query_params["candidate"] = list(candidates)
    for name, value in query.items():
        app.query_params[name] = value
    with settings.override(Settings(places=(SAMPLES / "autoencoder",))):
        app.run()
    assert not app.exception
    return [element.proto.spec for element in app.get("plotly_chart")]


def test_after_all_other_pages_a_page_shows_what_it_shows_at_first() -> None:
    candidates = (RUNS[1].id, RUNS[2].id)
    after_others = [drawn(page, query, *candidates) for page, query in VIEWS]
    for (page, query), shown in zip(VIEWS, after_others, strict=True):
        _comparisons.clear()
        assert shown == drawn(page, query, *candidates), (page, query)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What `draw` shows, in order."""
    found: list[object] = []
    monkeypatch.setattr(figures, "show", lambda figure, *_: found.append(figure))
    return found


def test_a_figure_is_made_once_and_anew_for_what_it_depends_on(comparison: Comparison, shown: list[object]) -> None:
    made, pair = [], Pair(comparison, comparison.candidates[0], 1)

    def make(number: int) -> int:
        made.append(number)
        return number

    assert all(figures.draw(pair, "a", partial(make, i), i) for i in (1, 2, 1, 2))
    assert shown == [1, 2, 1, 2]
    assert made == [1, 2]


def test_candidates_and_places_in_the_code_do_not_share_what_they_make(
    comparison: Comparison, shown: list[object]
) -> None:
    pairs = [Pair(comparison, run, position) for position, run in enumerate(comparison.candidates, 1)]
    for pair in pairs:
        figures.draw(pair, "key", lambda pair=pair: pair.position)
    figures.draw(pairs[0], "key", _other)
    assert shown == [1, 2, "other"]
    assert pairs[0].cached("key", lambda: "of the pair") == "of the pair"
    assert comparison.cached("key", _other) == "other"


def _other() -> str:
    return "other"


def test_the_cache_is_bounded() -> None:
    own = compare(*map(load, RUNS[:2]))
    for i in range(MOST_KEPT + 10):
        own.cached(i, lambda i=i: i)
    assert len(own._cache) == MOST_KEPT
    assert own.cached(MOST_KEPT + 9, lambda: "made anew") == MOST_KEPT + 9
    assert own.cached(0, lambda: "made anew") == "made anew"


def test_the_memory_of_a_comparison_includes_frames_that_are_kept() -> None:
    own = compare(*map(load, RUNS[:2]))
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
