"""XSpace: the profile of one host, as flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tfcompare.schema.arrays import Bools, Int32, Int64, Strings
from tfcompare.xspace import decoding, lookup
from tfcompare.xspace.texts import text_of

T = TypeVar("T")
UInt8 = npt.NDArray[np.uint8]
StatValue = int | float | str | bytes

_MANY_ENTRIES = 64  # of the same name; usually a plane has one
_INTEGERS = (1 << decoding.UINT64) | (1 << decoding.INT64)  # as a bit mask
_ANY_KIND = -1
PS_PER_NS = 1_000
PS_PER_US = 1e6
LONGEST_PS = 1 << 58
"""Three days: no profile is that long, so longer times in a file are damage."""
MOST_PS = 1 << 62
"""The maximum sum of times, so that absurd times in a damaged file do not overflow to negative numbers."""


@dataclass(frozen=True)
class Plane:
    """One plane: a host, a device, or a container for metadata, and the rows of its lines and events."""

    index: int
    id: int
    name: str
    lines: range
    events: slice
    stats: dict[str, StatValue] = field(repr=False)

    @property
    def event_count(self) -> int:
        """The number of the plane's events."""
        return int(self.events.stop - self.events.start)


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines (threads, streams), one element each: `plane` index, `id`, `name`, and the rows of their events."""

    plane: Int64
    id: Int64
    name: Sequence[str]
    timestamp_ns: Int64
    first_event: Int64
    event_count: Int64


@dataclass(frozen=True, eq=False)
class Events:
    """Events in file order. `line` and `metadata` are rows of those tables; `start_ps` is relative to the XSpace's
    origin (the earliest line timestamp); `occurrences` is positive only for aggregated events, which have no start;
    `odd_times` is the number of events with impossible times."""

    line: Int32
    metadata: Int32
    start_ps: Int64
    duration_ps: Int64
    occurrences: Int64
    odd_times: int

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True, eq=False)
class Stats:
    """Stats in file order: `owner` is the row they belong to, `name` a code of `XSpace.stat_names`, `kind` the field
    number of the value, `value` its 64 bits (strings and bytes: offset into the buffer; refs: row of stat metadata)."""

    owner: Int32
    name: Int32
    kind: UInt8
    value: Int64
    length: Int32

    def take(self, rows: Int64 | Bools) -> Stats:
        """The stats in these rows."""
        return Stats(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True, eq=False)
class StringStat:
    """A stat's text on some of `size` rows: `labels[codes[i]]` is that of row `owners[i]`. Labels are distinct."""

    owners: Int32
    codes: Int32
    labels: list[str]
    size: int

    def spread(self) -> Int32:
        """A code for each row, −1 if the stat is missing; the last one if there are several."""
        out = np.full(self.size, -1, np.int32)
        out[self.owners] = self.codes
        return out

    def texts(self, rows: Int32 | Int64) -> Strings:
        """The text of each of these rows, empty if the stat is missing."""
        return np.array([*self.labels, ""], np.object_)[self.spread()[rows]]


@dataclass(frozen=True, eq=False)
class XSpace:
    """One host's profile: planes, lines, events and stats as columns, strings decoded once per metadata entry."""

    buffer: UInt8 = field(repr=False)
    planes: tuple[Plane, ...]
    lines: Lines = field(repr=False)
    events: Events = field(repr=False)
    event_stats: Stats = field(repr=False)
    metadata_stats: Stats = field(repr=False)
    metadata_plane: Int64 = field(repr=False)
    metadata_ids: Int64 = field(repr=False)
    metadata_names: Strings = field(repr=False)
    metadata_display_names: Strings = field(repr=False)
    stat_names: dict[str, int] = field(repr=False)
    stat_labels: Strings = field(repr=False)
    hostnames: tuple[str, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]

    def with_events(self, chosen: Bools) -> XSpace:
        """The same XSpace with only some of the events, in the same order."""
        before = np.append(0, np.cumsum(chosen))
        first, count = self.lines.first_event, self.lines.event_count
        lines = replace(self.lines, first_event=before[first], event_count=before[first + count] - before[first])
        rows = [slice(*before[[plane.events.start, plane.events.stop]].tolist()) for plane in self.planes]
        stats = self.event_stats.take(chosen[self.event_stats.owner])
        columns = ("line", "metadata", "start_ps", "duration_ps", "occurrences")
        of_events = {name: getattr(self.events, name)[chosen] for name in columns}
        return replace(
            self,
            planes=tuple(replace(plane, events=own) for plane, own in zip(self.planes, rows, strict=True)),
            lines=lines,
            events=replace(self.events, **of_events),
            event_stats=replace(stats, owner=before[stats.owner].astype(np.int32)),
        )

    def text(self, start: int, length: int) -> str:
        """The text at that position of the buffer."""
        return decode(self.buffer, start, length)

    def numbers(self, name: str) -> tuple[Int64, Int64]:
        """(event rows, values) of the integer stat `name`; unsigned values from 2^63 wrap to negative numbers."""
        return _numbers(self.event_stats, self._rows(self.event_stats, name))

    def number_of(self, name: str, rows: Int32 | Int64, absent: int) -> Int64:
        """The integer stat `name` of the events `rows`, `absent` for events without it; the last one of several."""
        return self.numbers_of(name, rows, absent)[0]

    def numbers_of(self, name: str, rows: Int32 | Int64, absent: int = 0) -> tuple[Int64, Bools]:
        """As `number_of`, and which of the events `rows` have the stat."""
        stats = self._last_of_each(name, rows, _INTEGERS)
        found = (stats >= 0).nonzero()[0]
        out = np.full(len(rows), absent, np.int64)
        out[found] = self.event_stats.value.take(stats.take(found))
        return out, stats >= 0

    def have(self, name: str, rows: Int32 | Int64) -> Bools:
        """Whether each of the events `rows` has a stat `name` of any kind."""
        return self._last_of_each(name, rows, _ANY_KIND) >= 0

    def has(self, name: str) -> Bools:
        """Whether each event has a stat `name` of any kind."""
        out = np.zeros(len(self.events), np.bool_)
        out[self.event_stats.owner[self._rows(self.event_stats, name)]] = True
        return out

    def strings(self, name: str) -> StringStat:
        """The text stat `name` of the events that have it."""
        return self._strings(self.event_stats, name, len(self.events))

    def metadata_strings(self, name: str) -> StringStat:
        """The text stat `name` of the event metadata entries that have it."""
        return self._strings(self.metadata_stats, name, len(self.metadata_names))

    def metadata_numbers(self, name: str) -> tuple[Int64, Bools]:
        """(the integer stat `name` of each event metadata entry, 0 without one; which entries have it)."""
        rows, values = _numbers(self.metadata_stats, self._rows(self.metadata_stats, name))
        out, is_known = np.zeros(len(self.metadata_names), np.int64), np.zeros(len(self.metadata_names), np.bool_)
        out[rows], is_known[rows] = values, True
        return out, is_known

    def metadata_places(self, name: str) -> dict[int, tuple[int, int]]:
        """Where in the buffer the bytes stat `name` begins, and its length, by event metadata row."""
        stats = self.metadata_stats
        rows = self._rows(stats, name)
        rows = rows[np.isin(stats.kind[rows], (decoding.BYTES, decoding.STR))]
        places = zip(stats.value[rows].tolist(), stats.length[rows].tolist(), strict=True)
        return dict(zip(stats.owner[rows].tolist(), places, strict=True))

    def planes_of(self, rows: Int32 | Int64) -> Int64:
        """The plane index of each of the events `rows`."""
        return self.lines.plane.take(self.events.line.take(rows))

    def events_named(self, *names: str) -> Bools:
        """Whether each event's name is one of `names`."""
        out = np.zeros(len(self.events), np.bool_)
        out[self.rows_named(*names)] = True
        return out

    def rows_named(self, *names: str) -> Int64:
        """The rows of the events whose name is one of `names`."""
        is_named = np.zeros(len(self.metadata_names), np.bool_)
        is_named[[entry for name in names for entry in self._entries_by_name.get(name, ())]] = True
        return self.rows_of_entries(is_named)

    def rows_of_entries(self, is_wanted: Bools) -> Int64:
        """The rows of the events of these metadata entries, in file order."""
        first, rows = self._rows_by_metadata
        entries = np.flatnonzero(is_wanted)
        if len(entries) > _MANY_ENTRIES:
            return np.flatnonzero(is_wanted[self.events.metadata])
        found = [rows[first[entry] : first[entry + 1]] for entry in entries.tolist()]
        return np.sort(np.concatenate([np.zeros(0, np.int32), *found])).astype(np.int64)

    @property
    def has_events(self) -> Bools:
        """Whether each event metadata entry has events."""
        return np.diff(self._rows_by_metadata[0]) > 0

    @cached_property
    def shown_names(self) -> Strings:
        """The display name of each event metadata entry, else its name."""
        return np.where(self.metadata_display_names != "", self.metadata_display_names, self.metadata_names)

    @cached_property
    def _entries_by_name(self) -> dict[str, list[int]]:
        out: dict[str, list[int]] = {}
        for entry, name in enumerate(self.metadata_names.tolist()):
            out.setdefault(name, []).append(entry)
        return out

    @cached_property
    def _rows_by_metadata(self) -> tuple[Int32, Int32]:
        """(where the rows of each entry begin, and the end; the rows of events sorted by entry)."""
        return lookup.grouped(self.events.metadata, len(self.metadata_names))

    @cached_property
    def _rows_by_name(self) -> tuple[Int32, Int32]:
        """(where the rows of each stat name begin, and the end; the rows of event stats sorted by name)."""
        return lookup.grouped(self.event_stats.name, len(self.stat_names))

    def _rows(self, stats: Stats, name: str) -> Int32 | Int64:
        code = self.stat_names.get(name)
        if code is None:
            return np.zeros(0, np.int64)
        if stats is not self.event_stats:
            named: Int64 = (stats.name == code).nonzero()[0]
            return named
        first, rows = self._rows_by_name
        return rows[first[code] : first[code + 1]]

    def _last_of_each(self, name: str, rows: Int32 | Int64, kinds: int) -> Int32:
        """For each of the events `rows`, the row of its last stat `name` of these `kinds` (bit mask), −1 for none."""
        out = np.full(len(rows), -1, np.int32)
        stats, of_name = self.event_stats, self._rows(self.event_stats, name)
        if len(of_name):
            lookup.last_of_each(of_name, stats.owner, stats.kind, rows.astype(np.int32, copy=False), kinds, out)
        return out

    def _strings(self, stats: Stats, name: str, size: int) -> StringStat:
        rows = self._rows(stats, name)
        kinds = stats.kind.take(rows)
        labels: dict[str, int] = {}
        codes = np.full(len(rows), -1, np.int32)
        inline = (kinds == decoding.STR).nonzero()[0]
        if len(inline):
            starts, lengths = stats.value[rows[inline]], stats.length[rows[inline]].astype(np.int64)
            own, firsts = lookup.intern_bytes(self.buffer, starts, lengths)
            texts = [self.text(int(starts[i]), int(lengths[i])) for i in firsts]
            codes[inline] = _code_of_each(labels, texts)[own]
        refs = (kinds == decoding.REF).nonzero()[0]
        if len(refs):
            values = stats.value.take(rows.take(refs))
            used = np.zeros(len(self.stat_labels), np.bool_)
            used[values] = True
            code_of_ref = np.empty(len(used), np.int32)
            code_of_ref[used] = _code_of_each(labels, self.stat_labels[used])
            codes[refs] = code_of_ref.take(values)
        known = (codes >= 0).nonzero()[0]
        return StringStat(stats.owner.take(rows.take(known)), codes.take(known), list(labels), size)


def once_per_space(find: Callable[[XSpace], T]) -> Callable[[XSpace], T]:
    """`find`, called once for each XSpace, however many tables need its result."""
    found: WeakKeyDictionary[XSpace, T] = WeakKeyDictionary()

    @wraps(find)
    def find_once(space: XSpace) -> T:
        if space not in found:
            found[space] = find(space)
        return found[space]

    return find_once


def _numbers(stats: Stats, rows: Int32 | Int64) -> tuple[Int64, Int64]:
    kind = stats.kind[rows]
    rows = rows[(kind == decoding.UINT64) | (kind == decoding.INT64)]
    return stats.owner[rows].astype(np.int64), stats.value[rows]


def decode(buffer: UInt8, start: int, length: int) -> str:
    """The text at that position of the buffer, as `texts.text_of` returns it."""
    return text_of(buffer[start : start + length].data) if length else ""


def _code_of_each(labels: dict[str, int], texts: Iterable[str]) -> Int32:
    return np.array([labels.setdefault(text, len(labels)) for text in texts], np.int32)
