"""The pair of runs that a page shows in detail."""

from __future__ import annotations

import streamlit as st

from tfcompare.charts.pair import Pair
from tfcompare.charts.style import letter
from tfcompare.compare import Comparison
from tfcompare.ui.frame.shell import Page


def comparison_of(view: Page) -> Comparison:
    """The comparison that the page shows."""
    if view.comparison is None:
        raise TypeError("a page that compares begins with setup(…, needs='pair')")
    return view.comparison


def choose_pair(comparison: Comparison) -> Pair:
    """The pair to show in detail; with several candidates, shows a widget to choose it."""
    if comparison.is_single:
        return Pair(comparison, comparison.baseline, 0)
    candidates = {run.id: run for run in comparison.candidates}
    chosen = next(iter(candidates))
    if len(candidates) > 1:
        letters = {run_id: letter(position) for position, run_id in enumerate(candidates, start=1)}
        chosen = st.segmented_control(
            "Candidate shown in detail",
            list(candidates),
            default=chosen,
            required=True,
            format_func=lambda run_id: f"{letters[run_id]} · {candidates[run_id].name}",
            key="detail",
            bind="query-params",
        )
    return Pair(comparison, candidates[chosen], list(candidates).index(chosen) + 1)
