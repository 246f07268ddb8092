"""How wide a text is in the cell of a table: the grid draws it and cuts it without a sign where it does not fit."""

from __future__ import annotations

_LETTERS = {
    3.5: " ',.:;!ij|lI",
    4.5: '()[]{}-/\\rtf"',
    6.5: "*?svxyzcJ",
    7.1: "#$+0123456789<=>^_~FekLYag×−–≈÷",
    7.9: "ETSZPVXAhuobndpqµ`K",
    8.6: "BCRDG&▼▲○",
    9.3: "HNUOQ",
    10.2: "Mw",
    11.8: "W%@m✎",
    13.3: "…",
}
"""Pixels of the letters of 14 pixels of Source Sans, Streamlit's font, in steps."""

_PIXELS = {letter: pixels for pixels, letters in _LETTERS.items() for letter in letters}
_OTHER, _FULL_WIDTH = 9.0, 14.0
_FIRST_FULL_WIDTH = "\u1100"


def text_pixels(text: str) -> float:
    """About how many pixels `text` takes."""
    return sum(_PIXELS.get(letter) or (_FULL_WIDTH if letter >= _FIRST_FULL_WIDTH else _OTHER) for letter in text)
