"""Whether one of several hosts that do the same work takes longer than the others.

The host with the longest usual time is tested: its time in each step is divided by the median of the others in that
step, and outliers are clipped, since it is slowness in most steps that makes a host a straggler (`CONSISTENT`). Hosts
that do the same work still differ by a little in all steps of a capture. This spread between hosts is part of the
interval, as the spread between captures is in `estimates`: assumed, and with `FEWEST_OTHERS` others or more averaged
with the one that is measured between them. The slowest of many hosts is slow by chance as well, so the p-value is
multiplied by the number of hosts.

`docs/verdicts.md` shows how often a host of a balanced run is named.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tfcompare.compare.stats.estimates import FEWEST_STEPS, LEVEL, Floats, Times, levels, sides
from tfcompare.compare.stats.spread import Spread

CONSISTENT = 0.75
"""A host stands out only if it takes longer than the median of the others in at least this share of the steps."""
SMALLEST_EXCESS = 0.05
"""A host stands out only if it takes at least this share longer than the others."""
FEWEST_OTHERS = 4
"""With at least this many other hosts, the spread between them is measured."""
HOST_SPREAD = Spread(0.04, "default between hosts", steady_us=20_000, exponent=0.5)
"""The spread that is assumed between balanced hosts of one run. `docs/verdicts.md` derives the figures."""
DEVICE_SPREAD = Spread(0.04, "default between devices")
"""The spread that is assumed between balanced devices of one host, however short their times: not measured."""

_MAD_OF_NORMAL = 1.4826
_OUTLIER = 2.5
_EFFICIENCY_OF_MAD = 0.37
_ASSUMED_FREEDOM = 8.0
"""The assumed spread counts as much as one that is measured with so many degrees of freedom."""
_MOST_FREEDOM = 1e9


@dataclass(frozen=True)
class Outstanding:
    """The slowest of several hosts.

    `position` is its row; of `steps` it was the slowest in `slowest_steps`, and longer than the median of the others in
    `longer_steps`; `excess` is its usual time less that of the others, in the unit of the times, from `low` to `high`
    at `LEVEL` (NaN with fewer than `FEWEST_STEPS` steps), and `share` the same divided by that of the others; `p` is
    the p-value of the excess, corrected for the number of hosts.
    """

    position: int
    steps: int
    slowest_steps: int
    longer_steps: int
    excess: float
    low: float
    high: float
    p: float
    share: float

    @property
    def stands_out(self) -> bool:
        """Whether the host takes longer than the others in most steps, by more than chance and by enough to matter."""
        return self.longer_steps >= CONSISTENT * self.steps and self.share >= SMALLEST_EXCESS and self.p <= 1 - LEVEL


def slowest(times: Floats, spread: Spread = HOST_SPREAD) -> Outstanding:
    """The row with the longest usual time, tested against the others.

    `times` has one row for each of at least two hosts, one column for each of at least one step. A host without any
    time in most steps cannot be compared: the result then has no interval.
    """
    position = int(np.argmax(_usual(times)))
    own, others = times[position], np.delete(times, position, axis=0)
    middle = np.median(others, axis=0)
    of_others = float(_usual(middle[np.newaxis])[0])
    steps, wins, longer = len(own), int((own > others.max(axis=0)).sum()), int((own > middle).sum())
    excess = float(_usual(own[np.newaxis])[0]) - of_others
    if len(own) < FEWEST_STEPS or not (times > 0).all():
        share = excess / of_others if of_others > 0 else math.inf
        return Outstanding(position, steps, wins, longer, excess, math.nan, math.nan, math.nan, share)
    ratio, low, high, p = _ratio(own / middle, others, spread)
    excess, low, high = ((value - 1) * of_others for value in (ratio, low, high))
    return Outstanding(position, steps, wins, longer, excess, low, high, min(1.0, p * len(times)), ratio - 1)


def _ratio(ratios: Floats, others: Floats, spread: Spread) -> tuple[float, float, float, float]:
    """(the usual ratio of a host to the others, the ends of its interval, the two-sided p-value that it is above
    1)."""
    from scipy.special import stdtr, stdtrit

    between, freedom = _spread_between(others, spread)
    found = levels([sides(Times(_clipped(ratios[np.newaxis])))], between * math.sqrt(1 + 1 / len(others)))
    freedom = min(float(found.freedom[0]), freedom, _MOST_FREEDOM)
    log, error = math.log(found.location[0]), float(found.error[0])
    reach = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    p = 2 * float(stdtr(freedom, -log / error)) if log > 0 else 1.0
    return math.exp(log), math.exp(log - reach), math.exp(log + reach), p


def _spread_between(others: Floats, spread: Spread) -> tuple[float, float]:
    """(the standard deviation of the logarithm of a host's usual time, its degrees of freedom)."""
    each = _usual(others)
    assumed = float(spread.of(np.array(np.median(each))))
    if len(others) < FEWEST_OTHERS:
        return assumed, math.inf
    logs = np.log(each)
    measured = _MAD_OF_NORMAL * float(np.median(np.abs(logs - np.median(logs))))
    freedom = _EFFICIENCY_OF_MAD * (len(others) - 1)
    together = freedom + _ASSUMED_FREEDOM
    return math.sqrt((_ASSUMED_FREEDOM * assumed**2 + freedom * measured**2) / together), together


def _usual(times: Floats) -> Floats:
    """The winsorised mean of each row."""
    means: Floats = _clipped(times).mean(axis=1)
    return means


def _clipped(values: Floats) -> Floats:
    """The values with outliers clipped to 2.5 robust standard deviations from their row's median, unless most values
    of the row are equal."""
    middle = np.median(values, axis=1, keepdims=True)
    usual = _OUTLIER * _MAD_OF_NORMAL * np.median(np.abs(values - middle), axis=1, keepdims=True)
    clipped: Floats = np.where(usual > 0, np.clip(values, middle - usual, middle + usual), values)
    return clipped
