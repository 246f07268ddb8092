"""Time between steps: the time from the first to the last step of a profile that is in no step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tfcompare.schema.arrays import Floats

_US_PER_S = 1e6


@dataclass(frozen=True, eq=False)
class Window:
    """The steps of one host from the start of the first to that of the last, excluded ones too, or a chosen kind.

    `periods_us` has an element for each step but the last: from its start to that of the next; the other arrays have
    one for each of these whose time is known. `timed_us`: its period. `gaps_us`: how much of that is in no step.
    `overlaps_us`: how long the step goes on after the start of the next.
    """

    periods_us: Floats
    timed_us: Floats
    gaps_us: Floats
    overlaps_us: Floats

    def per(self, iterations: int) -> Window:
        """With times per iteration, of which each step has so many."""
        times = self.periods_us, self.timed_us, self.gaps_us, self.overlaps_us
        return self if iterations == 1 else Window(*(of / iterations for of in times))

    @property
    def period_us(self) -> float:
        """The mean time from step to step."""
        return float(self.periods_us.mean())

    @property
    def between_us(self) -> float:
        """Time between steps, per step; NaN without any step of known time."""
        return float(self.gaps_us.mean()) if len(self.gaps_us) else math.nan

    @property
    def share(self) -> float:
        """The share of the window that is in no step."""
        whole = float(self.timed_us.sum())
        return float(self.gaps_us.sum()) / whole if whole > 0 else math.nan

    @property
    def overlap_us(self) -> float:
        """How long a step goes on after the start of the next, on average."""
        return float(self.overlaps_us.mean()) if len(self.overlaps_us) else math.nan

    @property
    def steps_per_s(self) -> float:
        """The throughput in the window, in steps per second."""
        return _US_PER_S / self.period_us if self.period_us > 0 else math.nan


def window(steps: pd.DataFrame, is_chosen: pd.Series | None = None) -> Window | None:
    """The window of the steps of one host (columns `start_us`, `duration_us`), or of the chosen ones; None for fewer
    than two."""
    if len(steps) < 2 or (is_chosen is not None and is_chosen.sum() < 2):
        return None
    in_time = steps.sort_values("start_us", kind="stable")
    start = in_time["start_us"].to_numpy(np.float64)
    end = start + in_time["duration_us"].to_numpy(np.float64)
    periods = np.diff(start)
    gaps = np.maximum(start[1:] - np.fmax.accumulate(end)[:-1], 0.0)
    overlaps = np.maximum(end[:-1] - start[1:], 0.0)
    chosen = np.ones(len(periods), np.bool_) if is_chosen is None else is_chosen.loc[in_time.index].to_numpy()[:-1]
    timed = chosen & ~np.isnan(end[:-1])
    return Window(periods[chosen], periods[timed], gaps[timed], overlaps[timed])
