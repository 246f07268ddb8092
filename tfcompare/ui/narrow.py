"""Whether the page is so narrow that a table cannot show its names, kinds and figures side by side.

Streamlit does not tell a script how wide the page is, so the browser says it: once where it is narrow, and whenever
that changes.
"""

from __future__ import annotations

from zlib import crc32

import streamlit as st

NARROW_PIXELS = 700
"""Below it, the names and kinds of ops leave no room for what changed."""

_KEPT = "tfcompare.narrow"
_WATCH = """
export default function ({ parentElement, data, setTriggerValue }) {
    const element = parentElement.host ?? parentElement
    element.tfcompareWidth?.disconnect()
    const page = element.closest("[data-testid=stVerticalBlock]")
    element.tfcompareWidth = new ResizeObserver(() => {
        const width = page.clientWidth
        if (width && width < data.least !== data.narrow) setTriggerValue("changed", width < data.least)
    })
    element.tfcompareWidth.observe(page)
    return () => element.tfcompareWidth.disconnect()
}
"""


def is_narrow(key: str) -> bool:
    """Whether the page is narrow; from now on the page runs again when that changes. `key` is the caller's own."""
    narrow = bool(st.session_state.get(_KEPT))
    name = f"tfcompare_width_{crc32(key.encode()):08x}"
    st.html(f"<style>.st-key-{name} {{ display: none }}</style>")
    watch = st.components.v2.component("tfcompare_width", js=_WATCH)
    watch(key=name, data={"narrow": narrow, "least": NARROW_PIXELS}, on_changed_change=lambda: _keep(name))
    return narrow


def _keep(name: str) -> None:
    st.session_state[_KEPT] = bool(st.session_state[name].changed)
