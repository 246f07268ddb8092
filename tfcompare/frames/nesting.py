"""Nesting of events in time on one line: parents, self times and idle time."""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled
from tfcompare.xspace.space import MOST_PS


def order_by_start(line: Array, start: Array, duration: Array, order: Array) -> None:
    """Sort `order` (rows, line by line) within each line by start, longer events first; ties stay in file order."""
    first, last = _unsorted_line(line, start, duration, order, 0)
    while first < last:
        rows = order[first:last]
        order[first:last] = rows[np.lexsort((-duration[rows], start[rows]))]
        first, last = _unsorted_line(line, start, duration, order, last)


@compiled
def _unsorted_line(line: Array, start: Array, duration: Array, order: Array, first: Int) -> tuple[Int, Int]:
    """(begin, end) in `order` of the next line from `first` on whose rows are out of order; (size, size) for none."""
    while first < order.size:
        last = first + 1
        is_sorted = True
        while last < order.size and line[order[last]] == line[order[first]]:
            a, b = order[last - 1], order[last]
            if start[b] < start[a] or (start[b] == start[a] and duration[b] > duration[a]):
                is_sorted = False
            last += 1
        if not is_sorted:
            return first, last
        first = last
    return order.size, order.size


def enclosing(line: Array, start: Array, duration: Array, order: Array) -> Array:
    """The position in `order` of the innermost event that encloses each of its rows on its line, −1 for none.

    `order` is sorted as by `order_by_start`. Events that overlap only in part do not enclose each other.
    """
    out = np.empty(len(order), np.int32)
    _find_enclosing(line, start, duration, order, np.empty(len(order), np.int32), np.empty(len(order), np.int64), out)
    return out


@compiled
def _find_enclosing(
    line: Array, start: Array, duration: Array, order: Array, stack: Array, until: Array, out: Array
) -> None:
    """`stack` has the positions of the events that are open, each within those before it, `until` their ends."""
    depth, here = 0, -1
    for i in range(order.size):
        row = order[i]
        end = start[row] + duration[row]
        if line[row] != here:
            depth, here = 0, line[row]
        while depth > 0 and until[depth - 1] < end:
            depth -= 1
        out[i] = stack[depth - 1] if depth > 0 else -1
        stack[depth], until[depth] = i, end
        depth += 1


@compiled
def are_within(around: Array, marked: Array) -> Array:
    """Whether any `marked` event encloses each one, directly or not; `around` is the result of `enclosing`."""
    out = np.zeros(around.size, np.bool_)
    for i in range(around.size):
        if around[i] >= 0:
            out[i] = out[around[i]] or marked[around[i]]
    return out


def self_times(line: Array, start: Array, duration: Array, order: Array) -> Array:
    """Self time of each row of `order` (sorted as by `order_by_start`), as `times_without_children`."""
    return times_without_children(start, duration, order, enclosing(line, start, duration, order))


def times_without_children(start: Array, duration: Array, order: Array, around: Array) -> Array:
    """The duration of each row of `order`, which is sorted by start, less what the events within it cover, of which
    several count once. `around` is the position in `order` of the event that each is in, −1 for none."""
    own = duration.take(order)
    _subtract_children(start, duration, order, around, start.take(order), own)
    return own


@compiled
def _subtract_children(
    start: Array, duration: Array, order: Array, around: Array, covered_until: Array, own: Array
) -> None:
    """`covered_until` is the end of the last child of each event, at first its start."""
    for i in range(order.size):
        above = around[i]
        if above >= 0:
            row, outer = order[i], order[above]
            begin = max(start[row], covered_until[above])
            end = min(start[row] + duration[row], start[outer] + duration[outer])
            if end > begin:
                own[above] -= end - begin
                covered_until[above] = end


def idle_by_line(line: Array, start: Array, duration: Array, order: Array, own: Array) -> int:
    """Time between the first start and the last end of each line that no event covers, summed over lines (at most
    `MOST_PS`).

    `own` is the self time of each row of `order`; rows of one line are adjacent.
    """
    if not len(order):
        return 0
    of_line, begin = line.take(order), start.take(order)
    firsts = np.flatnonzero(np.append(True, of_line[1:] != of_line[:-1]))
    until = np.maximum.reduceat(begin + duration.take(order), firsts)
    busy = np.add.reduceat(own, firsts)
    idle = np.maximum(busy, until - np.minimum.reduceat(begin, firsts)) - busy
    return int(min(sum(idle.tolist()), MOST_PS))


def count_started(line: Array, start: Array, lines: Array, times: Array) -> Array:
    """For each n, the number of events that start at or before `times[n]` on `lines[n]`, plus all events on earlier
    lines.

    Events are sorted by line and start.
    """
    out = np.empty(len(times), np.int32)
    _count_started(line, start, lines, times, out)
    return out


@compiled
def _count_started(line: Array, start: Array, lines: Array, times: Array, out: Array) -> None:
    """Starts each search at the previous answer, since neighbouring times mostly share it."""
    at = 0
    for i in range(times.size):
        here, time = lines[i], times[i]
        is_after = at == 0 or line[at - 1] < here or (line[at - 1] == here and start[at - 1] <= time)
        if not is_after or (at < start.size and (line[at] < here or (line[at] == here and start[at] <= time))):
            low, high = 0, start.size
            while low < high:
                middle = (low + high) // 2
                if line[middle] < here or (line[middle] == here and start[middle] <= time):
                    low = middle + 1
                else:
                    high = middle
            at = low
        out[i] = at
