"""Reads XSpaces from bytes, also from gzipped files, with bounds on everything that is read."""

from __future__ import annotations

import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tfcompare.errors import NoSuchPlace, NotAProfile
from tfcompare.schema.arrays import Bools, Int32, Int64, Strings
from tfcompare.sources.logdir.files import cannot_be_opened, open_untouched, text_of
from tfcompare.sources.logdir.other_formats import START_BYTES, recognize
from tfcompare.xspace import decoding, lookup
from tfcompare.xspace.compilation import Array, Int, compiled, survives_full_disk
from tfcompare.xspace.limits import LIMITS, Limits
from tfcompare.xspace.space import (
    LONGEST_PS,
    MOST_PS,
    PS_PER_NS,
    Events,
    Lines,
    Plane,
    Stats,
    StatValue,
    UInt8,
    XSpace,
    decode,
)
from tfcompare.xspace.tables import EventColumns, Rows, StatColumns, Tables

EXPECTED_SECONDS = 15
"""How long compiling everything takes on two slow cores, for messages to the user."""
_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 16
_USUAL_GROWTH, _FREE_GROWTH_BYTES = 100, 64 << 20  # profiles expand by a factor of three to eight


@dataclass(frozen=True, eq=False)
class HostProfile:
    """A host file that was read: its XSpace, and a `digest` of its uncompressed content."""

    space: XSpace
    digest: str


def read(path: Path, limits: Limits = LIMITS) -> HostProfile:
    """The profile in that file.

    Raises `NotAProfile` with the byte offset of the first error, or for more than `limits` allow; `NoSuchPlace` if the
    file cannot be opened.
    """
    try:
        try:
            with os.fdopen(open_untouched(path), "rb") as file:
                data = _content(file, limits)
        except OSError as error:
            raise NoSuchPlace(cannot_be_opened(path, error)) from error
        if is_gzipped(data):
            data = expand(data, limits)
        with ThreadPoolExecutor(1) as beside:
            digest = beside.submit(lambda: blake2b(data, digest_size=16).hexdigest())
            return HostProfile(parse(data, limits), digest.result())
    except NotAProfile as error:
        raise error.at(Path(text_of(str(path)))) from None


def _content(file: BufferedReader, limits: Limits) -> memoryview:
    """The whole file in numpy's memory: it uses huge pages, which takes a fifth of the time of `read()`."""
    size = os.fstat(file.fileno()).st_size
    if size > limits.bytes:
        raise NotAProfile(None, 0, f"a profile of at most {limits.bytes:,} bytes", f"a file of {size:,}")
    content = np.empty(size, np.uint8).data
    return content[: file.readinto(content)].toreadonly()


@survives_full_disk
def parse(data: bytes | memoryview, limits: Limits = LIMITS) -> XSpace:
    """The XSpace in these uncompressed bytes; raises `NotAProfile`, also for more than `limits` allow."""
    try:
        return _parse(data, limits)
    except NotAProfile:
        if known := recognize("", bytes(data[:START_BYTES])):
            raise NotAProfile(None, 0, "a profile", known.what, known.advice) from None
        raise


def _parse(data: bytes | memoryview, limits: Limits) -> XSpace:
    if not len(data):
        raise NotAProfile(None, 0, "an XSpace with at least one plane", "an empty file")
    buffer = np.frombuffer(data, np.uint8)
    tables = _scan(buffer, limits)
    if not tables.counts[decoding.PLANES]:
        raise NotAProfile(None, 0, "an XSpace with at least one plane", f"{len(data):,} bytes without any")
    return _Builder(buffer, tables).build()


def _scan(buffer: UInt8, limits: Limits) -> Tables:
    """Scan into tables sized for a typical file; if they are too small, again into tables of the exact size. Unused
    capacity only costs address space: memory is allocated when it is written."""
    size = len(buffer)
    entries = max(16_384, min(size // 32, 1 << 20))
    room = np.array([64, 1024, size // 14, size // 9, entries, entries, entries, 64], np.int64)
    while True:
        tables = _allocate(room)
        error, *where = decoding.scan(buffer, lookup.SEED, tables)
        if error != decoding.OK:
            raise _scan_error(buffer, error, *map(int, where))
        limits.check_counts(tables.counts)
        counts = tables.counts[: len(room)]
        if (counts <= room).all():
            return tables
        room = counts


def _allocate(room: Int64) -> Tables:
    """Tables with room for so many rows, the small ones in the order of `decoding.WIDTHS`."""
    events, stats = int(room[decoding.EVENTS]), int(room[decoding.EVENT_STATS])
    of_events = EventColumns(
        line=np.empty(events, np.int32),
        metadata=np.empty(events, np.int32),
        offset=np.empty(events, np.int64),
        duration=np.empty(events, np.int64),
        occurrences=np.zeros(events, np.int64),
    )
    of_stats = StatColumns(
        event=np.empty(stats, np.int32),
        name=np.empty(stats, np.int32),
        kind=np.empty(stats, np.uint8),
        value=np.empty(stats, np.int64),
        length=np.zeros(stats, np.int32),
    )
    small = [np.empty((int(room[table]), width), np.int64) for table, width in decoding.WIDTHS.items()]
    slots = [4 * int(room[table]) + 64 for table in (decoding.EVENT_METADATA, decoding.STAT_METADATA)]
    rows = [Rows(np.empty(size, np.int64), np.empty(size, np.int32)) for size in slots]
    return Tables._make([np.zeros(decoding.MISSING + 1, np.int64), *small, of_events, of_stats, *rows])


def _scan_error(buffer: UInt8, error: int, offset: int, length: int, start: int, again: int) -> NotAProfile:
    """The error for the field at `offset`, from the results of `decoding.scan`."""
    size = len(buffer)
    if error == decoding.LONG_VARINT:
        return NotAProfile(None, offset, "a number of at most ten bytes", "a longer one")
    if error == decoding.BAD_TAG:
        found = f"byte 0x{buffer[offset]:02x}, which begins none"
        return NotAProfile(None, offset, "the beginning of a field", found)
    if error == decoding.CUT_VARINT:
        whose = "file" if again == decoding.CUT_VARINT else "message that it belongs to"
        return NotAProfile(None, offset, "a number", f"the end of the {whose} in the middle of it")
    claimed = length & (1 << 64) - 1  # fixed-size numbers have 4 or 8 bytes
    left = size - start
    if claimed > left:
        found = f"{left:,}: the file breaks off at byte {size:,}"
    else:
        found = "fewer up to the end of the message that it belongs to"
    return NotAProfile(None, offset, f"a field of {claimed:,} bytes", found)


class _Builder:
    """Builds an XSpace from scanned tables: decodes strings, replaces ids by rows, gives times a common origin."""

    def __init__(self, buffer: UInt8, tables: Tables) -> None:
        self.buffer = buffer
        counts = tables.counts.tolist()
        self.planes = tables.planes[: counts[decoding.PLANES]]
        self.lines = tables.lines[: counts[decoding.LINES]]
        self.event_metadata = tables.event_metadata[: counts[decoding.EVENT_METADATA]]
        self.stat_metadata = tables.stat_metadata[: counts[decoding.STAT_METADATA]]
        self.other_stats = tables.other_stats[: counts[decoding.OTHER_STATS]]
        self.texts = tables.texts[: counts[decoding.TEXTS]]
        self.has_missing = counts[decoding.MISSING] > 0
        self.events = EventColumns(*(column[: counts[decoding.EVENTS]] for column in tables.events))
        self.stats = StatColumns(*(column[: counts[decoding.EVENT_STATS]] for column in tables.stats))

    def build(self) -> XSpace:
        plane_count = len(self.planes)
        line_range = lookup.ranges(self.lines[:, decoding.LINE_PLANE], plane_count)
        event_first = np.append(self.lines[:, decoding.LINE_FIRST_EVENT], len(self.events.line))
        event_range = event_first[line_range]
        stat_labels = self._texts(self.stat_metadata, decoding.META_NAME)
        stat_codes: dict[str, int] = {}
        code_of_row = np.array([stat_codes.setdefault(s, len(stat_codes)) for s in stat_labels], np.int32)
        plane_stats, metadata_stats = self._other_stats(code_of_row)
        owner, name, kind, value, length = self.stats
        if self.has_missing:
            value[(kind == decoding.REF) & (value < 0)] = len(self.stat_metadata)
            name[name < 0] = len(self.stat_metadata)
        name[:] = code_of_row.take(name)
        return XSpace(
            buffer=self.buffer,
            planes=self._planes(line_range, event_range, plane_stats, list(stat_codes), stat_labels),
            lines=self._lines(),
            events=self._events(),
            event_stats=Stats(owner, name, kind, value, length),
            metadata_stats=metadata_stats,
            metadata_plane=np.append(self.event_metadata[:, decoding.META_PLANE], -1),
            metadata_ids=np.append(self.event_metadata[:, decoding.META_ID], -1),
            metadata_names=self._texts(self.event_metadata, decoding.META_NAME),
            metadata_display_names=self._texts(self.event_metadata, decoding.META_DISPLAY),
            stat_names=stat_codes,
            stat_labels=stat_labels,
            errors=self._space_texts(2),
            warnings=self._space_texts(3),
            hostnames=self._space_texts(4),
        )

    def _texts(self, rows: Int64, column: int) -> Strings:
        """The text of each row, followed by an empty one for missing ids."""
        out = np.full(len(rows) + 1, "", np.object_)
        named = np.flatnonzero(rows[:, column + 1])
        out[named] = [decode(self.buffer, start, length) for start, length in rows[named, column : column + 2].tolist()]
        return out

    def _space_texts(self, field_number: int) -> tuple[str, ...]:
        texts = self.texts.tolist()
        return tuple(decode(self.buffer, start, length) for number, start, length in texts if number == field_number)

    def _lines(self) -> Lines:
        plane, identity, start, length, timestamp_ns, first_event, event_count = self.lines.T.copy()
        names = list(map(partial(decode, self.buffer), start.tolist(), length.tolist()))
        return Lines(plane, identity, names, timestamp_ns, first_event, event_count)

    def _events(self) -> Events:
        """The events with corrected times: one with an impossible time starts with its line and has no duration."""
        line, metadata, start, duration, occurrences = self.events
        if self.has_missing:
            metadata[metadata < 0] = len(self.event_metadata)
        line_start, is_line_odd = _line_starts_ps(self.lines)
        odd_times, total_ps = _convert_times(line, start, duration, line_start, is_line_odd)
        if total_ps > MOST_PS:
            raise NotAProfile(None, 0, "events that take some days in all", "times that add up to many years")
        return Events(line, metadata, start, duration, occurrences, odd_times)

    def _other_stats(self, code_of_row: Int32) -> tuple[dict[int, Stats], Stats]:
        """(stats of each plane, stats of event metadata entries)."""
        owner, plane, name, kind, value, length = self.other_stats.T
        stat_range = lookup.ranges(plane, len(self.planes))
        names, refs = (_rows_of_ids(self.stat_metadata, ids, stat_range) for ids in (name, value))
        every = Stats(
            owner=owner.astype(np.int32),
            name=code_of_row[names],
            kind=kind.astype(np.uint8),
            value=np.where(kind == decoding.REF, refs, value),
            length=length.astype(np.int32),
        )
        of_planes = np.flatnonzero(owner < 0)
        bounds = np.searchsorted(of_planes, stat_range).tolist()
        by_plane = {
            own: every.take(of_planes[bounds[own] : bounds[own + 1]]) for own in np.unique(plane[of_planes]).tolist()
        }
        return by_plane, every.take(np.flatnonzero(owner >= 0))

    def _planes(
        self, line_range: Int64, event_range: Int64, stats: dict[int, Stats], names: list[str], labels: Strings
    ) -> tuple[Plane, ...]:
        found: dict[int, dict[str, StatValue]] = {plane: {} for plane in stats}
        for plane, own in stats.items():
            for code, kind, value, length in zip(own.name, own.kind, own.value, own.length, strict=True):
                found[plane][names[code]] = self._value(int(kind), int(value), int(length), labels)
        lines, events = (list(pairwise(bounds.tolist())) for bounds in (line_range, event_range))
        return tuple(
            Plane(i, identity, decode(self.buffer, *name), range(*lines[i]), slice(*events[i]), found.get(i, {}))
            for i, (identity, *name) in enumerate(self.planes.tolist())
        )

    def _value(self, kind: int, value: int, length: int, labels: Strings) -> StatValue:
        if kind == decoding.STR:
            return decode(self.buffer, value, length)
        if kind == decoding.BYTES:
            return self.buffer[value : value + length].tobytes()
        if kind == decoding.REF:
            return str(labels[value])
        if kind == decoding.DOUBLE:
            return float(np.int64(value).view(np.float64))
        return value & (1 << 64) - 1 if kind == decoding.UINT64 else value


def _rows_of_ids(metadata: Int64, wanted: Int64, ranges: Int64) -> Int32:
    """For each id, the row of its entry in the same plane; one past the last row if there is none. `ranges`: where the
    ids of each plane begin, and the end."""
    out = np.full(len(wanted), len(metadata), np.int32)
    bounds = lookup.ranges(metadata[:, decoding.META_PLANE], len(ranges) - 1)
    for plane in np.flatnonzero(ranges[1:] > ranges[:-1]).tolist():
        own, first = slice(ranges[plane], ranges[plane + 1]), bounds[plane]
        rows = lookup.last_rows(metadata[first : bounds[plane + 1], decoding.META_ID], wanted[own])
        out[own] = np.where(rows < 0, len(metadata), rows + first)
    return out


@compiled
def _convert_times(
    line: Array, start: Array, duration: Array, line_start: Array, is_line_odd: Array
) -> tuple[Int, Int]:
    """Convert event times in place to a common origin; returns (number of impossible times, sum of all durations, which
    may slightly exceed `MOST_PS`)."""
    odd, total = np.int64(0), np.int64(0)
    for i in range(line.size):
        is_odd = start[i] < -LONGEST_PS or start[i] > LONGEST_PS or duration[i] > LONGEST_PS
        if is_odd:
            start[i], duration[i] = 0, 0
        odd += is_odd or is_line_odd[line[i]]
        start[i] += line_start[line[i]]
        duration[i] = max(duration[i], np.int64(0))
        total = min(total + duration[i], np.int64(MOST_PS + 1))
    return odd, total


def _line_starts_ps(lines: Int64) -> tuple[Int64, Bools]:
    """(start of each line since the earliest; whether its clock is so far from most others that it must be wrong, in
    which case the line starts with the earliest)."""
    timestamps = lines[:, decoding.LINE_TIMESTAMP_NS].tolist()
    used = sorted(t for t, n in zip(timestamps, lines[:, decoding.LINE_EVENT_COUNT].tolist(), strict=True) if n)
    if not used:
        return np.zeros(len(lines), np.int64), np.zeros(len(lines), np.bool_)
    typical, farthest = used[len(used) // 2], LONGEST_PS // PS_PER_NS // 2
    origin = next(t for t in used if typical - t <= farthest)
    is_odd = np.array([abs(t - typical) > farthest for t in timestamps], np.bool_)
    since = [0 if odd else t - origin for t, odd in zip(timestamps, is_odd.tolist(), strict=True)]
    return np.array(since, np.int64) * PS_PER_NS, is_odd


def needs_compilation() -> bool:
    """Whether reading the first profile of this process requires compilation, which takes a while.

    Only the loop over a file's bytes is looked for: it takes longest to compile, and every profile needs it.
    """
    scan: Any = decoding.scan
    if not hasattr(scan, "signatures") or scan.signatures:  # plain Python if numba is disabled, or already called
        return False
    folder = scan.stats.cache_path
    return folder is None or not any(Path(folder).glob("decoding.scan-*.nbi"))


def is_gzipped(data: bytes | memoryview) -> bool:
    """Whether the data begins like a gzip file."""
    return bytes(data[:2]) == _MAGIC


def expand(data: bytes | memoryview, limits: Limits = LIMITS) -> memoryview:
    """Decompress gzip data with any number of members, limited to `limits.bytes` and to a plausible ratio.

    Raises `NotAProfile` if the data is damaged, truncated, or expands too much.
    """
    limit = min(limits.bytes, _FREE_GROWTH_BYTES + _USUAL_GROWTH * len(data))
    out = bytearray()
    member = zlib.decompressobj(wbits=31)
    is_between = False
    for at in range(0, len(data), _CHUNK):
        piece = bytes(data[at : at + _CHUNK])
        while piece:
            if is_between:
                member, piece = zlib.decompressobj(wbits=31), piece.lstrip(b"\0")
                is_between = not piece
                continue
            try:
                out += member.decompress(piece, _CHUNK)
            except zlib.error as error:
                raise NotAProfile(None, len(out), "gzipped data", f"damaged data ({error})") from error
            if len(out) > limit:
                expected = f"a profile of at most {limit:,} bytes in a gzipped file of {len(data):,}"
                raise NotAProfile(None, len(out), expected, "more")
            is_between = member.eof
            piece = member.unused_data if member.eof else member.unconsumed_tail
    if not is_between:
        raise NotAProfile(None, len(out), "the rest of the gzipped data", "the end of the file")
    return memoryview(out).toreadonly()
