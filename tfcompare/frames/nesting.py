"""Nesting of events in time on one line: parents, self times and idle time."""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled
from tfcompare.xspace.space import MOST_PS

_Arrays = tuple[Array, Array]


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


@compiled
def _around(until: Array, depth: Int, end: Int) -> Int:
    """How many of the first `depth` open events, each within those before it, enclose one that ends at `end`."""
    while depth > 0 and until[depth - 1] < end:
        depth -= 1
    return depth


def _open_events(size: int) -> _Arrays:
    """(positions in `order`, ends) of the events that are open while a loop goes through `order`, a stack."""
    return np.empty(size, np.int32), np.empty(size, np.int64)


def parents_in_time(line: Array, start: Array, duration: Array, order: Array, parent: Array) -> None:
    """Set `parent` of each row of `order` to the innermost event that encloses it on its line, −1 for none.

    `order` is sorted as by `order_by_start`. Events that overlap only in part do not enclose each other.
    """
    _find_parents(line, start, duration, order, _open_events(len(order)), parent)


@compiled
def _find_parents(
    line: Array, start: Array, duration: Array, order: Array, open_events: _Arrays, parent: Array
) -> None:
    stack, until = open_events
    depth, here = 0, -1
    for i in range(order.size):
        row = order[i]
        end = start[row] + duration[row]
        depth = _around(until, depth, end) if line[row] == here else 0
        parent[row] = order[stack[depth - 1]] if depth > 0 else -1
        stack[depth], until[depth], here = i, end, line[row]
        depth += 1


def are_within(line: Array, start: Array, duration: Array, order: Array, marked: Array) -> Array:
    """Whether any `marked` event encloses each row of `order` (sorted as by `order_by_start`) on its line; `marked` has
    a flag for each of them."""
    out = np.zeros(len(order), np.bool_)
    _find_within(line, start, duration, order, marked, _open_events(len(order)), out)
    return out


@compiled
def _find_within(
    line: Array, start: Array, duration: Array, order: Array, marked: Array, open_events: _Arrays, out: Array
) -> None:
    stack, until = open_events
    depth, here = 0, -1
    for i in range(order.size):
        row = order[i]
        end = start[row] + duration[row]
        depth = _around(until, depth, end) if line[row] == here else 0
        if depth > 0:
            out[i] = out[stack[depth - 1]] or marked[stack[depth - 1]]
        stack[depth], until[depth], here = i, end, line[row]
        depth += 1


def self_times(line: Array, start: Array, duration: Array, order: Array) -> Array:
    """Self time of each row of `order` (sorted as by `order_by_start`): its duration less the time covered by its
    children.

    Time covered by several children counts once.
    """
    own, covered_until = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    _subtract_children(line, start, duration, order, _open_events(len(order)), covered_until, own)
    return own


@compiled
def _subtract_children(
    line: Array, start: Array, duration: Array, order: Array, open_events: _Arrays, covered_until: Array, own: Array
) -> None:
    """`covered_until` is the end of the last child of each open event."""
    stack, until = open_events
    depth, here = 0, -1
    for i in range(order.size):
        row = order[i]
        end = start[row] + duration[row]
        depth = _around(until, depth, end) if line[row] == here else 0
        if depth > 0:
            begin = max(start[row], covered_until[depth - 1])
            if end > begin:
                own[stack[depth - 1]] -= end - begin
                covered_until[depth - 1] = end
        own[i], stack[depth], until[depth], covered_until[depth], here = duration[row], i, end, start[row], line[row]
        depth += 1


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
