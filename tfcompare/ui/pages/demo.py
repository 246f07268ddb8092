"""What `tfcompare demo` adds: it begins on the Overview, which says what to look at first."""

from __future__ import annotations

import streamlit as st

from tfcompare.settings import DEMO_GUIDANCE
from tfcompare.ui.frame import sidebar
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.shell import Page

_HAS_BEGUN, _IS_HIDDEN = "tfcompare.demo.has_begun", "tfcompare.demo.is_hidden"


def begin(view: Page) -> None:
    """Leave the home page for the Overview, once in each browser session of the demo."""
    if view.settings.is_demo and _HAS_BEGUN not in st.session_state:
        st.session_state[_HAS_BEGUN] = True
        st.switch_page("pages/1_Overview.py", query_params=view.selection.as_query())


def show_guidance(view: Page) -> None:
    """Show what to look at first, in the demo and until it is hidden."""
    if not view.settings.is_demo or _IS_HIDDEN in st.session_state:
        return
    st.session_state[_HAS_BEGUN] = True
    with st.container(border=True, horizontal=not is_narrow(), vertical_alignment="center"):
        st.caption("\n".join(f"{number}. {sentence}" for number, sentence in enumerate(DEMO_GUIDANCE, 1)))
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            for page, title in (("pages/2_Op_stats.py", "Op stats"), ("pages/7_Timeline.py", "Timeline")):
                sidebar.link(page, title, view.selection, icon=sidebar.ICONS[title])
            st.button("Hide", icon=":material/close:", type="tertiary", on_click=_hide)


def _hide() -> None:
    st.session_state[_IS_HIDDEN] = True
