"""Two runs on one axis of time: what ran when, in which of them, and where the candidate falls behind."""

from __future__ import annotations

from tfcompare.ui.pages import view

view.show("timeline")
