"""Of many steps, those to draw: no more than can be seen, and none left out that stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tsdownsample import MinMaxDownsampler

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Places = NDArray[np.int64]

MOST_MARKERS = 150
"""So many steps have a marker or a bar each; more would touch, and become a line or areas."""

MOST_POINTS = 600
"""A line is drawn through so many steps at most: two for each pixel or two of its width."""

MOST_OF_AREAS = 300
"""The same for areas on one another, of which each takes as many points."""

MOST_MARKED = 100
"""So many steps are marked at most, the farthest from the others first."""

NOTE = "of {count:,} steps the shortest and the longest of each stretch are drawn"


def to_draw(values: Floats, marked: Bools | None = None, points: int = MOST_POINTS) -> Places:
    """The places, in order, of the steps that draw the same line: the first, the last, of each stretch of equally many
    steps the smallest and the largest value, and those that are marked. All of them where there are no more than
    `points`."""
    count = len(values)
    if count <= points:
        return np.arange(count)
    thin = MinMaxDownsampler()  # type: ignore[no-untyped-call]
    kept = thin.downsample(np.ascontiguousarray(values, np.float64), n_out=points - points % 2).astype(np.int64)
    ends = np.array([0, count - 1], np.int64)
    return np.unique(np.concatenate([ends, kept, np.flatnonzero(marked) if marked is not None else ends]))


def to_mark(values: Floats, marked: Bools) -> Bools:
    """Of the marked steps those that have a marker: all, or the `MOST_MARKED` whose values are farthest from the
    median."""
    if int(marked.sum()) <= MOST_MARKED:
        return marked
    distance = np.where(marked, np.abs(values - np.median(values)), -1.0)
    chosen = np.zeros(len(values), np.bool_)
    chosen[np.argsort(-distance, kind="stable")[:MOST_MARKED]] = True
    return chosen


def note(count: int, points: int = MOST_POINTS) -> str:
    """What a chart says of the steps that it leaves out; nothing where it draws all."""
    return NOTE.format(count=count) if count > points else ""


def over_ranks(values: Floats, points: int) -> Places:
    """The places of so many values spread evenly over their ranks, with the smallest and the largest."""
    order = np.argsort(values, kind="stable")
    if len(values) <= points:
        return order
    return order[np.linspace(0, len(values) - 1, points).round().astype(np.int64)]
