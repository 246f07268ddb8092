"""Cards for key figures: the candidate's value, the change, and the baseline's value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import streamlit as st

from tfcompare.tools.key_figures import KeyFigure
from tfcompare.units import MINUS, format_percent, format_percent_change, format_value

CARDS_IN_A_ROW = 5
CARD_PIXELS = 170
SMALLEST_POINTS = 1e-5
"""A smaller change of a share is not shown."""

DELTA_COLOURS: dict[str, Literal["blue", "orange", "gray"]] = {
    "better": "blue",
    "worse": "orange",
    "same": "gray",
    "neither": "gray",
}


def cards(figures: Sequence[KeyFigure], in_a_row: int = CARDS_IN_A_ROW) -> None:
    """Show the key figures, each with its change."""
    with st.grid(in_a_row, min_column_width=CARD_PIXELS):
        for figure in figures:
            _card(figure)


def _card(figure: KeyFigure) -> None:
    change = figure.candidate - figure.baseline
    st.metric(
        figure.label,
        _text(figure, figure.candidate),
        _change(figure),
        delta_color=DELTA_COLOURS[figure.judgement],
        delta_arrow="down" if change < 0 else "up" if change > 0 else "off",
        delta_description=_before(figure) if figure.has_baseline else None,
        help=figure.meaning,
        border=True,
        height="stretch",
    )


def _change(figure: KeyFigure) -> str | None:
    """The change: in percent for times, in percentage points for shares."""
    if not figure.has_baseline or math.isnan(figure.candidate):
        return None
    if figure.candidate == figure.baseline:
        return "unchanged"
    if figure.unit == "share":
        return _points(figure.candidate - figure.baseline)
    return format_percent_change(figure.candidate / figure.baseline) if figure.baseline > 0 else None


def _points(change: float) -> str:
    """`+1.20 pp`: a change of a share, in percentage points, with the digits of shares; a tiny one is none."""
    digits = format_percent(abs(change)).removesuffix("\u202f%").removesuffix(" %").removesuffix("%").strip()
    if abs(change) < SMALLEST_POINTS:
        return "unchanged"
    return f"{'+' if change > 0 else MINUS}{digits} pp"


def _before(figure: KeyFigure) -> str:
    """`from 213`: the baseline's value, without its unit if it is that of the candidate's."""
    before, unit = _text(figure, figure.baseline), _text(figure, figure.candidate).rpartition(" ")[2]
    return f"from {before.removesuffix(f' {unit}')}"


def _text(figure: KeyFigure, value: float) -> str:
    return format_percent(value) if figure.unit == "share" else format_value(value, figure.unit)
