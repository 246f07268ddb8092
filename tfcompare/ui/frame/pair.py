"""The pair of runs that a page shows in detail."""

from __future__ import annotations

import streamlit as st

from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import Comparison
from tfcompare.ui.frame.shell import Page


def comparison_of(view: Page) -> Comparison:
    """The comparison that the page shows."""
    if view.comparison is None:
        raise TypeError("a page that compares begins with setup(…, needs='pair')")
    return view.comparison


def choose_pair(comparison: Comparison) -> Pair:
    """The pair to show in detail; with several candidates, shows a widget to choose it."""
    chosen = None
    if len(comparison.sides) > 2:
        candidates = {side.run.id: side for side in comparison.sides[1:]}
        chosen = st.segmented_control(
            "Candidate shown in detail",
            list(candidates),
            default=next(iter(candidates)),
            required=True,
            format_func=lambda run_id: f"{candidates[run_id].letter} · {candidates[run_id].name}",
            key="detail",
            bind="query-params",
        )
    return pair_with(comparison, chosen)
