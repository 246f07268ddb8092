"""Links to the pages of views."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from tfcompare.compare.pair import Pair
from tfcompare.ui.frame import sidebar, state
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.views.blocks import Link, Links
from tfcompare.views.registry import view
from tfcompare.views.series.changes import Series


def show_links(subject: Pair | Series, block: Links) -> None:
    """Links in a row, after their text; a single one is at its right, even if the text has several lines."""
    is_beside = len(block.links) == 1 and not is_narrow()
    with st.container(horizontal=True, wrap=not is_beside, vertical_alignment="center"):
        if block.text:
            st.markdown(block.text, width="stretch" if is_beside else "content", help=block.help or None)
        for link in block.links:
            show_link(subject, link)


def show_link(subject: Pair | Series, link: Link) -> None:
    """A link to the page of a view that shows the same pair, or the runs of the link."""
    title = view(link.view).title
    page = next(path for path in sidebar.page_files() if sidebar.page_title(path) == title)
    selection = state.current()
    if link.host is not None or link.every_host:
        selection = replace(selection, host=link.host)
    if link.runs is not None:
        baseline, candidate = link.runs
        selection = replace(selection, baseline=baseline, candidates=(candidate,), repeats=(), host=None)
    more = dict(link.parameters)
    if isinstance(subject, Pair) and len(subject.among.sides) > 2:
        more = {"detail": subject.candidate.id} | more
    sidebar.link(f"pages/{page.name}", link.label, selection, icon=sidebar.ICONS[title], more=more)
