"""Nesting in time: which event lies within which on its line, and what that leaves it as self time."""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled
from tfcompare.xspace.space import MOST_PS


def order_by_start(line: Array, start: Array, duration: Array, order: Array) -> None:
    """Sort `order` (rows, line by line) within each line by start, the longer first; file order decides ties."""
    first, last = _unsorted_line(line, start, duration, order, 0)
    while first < last:
        rows = order[first:last]
        order[first:last] = rows[np.lexsort((-duration[rows], start[rows]))]
        first, last = _unsorted_line(line, start, duration, order, last)


@compiled
def _unsorted_line(line: Array, start: Array, duration: Array, order: Array, first: Int) -> tuple[Int, Int]:
    """Where in `order` the next line from `first` on with rows out of order begins and ends; nowhere at its end."""
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


def parents_in_time(line: Array, start: Array, duration: Array, order: Array, parent: Array) -> None:
    """For each row of `order` (sorted as by `order_by_start`), the innermost earlier row of its line that includes it
    in time, −1 for none. Spans that overlap in part include neither the other."""
    _find_parents(line, start, duration, order, np.empty(len(order), np.int32), parent)


@compiled
def _find_parents(line: Array, start: Array, duration: Array, order: Array, stack: Array, parent: Array) -> None:
    depth = 0
    for row in order:
        end = start[row] + duration[row]
        while depth > 0:
            top = stack[depth - 1]
            if line[top] == line[row] and end <= start[top] + duration[top]:
                break
            depth -= 1
        parent[row] = stack[depth - 1] if depth > 0 else -1
        stack[depth] = row
        depth += 1


def self_times(line: Array, start: Array, duration: Array, order: Array) -> Array:
    """Duration of each row of `order` (sorted as by `order_by_start`) less the time in which a direct child ran: what
    two of them cover together counts once. As long as `order`."""
    size = len(order)
    own, stack, covered_until = np.empty(size, np.int64), np.empty(size, np.int32), np.empty(size, np.int64)
    _take_off_children(line, start, duration, order, stack, covered_until, own)
    return own


@compiled
def _take_off_children(
    line: Array, start: Array, duration: Array, order: Array, stack: Array, covered_until: Array, own: Array
) -> None:
    """`stack` is for places in `order`, `covered_until` for the end of the last child of each on the stack."""
    depth = 0
    for i in range(order.size):
        row = order[i]
        end = start[row] + duration[row]
        while depth > 0:
            top = order[stack[depth - 1]]
            if line[top] == line[row] and end <= start[top] + duration[top]:
                break
            depth -= 1
        if depth > 0:
            begin = max(start[row], covered_until[depth - 1])
            if end > begin:
                own[stack[depth - 1]] -= end - begin
                covered_until[depth - 1] = end
        own[i], stack[depth], covered_until[depth] = duration[row], i, start[row]
        depth += 1


@compiled
def idle_by_line(line: Array, start: Array, duration: Array, order: Array, own: Array) -> Int:
    """Time of each line (rows of one line stand together) between its first start and last end that no event covers,
    summed over lines (at most `MOST_PS`). `own`: the self time of each row of `order`."""
    idle = np.int64(0)
    first = 0
    while first < order.size:
        begin, until, busy = start[order[first]], start[order[first]], np.int64(0)
        last = first
        while last < order.size and line[order[last]] == line[order[first]]:
            row = order[last]
            begin, until = min(begin, start[row]), max(until, start[row] + duration[row])
            busy += own[last]
            last += 1
        idle = min(idle + max(busy, until - begin) - busy, np.int64(MOST_PS))
        first = last
    return idle


def count_begun(line: Array, start: Array, lines: Array, times: Array) -> Array:
    """How many of the events, sorted by line and start, are on earlier lines or begin at or before the n-th of `times`
    on the n-th of `lines`."""
    out = np.empty(len(times), np.int64)
    _count_begun(line, start, lines, times, out)
    return out


@compiled
def _count_begun(line: Array, start: Array, lines: Array, times: Array, out: Array) -> None:
    """Times that follow one another mostly have the same answer."""
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
