"""What every test of a page has."""

from __future__ import annotations

import pytest

from tfcompare.ui.widgets import figures


@pytest.fixture(autouse=True)
def no_browser_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a session of its own, and would wait once."""
    monkeypatch.setattr(figures, "TEXT_FIRST_S", 0)
