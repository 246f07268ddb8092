"""The programs that XLA compiled: what their instructions take, how that changed, and what could still be saved."""

from __future__ import annotations

from tfcompare.ui.pages import view

view.show("xla")
