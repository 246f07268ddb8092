"""The columns that a scan fills."""

from __future__ import annotations

from typing import NamedTuple

from tfcompare.xspace.compilation import Array


class EventColumns(NamedTuple):
    """One element per event, in file order; `metadata` is the row of its entry, −1 if there is none."""

    line: Array
    metadata: Array
    offset: Array
    duration: Array
    occurrences: Array


class StatColumns(NamedTuple):
    """One element per stat of an event, in file order; `name` is the row of its entry, −1 if there is none."""

    event: Array
    name: Array
    kind: Array
    value: Array
    length: Array


class Rows(NamedTuple):
    """Maps ids of a plane's metadata entries to rows: a hash table whose size is a power of two, or `direct` by id."""

    ids: Array
    rows: Array


class Tables(NamedTuple):
    """The tables that a scan fills. `occurrences` of events and `length` of stats must be zero initially.

    `event_rows` and `stat_rows` are only used during the scan, with room for 4 × the number of entries, plus 64.
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
