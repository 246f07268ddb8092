"""What a change did to a run, on one page."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import overview
from tfcompare.ui.pages.overview_runs import all_runs

with ui.page("Overview", needs="pair") as view:
    comparison = comparison_of(view)
    overview.headlines(comparison)
    draw_intervals = overview.verdicts(comparison)
    all_runs(comparison)
    pair = choose_pair(comparison)
    overview.figures(pair)
    draw_intervals()
    overview.attribution(pair)
    overview.advice(pair)
    overview.step_times(pair)
    overview.top_ops(pair)
    overview.movers(pair)
    overview.environments(comparison)
