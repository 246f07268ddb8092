"""Charts side by side where the window is wide enough for two, else below one another.

The browser's own grid lays them out. Streamlit's `st.grid` takes one column until it has measured itself, and charts
that were measured meanwhile are drawn in that width, then once more in the right one.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

CHART_PIXELS = 420
"""A chart that is narrower cannot be read."""

_CLASS = "tfcompare_two_charts"
_STYLE = f"""<style>
.stVerticalBlock[class*="st-key-{_CLASS}"] {{
    display: grid;
    grid-template-columns: repeat(auto-fill, minmax(min(100%, max({CHART_PIXELS}px, 50% - 0.5rem)), 1fr));
    gap: 1rem;
    align-items: start;
}}
</style>"""


def style() -> None:
    """What `two_charts` needs, once a page."""
    st.html(_STYLE)


def two_charts(key: str) -> DeltaGenerator:
    """What is put into this stands side by side; `key` is the page's own for it."""
    return st.container(key=f"{_CLASS}_{key}")
