"""A range of steps, chosen in the sidebar or in the address, is that of every figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLES
from tests.ui.sidebar_widgets import named
from tfcompare import settings
from tfcompare.settings import Settings

AUTOENCODER = SAMPLES / "autoencoder"
PAGE = """
import streamlit as st
from tfcompare import ui

view = ui.setup("A page", needs="pair")
st.session_state["seen"] = [len(run.table("steps")) for run in (view.comparison.baseline, *view.comparison.candidates)]
"""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[AppTest]:
    script = tmp_path / "page.py"
    script.write_text(PAGE, encoding="utf-8")
    with settings.override(Settings(places=(AUTOENCODER,))):
        yield AppTest.from_file(str(script), default_timeout=90)


def test_a_link_names_the_range_and_another_can_be_typed(page: AppTest) -> None:
    page.query_params["steps"] = "20:"
    page.run()
    assert page.session_state["seen"] == [3, 3]
    assert named(page.text_input, "tfcompare.steps").value == "20:"
    named(page.text_input, "tfcompare.steps").set_value(" 3:8 ").run()
    assert not page.exception
    assert page.session_state["seen"] == [6, 6]
    assert "per step; steps 3:8" in [caption.value for caption in page.caption]
    named(page.text_input, "tfcompare.steps").set_value("").run()
    assert page.session_state["seen"] == [22, 22]


def test_what_is_no_range_is_answered_and_all_steps_are_shown(page: AppTest) -> None:
    page.query_params["steps"] = "first ten"
    page.run()
    assert page.session_state["seen"] == [22, 22]
    assert "'first ten' is no range of steps; expected FIRST:LAST by position" in page.error[0].value.replace("\\", "")


def test_runs_without_steps_in_the_range_keep_all_their_own(page: AppTest) -> None:
    page.query_params["steps"] = "50:60"
    page.run()
    assert page.session_state["seen"] == [22, 22]
    (warning,) = page.warning
    assert "cannot be shown with steps 50:60: no step is in that range" in warning.value
