"""Lists of items stored on the server, each with a delete button that asks for confirmation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

_ASKED = "tfcompare.deleting"


def show(items: Mapping[str, str], delete: Callable[[str], None], on_ask: Callable[[], None] = lambda: None) -> None:
    """A row for each of the items: their descriptions (Markdown) by unique keys.

    `delete` is called with the key of the item to delete, `on_ask` at every other click.
    """

    def ask(key: str | None) -> None:
        st.session_state[_ASKED] = key
        on_ask()

    def go(key: str) -> None:
        st.session_state[_ASKED] = None
        delete(key)

    for item, text in items.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(text, width="content")
            key = f"{_ASKED}.{item}"
            if st.session_state.get(_ASKED) != item:
                st.button("Delete", key=key, icon=":material/delete:", type="tertiary", on_click=ask, args=(item,))
                continue
            st.markdown("Delete it for good?", width="content")
            st.button("Delete for good", key=f"{key}.yes", icon=":material/delete:", on_click=go, args=(item,))
            st.button("Keep", key=f"{key}.no", type="tertiary", on_click=ask, args=(None,))
