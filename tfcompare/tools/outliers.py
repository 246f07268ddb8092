"""Finds the outliers among a run's steps and explains what made them long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.attribution_words import PART_WORDS
from tfcompare.compare.stats.estimates import outlying_steps, typical
from tfcompare.schema import STEP_PARTS
from tfcompare.tools.step_series import on_slowest_host
from tfcompare.units import format_percent, format_time_us

if TYPE_CHECKING:
    from tfcompare.run import Run

MOST_NAMED = 6
_WORTH_NAMING = 0.3
"""The minimum share of the long steps' excess time for a part to be named as its cause."""


@dataclass(frozen=True)
class Outlying:
    """The outliers among `counted` included steps: their step numbers (`steps`) and `positions` in charts, from 1.

    `longer` of them are longer than a usual step, by `extra_us` on average. `part_share` of that excess is in `part`,
    which is empty if no part explains it. `average_us` is the mean of the included steps, `typical_us` their typical
    step.
    """

    steps: tuple[int, ...]
    positions: tuple[int, ...]
    counted: int
    longer: int
    extra_us: float
    part: str
    part_share: float
    average_us: float
    typical_us: float


def outlying(run: Run, host: str | None = None) -> Outlying:
    """The outliers among the included steps, on one host or on the slowest host of each step."""
    return outlying_of(on_slowest_host(run.table("steps", host=host)))


def outlying_of(steps: pd.DataFrame) -> Outlying:
    """The outliers among `steps`, which has one row per step and the columns of `schema.STEPS`."""
    counted = steps["included"].astype(bool)
    is_outlying = pd.Series(outlying_steps(steps), index=steps.index)
    columns = ["duration_us", *STEP_PARTS]
    usual = steps.loc[counted & ~is_outlying, columns].median()
    longer = steps[is_outlying & (steps["duration_us"] > usual["duration_us"])]
    extra = (longer[columns] - usual).mean()
    part, share = "", 0.0
    if len(longer):
        most = str(extra[list(STEP_PARTS)].idxmax())
        share = float(extra[most] / extra["duration_us"])
        part = most if share >= _WORTH_NAMING else ""
    return Outlying(
        steps=tuple(int(number) for number in steps.loc[is_outlying, "step"]),
        positions=tuple(int(position) + 1 for position in np.flatnonzero(is_outlying)),
        counted=int(counted.sum()),
        longer=len(longer),
        extra_us=float(extra["duration_us"]) if len(longer) else 0.0,
        part=part,
        part_share=share if part else 0.0,
        average_us=float(steps.loc[counted, "duration_us"].mean()),
        typical_us=float(typical(steps.loc[counted, "duration_us"].to_numpy(np.float64)[np.newaxis])[0])
        if counted.any()
        else math.nan,
    )


def in_words(found: Outlying, whose: str) -> str:
    """`3 of 20 steps of … are outliers: …`, empty without any; `whose` names the run, in Markdown."""
    if not found.steps:
        return ""
    one = len(found.steps) == 1
    more = len(found.steps) - MOST_NAMED
    named = ", ".join(map(str, found.steps[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
    if found.positions != found.steps:  # charts count all steps from 1, whatever the profile numbers them
        named += f" (position{'' if one else 's'} {', '.join(map(str, found.positions[:MOST_NAMED]))})"
    what, steps = ("is an outlier", "step") if one else ("are outliers", "steps")
    return f"{len(found.steps)} of {found.counted} steps of {whose} {what}: {steps} {named}. {_why(found)}"


def _why(found: Outlying) -> str:
    if not found.longer:
        return "They take less than usual." if len(found.steps) > 1 else "It takes less than usual."
    extra = format_time_us(found.extra_us)
    who = f"{found.longer} of them" if found.longer < len(found.steps) else "They" if found.longer > 1 else "It"
    verb, average = ("takes", "") if found.longer == 1 else ("take", " on average")
    said = f"{who} {verb} {extra} more than a usual step{average}"
    return f"{said}, {_share(found.part_share)} {PART_WORDS[found.part]}." if found.part else f"{said}."


def _share(share: float) -> str:
    return "all of it" if share >= 0.995 else f"{format_percent(share)} of it"
