"""Shows problems with the cache of frames on this machine in the sidebar; everything else works without the cache."""

from __future__ import annotations

import streamlit as st

from tfcompare.markdown import as_markdown
from tfcompare.store.cached_frames import frame_cache


def show() -> None:
    """Show a line for each problem, if there are any."""
    cache = frame_cache()
    for message in cache.messages if cache is not None else ():
        st.sidebar.warning(as_markdown(message), icon=":material/inventory_2:")
