"""What is wrong with the cache of frames on this machine, shown in the sidebar: all else works without it."""

from __future__ import annotations

import streamlit as st

from tfcompare.store.cached_frames import frame_cache
from tfcompare.ui.widgets.text import as_markdown


def show() -> None:
    """A line for each thing that is wrong; nothing where all is well."""
    cache = frame_cache()
    for message in cache.messages if cache is not None else ():
        st.sidebar.warning(as_markdown(message), icon=":material/inventory_2:")
