"""A figure of two runs as shown on a card, and which direction of it is better."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.stats.verdict import SAME, Verdict, verdict_on_size
from tfcompare.schema import DEVICE, HOST, SIDES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

Unit = Literal["ms", "µs", "share", "bytes", "bytes/s", "FLOP/s", "steps/s", "examples/s", ""]
Better = Literal["lower", "neither"]


@dataclass(frozen=True)
class KeyFigure:
    """One figure of both sides. A `share` is a fraction of 1.

    A side without the figure is NaN; so is the `baseline` of a figure that describes both runs together. Shares are not
    judged, because the share of an unchanged part grows when the rest gets faster.
    """

    label: str
    unit: Unit
    baseline: float
    candidate: float
    better: Better
    meaning: str

    @property
    def has_baseline(self) -> bool:
        """Whether both sides have the figure."""
        return not math.isnan(self.baseline)

    def alone(self) -> KeyFigure:
        """The figure of a run that is shown alone, without a baseline."""
        return replace(self, baseline=math.nan)

    @property
    def judgement(self) -> Literal["better", "worse", "same", "neither"]:
        """How the candidate compares with the baseline; `neither` if neither direction is better."""
        if self.better == "neither" or math.isnan(self.baseline) or math.isnan(self.candidate):
            return "neither"
        is_size = self.unit == "bytes" and verdict_on_size(self.baseline, self.candidate) == SAME
        if is_size or self.candidate == self.baseline:
            return "same"
        return "better" if self.candidate < self.baseline else "worse"


def better_by(verdict: Verdict) -> Better:
    """The direction that counts as better, if the verdict claims a change; else `neither`."""
    return "lower" if verdict.is_claim else "neither"


def op_times(diff: pd.DataFrame, per: Callable[[str], str]) -> list[KeyFigure]:
    """The self time of all ops of one candidate's diff on each of device and host that ran any; `per` says what the
    sums of each are per."""
    return [_op_time(diff, side, per(side)) for side in _sides(diff)]


def _sides(diff: pd.DataFrame) -> list[str]:
    return [side for side in (DEVICE, HOST) if bool((without_idle(diff)["host_or_device"] == side).any())]


def _op_time(diff: pd.DataFrame, side: str, per: str) -> KeyFigure:
    ops = without_idle(diff)
    here = ops[ops["host_or_device"] == side]
    ours, theirs = (float(here[f"self_time_us_{role}"].astype("float64").sum(min_count=1)) for role in SIDES)
    meaning = (
        f"Self time of all {side.lower()} ops added up over all hosts, threads and streams, per {per}; without IDLE."
    )
    return KeyFigure(f"{side} op time per {per}", "µs", ours, theirs, "neither", meaning)
