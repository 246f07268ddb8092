"""Read an `.xplane.pb` file (or `.xplane.pb.gz`) into an XSpace."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from tfcompare.errors import NoSuchPlace, NotAProfile
from tfcompare.logdir.files import cannot_be_opened, open_untouched
from tfcompare.xspace import lookup, wire
from tfcompare.xspace.space import (
    PS_PER_NS,
    Events,
    Int32,
    Int64,
    Lines,
    Plane,
    Stats,
    StatValue,
    Strings,
    UInt8,
    XSpace,
    decode,
)
from tfcompare.xspace.tables import EventColumns, StatColumns, Tables

MAX_EXPANDED_BYTES = 8 << 30
"""A gzipped file that grows beyond this is refused."""

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20
_FARTHEST_PS = 1 << 61


@dataclass(frozen=True, eq=False)
class HostProfile:
    """One host file, read: its XSpace, and `digest`, which tells its content (uncompressed) from any other."""

    space: XSpace
    digest: str


def read(path: Path) -> HostProfile:
    """The profile in that file.

    Raises `NotAProfile` with the byte offset where the bytes stop making sense, `NoSuchPlace` if it cannot be opened.
    """
    try:
        with os.fdopen(open_untouched(path), "rb") as file:
            data = file.read()
    except OSError as error:
        raise NoSuchPlace(cannot_be_opened(path, error)) from error
    try:
        if data.startswith(_GZIP_MAGIC):
            data = _expand(data)
        return HostProfile(parse(data), blake2b(data, digest_size=16).hexdigest())
    except NotAProfile as error:
        raise error.at(path) from None


def parse(data: bytes) -> XSpace:
    """The XSpace in these (uncompressed) bytes; raises `NotAProfile`."""
    if not data:
        raise NotAProfile(None, 0, "an XSpace with at least one plane", "an empty file")
    buffer = np.frombuffer(data, np.uint8)
    tables = _scan(buffer)
    if not tables.counts[wire.PLANES]:
        raise NotAProfile(None, 0, "an XSpace with at least one plane", f"{len(data):,} bytes without any")
    return _Builder(buffer, tables).build()


def _expand(data: bytes) -> bytes:
    """gunzip, member by member, never beyond `MAX_EXPANDED_BYTES`."""
    out = bytearray()
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            while data and not member.eof:
                out += member.decompress(data, _CHUNK)
                data = member.unconsumed_tail or member.unused_data
                if len(out) > MAX_EXPANDED_BYTES:
                    found = f"more than {MAX_EXPANDED_BYTES:,} of them"
                    raise NotAProfile(None, len(out), "at most as many bytes as a profile can have", found)
        except zlib.error as error:
            raise NotAProfile(None, len(out), "gzipped data", f"damaged data ({error})") from error
        if not member.eof:
            raise NotAProfile(None, len(out), "the rest of the gzipped data", "the end of the file")
        data = data.lstrip(b"\0")
    return bytes(out)


def _scan(buffer: UInt8) -> Tables:
    """Scan with room for what such a file usually holds; where that was too little, once more with the exact room.

    Room costs address space only: memory is taken by what is written.
    """
    size = len(buffer)
    room = np.array([64, 1024, size // 14, size // 9, 4096, 8192, 16384, 64], np.int64)
    while True:
        tables = _allocate(room)
        error, offset = wire.scan(buffer, tables)
        if error != wire.OK:
            raise _scan_error(buffer, error, int(offset))
        if (tables.counts <= room).all():
            return tables
        room = tables.counts


def _allocate(room: Int64) -> Tables:
    small = {table: np.empty((int(room[table]), width), np.int64) for table, width in wire.WIDTHS.items()}
    events, stats = int(room[wire.EVENTS]), int(room[wire.EVENT_STATS])
    return Tables(
        counts=np.zeros(8, np.int64),
        planes=small[wire.PLANES],
        lines=small[wire.LINES],
        event_metadata=small[wire.EVENT_METADATA],
        stat_metadata=small[wire.STAT_METADATA],
        other_stats=small[wire.OTHER_STATS],
        texts=small[wire.TEXTS],
        events=EventColumns(
            line=np.empty(events, np.int32),
            id=np.empty(events, np.int64),
            offset=np.empty(events, np.int64),
            duration=np.empty(events, np.int64),
            occurrences=np.zeros(events, np.int64),
        ),
        stats=StatColumns(
            event=np.empty(stats, np.int32),
            id=np.empty(stats, np.int64),
            kind=np.empty(stats, np.uint8),
            value=np.empty(stats, np.int64),
            length=np.zeros(stats, np.int32),
        ),
    )


def _scan_error(buffer: UInt8, error: int, offset: int) -> NotAProfile:
    left = len(buffer) - offset
    expected, found = {
        wire.CUT_VARINT: ("a number", f"the end of its message ({left:,} bytes before that of the file)"),
        wire.LONG_VARINT: ("a number of at most ten bytes", "a longer one"),
        wire.PAST_END: (
            "a field within its message",
            f"one of {_claimed(buffer, offset):,} bytes that runs past the end",
        ),
        wire.BAD_TAG: ("the beginning of a field", f"byte 0x{buffer[offset]:02x}, which begins none"),
    }[error]
    return NotAProfile(None, offset, f"{expected} in a file of {len(buffer):,} bytes", found)


def _claimed(buffer: UInt8, offset: int) -> int:
    """The length that the field at `offset` claims to have (8 or 4 bytes for numbers of fixed size)."""
    _, _, length, *_ = wire.field(buffer, offset, len(buffer))
    return int(length) & (1 << 64) - 1


class _Builder:
    """From scanned tables to an XSpace: strings decoded, ids replaced by rows, times put on one origin."""

    def __init__(self, buffer: UInt8, tables: Tables) -> None:
        self.buffer = buffer
        counts = tables.counts.tolist()
        self.planes = tables.planes[: counts[wire.PLANES]]
        self.lines = tables.lines[: counts[wire.LINES]]
        self.event_metadata = tables.event_metadata[: counts[wire.EVENT_METADATA]]
        self.stat_metadata = tables.stat_metadata[: counts[wire.STAT_METADATA]]
        self.other_stats = tables.other_stats[: counts[wire.OTHER_STATS]]
        self.texts = tables.texts[: counts[wire.TEXTS]]
        self.events = EventColumns(*(column[: counts[wire.EVENTS]] for column in tables.events))
        self.stats = StatColumns(*(column[: counts[wire.EVENT_STATS]] for column in tables.stats))

    def build(self) -> XSpace:
        plane_count = len(self.planes)
        line_range = _ranges(self.lines[:, wire.LINE_PLANE], plane_count)
        event_first = np.append(self.lines[:, wire.LINE_FIRST_EVENT], len(self.events.line))
        event_range = event_first[line_range]
        stat_labels = self._texts(self.stat_metadata, wire.META_NAME, spare="")
        stat_codes: dict[str, int] = {}
        code_of_row = np.array([stat_codes.setdefault(s, len(stat_codes)) for s in stat_labels], np.int32)
        plane_stats, metadata_stats = self._other_stats(code_of_row)
        return XSpace(
            buffer=self.buffer,
            planes=self._planes(line_range, event_range, plane_stats, list(stat_codes), stat_labels),
            lines=self._lines(),
            events=self._events(event_range),
            event_stats=self._event_stats(code_of_row, event_range),
            metadata_stats=metadata_stats,
            metadata_plane=np.append(self.event_metadata[:, wire.META_PLANE], -1),
            metadata_ids=np.append(self.event_metadata[:, wire.META_ID], -1),
            metadata_names=self._texts(self.event_metadata, wire.META_NAME, spare=""),
            metadata_display_names=self._texts(self.event_metadata, wire.META_DISPLAY, spare=""),
            stat_names=stat_codes,
            stat_labels=stat_labels,
            errors=self._space_texts(2),
            warnings=self._space_texts(3),
            hostnames=self._space_texts(4),
        )

    def _text(self, start: int, length: int) -> str:
        return decode(self.buffer, start, length)

    def _texts(self, rows: Int64, column: int, spare: str) -> Strings:
        """The text of each row, and a spare last one for ids that are missing."""
        out = np.empty(len(rows) + 1, np.object_)
        out[:-1] = [self._text(start, length) for start, length in rows[:, column : column + 2].tolist()]
        out[-1] = spare
        return out

    def _space_texts(self, field_number: int) -> tuple[str, ...]:
        texts = self.texts.tolist()
        return tuple(self._text(start, length) for number, start, length in texts if number == field_number)

    def _lines(self) -> Lines:
        names = self.lines[:, wire.LINE_NAME : wire.LINE_NAME + 2].tolist()
        return Lines(
            plane=self.lines[:, wire.LINE_PLANE].copy(),
            id=self.lines[:, wire.LINE_ID].copy(),
            name=[self._text(start, length) for start, length in names],
            timestamp_ns=self.lines[:, wire.LINE_TIMESTAMP_NS].copy(),
            first_event=self.lines[:, wire.LINE_FIRST_EVENT].copy(),
            event_count=self.lines[:, wire.LINE_EVENT_COUNT].copy(),
        )

    def _events(self, event_range: Int64) -> Events:
        """The events, their times put in place."""
        line, ids, start, duration, occurrences = self.events
        metadata = _rows_of_ids(self.event_metadata, ids, event_range)
        np.clip(start, -_FARTHEST_PS, _FARTHEST_PS, out=start)
        start += _line_starts_ps(self.lines)[line]
        np.clip(duration, 0, _FARTHEST_PS, out=duration)
        return Events(line, metadata, start, duration, occurrences)

    def _event_stats(self, code_of_row: Int32, event_range: Int64) -> Stats:
        """The stats of events, references put in place."""
        owner, ids, kind, value, length = self.stats
        stat_range = np.searchsorted(owner, event_range)
        refs = np.flatnonzero(kind == wire.REF)
        value[refs] = _rows_of_ids(self.stat_metadata, value[refs], np.searchsorted(refs, stat_range))
        return Stats(owner, code_of_row[_rows_of_ids(self.stat_metadata, ids, stat_range)], kind, value, length)

    def _other_stats(self, code_of_row: Int32) -> tuple[dict[int, Stats], Stats]:
        """(stats of each plane, stats of event metadata entries)."""
        table = self.other_stats
        stat_range = _ranges(table[:, wire.STAT_PLANE], len(self.planes))
        rows = _rows_of_ids(self.stat_metadata, table[:, wire.STAT_ID].copy(), stat_range)
        refs = _rows_of_ids(self.stat_metadata, table[:, wire.STAT_VALUE].copy(), stat_range)
        value = np.where(table[:, wire.STAT_KIND] == wire.REF, refs, table[:, wire.STAT_VALUE])
        every = Stats(
            owner=table[:, wire.STAT_OWNER].astype(np.int32),
            name=code_of_row[rows],
            kind=table[:, wire.STAT_KIND].astype(np.uint8),
            value=value,
            length=table[:, wire.STAT_LENGTH].astype(np.int32),
        )
        of_planes = np.flatnonzero(every.owner < 0)
        bounds = np.searchsorted(of_planes, stat_range).tolist()
        by_plane = {
            plane: _pick(every, of_planes[bounds[plane] : bounds[plane + 1]])
            for plane in np.unique(table[of_planes, wire.STAT_PLANE]).tolist()
        }
        return by_plane, _pick(every, np.flatnonzero(every.owner >= 0))

    def _planes(
        self, line_range: Int64, event_range: Int64, stats: dict[int, Stats], names: list[str], labels: Strings
    ) -> tuple[Plane, ...]:
        return tuple(
            Plane(
                index=i,
                id=identity,
                name=self._text(start, length),
                first_line=int(line_range[i]),
                line_count=int(line_range[i + 1] - line_range[i]),
                first_event=int(event_range[i]),
                event_count=int(event_range[i + 1] - event_range[i]),
                stats=self._plane_stats(stats[i], names, labels) if i in stats else {},
            )
            for i, (identity, start, length) in enumerate(self.planes.tolist())
        )

    def _plane_stats(self, stats: Stats, names: list[str], labels: Strings) -> dict[str, StatValue]:
        out: dict[str, StatValue] = {}
        for code, kind, value, length in zip(stats.name, stats.kind, stats.value, stats.length, strict=True):
            out[names[code]] = self._value(int(kind), int(value), int(length), labels)
        return out

    def _value(self, kind: int, value: int, length: int, labels: Strings) -> StatValue:
        if kind == wire.STR:
            return self._text(value, length)
        if kind == wire.BYTES:
            return self.buffer[value : value + length].tobytes()
        if kind == wire.REF:
            return str(labels[value])
        if kind == wire.DOUBLE:
            return float(np.int64(value).view(np.float64))
        return value & (1 << 64) - 1 if kind == wire.UINT64 else value


def _ranges(plane_of_row: Int64, planes: int) -> Int64:
    """Where the rows of each plane begin, and the end; rows come plane by plane."""
    return np.searchsorted(plane_of_row, np.arange(planes + 1)).astype(np.int64)


def _rows_of_ids(metadata: Int64, wanted: Int64, ranges: Int64) -> Int32:
    """For each id (looked up among its own plane's entries), the row of its entry; one past the last row for none.

    `ranges` says where the ids of each plane begin, and the end."""
    out = np.full(len(wanted), len(metadata), np.int32)
    bounds = _ranges(metadata[:, wire.META_PLANE], len(ranges) - 1)
    for plane in np.flatnonzero(ranges[1:] > ranges[:-1]).tolist():
        ids = metadata[bounds[plane] : bounds[plane + 1], wire.META_ID]
        order = np.argsort(ids, kind="stable")
        ids, rows = ids[order], (order + bounds[plane]).astype(np.int64)
        last_of_id = np.append(ids[1:] != ids[:-1], True) if len(ids) else np.zeros(0, np.bool_)
        lookup.dense_rows(
            ids[last_of_id], rows[last_of_id], ranges[plane], ranges[plane + 1], wanted, len(metadata), out
        )
    return out


def _line_starts_ps(lines: Int64) -> Int64:
    """Start of each line since the earliest; a clock too far from it to count in picoseconds is a damaged one."""
    timestamps = lines[:, wire.LINE_TIMESTAMP_NS]
    used = lines[:, wire.LINE_EVENT_COUNT] > 0
    origin = int(timestamps[used].min()) if used.any() else 0
    farthest = _FARTHEST_PS // PS_PER_NS
    since = np.array([max(-farthest, min(farthest, t - origin)) for t in timestamps.tolist()], np.int64)
    return since * PS_PER_NS


def _pick(stats: Stats, rows: np.ndarray) -> Stats:
    return Stats(stats.owner[rows], stats.name[rows], stats.kind[rows], stats.value[rows], stats.length[rows])
