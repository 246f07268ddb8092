"""TensorBoard's TensorFlow Stats for one or two runs, and what changed between them."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import op_stats
from tfcompare.ui.pages.op_stats_parts import by_part
from tfcompare.ui.widgets import manual

with ui.page("Op stats", needs="pair") as view:
    comparison = comparison_of(view)
    pair = choose_pair(comparison)
    op_stats.headline(pair)
    op_stats.outside_of_steps(pair, "op_stats")
    choice = op_stats.controls(pair)
    rows = op_stats.TABLE.show_rows(pair, choice)
    manual.choices(pair)
    op_stats.movers(pair, rows, choice)
    by_part(pair)
    op_stats.distributions(pair, choice)
    op_stats.by_scope(pair, choice)
