"""Time between steps: the time from the first to the last step of a profile that is in no step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.schema.arrays import Floats
from tfcompare.units import format_count, format_percent, format_time_us, format_value

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.run import Run


WORTH_SAYING = 0.1
"""The share of the window above which time between steps is mentioned even if it did not change."""

_OVERLAP_WORTH_SAYING = 0.01
"""The share of the period from which step time × throughput is visibly more than 1."""

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


def window_of(run: Run, host: str | None = None) -> Window | None:
    """The window of a run on one host; by default, on the straggler."""
    if not run.info.has_steps:
        return None
    steps = steps_of_straggler(run.table("steps", host=host))
    return window(steps, None if run.choice.kind is None else run.is_of_chosen_kind(steps))


def windows_of(pair: Pair) -> tuple[Window | None, Window | None]:
    """The windows of both sides, on the compared host of each."""
    ours, theirs = map(mean_window, pair.sides)
    return ours, theirs


def windows_of_captures(side: Side) -> list[Window]:
    """The windows of the captures of a side that have one, with times per iteration of their steps."""
    return [found.per(side.iterations) for found in side.each(window_of) if found is not None]


def mean_window(side: Side) -> Window | None:
    """The window of a capture; of several, one whose arrays have the means of each."""
    windows = windows_of_captures(side)
    if len(windows) < 2:
        return next(iter(windows), None)
    timed = [found for found in windows if len(found.timed_us)]
    return Window(
        np.array([found.period_us for found in windows]),
        np.array([found.timed_us.mean() for found in timed]),
        np.array([found.between_us for found in timed]),
        np.array([found.overlap_us for found in timed]),
    )


def in_words(baseline: Window | None, candidate: Window | None, *, has_changed: bool) -> str:
    """A sentence on the time between steps if it `has_changed` or exceeds `WORTH_SAYING`, and one on overlapping steps;
    empty for neither."""
    return " ".join(filter(None, [_between(baseline, candidate, has_changed), _overlap(baseline, candidate)]))


def _between(baseline: Window | None, candidate: Window | None, has_changed: bool) -> str:
    baseline, candidate = (None if of is None or math.isnan(of.share) else of for of in (baseline, candidate))
    known = [found for found in (baseline, candidate) if found is not None]
    if not (has_changed or any(found.share > WORTH_SAYING for found in known)):
        return ""
    if baseline is None or candidate is None:
        side = "candidate" if baseline is None else "baseline"
        return f"Time between steps in the {side}: {_amount(known[0])} per step, in no step time."
    return f"Between steps: {_amount(candidate)}, baseline {_amount(baseline)}, per step. This time is in no step time."


def rates(baseline: Window | None, candidate: Window | None) -> str:
    """`333 vs 323 steps/s`, candidate first, where step times are unknown; empty unless both are known."""
    if baseline is None or candidate is None:
        return ""
    return f"{format_count(candidate.steps_per_s)} vs {format_value(baseline.steps_per_s, 'steps/s')}"


def _amount(found: Window) -> str:
    return f"{format_time_us(found.between_us)} ({format_percent(found.share)})"


def _overlap(baseline: Window | None, candidate: Window | None) -> str:
    """That steps overlap, so that step time × throughput is more than 1."""
    sides = (("candidate", candidate), ("baseline", baseline))
    overlapping = [
        f"{format_time_us(found.overlap_us)} ({format_percent(found.overlap_us / found.period_us)}) in the {side}"
        for side, found in sides
        if found is not None and found.overlap_us >= _OVERLAP_WORTH_SAYING * found.period_us > 0
    ]
    return (
        f"Steps overlap: each goes on after the next has begun, for {' and '.join(overlapping)}." if overlapping else ""
    )
