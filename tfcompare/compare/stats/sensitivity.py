"""How small a change a comparison of captures can detect, and how many captures would detect a given one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tfcompare.compare.stats.estimates import FEWEST_REPEATS, FEWEST_REPLICATES, detectable_log

MOST_CAPTURES = 100
"""More captures a side are not suggested."""
USUAL_MARGIN = 0.05
"""The change in question where none is named."""
_HUGE = 10.0
"""Larger changes are not told apart."""


@dataclass(frozen=True)
class Sensitivity:
    """What a comparison had to go by: `captures` of baseline and candidate, `steps` of each capture on average.

    `capture_spread`: the standard deviation of one capture's typical step, as a logarithm; `smallest_change`: the
    smallest slowdown, as a share, that had a chance of 80 % to be detected.
    """

    captures: tuple[int, int]
    steps: int
    capture_spread: float
    smallest_change: float

    def captures_for(self, change: float) -> int | None:
        """How many captures a side, of as many steps each, detect a change of that share with a power of 80 %.

        None for more than `MOST_CAPTURES`.
        """
        for captures in range(FEWEST_REPLICATES, MOST_CAPTURES + 1):
            error = np.array([self.capture_spread * math.sqrt(2 / captures)])
            if detectable_log(error, np.array([2.0 * (captures - 1)]))[0] <= abs(math.log1p(change)):
                return captures
        return None

    def how_to_detect(self, change: float = USUAL_MARGIN) -> str:
        """`Detecting a change of 5 % takes about 66 captures of 20 steps per side (80 % power, assumed variation).`"""
        captures = self.captures_for(change)
        count = f"more than {MOST_CAPTURES}" if captures is None else f"about {captures}"
        size = f"{100 * abs(change):.2g} %"
        variation = "measured" if min(self.captures) >= FEWEST_REPEATS else "assumed"
        return (
            f"Detecting a change of {size} takes {count} captures of {self.steps} steps per side "
            f"(80 % power, {variation} variation)."
        )

    def details(self) -> str:
        """The summary and how to detect a usual change, as sentences."""
        return f"{self.summary()}. {self.how_to_detect()}"

    def summary(self) -> str:
        """`1 capture per side; smallest detectable change: 21 %`."""
        ours, theirs = self.captures
        each = (
            f"{ours} capture{'s' if ours > 1 else ''} per side" if ours == theirs else f"{ours} and {theirs} captures"
        )
        change = self.smallest_change
        size = f"{100 * change:.2g} %" if change < _HUGE else f"more than {100 * _HUGE:,.0f} %"
        return f"{each}; smallest detectable change: {size}"
