"""Marks of table rows that were not matched by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, cast

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from tfcompare.tools.columns import MATCH_MARKS, MATCH_MEANINGS, MATCH_WORDS, marked_rows


def with_marks(styler: Styler, page: pd.DataFrame, column: Hashable, texts: Mapping[str, str]) -> Styler:
    """The styled page with marks in `column`, whose cells are shown as in `texts`."""
    for match, rows in marked_rows(page).items():
        styler = styler.format(partial(_with_mark, MATCH_MARKS[match], texts), subset=cast(Any, (rows, [column])))
    return styler


def explain_marks(page: pd.DataFrame) -> None:
    """A caption that explains the marks of a table."""
    lines = [f"**{MATCH_MARKS[match]}** {MATCH_WORDS[match]}: {MATCH_MEANINGS[match]}" for match in marked_rows(page)]
    if lines:
        st.caption(f"{'; '.join(lines)}.")


def _with_mark(mark: str, texts: Mapping[str, str], text: str) -> str:
    return f"{mark} {texts.get(text, text)}"
