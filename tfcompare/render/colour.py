"""Colours of verdicts on a terminal: blue for better, orange for worse, as on the pages."""

from __future__ import annotations

import os
import sys
from typing import Literal

Tone = Literal["", "better", "worse", "likely-better", "likely-worse", "neutral", "bold"]
"""What a text says; `likely` is from too few captures for a definite claim."""

_CODES: dict[Tone, str] = {
    "better": "38;5;33",
    "worse": "38;5;166",
    "likely-better": "38;5;67",
    "likely-worse": "38;5;137",
    "bold": "1",
}
"""SGR parameters: the nearest of the 256 colours to those of the charts."""

_BETTER, _WORSE = ("faster", "less"), ("slower", "more")


def paint(text: str, tone: Tone) -> str:
    """`text` in the colour of `tone` if stdout shows colours."""
    return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if _CODES.get(tone) and has_colours() else text


def has_colours() -> bool:
    """Whether stdout is a terminal with colours, and NO_COLOR (https://no-color.org) is empty or not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def tone_of(verdict: str) -> Tone:
    """The tone of a verdict in words, such as `likely faster`; none unless it claims a change."""
    word = verdict.removeprefix("likely ")
    likely = word != verdict
    if word in _BETTER:
        return "likely-better" if likely else "better"
    if word in _WORSE:
        return "likely-worse" if likely else "worse"
    return ""
