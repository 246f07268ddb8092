"""Selects the steps to draw: no more than can be seen, without losing extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tsdownsample import MinMaxDownsampler

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Positions = NDArray[np.int64]

MAX_MARKERS = 150
"""Up to this many steps, each gets a marker or a bar; more would touch, and are drawn as a line or areas."""

MAX_LINE_POINTS = 600
"""Maximum number of steps that a line is drawn through, about one or two per pixel."""

MAX_AREA_POINTS = 300
"""The same for stacked areas, each of which has as many points."""

MAX_MARKED = 100
"""Maximum number of marked steps, those farthest from the median first."""

NOTE = "of {count:,} steps the shortest and the longest of each stretch are drawn"


def steps_to_draw(values: Floats, marked: Bools | None = None, points: int = MAX_LINE_POINTS) -> Positions:
    """Positions of about `points` steps whose line looks like that of all: both ends, marked steps, local extremes."""
    count = len(values)
    if count <= points:
        return np.arange(count)
    thin = MinMaxDownsampler()  # type: ignore[no-untyped-call]
    sampled = thin.downsample(np.ascontiguousarray(values, np.float64), n_out=points - points % 2).astype(np.int64)
    ends = np.array([0, count - 1], np.int64)
    return np.unique(np.concatenate([ends, sampled, np.flatnonzero(marked) if marked is not None else ends]))


def steps_to_mark(values: Floats, marked: Bools) -> Bools:
    """Which of the marked steps get a marker: all, or the `MAX_MARKED` whose values are farthest from the median."""
    if int(marked.sum()) <= MAX_MARKED:
        return marked
    distance = np.where(marked, np.abs(values - np.median(values)), -1.0)
    chosen = np.zeros(len(values), np.bool_)
    chosen[np.argsort(-distance, kind="stable")[:MAX_MARKED]] = True
    return chosen


def note(count: int, points: int = MAX_LINE_POINTS) -> str:
    """The note of a chart that omits steps; empty if it draws all of them."""
    return NOTE.format(count=count) if count > points else ""


def spread_over_ranks(values: Floats, points: int) -> Positions:
    """Positions of `points` values spread evenly over their ranks, including the smallest and the largest."""
    order = np.argsort(values, kind="stable")
    if len(values) <= points:
        return order
    return order[np.linspace(0, len(values) - 1, points).round().astype(np.int64)]
