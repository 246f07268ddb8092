"""Detects pages that are too narrow for a table to show names, types and numbers side by side.

Streamlit does not report the page width to a script, so a component reports it: once if the page is narrow, and
whenever that changes.
"""

from __future__ import annotations

import streamlit as st

NARROW_PIXELS = 700
"""Below this width, the names and types of ops leave no room for the changes."""

_NAME = "tfcompare_width"
_IS_NARROW = "tfcompare.narrow"
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


def watch() -> None:
    """Rerun this page from now on whenever it becomes narrow or wide."""
    st.html(f"<style>.st-key-{_NAME} {{ display: none }}</style>")
    data = {"narrow": is_narrow(), "least": NARROW_PIXELS}
    st.components.v2.component(_NAME, js=_WATCH)(key=_NAME, data=data, on_changed_change=_on_change)


def is_narrow() -> bool:
    """Whether the page is narrow; False until the browser has reported its width."""
    return bool(st.session_state.get(_IS_NARROW))


def _on_change() -> None:
    st.session_state[_IS_NARROW] = bool(st.session_state[_NAME].changed)
