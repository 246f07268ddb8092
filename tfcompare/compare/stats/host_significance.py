"""Whether one of several hosts that do the same work, or a group of them, takes longer than the others.

The host with the longest usual time is tested: its time in each step is divided by the median of the others in that
step, and outliers are clipped, since it is slowness in most steps that makes a host a straggler (`CONSISTENT`). Hosts
that do the same work still differ by a little in all steps of a capture. This spread between hosts is part of the
interval, as the spread between captures is in `estimates`: measured between the others where they are `FEWEST_OTHERS`
or more, assumed where they are fewer. The slowest of many hosts is slow by chance as well, so the p-value is multiplied
by the number of hosts; that of a group, whose members' mean is tested like a host, by the number of groups.

`docs/verdicts.md` shows how often a host of a balanced run is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfcompare.compare.stats.estimates import FEWEST_STEPS, LEVEL, Times, estimates, levels
from tfcompare.compare.stats.verdict import Spread
from tfcompare.schema.arrays import Floats

CONSISTENT = 0.75
"""A host stands out only if it takes longer than the median of the others in at least this share of the steps."""
FEWEST_OTHERS = 7
"""With at least so many other hosts, the spread between them is measured: with fewer, the factor that makes good for
not knowing it well (9 at five others and eight tested hosts) costs more than is gained."""
SMALLEST_EXCESS, SMALLEST_MEASURED = 0.05, 0.02
"""A host stands out only if it takes at least this share longer than the others: the second where it is measured how
much balanced hosts differ. The others wait for it, so it is what the whole program could gain."""
HOST_SPREAD = Spread(0.04, "default between hosts", steady_us=20_000, exponent=0.5)
"""The spread that is assumed between balanced hosts of one run. `docs/verdicts.md` derives the figures."""
DEVICE_SPREAD = Spread(0.04, "default between devices")
"""The spread that is assumed between balanced devices of one host, however short their times: not measured."""

_MAD_OF_NORMAL = 1.4826
_OUTLIER = 2.5
_FREEDOM_LEFT = 0.65
"""The degrees of freedom of a clipped standard deviation, as a share of those of a plain one. Of seven normal values it
is 0.78, and the deviation 6 % too small (simulated): with 0.65, balanced hosts are named as seldom as intended."""
_MOST_OF_HOSTS = 20.0
"""Degrees of freedom of the spread between any number of hosts: some have more odd steps than others, so the tails of
their times are heavier than a normal distribution's, and more hosts do not make that better known."""
_RESTLESS = 1.5
"""A host whose steps leave more than so many times the error that is measured between the others has its own error:
estimates of equal errors from ten steps are that far apart in one of ten cases."""
_MOST_FREEDOM = 1e9


@dataclass(frozen=True)
class Outstanding:
    """The slowest of several hosts.

    `position` is its row; of `steps` it was the slowest in `slowest_steps`, and longer than the median of the others in
    `longer_steps`; `excess` is its usual time less that of the others, in the unit of the times, from `low` to `high`
    at `LEVEL` (NaN with fewer than `FEWEST_STEPS` steps), and `share` the same divided by that of the others; `p` is
    the p-value of the excess, corrected for the number of hosts. `smallest`: the share from which it is worth naming.
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
    smallest: float

    @property
    def stands_out(self) -> bool:
        """Whether the host takes longer than the others in most steps, by more than chance and by enough to matter."""
        return self.longer_steps >= CONSISTENT * self.steps and self.share >= self.smallest and self.p <= 1 - LEVEL


def slowest(times: Floats, spread: Spread = HOST_SPREAD) -> Outstanding:
    """The row with the longest usual time, tested against the others.

    `times` has one row for each of at least two hosts, one column for each of at least one step. A host without any
    time in most steps cannot be compared: the result then has no interval.
    """
    position = int(np.argmax(_relative(times)))
    own, others = times[position], np.delete(times, position, axis=0)
    wins = int((own > others.max(axis=0)).sum())
    return _test(position, own, others, wins, len(times), spread)


def slowest_group(times: Floats, groups: Sequence[Sequence[int]], spread: Spread = HOST_SPREAD) -> int | None:
    """Which of `groups`, each the rows of some hosts, holds the slowest host and takes longer as a whole; None if none
    does, or if that host stands out among its own group, too.

    Each member must take longer by enough to matter. Of several such groups the largest counts.
    """
    position = int(np.argmax(_relative(times)))
    found = []
    for number, rows in enumerate(groups):
        if position in rows and group_of(times, rows, len(groups), spread).stands_out:
            others = np.delete(times, list(rows), axis=0)
            excess = _usual(times[list(rows)] / np.median(others, axis=0)) - 1
            if (excess >= _smallest(len(others))).all():
                found.append(number)
    largest = max(found, key=lambda number: len(groups[number]), default=None)
    if largest is None or slowest(times[list(groups[largest])], spread).stands_out:
        return None
    return largest


def group_of(times: Floats, rows: Sequence[int], groups: int, spread: Spread = HOST_SPREAD) -> Outstanding:
    """The hosts in `rows`, by their mean in each step, tested against the others as one of so many groups.

    `slowest_steps` are those in which one of them is the slowest of all hosts; `position` is the slowest of them.
    """
    own, others = times[list(rows)], np.delete(times, list(rows), axis=0)
    position = int(rows[int(np.argmax(_relative(times)[list(rows)]))])
    wins = int((own.max(axis=0) > others.max(axis=0)).sum())
    return _test(position, own.mean(axis=0), others, wins, groups, spread)


def _smallest(others: int) -> float:
    return SMALLEST_MEASURED if others >= FEWEST_OTHERS else SMALLEST_EXCESS


def _test(position: int, own: Floats, others: Floats, wins: int, tests: int, spread: Spread) -> Outstanding:
    """The times of a host, or of a group, against those of the others; its p-value counts for the best of `tests`."""
    middle = np.median(others, axis=0)
    of_others = float(_usual(middle[np.newaxis])[0])
    steps, longer = len(own), int((own > middle).sum())
    excess = float(_usual(own[np.newaxis])[0]) - of_others
    smallest = _smallest(len(others))
    if steps < FEWEST_STEPS or not ((own > 0).all() and (others > 0).all()):
        share = excess / of_others if of_others > 0 else math.inf
        return Outstanding(position, steps, wins, longer, excess, math.nan, math.nan, math.nan, share, smallest)
    ratio, low, high, p = _ratio(own / middle, others, spread)
    excess, low, high = ((value - 1) * of_others for value in (ratio, low, high))
    return Outstanding(position, steps, wins, longer, excess, low, high, min(1.0, p * tests), ratio - 1, smallest)


def _ratio(ratios: Floats, others: Floats, spread: Spread) -> tuple[float, float, float, float]:
    """(the usual ratio to the others, the ends of its interval, the two-sided p-value that it is above 1)."""
    from scipy.special import stdtr, stdtrit

    each = _relative(others)
    is_measured, for_middle = len(each) >= FEWEST_OTHERS, math.sqrt(1 + 1 / len(each))
    assumed = 0.0 if is_measured else float(spread.of(np.array(np.median(_usual(others)))))
    found = levels([estimates(Times(_clip(ratios[np.newaxis])))], assumed * for_middle)
    log, error, freedom = math.log(found.location[0]), float(found.error[0]), float(found.freedom[0])
    if is_measured:
        # what is measured between the others has the noise of their steps in it, so it holds for this host, too
        between = float(_clip(np.log(each)[np.newaxis]).std(ddof=1)) * for_middle
        if error <= _RESTLESS * between:
            error, freedom = between, min(_FREEDOM_LEFT * (len(each) - 1), _MOST_OF_HOSTS)
    freedom = min(freedom, _MOST_FREEDOM)
    reach = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    p = 1.0
    if log > 0:
        p = 2 * float(stdtr(freedom, -log / error)) if error > 0 else 0.0
    return math.exp(log), math.exp(log - reach), math.exp(log + reach), p


def _relative(times: Floats) -> Floats:
    """The usual time of each row as a share of the median row's; as it is, where a step has no time on most rows."""
    middle = np.median(times, axis=0)
    return _usual(times / middle if (middle > 0).all() else times)


def _usual(times: Floats) -> Floats:
    """The winsorised mean of each row."""
    means: Floats = _clip(times).mean(axis=1)
    return means


def _clip(values: Floats) -> Floats:
    """The values clipped to `_OUTLIER` robust deviations from their row's median, unless most values are equal."""
    middle = np.median(values, axis=1, keepdims=True)
    usual = _OUTLIER * _MAD_OF_NORMAL * np.median(np.abs(values - middle), axis=1, keepdims=True)
    clipped: Floats = np.where(usual > 0, np.clip(values, middle - usual, middle + usual), values)
    return clipped
