"""Sets of disjoint time spans, in order, and how much of them lies before a given time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tfcompare.schema.arrays import Int8, Int32, Int64
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

    def take(self, chosen: Int64) -> Spans:
        """The spans at those positions, which are in order."""
        return Spans(self.start_ps.take(chosen), self.end_ps.take(chosen))

    def union(self, start_ps: Int64, end_ps: Int64) -> Spans:
        """The union of these spans with others, given in any order."""
        chosen = np.flatnonzero(end_ps > start_ps)
        start = np.concatenate([self.start_ps, start_ps.take(chosen)])
        end = np.concatenate([self.end_ps, end_ps.take(chosen)])
        if not len(start):
            return NO_SPANS
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        np.maximum.accumulate(end, out=end)
        is_first = np.append(True, start[1:] > end[:-1])
        return Spans(start[is_first], end[np.append(is_first[1:], True)])


NO_SPANS = Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))


def lowest_kinds(start_ps: Int64, duration_ps: Int64, rows: Int32, kind: Int8) -> tuple[Spans, Int8]:
    """(the spans in which any of the events `rows` runs, the lowest kind of those that run in each): neighbours that
    touch have different kinds. `rows` are sorted by start; `kind` is that of each, and not negative."""
    limit = 2 * len(rows)  # each span ends where an event ends, or where one of a lower kind starts
    start, end, lowest = np.empty(limit, np.int64), np.empty(limit, np.int64), np.empty(limit, np.int8)
    until = np.full(int(kind.max(initial=-1)) + 1, np.iinfo(np.int64).min)
    count = _find_lowest(start_ps, duration_ps, rows, kind, until, start, end, lowest)
    for column in (start, end, lowest):
        column.resize(count, refcheck=False)  # unlike a slice it frees the rest
    return Spans(start, end), lowest


@compiled
def _find_lowest(
    start: Array, duration: Array, rows: Array, kind: Array, until: Array, begins: Array, ends: Array, lowest: Array
) -> Int:
    """`until` is when the last event so far of each kind ends. Returns the number of spans."""
    count = 0
    for i in range(rows.size):
        at = start[rows[i]]
        until[kind[i]] = max(until[kind[i]], at + duration[rows[i]])
        following = start[rows[i + 1]] if i + 1 < rows.size else until.max()
        for k in range(until.size):
            if at >= following:
                break
            stop = min(until[k], following)
            if stop > at:
                if count and lowest[count - 1] == k and ends[count - 1] == at:
                    ends[count - 1] = stop
                else:
                    begins[count], ends[count], lowest[count] = at, stop, k
                    count += 1
                at = stop
    return count


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
