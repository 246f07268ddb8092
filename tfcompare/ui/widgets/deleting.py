"""Lists of items stored on the server, each with a delete button that asks for confirmation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

_ASKED = "tfcompare.deleting"


@dataclass(frozen=True)
class Thing:
    """An item that can be deleted, with a unique `key` and a description `text` (Markdown)."""

    key: str
    text: str


def show(things: Sequence[Thing], delete: Callable[[str], None], on_ask: Callable[[], None] = lambda: None) -> None:
    """A row for each item. `delete` is called with the key of the item to delete, `on_ask` at every other click."""

    def ask(key: str | None) -> None:
        st.session_state[_ASKED] = key
        on_ask()

    def go(key: str) -> None:
        st.session_state[_ASKED] = None
        delete(key)

    for thing in things:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(thing.text, width="content")
            key = f"{_ASKED}.{thing.key}"
            if st.session_state.get(_ASKED) != thing.key:
                st.button("Delete", key=key, icon=":material/delete:", type="tertiary", on_click=ask, args=(thing.key,))
                continue
            st.markdown("Delete it for good?", width="content")
            st.button("Delete for good", key=f"{key}.yes", icon=":material/delete:", on_click=go, args=(thing.key,))
            st.button("Keep", key=f"{key}.no", type="tertiary", on_click=ask, args=(None,))
