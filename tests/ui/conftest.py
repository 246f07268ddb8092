"""What every test of a page has."""

from __future__ import annotations

import gc
import sys

import pytest

from tests.ui.home_page import bare_home, home
from tfcompare.ui.widgets import figures

__all__ = ["bare_home", "home"]


@pytest.fixture(autouse=True)
def no_browser_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a session of its own, and would wait once."""
    monkeypatch.setattr(figures, "TEXT_FIRST_S", 0)


@pytest.fixture(autouse=True)
def no_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit clears Keras' session after each run of a page if another test has imported Keras: 40 % of the time."""
    monkeypatch.delitem(sys.modules, "keras", raising=False)


@pytest.fixture(autouse=True, scope="module")
def nothing_old_to_collect() -> None:
    """Streamlit collects garbage after each run of a page, which takes long if other tests left many objects."""
    gc.collect()
    gc.freeze()
