"""What is wrong with the frames that are kept on this machine, said in the sidebar: all else works without them."""

from __future__ import annotations

import streamlit as st

from tfcompare.store.reading import kept_here
from tfcompare.ui.widgets.text import as_markdown


def tell() -> None:
    """A line for each thing that is wrong; nothing where all is well."""
    kept = kept_here()
    for sentence in kept.said if kept is not None else ():
        st.sidebar.warning(as_markdown(sentence), icon=":material/inventory_2:")
