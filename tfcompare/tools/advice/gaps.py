"""The idle gap that recurs in most steps: its length and the ops before and after it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare.tools.advice.model import WORTH_IT, Figure

if TYPE_CHECKING:
    from tfcompare.tools.advice.facts import Facts

GAP = Figure("Longest idle gap of a step", "µs", lambda f: f.gap.length_us if f.gap else math.nan)


def with_gap(text: str, figures: tuple[Figure, ...], facts: Facts) -> tuple[str, tuple[Figure, ...]]:
    """Advice's text and figures, with a sentence on the idle gap where that is a good part of the step."""
    gap = facts.gap
    if gap is None or not gap.length_us >= WORTH_IT * facts.step_us:
        return text, figures
    what = "no device is busy" if gap.on_device else "no op runs"
    return f"{text} Longest gap in most steps: {what} for {GAP.text(facts)} {gap.place}.", (*figures, GAP)
