"""Verdicts with their confidence intervals, each on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from tfcompare.compare.stats.verdict import FASTER, SLOWER, Verdict
from tfcompare.text import as_markdown
from tfcompare.units import format_ratio
from tfcompare.views.verdict_marks import Judged, word_of

BADGES: dict[str, Literal["blue", "orange", "gray"]] = {FASTER: "blue", SLOWER: "orange"}
"""The colour of a badge by the word of its verdict; grey for all others."""


def verdict_lines(rows: Sequence[Judged]) -> None:
    """A badge with the verdict and ratio of each row, its 95 % confidence interval, and what it is based on as help."""
    with st.container(horizontal=True, gap="medium"):
        for row in rows:
            reason = f"{as_markdown(row.verdict.reason)}." if row.verdict.has_interval else None
            st.markdown(_line(row.name, row.verdict), help=reason, width="content")
    caveats = dict.fromkeys(row.verdict.caveat for row in rows if row.verdict.caveat)
    for caveat in caveats:
        st.markdown(f"**But {as_markdown(caveat)}.**")


def _line(name: str, verdict: Verdict) -> str:
    """`Input wait :blue-badge[▼ likely faster 0.88×] 95 % CI 0.64×–0.95×`; without an interval, the reason for that."""
    colour = BADGES.get(verdict.word, "gray")
    word = as_markdown(word_of(verdict))
    if not verdict.has_interval:
        return f"{as_markdown(name)} :{colour}-badge[{word}] {as_markdown(verdict.reason)}"
    interval = f"95 % CI {format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
    return f"{as_markdown(name)} :{colour}-badge[{word} {format_ratio(verdict.ratio)}] {interval}"
