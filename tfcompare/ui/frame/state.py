"""The selection in the session and in the address of the page: read from either, always written to both."""

from __future__ import annotations

import streamlit as st

from tfcompare.ui.frame.selection import Selection, from_query

_SELECTION = "tfcompare.selection"


def wished() -> Selection:
    """What the address of the page asks for, else what this session chose last."""
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    return from_query(query, st.session_state.get(_SELECTION, Selection()))


def choose(selection: Selection) -> None:
    """Make `selection` the one that all pages show, and put it into the address, beside what pages keep there."""
    st.session_state[_SELECTION] = selection
    before = {name: st.query_params.get_all(name) for name in st.query_params}
    changed = {name: values for name, values in selection.as_query().items() if values != before.get(name, [])}
    if changed:  # in one go: each write is a place of its own that the browser's Back leads to
        st.query_params.update(changed)  # and not the others, which may be bound to widgets


def chosen() -> Selection:
    """The selection as `choose` left it."""
    selection: Selection = st.session_state[_SELECTION]
    return selection
