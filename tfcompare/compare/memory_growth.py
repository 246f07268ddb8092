"""How much more memory a run holds after each step than after the one before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfcompare.frames.memory_events import MemoryEvents
from tfcompare.schema.arrays import Floats
from tfcompare.tables.step_times import host_starts_and_end
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.run import Run

FEWEST_STEPS = 5
"""Fewer points say little about a slope."""
MOST_STEPS = 500
"""Of more, some are looked at: the slope is the median over all pairs of steps."""
LEAST_SHARE = 0.01
"""Of the level after the last step: growth of less over all steps is noise, such as of caches that fill up."""


@dataclass(frozen=True)
class Growth:
    """The slope of the level of a memory at the end of the included steps, in bytes per step, with its 95 % interval.

    `steps`: how many were looked at; `last_bytes`: the level at the end of the last one. `op_name` and `shape`: of the
    allocations at the peak that are most, of those that there are as many of as half of the steps; empty without such.
    """

    host: str
    memory_id: str
    bytes_per_step: float
    low: float
    high: float
    steps: int
    last_bytes: float
    op_name: str = ""
    shape: str = ""

    @property
    def is_growth(self) -> bool:
        """Whether it grows for certain, by a good part of what it holds at the end."""
        return self.low > 0 and self.low * self.steps >= LEAST_SHARE * self.last_bytes


def growth_in(pair: Pair, side: Side) -> Growth | None:
    """As `growth_of`, of a side on its compared host; kept with the comparison."""
    return pair.among.cached(("memory growth", side.run.id), partial(growth_of, side.run, side.host))


def growth_of(run: Run, host: str | None = None) -> Growth | None:
    """The growth of the memory that grows most on a host, by default that with the largest peak.

    None where no memory or too few steps are known.
    """
    peaks = run.table("memory_summary", host=host)
    if peaks.empty or not run.info.has_steps:
        return None
    largest = str(peaks["host"].iloc[int(peaks["peak_bytes"].argmax())])
    ((_, events),) = run.tables.memory_events(host=largest)
    found = _growths_on_host(run, largest, events)
    return max(found, key=lambda one: (one.is_growth, one.bytes_per_step), default=None)


def _growths_on_host(run: Run, host: str, events: MemoryEvents) -> list[Growth]:
    steps = run.table("steps", host=host)
    start, end = host_starts_and_end(steps)
    order = np.argsort(start, kind="stable")
    until = np.append(start[order][1:], end)  # a step ends where the next one starts on the host, which allocates
    ends = until[steps["included"].to_numpy(np.bool_)[order]]
    if len(ends) < FEWEST_STEPS:
        return []
    found = []
    for which, memory_id in enumerate(events.memory_ids):
        own = slice(events.first[which], events.first[which + 1])
        levels = events.in_use_bytes[own].astype(np.float64)
        at = np.searchsorted(events.time_ps[own] / PS_PER_US, ends, side="left") - 1
        known = at >= 0
        if known.sum() >= FEWEST_STEPS:
            found.append(_growth(run, host, memory_id, np.flatnonzero(known), levels[at[known]]))
    return found


def _growth(run: Run, host: str, memory_id: str, steps: npt.NDArray[np.int64], levels: Floats) -> Growth:
    some = np.linspace(0, len(steps) - 1, min(len(steps), MOST_STEPS)).round().astype(np.int64)
    slope = low = high = 0.0
    if np.ptp(levels[some]):
        slope, low, high = theil_sen(levels[some], steps[some])
    found = Growth(host, memory_id, slope, low, high, len(steps), float(levels[-1]))
    if not found.is_growth:
        return found
    peak = run.table("memory_peak", host=host)
    peak = peak[(peak["memory_id"] == memory_id) & (peak["occurrences"] >= len(steps) / 2) & (peak["op_name"] != "")]
    if peak.empty:
        return found
    most = peak.iloc[int(peak["allocation_bytes"].argmax())]
    return replace(found, op_name=str(most["op_name"]), shape=str(most["shape"]))


def theil_sen(levels: Floats, steps: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """The median of the slopes between each two points, and its 95 % interval (Sen 1968, equation 2.6): what
    `scipy.stats.theilslopes` returns, which takes half a second to import. Steps rise."""
    from scipy.special import ndtri

    earlier, later = np.triu_indices(len(steps), 1)
    slopes = np.sort((levels[later] - levels[earlier]) / (steps[later] - steps[earlier]))
    equal = np.unique(levels, return_counts=True)[1]
    count, ties = len(levels), int((equal * (equal - 1) * (2 * equal + 5)).sum())
    off = ndtri((1 - 0.95) / 2) * np.sqrt(1 / 18 * (count * (count - 1) * (2 * count + 5) - ties))
    low = max(round((len(slopes) + off) / 2) - 1, 0)
    high = min(round((len(slopes) - off) / 2), len(slopes) - 1)
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])
