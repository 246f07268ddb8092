"""A stray step is excluded until it is counted by a switch in the sidebar, which only runs with a stray have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT
from tests.step_programs import capture, even, some
from tests.ui.page_texts import texts
from tests.ui.sidebar_widgets import named, names
from tfcompare import settings
from tfcompare.run import Stray, load
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.units import format_ms

SWITCH = "tfcompare.stray"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stray")
    capture(place / "even", even(10))
    capture(place / "stray", some([20], 90, 10), seed=1)
    return place


PAGE = """
import streamlit as st
from tfcompare import ui
from tfcompare.units import format_ms

view = ui.setup("A page", needs="pair")
st.session_state["seen"] = format_ms(view.comparison.candidates[-1].info.step_time_ms_mean)
"""


@pytest.fixture
def page(runs: Path, tmp_path: Path) -> Iterator[AppTest]:
    """A page that only says how long the steps of the last run take."""
    (tmp_path / "page.py").write_text(PAGE, encoding="utf-8")
    with settings.override(Settings(places=(runs,))):
        yield AppTest.from_file(str(tmp_path / "page.py"), default_timeout=90)


def shown(page: AppTest, *chosen: str, **query: str) -> AppTest:
    ids = {run.path.name: run.id for run in find_runs(settings.current().places[0])}
    page.query_params |= dict(zip(("baseline", "candidate"), (ids[name] for name in chosen), strict=False)) | query
    page.run()
    assert not page.exception
    assert not page.warning
    return page


def step_time(runs: Path, stray: Stray) -> str:
    return format_ms(load(runs / "stray", stray=stray).info.step_time_ms_mean)


def test_a_stray_is_excluded_until_the_switch_counts_it(runs: Path) -> None:
    with settings.override(Settings(places=(runs,))):
        page = shown(AppTest.from_file(str(ROOT / "pages" / "1_Overview.py"), default_timeout=90), "stray")
        assert f"### {step_time(runs, 'exclude')} per step" in texts(page)
        assert "is excluded as a stray: " in texts(page)
        assert named(page.toggle, SWITCH).label == "Count stray steps"
        named(page.toggle, SWITCH).set_value(True).run()
        assert page.query_params["stray"] == "include"
        assert f"### {step_time(runs, 'include')} per step" in texts(page)
        assert "is excluded as a stray: " not in texts(page)
        assert "per step; strays counted" in [caption.value for caption in page.caption]
        named(page.toggle, SWITCH).set_value(False).run()
        assert "stray" not in page.query_params
        assert f"### {step_time(runs, 'exclude')} per step" in texts(page)


def test_a_link_counts_the_stray_of_either_run_and_without_one_there_is_no_switch(page: AppTest, runs: Path) -> None:
    shown(page, "even", "stray", stray="include")
    assert named(page.toggle, SWITCH).value is True
    assert page.session_state["seen"] == step_time(runs, "include")
    del page.query_params["stray"], page.query_params["candidate"]
    assert SWITCH not in names(shown(page, "even").toggle)
