"""What a change did to a run, on one screen."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.charts.pair import has_steps
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import overview, overview_runs, overview_steps, timeline
from tfcompare.ui.widgets.side_by_side import side_by_side

with ui.page("Overview", needs="pair") as view:
    comparison = comparison_of(view)
    overview_runs.ranking(comparison)
    pair = choose_pair(comparison)
    overview.verdict(pair)
    overview.slow_host(pair)
    overview.figures(pair)
    left, right = side_by_side(2)
    with left:
        overview.why(pair)
    with right if all(map(has_steps, pair.runs)) else left:
        overview.advice(pair)
    overview.changes(pair)
    timeline.small(pair)
    overview_steps.step_times(pair)
    overview_steps.largest_gap(pair)
    overview_runs.all_runs(comparison)
