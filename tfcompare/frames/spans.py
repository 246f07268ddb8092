"""Sets of disjoint time spans, in order, and how much of them lies before a given time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tfcompare.schema.arrays import Int64
from tfcompare.xspace.compilation import Array, Int, compiled


@dataclass(frozen=True, eq=False)
class Spans:
    """Disjoint spans from `start_ps[n]` to `end_ps[n]`, in order of time."""

    start_ps: Int64
    end_ps: Int64

    def covered_before(self, times_ps: Int64) -> Int64:
        """How much of the spans lies before each time, in picoseconds."""
        if not len(self.start_ps):
            return np.zeros(len(times_ps), np.int64)
        out = np.empty(len(times_ps), np.int64)
        _covered_before(self.start_ps, self.end_ps, self._total_ps, times_ps, out)
        return out

    @cached_property
    def _total_ps(self) -> Int64:
        """How much of the spans lies before the start of each, and in all of them."""
        return np.append(0, np.cumsum(self.end_ps - self.start_ps))

    def covered_between(self, start_ps: Int64, end_ps: Int64) -> Int64:
        """How much of the spans lies between `start_ps[n]` and `end_ps[n]`, in picoseconds."""
        return self.covered_before(end_ps) - self.covered_before(start_ps)

    def union(self, start_ps: Int64, end_ps: Int64) -> Spans:
        """The union of these spans with others, given in any order."""
        new_start, new_end = np.empty_like(start_ps), np.empty_like(end_ps)
        count = _merge_neighbours(start_ps, end_ps, new_start, new_end)
        return self.union_few(new_start[:count], new_end[:count])

    def union_few(self, new_start: Int64, new_end: Int64) -> Spans:
        """Like `union`, faster if few of the new spans touch their neighbours in the arrays; none may be empty."""
        start = np.concatenate([self.start_ps, new_start])
        end = np.concatenate([self.end_ps, new_end])
        if not len(start):
            return NO_SPANS
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        np.maximum.accumulate(end, out=end)
        is_first = np.append(True, start[1:] > end[:-1])
        return Spans(start[is_first], end[np.append(is_first[1:], True)])


NO_SPANS = Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))


@compiled
def _covered_before(start: Array, end: Array, total: Array, times: Array, out: Array) -> None:
    """Starts each search at the previous answer, since neighbouring times mostly share it."""
    at = 0
    for i in range(times.size):
        time = times[i]
        if not ((at == 0 or start[at - 1] <= time) and (at == start.size or time < start[at])):
            if at < start.size and start[at] <= time and (at + 1 == start.size or time < start[at + 1]):
                at += 1
            else:
                at = np.searchsorted(start, time, side="right")
        out[i] = total[at] - (max(0, end[at - 1] - time) if at > 0 else 0)


@compiled
def _merge_neighbours(start: Array, end: Array, new_start: Array, new_end: Array) -> Int:
    """Merge spans that are adjacent in the arrays and touch, as those of one thread do; returns the number left."""
    count = 0
    for i in range(start.size):
        if end[i] <= start[i]:
            continue
        if count and start[i] <= new_end[count - 1] and end[i] >= new_start[count - 1]:
            new_start[count - 1] = min(start[i], new_start[count - 1])
            new_end[count - 1] = max(end[i], new_end[count - 1])
        else:
            new_start[count], new_end[count] = start[i], end[i]
            count += 1
    return count
