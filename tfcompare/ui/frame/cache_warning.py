"""Problems of this machine's cache, as warnings in the sidebar: all else works without it."""

from __future__ import annotations

import streamlit as st

from tfcompare.store.reading import kept_here
from tfcompare.ui.widgets.text import as_markdown


def show() -> None:
    """A line for each thing that is wrong; nothing where all is well."""
    cache = kept_here()
    for sentence in cache.said if cache is not None else ():
        st.sidebar.warning(as_markdown(sentence), icon=":material/inventory_2:")
