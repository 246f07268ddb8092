"""The selection in the session and in the page's URL: read from either, always written to both."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from tfcompare.ui.frame.selection import Selection, from_query

_SELECTION = "tfcompare.selection"
_ADDED = "tfcompare.added"
_TURN = "tfcompare.turn"
_WRITTEN = "tfcompare.written"
_DEFAULT = "tfcompare.default"


def requested_selection() -> Selection:
    """The selection in the page's URL, or else the session's last one."""
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    return from_query(query, st.session_state.get(_SELECTION, Selection()))


def choose(selection: Selection, *, by_its_widget: bool = False, in_url: Selection | None = None) -> None:
    """Make `selection` the one that all pages show, and write it to the URL, next to the page's own parameters.

    With `by_its_widget`, the widget of the sidebar that changed shows it already, and no other has to change. Where
    runs that were asked for are missing, `in_url` is written in its place: it names them, so that every redraw says so.
    """
    if not by_its_widget and selection != st.session_state.get(_SELECTION):
        st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    st.session_state[_SELECTION] = selection
    written = in_url or selection
    before = {name: st.query_params.get_all(name) for name in st.query_params}
    changed = {name: values for name, values in written.as_query().items() if values != before.get(name, [])}
    # Also if nothing changed: a browser that asked before it got what was last written has gone on to that address.
    if changed or st.session_state.get(_WRITTEN, written) != written:
        # In one update: each write adds an entry to the browser's history. Others may be bound to widgets.
        st.query_params.update(changed)
    st.session_state[_WRITTEN] = written


def choose_default(selection: Selection) -> None:
    """As `choose`, where nothing was chosen yet."""
    st.session_state[_DEFAULT] = selection
    choose(selection)


def default() -> Selection:
    """The selection that this session began with, if nobody chose it; else one of nothing."""
    selection: Selection = st.session_state.get(_DEFAULT, Selection())
    return selection


def widget_key(name: str) -> str:
    """The key of a widget that shows a part of the selection, which is a new widget whenever others change that.

    A browser sends the values of all widgets with each request. One that it sends before it has drawn the new
    selection, as after going back, would be taken for a choice of the old one.
    """
    return f"{name}.{st.session_state.get(_TURN, 0)}"


def choose_added(selection: Selection, runs: Sequence[str]) -> None:
    """As `choose`, where `runs` were just added: the home page lists them first in this session."""
    st.session_state[_ADDED] = (*runs, *added_runs())
    choose(selection)


def added_runs() -> tuple[str, ...]:
    """The ids of the runs that were added in this session."""
    runs: tuple[str, ...] = st.session_state.get(_ADDED, ())
    return runs


def current() -> Selection:
    """The selection that `choose` stored."""
    selection: Selection = st.session_state[_SELECTION]
    return selection


def wish() -> Selection:
    """The selection as in the URL, with the runs that are missing, for links and for changes of what is no run."""
    selection: Selection = st.session_state[_WRITTEN]
    return selection
