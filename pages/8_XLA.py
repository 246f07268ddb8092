"""The programs that XLA compiled: what their instructions take, how that changed, and what could still be saved."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import xla, xla_charts, xla_compilation, xla_compiler, xla_memory, xla_tree

with ui.page("XLA", needs="pair") as view:
    comparison = comparison_of(view)
    pair = choose_pair(comparison)
    xla.stop_without_programs(pair, view.selection, xla_compilation.compilation)
    program = xla.choose_program(pair)
    xla.headline(program)
    text = xla.controls()
    xla.TABLE.show_rows(pair, xla.Choice(program, text, xla_tree.within_group(program)))
    xla_tree.where_the_time_goes(program)
    xla_charts.roofline(program)
    xla_memory.memory(program)
    xla_compiler.what_the_compiler_did(program)
    xla_compilation.compilation(pair)
