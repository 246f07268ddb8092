"""The idle gap that comes back in most steps: how long nothing runs, after which op and before which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.schema import DEVICE
from tfcompare.tools.advice.model import WORTH_IT, Figure, code

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.tools.advice.facts import Facts

MOST_STEPS = 0.5
"""Of the steps that count: a gap between the same two ops in fewer is not what a step usually has."""


@dataclass(frozen=True)
class Gap:
    """The longest idle gap of most steps: `length_us` is the mean of these; an op is empty at the step's edge."""

    on_device: bool
    op_before: str
    op_after: str
    length_us: float


def usual_gap(gaps: pd.DataFrame) -> Gap | None:
    """The gap between the two ops that enclose the longest gap of most steps; None where they change from step to step.

    `gaps` are rows of `idle_gaps`, those of the steps that count on one host.
    """
    if gaps.empty:
        return None
    ops = ["op_before", "op_after"]
    same = gaps.groupby(ops)["duration_us"].agg(["size", "mean"]).sort_values("size", ascending=False, kind="stable")
    first = same.iloc[0]
    if first["size"] < MOST_STEPS * len(gaps):
        return None
    before, after = (str(name) for name in same.index[0])
    return Gap(bool((gaps["host_or_device"] == DEVICE).any()), before, after, float(first["mean"]))


GAP = Figure("Longest idle gap of a step", "µs", lambda f: f.gap.length_us if f.gap else math.nan)


def with_gap(text: str, figures: tuple[Figure, ...], facts: Facts) -> tuple[str, tuple[Figure, ...]]:
    """Advice's text and figures, with a sentence on the idle gap where that is a good part of the step."""
    gap = facts.gap
    if gap is None or not gap.length_us >= WORTH_IT * facts.step_us:
        return text, figures
    after = f"after {code(gap.op_before)}" if gap.op_before else "from the beginning of the step"
    before = f"before {code(gap.op_after)}" if gap.op_after else "until the end of the step"
    what = "no device is busy" if gap.on_device else "no op runs"
    return f"{text} Longest gap in most steps: {what} for {GAP.text(facts)} {after}, {before}.", (*figures, GAP)
