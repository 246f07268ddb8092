"""Finds change points in a series of runs: from which run on a value is another one.

Each run has one value, such as its step time. How much the values of one program vary between runs is measured from
the series itself. On the logarithms of the values, two shapes are tested: one step, and a segment that differs from
both its neighbours (circular binary segmentation, Olshen et al. 2004); what is found is split and tested again. The
statistic is Student's t. Single strays are clipped before (Hampel), and what neighbouring runs have in common counts
as in `estimates`. `docs/verdicts.md` shows how often changes are claimed without one, and how late they are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tfcompare.compare.stats.estimates import LEVEL
from tfcompare.compare.stats.verdict import FALSE_DISCOVERIES, claimed_together
from tfcompare.schema.arrays import Floats

FEWEST_RUNS = 8
"""Shorter series are not tested."""
SEGMENT_RUNS = 4
"""A segment has at least so many runs: in a shorter one, strays look like a change."""
ALARM_LEVEL = 0.002
"""The p-value below which a change is claimed. A series is looked at again with each new run, so it is strict."""

_LEAST_SPREAD = 0.002
"""The least standard deviation of the logarithm that is assumed: bytes may not vary at all."""
_STRAY, _NEIGHBOURS = 3.5, 4
"""Values further from the median of these neighbours on each side, in robust standard deviations, are clipped."""
_MAD_OF_NORMAL = 1.4826
_STEPS_TRIED, _SEGMENTS_TRIED = 0.5, 10.0
"""How many independent tests, per run of the series, the best step and the best segment are worth (simulated)."""
_MOST_CORRELATION = 0.85


@dataclass(frozen=True)
class ChangePoint:
    """A change from the runs `first` to `at` − 1 to the runs `at` to `end` − 1, by position in the series.

    `before` and `after` are the geometric means of both segments, with strays clipped; `ratio`, after ÷ before, with
    its confidence interval; `p`: of no change.
    """

    at: int
    first: int
    end: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    p: float


def change_points(values: Floats, level: float = ALARM_LEVEL) -> list[ChangePoint]:
    """The change points of a series of positive values, in order; none for fewer than `FEWEST_RUNS`."""
    if len(values) < FEWEST_RUNS:
        return []
    logs = _without_strays(np.log(values)[np.newaxis])[0]
    alike = _inflation(logs)
    cuts = _support(logs, _cuts(logs, 0, len(logs), level, alike), level, alike)
    edges = [0, *cuts, len(logs)]
    return [_change_point(logs, edges, i, alike) for i in range(1, len(edges) - 1)]


def change_points_of_family(rows: Floats) -> list[list[ChangePoint]]:
    """As `change_points`, for the series of many ops, one per row, tested together.

    A row has change points only if its p-value holds at the false discovery rate of verdicts (Benjamini and Hochberg).
    """
    if rows.shape[1] < FEWEST_RUNS or not len(rows):
        return [[] for _ in rows]
    logs = _without_strays(np.log(rows))
    p = _best(logs)[0]
    for row in np.flatnonzero(p <= FALSE_DISCOVERIES):  # what neighbours have in common makes p larger, never smaller
        p[row] = _best(logs[row : row + 1], _inflation(logs[row]))[0][0]
    levels = np.where(claimed_together(p), np.maximum(p, ALARM_LEVEL), 0.0)
    return [change_points(row, level) if level else [] for row, level in zip(rows, levels, strict=True)]


def _cuts(logs: Floats, first: int, end: int, level: float, alike: float) -> list[int]:
    """The positions between `first` and `end` where the series is split, in order. `alike`: see `_inflation`."""
    if end - first < FEWEST_RUNS:
        return []
    p, left, right = _best(logs[np.newaxis, first:end], alike)
    if p[0] > level:
        return []
    own = sorted({first + int(left[0]), first + int(right[0])} - {first, end})
    edges = [first, *own, end]
    below = [_cuts(logs, a, b, level, alike) for a, b in pairwise(edges)]
    return sorted([*own, *(cut for cuts in below for cut in cuts)])


def _support(logs: Floats, cuts: Sequence[int], level: float, alike: float) -> list[int]:
    """The cuts at which the runs on both sides, up to the next cut, differ; the weakest is removed until all do."""
    kept = list(cuts)
    while kept:
        edges = [0, *kept, len(logs)]
        p = [_p_of_step(logs, *near, alike) for near in zip(edges, edges[1:], edges[2:], strict=False)]
        if max(p) <= level:
            break
        del kept[int(np.argmax(p))]
    return kept


def _best(rows: Floats, alike: float = 1.0) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The best segment of each row, or step if it begins or ends with the row: (p-value, begin, end)."""
    count, runs = rows.shape
    centred = rows - rows.mean(axis=1, keepdims=True)
    sums = np.concatenate([np.zeros((count, 1)), np.cumsum(centred, axis=1)], axis=1)
    total = (centred**2).sum(axis=1)
    step, segment = _Best(count), _Best(count)
    for width in range(SEGMENT_RUNS, runs - SEGMENT_RUNS + 1):
        gains = (sums[:, width:] - sums[:, :-width]) ** 2 * (1 / width + 1 / (runs - width))
        step.offer(gains[:, 0], np.zeros(count, np.int64), width)
        inner = gains[:, SEGMENT_RUNS : runs - width - SEGMENT_RUNS + 1]
        if inner.shape[1]:
            at = inner.argmax(axis=1)
            segment.offer(inner[np.arange(count), at], at + SEGMENT_RUNS, width)
    tests = [
        _student_p(best.gain, total - best.gain, runs - 2, alike) * tried * runs
        for best, tried in ((step, _STEPS_TRIED), (segment, _SEGMENTS_TRIED))
    ]
    is_step = tests[0] <= tests[1]
    p = np.minimum(2 * np.minimum(*tests), 1.0)
    return p, np.where(is_step, step.begin, segment.begin), np.where(is_step, step.end, segment.end)


class _Best:
    """The segment of each row that explains most of its variation: `gain`, a sum of squares, `begin` and `end`."""

    def __init__(self, rows: int) -> None:
        self.gain = np.zeros(rows)
        self.begin, self.end = np.zeros(rows, np.int64), np.zeros(rows, np.int64)

    def offer(self, gain: Floats, begin: npt.NDArray[np.int64], width: int) -> None:
        """Take over the segments of that width that are better."""
        is_better = gain > self.gain
        self.gain = np.where(is_better, gain, self.gain)
        self.begin, self.end = np.where(is_better, (begin, begin + width), (self.begin, self.end))


def _student_p(gain: Floats, rest: Floats, freedom: int, alike: float) -> Floats:
    """The p-value of a difference that explains `gain` of a sum of squares and leaves `rest`, tested alone."""
    from scipy.special import stdtr

    variance = np.maximum(rest / freedom, _LEAST_SPREAD**2) * alike
    found: Floats = 2 * stdtr(freedom, -np.sqrt(gain / variance))
    return found


def _inflation(logs: Floats) -> float:
    """By how much neighbouring runs, being alike, make the variance of means larger: 1 or more.

    Their correlation is that of the distances from the levels that would be claimed if there was none, since any step
    that is left in looks like correlation.
    """
    edges = [0, *_cuts(logs, 0, len(logs), ALARM_LEVEL, 1.0), len(logs)]
    residuals = np.concatenate([logs[a:b] - logs[a:b].mean() for a, b in pairwise(edges)])
    squares, runs = float((residuals**2).sum()), len(logs)
    raw = float((residuals[1:] * residuals[:-1]).sum()) / squares if squares > 0 else 0.0
    unbiased = (runs * raw + len(edges) - 1) / max(runs - 4, 1)
    correlation = min(max(unbiased, 0.0), _MOST_CORRELATION)
    return (1 + correlation) / (1 - correlation)


def _p_of_step(logs: Floats, first: int, at: int, end: int, alike: float) -> float:
    """The p-value of the step at one cut, among all steps between its neighbours."""
    before, after = logs[first:at], logs[at:end]
    gain = (after.mean() - before.mean()) ** 2 / (1 / len(before) + 1 / len(after))
    rest = len(before) * before.var() + len(after) * after.var()
    p = _student_p(np.array([gain]), np.array([rest]), end - first - 2, alike)
    return float(p[0]) * _STEPS_TRIED * (end - first)


def _change_point(logs: Floats, edges: Sequence[int], i: int, alike: float) -> ChangePoint:
    """The change at the i-th edge; the variation is that of all segments together."""
    from scipy.special import stdtrit

    segments = [logs[a:b] for a, b in pairwise(edges)]
    freedom = len(logs) - len(segments)
    variance = sum(len(segment) * float(segment.var()) for segment in segments) / freedom
    variance = max(variance, _LEAST_SPREAD**2) * alike
    before, after = segments[i - 1], segments[i]
    size = float(after.mean() - before.mean())
    margin = float(stdtrit(freedom, (1 + LEVEL) / 2)) * np.sqrt(variance * (1 / len(before) + 1 / len(after)))
    first, at, end = edges[i - 1 : i + 2]
    low, ratio, high = (float(np.exp(size + by)) for by in (-margin, 0.0, margin))
    p = min(_p_of_step(logs, first, at, end, alike), 1.0)
    return ChangePoint(at, first, end, float(np.exp(before.mean())), float(np.exp(after.mean())), ratio, low, high, p)


def _without_strays(rows: Floats) -> Floats:
    """Each row with values clipped that are far from their neighbours on both sides."""
    from scipy.ndimage import median_filter

    width = 2 * _NEIGHBOURS + 1
    middle = median_filter(rows, size=(1, width), mode="reflect")
    steps = np.abs(np.diff(rows, axis=1))
    spread = np.maximum(_MAD_OF_NORMAL * np.median(steps, axis=1, keepdims=True) / np.sqrt(2), _LEAST_SPREAD)
    usual: Floats = np.clip(rows, middle - _STRAY * spread, middle + _STRAY * spread)
    return usual
