"""Runs the page once more when it turns light or dark: charts are drawn in the colours of the page (`figure_theme`).

Streamlit itself changes its own parts in the browser, and tells the server with the next run only.
"""

from __future__ import annotations

import streamlit as st

_NAME = "tfcompare_theme"
_WATCH = """
export default function ({ parentElement, setTriggerValue }) {
    const element = parentElement.host ?? parentElement
    const background = () => getComputedStyle(element).getPropertyValue("--st-background-color")
    let last = background()
    const timer = setInterval(() => {
        const now = background()
        if (now === last) return
        last = now
        setTriggerValue("changed", now)
    }, 500)
    return () => clearInterval(timer)
}
"""


def watch() -> None:
    """From now on, on this page."""
    st.html(f"<style>.st-key-{_NAME} {{ display: none }}</style>")
    st.components.v2.component(_NAME, js=_WATCH)(key=_NAME, on_changed_change=_noticed)


def _noticed() -> None:
    """The page runs again because of it; nothing else is to be done."""
