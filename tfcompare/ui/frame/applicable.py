"""Which pages have nothing to show for the chosen runs, and why."""

from __future__ import annotations

import streamlit as st

from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.ui.frame.selection import Selection
from tfcompare.views.registry import views

_KNOWN = "tfcompare.applicable"


def why_not(comparison: Pairs) -> dict[str, str]:
    """The reason for each page, by its title, that has nothing to show for these runs."""
    reasons = {view.title: [view.why_not(pair) for pair in pairs_of(comparison)] for view in views()}
    return {title: of_pairs[0] for title, of_pairs in reasons.items() if all(of_pairs)}


def remember(selection: Selection, reasons: dict[str, str]) -> None:
    """Keep the reasons for the selected runs, so that the next page can show them before these are loaded."""
    st.session_state[_KNOWN] = selection.compared, reasons


def remembered_reasons(selection: Selection) -> dict[str, str]:
    """The remembered reasons for the selected runs; none if these were not loaded yet."""
    compared, reasons = st.session_state.get(_KNOWN, ((), {}))
    found: dict[str, str] = reasons if compared == selection.compared else {}
    return found
