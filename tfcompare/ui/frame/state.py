"""The selection in the session and in the page's URL: read from either, always written to both."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from tfcompare.ui.frame.selection import Selection, from_query

_SELECTION = "tfcompare.selection"
_ADDED = "tfcompare.added"


def wished() -> Selection:
    """The selection in the page's URL, or else the session's last one."""
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    return from_query(query, st.session_state.get(_SELECTION, Selection()))


def choose(selection: Selection) -> None:
    """Make `selection` the one that all pages show, and write it to the URL, next to the page's own parameters."""
    st.session_state[_SELECTION] = selection
    before = {name: st.query_params.get_all(name) for name in st.query_params}
    changed = {name: values for name, values in selection.as_query().items() if values != before.get(name, [])}
    if changed:  # in one update: each write adds an entry to the browser's history
        st.query_params.update(changed)  # leave out the others, which may be bound to widgets


def choose_added(before: Selection, runs: Sequence[str]) -> None:
    """Select runs that were just added, in addition to `before`; the home page lists them first in this session."""
    st.session_state[_ADDED] = (*runs, *added())
    choose(before.with_added(runs))


def added() -> tuple[str, ...]:
    """The ids of the runs that were added in this session."""
    runs: tuple[str, ...] = st.session_state.get(_ADDED, ())
    return runs


def chosen() -> Selection:
    """The selection that `choose` stored."""
    selection: Selection = st.session_state[_SELECTION]
    return selection
