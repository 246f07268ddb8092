"""Charts side by side if the window is wide enough for two, otherwise stacked.

The browser's CSS grid does the layout. Streamlit's `st.grid` uses one column until it has been measured, so charts
would be drawn twice: first in that width, then in the right one.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

CHART_PIXELS = 420
"""A narrower chart is not readable."""

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
    """Add the CSS that `two_charts` needs; called once per page."""
    st.html(_STYLE)


def two_charts(key: str) -> DeltaGenerator:
    """A container that shows its two charts side by side; `key` must be unique on the page."""
    return st.container(key=f"{_CLASS}_{key}")
