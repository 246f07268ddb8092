"""Verdicts on single figures of a page: their intervals, and in a line each what they rest on."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from tfcompare.charts.verdicts import Judged, is_drawn, verdict_intervals, word_of
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.widgets.figures import draw
from tfcompare.ui.widgets.text import as_markdown


def verdicts(pair: Pair, rows: Sequence[Judged], title: str, axis: str, *, key: str) -> None:
    """The intervals of all rows in one chart, where there are any, and below it a line on each."""
    if any(is_drawn(row.verdict) for row in rows):
        draw(pair, key, lambda: verdict_intervals(rows, title, axis))
    lines = [
        f"{as_markdown(row.name)}: **{word_of(row.verdict)}** – {as_markdown(row.verdict.reason)}." for row in rows
    ]
    caveats = dict.fromkeys(row.verdict.caveat for row in rows if row.verdict.caveat)
    lines += [f"**But {as_markdown(caveat)}.**" for caveat in caveats]
    st.markdown("\n".join(f"- {line}" for line in lines))
