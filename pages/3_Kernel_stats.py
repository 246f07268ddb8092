"""TensorBoard's GPU kernel stats for one or two runs, and what changed between them."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import kernel_stats, kernel_stats_table
from tfcompare.ui.pages.kernel_stats_copies import copies
from tfcompare.ui.widgets import manual

with ui.page("Kernel stats", needs="pair") as view:
    comparison = comparison_of(view)
    pair = choose_pair(comparison)
    kernel_stats.explain_missing(pair, view.selection, view.found)
    kernel_stats.headline(pair)
    kernel_stats.outside_of_steps(pair)
    choice = kernel_stats.controls(pair)
    rows = kernel_stats_table.TABLE.show_rows(pair, choice)
    manual.choices(pair, lambda name: kernel_stats.readings_of(pair).get(name, name))
    kernel_stats.movers(pair, rows, choice)
    kernel_stats.distributions(pair)
    copies(pair)
