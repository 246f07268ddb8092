"""TensorBoard's GPU kernel stats for two runs, and what changed between them."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of, remarks
from tfcompare.ui.pages import kernel_stats, kernel_table
from tfcompare.ui.pages.no_kernels import explain_missing
from tfcompare.ui.widgets import manual as by_hand
from tfcompare.ui.widgets.copies import copies

view = ui.setup("Kernel stats", needs="pair")
comparison = comparison_of(view)
remarks(comparison)
pair = choose_pair(comparison)
explain_missing(pair, view.selection, view.found)
kernel_stats.headline(pair)
kernel_stats.coverage(pair)
choice = kernel_stats.controls()
rows = kernel_stats.rows_of(pair, choice)

kernel_stats.movers(pair, rows, choice)
chosen = kernel_table.table(pair, rows, choice)
kernel_table.chosen_kernel(pair, rows, chosen, choice)
by_hand.said(pair, lambda name: kernel_stats.readings_of(pair).get(name, name))
kernel_stats.distributions(pair)
copies(pair)
