"""Places next to each other if the window is wide enough, otherwise one below the other."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tfcompare.ui.frame.narrow import is_narrow


def side_by_side(count: int, pixels: int = 0) -> Sequence[DeltaGenerator]:
    """`count` places of the same width, next to each other; on a narrow page, one below the other.

    With `pixels`, they are as many in a row as have that width.
    """
    if count < 2 or is_narrow():
        return [st.container() for _ in range(count)]
    if pixels:
        with st.grid(count, min_column_width=pixels):
            return [st.container() for _ in range(count)]
    return st.columns(count)
