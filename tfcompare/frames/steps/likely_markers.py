"""Suggests host events that may begin each step of a profile that marks no steps."""

from __future__ import annotations

import numpy as np

from tfcompare.frames.planes import events_of_lines, host_plane, recorded_lines
from tfcompare.xspace import XSpace

_MAX_MARKERS = 10
_MIN_OCCURRENCES = 3
_MAX_NAME_LENGTH = 200


def likely_markers(space: XSpace) -> tuple[str, ...]:
    """Names of up to ten host events that repeat on a single thread, longest total time first.

    A training loop runs on one thread, and most of that thread's time is spent in steps.
    """
    plane = host_plane(space)
    recorded = recorded_lines(space)
    lines = [i for i in plane.lines if recorded[i] and space.lines.event_count[i]] if plane is not None else []
    if not lines:
        return ()
    rows = events_of_lines(space, lines)
    names = space.events.metadata[rows]
    on_line = np.repeat(np.arange(len(lines)), space.lines.event_count[np.array(lines)])
    size = int(names.max()) + 1
    first, last = np.full(size, len(lines)), np.full(size, -1)
    np.minimum.at(first, names, on_line)
    np.maximum.at(last, names, on_line)
    times = np.bincount(names, minlength=size)
    total_ps = np.bincount(names, space.events.duration_ps[rows], minlength=size)
    candidates = np.flatnonzero((times >= _MIN_OCCURRENCES) & (first == last) & (total_ps > 0))
    best = candidates[np.argsort(-total_ps[candidates], kind="stable")]
    texts = dict.fromkeys(str(space.metadata_names[name]) for name in best[: 4 * _MAX_MARKERS])
    return tuple(text for text in texts if text.strip() and len(text) <= _MAX_NAME_LENGTH)[:_MAX_MARKERS]
