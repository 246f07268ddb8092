"""Two runs on one axis of time: what ran when, in which of them, and where the candidate falls behind."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import timeline

with ui.page("Timeline", needs="pair") as view:
    timeline.show(choose_pair(comparison_of(view)))
