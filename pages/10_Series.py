"""A metric of many runs over time: when it changed, by how much, and which ops explain it."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.pages import series

with ui.page("Series", needs="runs") as view:
    series.show(view)
