"""Places next to each other if the window is wide enough, otherwise one below the other."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tfcompare.ui.frame.narrow import is_narrow

CHART_PIXELS = 420
"""A narrower chart is not readable."""


def side_by_side(count: int) -> Sequence[DeltaGenerator]:
    """`count` places of the same width, next to each other; on a narrow page, one below the other."""
    if count < 2 or is_narrow():
        return [st.container() for _ in range(count)]
    return st.columns(count)
