"""How rows that were paired by more than a name are marked in tables, and in which words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, cast

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

MATCH_WORDS = {
    "by hand": "by hand",
    "exact": "same name",
    "canonical": "renamed",
    "structural": "same place",
    "probable": "guess",
    "position": "same position",
}
"""What is written for how a row was paired."""

MATCH_MEANINGS = {
    "by hand": "you said so",
    "exact": "both runs call it the same",
    "canonical": "the same but for what a framework adds to a name, such as a number",
    "structural": "another name, but the same contents at the same place in the program",
    "probable": "the likeliest partner by name, type and time, and no more than that",
    "position": "by its place in the order",
}

MATCH_MARKS = {"probable": "≈", "by hand": "✎"}
"""What stands before the name of a row that was paired so."""

MARK_LETTERS = 3
"""How many letters a mark takes the room of."""


def marked_rows(page: pd.DataFrame) -> dict[str, pd.Index]:
    """The rows that are marked before their names, by how they were paired."""
    if "match" not in page:
        return {}
    rows = {match: page.index[page["match"] == match] for match in MATCH_MARKS}
    return {match: found for match, found in rows.items() if len(found)}


def with_marks(styler: Styler, page: pd.DataFrame, column: Hashable, texts: Mapping[str, str]) -> Styler:
    """The styled page with marks in `column`, whose cells are shown as `texts` has them."""
    for match, rows in marked_rows(page).items():
        styler = styler.format(partial(_with_mark, MATCH_MARKS[match], texts), subset=cast(Any, (rows, [column])))
    return styler


def explain_marks(page: pd.DataFrame) -> None:
    """A line below a table that says what its marks stand for."""
    said = [f"**{MATCH_MARKS[match]}** {MATCH_WORDS[match]}: {MATCH_MEANINGS[match]}" for match in marked_rows(page)]
    if said:
        st.caption(f"Before a name: {'; '.join(said)}.")


def _with_mark(mark: str, texts: Mapping[str, str], text: str) -> str:
    return f"{mark} {texts.get(text, text)}"
