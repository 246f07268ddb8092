"""A page that shows a view of the chosen pair."""

from __future__ import annotations

from typing import Any

import streamlit as st

from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.comparison import Comparison
from tfcompare.ui.frame import sidebar
from tfcompare.ui.frame.shell import Page, page
from tfcompare.ui.pages import demo, timeline
from tfcompare.ui.pages.live import LIVE
from tfcompare.ui.widgets.renderer import Renderer
from tfcompare.views import registry
from tfcompare.views.candidates import view as candidates


def show(name: str) -> None:
    """The page of the view of that name."""
    view = registry.view(name)
    with page(view.title, needs="pair") as shown:
        if name == "overview":
            demo.show_guidance(shown)
        comparison = comparison_of(shown)
        several = len(comparison.candidates) > 1
        if several:
            first = pairs_of(comparison)[0]
            Renderer(first, LIVE).show_all(view.of_several(first))
        pair = choose_pair(comparison)
        if name == "timeline":
            timeline.arrive(pair)
        if why_not := view.why_not(pair):
            st.info(f"{why_not} {view.remedy}")
            Renderer(pair, LIVE).show_all(view.instead(pair))
            sidebar.link(sidebar.HOME, "Choose other runs", shown.selection, icon=":material/home:")
        else:
            Renderer(pair, LIVE).show_view(view)
        if several and name == "overview":
            Renderer(pair, LIVE).show_view(candidates.OVER_TIME)


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
        labels = {run_id: f"{side.letter} · {side.name}" for run_id, side in candidates.items()}
        bound: dict[str, Any] = {"format_func": labels.__getitem__, "key": "detail", "bind": "query-params"}
        label, first = "Candidate shown in detail", next(iter(labels))
        chosen = st.segmented_control(label, list(labels), default=first, required=True, **bound)
    return pair_with(comparison, chosen)
