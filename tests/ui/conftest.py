"""What every test of a page has."""

from __future__ import annotations

import gc

import pytest

from tfcompare.ui.widgets import figures


@pytest.fixture(autouse=True)
def no_browser_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a session of its own, and would wait once."""
    monkeypatch.setattr(figures, "TEXT_FIRST_S", 0)


@pytest.fixture(autouse=True, scope="module")
def nothing_old_to_collect() -> None:
    """Streamlit collects garbage after each run of a page, which takes longer the more objects other tests have left."""
    gc.collect()
    gc.freeze()
