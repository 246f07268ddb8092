"""The home page, as `tests/ui` has it."""

from __future__ import annotations

from tests.ui.home_page import bare_home, home

__all__ = ["bare_home", "home"]
