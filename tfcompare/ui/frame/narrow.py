"""Whether the page is so narrow that a table cannot show its names, kinds and figures side by side.

Streamlit does not report the width of the page to a script, so a component does: once where it is narrow, and whenever
that changes.
"""

from __future__ import annotations

import streamlit as st

NARROW_PIXELS = 700
"""Below it, the names and kinds of ops leave no room for what changed."""

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
    """From now on, on this page: it runs again when it becomes narrow or wide."""
    st.html(f"<style>.st-key-{_NAME} {{ display: none }}</style>")
    data = {"narrow": is_narrow(), "least": NARROW_PIXELS}
    st.components.v2.component(_NAME, js=_WATCH)(key=_NAME, data=data, on_changed_change=_on_change)


def is_narrow() -> bool:
    """Whether the page is narrow; false until the browser has reported it."""
    return bool(st.session_state.get(_IS_NARROW))


def _on_change() -> None:
    st.session_state[_IS_NARROW] = bool(st.session_state[_NAME].changed)
