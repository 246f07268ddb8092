"""Whether a difference is real, in a word and, in one phrase, why."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfcompare.compare.estimates import Changes

SAME = "same"
UNTESTED = "untested"
UNCLEAR = "unclear"
FASTER = "faster"
SLOWER = "slower"
LESS = "less"
MORE = "more"

SMALLEST_EFFECT = 0.02
"""With single recordings no smaller change is claimed, and a difference that surely is smaller is `same`."""
_CLEAR_OF_NOTHING = 0.01
"""With single recordings the interval must keep so far from no change; else +1 % would be claimed too often."""
FALSE_DISCOVERIES = 0.04
"""Share of false claims that is aimed at among the ops that are claimed to have changed."""


@dataclass(frozen=True)
class Verdict:
    """A word and, in one phrase, why or what it rests on; candidate ÷ baseline with its interval, NaN without one.

    `caveat` tells what keeps it from being a verdict on the program; empty where nothing does.
    """

    word: str
    reason: str
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    caveat: str = ""

    @property
    def has_interval(self) -> bool:
        """Whether the ratio could be estimated."""
        return not math.isnan(self.low)


IDENTICAL = Verdict(SAME, "identical file")


def words(changes: Changes, *, measured_spread: bool, margin: float = SMALLEST_EFFECT) -> npt.NDArray[np.object_]:
    """`faster`, `slower`, `same` or `unclear` for each row, by its interval; `untested` for a row without one.

    `measured_spread`: the spread between recordings was measured on both sides, so that changes below
    `SMALLEST_EFFECT` can be claimed. `margin`: differences within it count as none.
    """
    with np.errstate(divide="ignore"):  # a ratio of 0: one of several recordings does not have the row at all
        low, high, effect = (np.log(x) for x in (changes.low, changes.high, changes.ratio))
    clear, least = (0.0, 0.0) if measured_spread else (np.log1p(_CLEAR_OF_NOTHING), np.log1p(SMALLEST_EFFECT))
    within = np.log1p(margin)
    conditions = [
        np.isnan(low) | np.isnan(high),
        (low > clear) & (effect > least),
        (high < -clear) & (effect < -least),
        (low >= -within) & (high <= within),
    ]
    return np.select(conditions, [UNTESTED, SLOWER, FASTER, SAME], UNCLEAR).astype(object)


def claimed_together(p: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which of many claims hold when at most `FALSE_DISCOVERIES` of them shall be false (Benjamini and Hochberg 1995);
    a claim whose `p` is NaN does not."""
    order = np.argsort(p, kind="stable")  # NaN last
    allowed = FALSE_DISCOVERIES * np.arange(1, len(p) + 1) / max(len(p), 1)
    holds = np.flatnonzero(p[order] <= allowed)
    claimed = np.zeros(len(p), np.bool_)
    claimed[order[: holds[-1] + 1 if holds.size else 0]] = True
    return claimed
