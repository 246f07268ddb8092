"""Nesting in time: which event lies within which on its line, and what that leaves it as self time."""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled
from tfcompare.xspace.space import MOST_PS


def order_by_start(line: Array, start: Array, end: Array, order: Array) -> None:
    """Sort `order` (rows, line by line) within each line by start, the longer first; file order decides ties."""
    first, last = _unsorted_line(line, start, end, order, 0)
    while first < last:
        rows = order[first:last]
        order[first:last] = rows[np.lexsort((-end[rows], start[rows]))]
        first, last = _unsorted_line(line, start, end, order, last)


@compiled
def _unsorted_line(line: Array, start: Array, end: Array, order: Array, first: Int) -> tuple[Int, Int]:
    """Where in `order` the next line from `first` on with rows out of order begins and ends; nowhere at its end."""
    while first < order.size:
        last = first + 1
        is_sorted = True
        while last < order.size and line[order[last]] == line[order[first]]:
            a, b = order[last - 1], order[last]
            if start[b] < start[a] or (start[b] == start[a] and end[b] > end[a]):
                is_sorted = False
            last += 1
        if not is_sorted:
            return first, last
        first = last
    return order.size, order.size


def parents_in_time(line: Array, end: Array, order: Array, parent: Array) -> None:
    """For each row of `order` (sorted as by `order_by_start`), the innermost earlier row of its line that includes it
    in time, −1 for none. Spans that overlap in part include neither the other."""
    _find_parents(line, end, order, np.empty(len(order), np.int32), parent)


@compiled
def _find_parents(line: Array, end: Array, order: Array, stack: Array, parent: Array) -> None:
    depth = 0
    for row in order:
        while depth > 0:
            top = stack[depth - 1]
            if line[top] == line[row] and end[row] <= end[top]:
                break
            depth -= 1
        parent[row] = stack[depth - 1] if depth > 0 else -1
        stack[depth] = row
        depth += 1


def self_times(line: Array, start: Array, end: Array, order: Array) -> Array:
    """Duration of each row of `order` (sorted as by `order_by_start`) less the time in which a direct child ran: what
    two of them cover together counts once. As long as `order`."""
    size = len(order)
    own, covered_until, stack = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int32)
    _take_off_children(line, start, end, order, stack, covered_until, own)
    return own


@compiled
def _take_off_children(
    line: Array, start: Array, end: Array, order: Array, stack: Array, covered_until: Array, own: Array
) -> None:
    """`stack` is for places in `order`."""
    depth = 0
    for i in range(order.size):
        row = order[i]
        while depth > 0:
            top = order[stack[depth - 1]]
            if line[top] == line[row] and end[row] <= end[top]:
                break
            depth -= 1
        own[i], covered_until[i] = end[row] - start[row], start[row]
        if depth > 0:
            above = stack[depth - 1]
            begin = max(start[row], covered_until[above])
            if end[row] > begin:
                own[above] -= end[row] - begin
                covered_until[above] = end[row]
        stack[depth] = i
        depth += 1


@compiled
def idle_by_line(line: Array, start: Array, end: Array, order: Array, own: Array) -> Int:
    """Time of each line (rows of one line stand together) between its first start and last end that no event covers,
    summed over lines (at most `MOST_PS`). `own`: the self time of each row of `order`."""
    idle = np.int64(0)
    first = 0
    while first < order.size:
        begin, until, busy = start[order[first]], end[order[first]], np.int64(0)
        last = first
        while last < order.size and line[order[last]] == line[order[first]]:
            row = order[last]
            begin, until = min(begin, start[row]), max(until, end[row])
            busy += own[last]
            last += 1
        idle = min(idle + max(busy, until - begin) - busy, np.int64(MOST_PS))
        first = last
    return idle
