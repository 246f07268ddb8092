"""Cards for key figures: the candidate's value, the change, and the baseline's value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from tfcompare.tools.card_texts import before_text, change_text, value_text
from tfcompare.tools.key_figures import KeyFigure

FEWEST_IN_A_ROW = 4
"""With room for as many, few cards are not stretched over the page."""
CARD_PIXELS, LABEL_LETTER_PIXELS, PADDING_PIXELS, HELP_PIXELS = 170, 6.6, 34, 37
"""The sign of the help text takes the padding at its side."""
CHANGE_LETTER_PIXELS, CHANGE_PADDING_PIXELS = 6.3, 66
"""Of the line with the change, its arrow, and the value before it."""
CAPITAL_PIXELS, LETTER_PIXELS = 15.0, 11.5
"""The widths of letters of a value: `GFLOP/s` needs more room than `steps/s`."""
DELTA_COLOURS: dict[str, Literal["blue", "orange", "gray"]] = {
    "better": "blue",
    "worse": "orange",
    "same": "gray",
    "neither": "gray",
}


def cards(figures: Sequence[KeyFigure]) -> None:
    """Show the key figures, each with its change, in cards that have room for the longest label, value and change."""
    labels = max((len(figure.label) for figure in figures), default=0)
    values = max((_pixels(value_text(figure, figure.candidate)) for figure in figures), default=0)
    changes = max((len(change_text(one) + before_text(one)) for one in figures if one.has_baseline), default=0)
    change = CHANGE_PADDING_PIXELS + round(changes * CHANGE_LETTER_PIXELS) if changes else 0
    pixels = max(CARD_PIXELS, HELP_PIXELS + round(labels * LABEL_LETTER_PIXELS), values, change)
    with st.grid(max(len(figures), FEWEST_IN_A_ROW), min_column_width=pixels):
        for figure in figures:
            _card(figure)


def _pixels(value: str) -> int:
    """The width of a card that shows this value in full."""
    return PADDING_PIXELS + round(sum(CAPITAL_PIXELS if letter.isupper() else LETTER_PIXELS for letter in value))


def _card(figure: KeyFigure) -> None:
    change = figure.candidate - figure.baseline
    st.metric(
        figure.label,
        value_text(figure, figure.candidate),
        change_text(figure) or None,
        delta_color=DELTA_COLOURS[figure.judgement],
        delta_arrow="down" if change < 0 else "up" if change > 0 else "off",
        delta_description=before_text(figure) if figure.has_baseline else None,
        help=figure.meaning,
        border=True,
        height="stretch",
    )
