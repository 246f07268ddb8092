"""Asks before a URL in a link is opened: otherwise whoever makes the link would choose what the server fetches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from tfcompare.settings import Settings
from tfcompare.sources.remote.places import shown
from tfcompare.text import as_code, as_markdown, is_url, middle_ellipsis
from tfcompare.ui.frame import state

_CONFIRMED = "tfcompare.confirmed_places"
_LABEL_LENGTH = 100


def confirm(place: str) -> None:
    """Open `place` from now on in this session without asking."""
    st.session_state[_CONFIRMED] = confirmed() | {place}


def confirmed() -> frozenset[str]:
    """The remote places that the user has typed or confirmed in this session."""
    places: frozenset[str] = st.session_state.get(_CONFIRMED, frozenset())
    return places


def ask(settings: Settings, places: Sequence[str]) -> None:
    """Show a button for each URL that was neither given at the start nor confirmed, and stop the page if there is one.

    The page's address stays as it is, so that the link works as a whole once all of its places are confirmed.
    """
    known = {*map(str, settings.places), *confirmed()}
    asked = [place for place in places if is_url(place) and place not in known]
    if not asked:
        return
    named = " and ".join(as_code(shown(place)) for place in asked)
    st.warning(
        f"This link names runs on another machine: {named}. Nothing has been fetched from there. "
        "Open it only if you trust the sender of the link.",
        icon=":material/warning:",
    )
    for number, place in enumerate(asked):
        with st.container(horizontal=True):
            label = as_markdown(middle_ellipsis(shown(place), _LABEL_LENGTH))
            st.button(f"Open {label}", key=f"tfcompare.open.{number}", on_click=confirm, args=(place,))
            key = f"tfcompare.leave_out.{number}"
            st.button("Leave it out", key=key, on_click=_leave_out, args=(place,), type="tertiary")
    st.stop()


def _leave_out(place: str) -> None:
    wish = state.requested_selection()
    state.choose(replace(wish, places=tuple(p for p in wish.places if p != place)))
