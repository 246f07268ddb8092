"""Single blocks as Streamlit elements."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from html import escape

import pandas as pd
import streamlit as st

from tfcompare.text import as_markdown
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.widgets.table_layout import (
    LETTER_PIXELS,
    MARKER_PIXELS,
    NARROW_PAGE_PIXELS,
    PADDING_PIXELS,
    PAGE_PIXELS,
)
from tfcompare.views.blocks import Facts, Items, Text, Verdict
from tfcompare.views.columns import innermost_first
from tfcompare.views.csv_files import for_spreadsheet
from tfcompare.views.verdict_marks import TONE_COLOURS, Tone

BADGES: dict[Tone, str] = {
    "better": "blue", "likely-better": "blue", "worse": "orange", "likely-worse": "orange", "neutral": "gray",
}  # fmt: skip
MOST_ITEMS = 3
"""Items of a list on the first screen; the others are behind one more click."""
FEWEST_NAME_PIXELS = 130
"""Beside it, a narrow page has room for two more columns."""
NO_BREAK = "\u00a0"
_DIFF_BACKGROUNDS = {"-": "rgb(221 107 0 / 18%)", "+": "rgb(43 123 214 / 18%)"}
"""The theme's orange and blue, so thin that text on them keeps its contrast, in light and dark."""


def show_verdict(found: Verdict) -> None:
    """The badge and the answer, and what it is based on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if found.badge:
            st.badge(found.badge, color=BADGES[found.tone])  # type: ignore[arg-type]
        st.markdown(f"### {found.headline}", help=found.help or None, width="stretch")
    if found.basis:
        st.caption(" ".join(found.basis), help=found.details or None)


def show_text(block: Text) -> None:
    """A paragraph by its look."""
    if block.look == "quiet":
        st.caption(block.text, help=block.help or None)
    elif block.look == "notice":
        st.info(block.text)
    elif block.clears:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(block.text, width="content")
            st.button("Show all", key=f"clear {block.clears}", on_click=partial(_clear, block.clears))
    else:
        mark = "### " if block.look == "headline" else ""
        st.markdown(f"{mark}{block.text}", help=block.help or None)


def show_diff(text: str) -> None:
    """Lines that begin with `-` or `+` on orange or blue: on Streamlit's own diffs, green text is too pale to read."""
    lines = (
        f'<div style="background: {_DIFF_BACKGROUNDS.get(line[:1], "none")}">{escape(line) or NO_BREAK}</div>'
        for line in text.split("\n")
    )
    st.html(f'<pre style="font-size: 0.85rem; white-space: pre-wrap; overflow-wrap: anywhere">{"".join(lines)}</pre>')


def _clear(address: str) -> None:
    st.query_params.pop(address, None)


def show_small_table(facts: Facts) -> None:
    """A small table whose rows do not open; its title is the heading of the first column. A narrow page leaves out
    optional columns."""
    if facts.header[0]:
        st.markdown(f"**{facts.header[0]}**", help=facts.help or None)
    # A cell is Markdown, and may be a name from a profile unless it is a number.
    kept = _kept(facts)
    rows = [[row[i] if i in facts.numbers else as_markdown(row[i]) for i in kept] for row in facts.rows]
    header = ["", *(as_markdown(facts.header[i]) for i in kept[1:])]
    st.table(pd.DataFrame(rows, columns=header, dtype="str").set_index(""), width="content")
    if facts.note:
        st.caption(facts.note)


def show_items(items: Items) -> None:
    """One-liners that unfold; those beyond the first behind one more."""
    for line, more in items.items[:MOST_ITEMS]:
        with st.expander(line.replace(" %", f"{NO_BREAK}%")):
            st.markdown(more)
    if others := items.items[MOST_ITEMS:]:
        with st.popover(f"{len(others)} more", type="tertiary"):
            for line, more in others:
                st.markdown(f"**{line}**\n\n{more}")


def show_facts(facts: Facts, *, key: str, help: str | None = None) -> str | None:
    """A small table below its title; returns the id of the finding whose row is selected.

    The selection is in the page's URL as `row`, prefixed with `key` and `_`. A narrow page leaves out optional columns.
    """
    st.subheader(facts.header[0], anchor=False, help=help)
    ids = [one.id for one in facts.findings]
    kept = _kept(facts)
    labels = ["" if i == 0 else facts.header[i] for i in kept]
    frame = pd.DataFrame([[row[i] for i in kept] for row in facts.rows], columns=labels, dtype="str")
    texts = [label for i, label in zip(kept, labels, strict=True) if i not in facts.numbers]
    frame[texts] = for_spreadsheet(frame[texts])
    colours = [TONE_COLOURS.get(tone, "") for tone in facts.tones] or [""] * len(frame)
    others: list[Hashable] = [*labels[1:]]
    coloured = frame.style.apply(lambda _: [f"color: {c}" if c else "" for c in colours], subset=others)
    pixels = [_pixels([label, *frame[label]]) for label in labels]
    page = NARROW_PAGE_PIXELS if is_narrow() else PAGE_PIXELS
    pixels[0] = max(min(pixels[0], page - MARKER_PIXELS - sum(pixels[1:])), FEWEST_NAME_PIXELS)
    chosen = st.query_params.get(f"{key}_row")
    st.session_state[key] = {"selection": {"rows": [ids.index(chosen)] if chosen in ids else [], "columns": []}}
    st.dataframe(
        coloured.format({labels[0]: lambda name: innermost_first(str(name))}),
        key=key,
        hide_index=True,
        height="content",
        column_config={
            label: st.column_config.TextColumn(width=width, alignment="right" if i in facts.numbers else None)
            for i, label, width in zip(kept, labels, pixels, strict=True)
        },
        on_select=partial(_on_select, key, ids) if ids else "ignore",
        selection_mode="single-row",
    )
    if facts.note:
        st.caption(facts.note)
    return chosen if chosen in ids else None


def _kept(facts: Facts) -> list[int]:
    """The columns that the page has room for."""
    return [i for i in range(len(facts.header)) if not (is_narrow() and i in facts.optional)]


def _pixels(texts: list[str]) -> int:
    return round(max(map(len, texts)) * LETTER_PIXELS) + PADDING_PIXELS


def _on_select(key: str, ids: list[str]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        st.query_params[f"{key}_row"] = ids[rows[0]]
    else:
        st.query_params.pop(f"{key}_row", None)
