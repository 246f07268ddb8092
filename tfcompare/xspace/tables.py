"""The columns that a scan fills."""

from __future__ import annotations

from typing import NamedTuple

from tfcompare.xspace.compilation import Array


class EventColumns(NamedTuple):
    """One element an event, in file order."""

    line: Array
    id: Array
    offset: Array
    duration: Array
    occurrences: Array


class StatColumns(NamedTuple):
    """One element a stat of an event, in file order."""

    event: Array
    id: Array
    kind: Array
    value: Array
    length: Array


class Tables(NamedTuple):
    """What a scan fills. `occurrences` of events and `length` of stats must come filled with zeros."""

    counts: Array
    planes: Array
    lines: Array
    event_metadata: Array
    stat_metadata: Array
    other_stats: Array
    texts: Array
    events: EventColumns
    stats: StatColumns
