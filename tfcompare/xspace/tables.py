"""The columns that a scan fills."""

from __future__ import annotations

from typing import NamedTuple

from tfcompare.xspace.compilation import Array


class EventColumns(NamedTuple):
    """One element an event, in file order; `metadata` is the row of its entry, −1 where there is none."""

    line: Array
    metadata: Array
    offset: Array
    duration: Array
    occurrences: Array


class StatColumns(NamedTuple):
    """One element a stat of an event, in file order; `name` is the row of its entry, −1 where there is none."""

    event: Array
    name: Array
    kind: Array
    value: Array
    length: Array


class Rows(NamedTuple):
    """The rows of a plane's metadata entries by id: a hash table, whose size is a power of two, or `direct`ly by id."""

    ids: Array
    rows: Array


class Tables(NamedTuple):
    """What a scan fills. `occurrences` of events and `length` of stats must come filled with zeros.

    `event_rows` and `stat_rows` are for the scan's own use, with room for four times as many as entries, and 64.
    """

    counts: Array
    planes: Array
    lines: Array
    event_metadata: Array
    stat_metadata: Array
    other_stats: Array
    texts: Array
    events: EventColumns
    stats: StatColumns
    event_rows: Rows
    stat_rows: Rows
