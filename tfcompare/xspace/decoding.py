"""Scans the wire format of an XSpace in one pass into flat arrays.

Field numbers are those of `xplane.proto` (OpenXLA, `xla/tsl/profiler/protobuf`). Every read is checked against the end
of its message; an invalid one ends the scan with an error code and the byte offset. If a table is too small, further
rows are counted but not written: the caller then allocates the counted size and scans again.

The value of a stat is stored as 64 bits; for strings and bytes, these are the offset of their first byte.
"""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled, inlined
from tfcompare.xspace.tables import Rows, StatColumns, Tables

# The error codes of a scan.
OK, CUT_VARINT, LONG_VARINT, PAST_END, BAD_TAG = 0, 1, 2, 3, 4

# Rows of `counts`, one per table; the last one is the number of ids without a metadata entry.
PLANES, LINES, EVENTS, EVENT_STATS, EVENT_METADATA, STAT_METADATA, OTHER_STATS, TEXTS, MISSING = range(9)

# Columns of the small tables (int64 matrices).
PLANE_ID, PLANE_NAME, PLANE_NAME_LENGTH = range(3)
LINE_PLANE, LINE_ID, LINE_NAME, LINE_NAME_LENGTH, LINE_TIMESTAMP_NS, LINE_FIRST_EVENT, LINE_EVENT_COUNT = range(7)
META_PLANE, META_ID, META_NAME, META_NAME_LENGTH, META_DISPLAY, META_DISPLAY_LENGTH = range(6)
STAT_OWNER, STAT_PLANE, STAT_ID, STAT_KIND, STAT_VALUE, STAT_LENGTH = range(6)
TEXT_FIELD, TEXT_START, TEXT_LENGTH = range(3)
WIDTHS = {PLANES: 3, LINES: 7, EVENT_METADATA: 6, STAT_METADATA: 4, OTHER_STATS: 6, TEXTS: 3}

MOST_OCCURRENCES = 1 << 31

# Kinds of a stat's value: the number of its field; 0 for none.
DOUBLE, UINT64, INT64, STR, BYTES, REF = 2, 3, 4, 5, 6, 7

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@inlined
def _varint(buffer: Array, pos: Int, end: Int) -> tuple[Int, Int]:
    """(value, next position); a next position of −1 means truncated, −2 longer than ten bytes."""
    value = np.int64(0)
    shift = 0
    while pos < end:
        byte = np.int64(buffer[pos])
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
        if shift > 63:
            return value, np.int64(-2)
    return value, np.int64(-1)


@inlined
def field(buffer: Array, pos: Int, end: Int) -> tuple[Int, Int, Int, Int, Int, Int]:
    """(field number, wire type, value or length, first byte of the content, next position, error code).

    The next position is `end` if there is an error.
    """
    tag, start = _varint(buffer, pos, end)
    content, after = _varint(buffer, max(start, 0), end)
    number, wire = (tag >> 3) & 0x1FFFFFFF, tag & 7
    is_number, is_fixed = wire == _VARINT, wire == _FIXED64 or wire == _FIXED32
    following, error = end, np.int64(OK)
    if start < 0:
        start, content, error = pos, np.int64(0), -start
    elif number == 0 or tag < 0 or tag > 0xFFFFFFFF or not (is_number or is_fixed or wire == _BYTES):
        start, content, error = pos, np.int64(0), np.int64(BAD_TAG)
    elif after < 0 and not is_fixed:
        error = -after
    elif is_number:
        following = after
    else:
        if is_fixed:
            content = np.int64(8 if wire == _FIXED64 else 4)
        else:
            start = after
        if content < 0 or content > end - start:
            error = np.int64(PAST_END)
        else:
            following = start + content
    return number, wire, content, start, following, error


@inlined
def _bits64(buffer: Array, pos: Int) -> Int:
    """The eight little-endian bytes at `pos`, which must be inside the buffer."""
    value = np.int64(0)
    for i in range(8):
        value |= np.int64(buffer[pos + i]) << (8 * i)
    return value


@inlined
def _stat(buffer: Array, pos: Int, end: Int) -> tuple[Int, Int, Int, Int, Int, Int]:
    """(metadata id, kind, value, length, error code, byte offset of the error)."""
    key, kind, value, length, error = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(OK)
    at = pos
    while pos < end:
        at = pos
        number, wire, content, start, pos, error = field(buffer, pos, end)
        if wire == _VARINT and number == 1:
            key = content
        elif wire == _VARINT and (number == UINT64 or number == INT64 or number == REF):
            kind, value, length = number, content, np.int64(0)
        elif wire == _FIXED64 and number == DOUBLE and error == OK:
            kind, value, length = number, _bits64(buffer, start), np.int64(0)
        elif wire == _BYTES and (number == STR or number == BYTES):
            kind, value, length = number, start, content
    return key, kind, value, length, error, at


@compiled
def _put_rows(metadata: Array, first: Int, last: Int, seed: Int, rows: Rows) -> Int:
    """Insert the ids of `metadata[first:last]`; the last of duplicate ids counts. Returns the size of the table
    minus 1, negative if the table is indexed directly by id."""
    size, most = np.int64(16), np.int64(0)
    while size < 2 * (last - first):
        size *= 2
    for row in range(first, last):
        if metadata[row, META_ID] < 0 or metadata[row, META_ID] >= size:
            most = size
    for slot in range(size):
        rows.rows[slot] = -1
    for row in range(first, last):
        key = metadata[row, META_ID]
        slot = _place(key, size - 1, seed) if most else key
        while rows.rows[slot] >= 0 and rows.ids[slot] != key:
            slot = (slot + 1) & (size - 1)
        rows.ids[slot] = key
        rows.rows[slot] = row
    return size - 1 if most else 1 - size


@inlined
def _place(key: Int, mask: Int, seed: Int) -> Int:
    """The first slot to search for an id; unpredictable for whoever wrote the file."""
    hashed = (np.uint64(key) ^ np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((hashed ^ (hashed >> np.uint64(29))) & np.uint64(mask))


@inlined
def _row_of(key: Int, rows: Rows, mask: Int, seed: Int) -> Int:
    """The row of the entry with that id, −1 for none; `mask` is the result of `_put_rows`."""
    slot = _place(key, mask, seed) if mask > 0 else min(max(key, np.int64(0)), -mask)
    while mask > 0 and rows.rows[slot] >= 0 and rows.ids[slot] != key:
        slot = (slot + 1) & mask
    row, found = np.int64(rows.rows[slot]), rows.ids[slot]
    return row if found == key else np.int64(-1)


@compiled
def _event(
    buffer: Array, pos: Int, end: Int, event: Int, mask: Int, seed: Int, counts: Array, stats: StatColumns, rows: Rows
) -> tuple[Int, Int, Int, Int, Int, Int]:
    """(metadata id, offset, duration, occurrences, error code, byte offset of the error); writes its stats to `stats`.

    A single loop and a single `return`: otherwise numba counts references to the arrays on each call, which takes
    longer than the rest.
    """
    key, offset, duration, occurrences, error = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(OK)
    at = pos
    while pos < end:
        at = pos
        number, wire, content, start, pos, error = field(buffer, pos, end)
        if wire == _VARINT:
            if number == 1:
                key = content
            elif number == 2:
                offset, occurrences = content, np.int64(0)
            elif number == 3:
                duration = content
            elif number == 5:
                offset, occurrences = np.int64(0), content
        elif wire == _BYTES and number == 4 and error == OK:
            name, kind, value, length, error, at = _stat(buffer, start, pos)
            if error != OK:
                pos = end
            else:
                row = counts[EVENT_STATS]
                counts[EVENT_STATS] += 1
                if row < stats.event.size:
                    entry = _row_of(name, rows, mask, seed)
                    counts[MISSING] += entry < 0
                    if kind == REF:
                        value = _row_of(value, rows, mask, seed)
                        counts[MISSING] += value < 0
                    stats.event[row] = event
                    stats.name[row] = entry
                    stats.kind[row] = kind
                    stats.value[row] = value
                    if length:
                        stats.length[row] = length
    return key, offset, duration, occurrences, error, at


@compiled
def _line(
    buffer: Array, pos: Int, end: Int, plane: Int, masks: tuple[Int, Int], seed: Int, tables: Tables
) -> tuple[Int, Int]:
    counts, lines, events, stats = tables.counts, tables.lines, tables.events, tables.stats
    event_rows, stat_rows = tables.event_rows, tables.stat_rows
    row = counts[LINES]
    counts[LINES] += 1
    first_event = counts[EVENTS]
    identity, name, name_length, timestamp = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos
        if wire == _VARINT:
            if number == 1:
                identity = content
            elif number == 3:
                timestamp = content
        elif wire == _BYTES:
            if number == 4:
                event = counts[EVENTS]
                counts[EVENTS] += 1
                key, offset, duration, occurrences, error, at = _event(
                    buffer, start, following, event, masks[1], seed, counts, stats, stat_rows
                )
                if error != OK:
                    return error, at
                if event < events.line.size:
                    entry = _row_of(key, event_rows, masks[0], seed)
                    counts[MISSING] += entry < 0
                    events.line[event] = row
                    events.metadata[event] = entry
                    events.offset[event] = offset
                    events.duration[event] = duration
                    if occurrences:
                        events.occurrences[event] = min(max(occurrences, np.int64(0)), np.int64(MOST_OCCURRENCES))
            elif number == 2:
                name, name_length = start, content
        pos = following
    if row < lines.shape[0]:
        lines[row, LINE_PLANE] = plane
        lines[row, LINE_ID] = identity
        lines[row, LINE_NAME] = name
        lines[row, LINE_NAME_LENGTH] = name_length
        lines[row, LINE_TIMESTAMP_NS] = timestamp
        lines[row, LINE_FIRST_EVENT] = first_event
        lines[row, LINE_EVENT_COUNT] = counts[EVENTS] - first_event
    return OK, pos


@compiled
def _other_stat(
    buffer: Array, pos: Int, end: Int, owner: Int, plane: Int, counts: Array, stats: Array
) -> tuple[Int, Int]:
    """A stat of a plane (owner −1) or of an event metadata entry."""
    name, kind, value, length, error, at = _stat(buffer, pos, end)
    if error != OK:
        return error, at
    row = counts[OTHER_STATS]
    counts[OTHER_STATS] += 1
    if row < stats.shape[0]:
        stats[row, STAT_OWNER] = owner
        stats[row, STAT_PLANE] = plane
        stats[row, STAT_ID] = name
        stats[row, STAT_KIND] = kind
        stats[row, STAT_VALUE] = value
        stats[row, STAT_LENGTH] = length
    return OK, at


@compiled
def _metadata_value(
    buffer: Array, pos: Int, end: Int, row: Int, plane: Int, is_event: bool, counts: Array, stats: Array
) -> tuple[Int, Int, Int, Int, Int, Int]:
    """The names and stats of one XEventMetadata or XStatMetadata: (name, length, display name, length, error, at)."""
    name, name_length, display, display_length = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return name, name_length, display, display_length, error, pos
        if wire == _BYTES:
            if number == 2:
                name, name_length = start, content
            elif is_event and number == 4:
                display, display_length = start, content
            elif is_event and number == 5:
                error, at = _other_stat(buffer, start, following, row, plane, counts, stats)
                if error != OK:
                    return name, name_length, display, display_length, error, at
        pos = following
    return name, name_length, display, display_length, OK, pos


@compiled
def _metadata(
    buffer: Array, pos: Int, end: Int, plane: Int, table: Int, counts: Array, rows: Array, stats: Array
) -> tuple[Int, Int]:
    """One entry of a metadata map: key 1, value 2."""
    row = counts[table]
    counts[table] += 1
    is_event = table == EVENT_METADATA
    key, name, name_length, display, display_length = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos
        if wire == _VARINT and number == 1:
            key = content
        elif wire == _BYTES and number == 2:
            name, name_length, display, display_length, error, at = _metadata_value(
                buffer, start, following, row, plane, is_event, counts, stats
            )
            if error != OK:
                return error, at
        pos = following
    if row < rows.shape[0]:
        rows[row, META_PLANE] = plane
        rows[row, META_ID] = key
        rows[row, META_NAME] = name
        rows[row, META_NAME_LENGTH] = name_length
        if is_event:
            rows[row, META_DISPLAY] = display
            rows[row, META_DISPLAY_LENGTH] = display_length
    return OK, pos


@compiled
def _plane(buffer: Array, pos: Int, end: Int, seed: Int, tables: Tables) -> tuple[Int, Int]:
    """Events refer to metadata that follows them, so this scans everything but the lines first (up to any error)."""
    plane = tables.counts[PLANES]
    first_event_row, first_stat_row = tables.counts[EVENT_METADATA], tables.counts[STAT_METADATA]
    error, wrong_at, until, lines = _all_but_lines(buffer, pos, end, tables)
    if lines:
        event_entries, stat_entries = tables.event_metadata, tables.stat_metadata
        last = min(tables.counts[EVENT_METADATA], np.int64(event_entries.shape[0]))
        event_mask = _put_rows(event_entries, min(first_event_row, last), last, seed, tables.event_rows)
        last = min(tables.counts[STAT_METADATA], np.int64(stat_entries.shape[0]))
        stat_mask = _put_rows(stat_entries, min(first_stat_row, last), last, seed, tables.stat_rows)
        line_error, at = _lines(buffer, pos, until, plane, (event_mask, stat_mask), seed, tables)
        if line_error != OK:
            return line_error, at
    return error, wrong_at


@compiled
def _lines(
    buffer: Array, pos: Int, end: Int, plane: Int, masks: tuple[Int, Int], seed: Int, tables: Tables
) -> tuple[Int, Int]:
    while pos < end:
        number, wire, _, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos
        if wire == _BYTES and number == 3:
            error, at = _line(buffer, start, following, plane, masks, seed, tables)
            if error != OK:
                return error, at
        pos = following
    return OK, pos


@compiled
def _all_but_lines(buffer: Array, pos: Int, end: Int, tables: Tables) -> tuple[Int, Int, Int, Int]:
    """(error code, its byte offset, the start of the plane's field that contains it, the number of lines before it)."""
    lines = np.int64(0)
    counts, planes, other_stats = tables.counts, tables.planes, tables.other_stats
    row = counts[PLANES]
    counts[PLANES] += 1
    identity, name, name_length = np.int64(0), np.int64(0), np.int64(0)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos, pos, lines
        at = pos
        if wire == _VARINT and number == 1:
            identity = content
        elif wire == _BYTES:
            if number == 2:
                name, name_length = start, content
            elif number == 3:
                lines += 1
            elif number == 4 or number == 5:
                table, entries = EVENT_METADATA, tables.event_metadata
                if number == 5:
                    table, entries = STAT_METADATA, tables.stat_metadata
                error, at = _metadata(buffer, start, following, row, table, counts, entries, other_stats)
            elif number == 6:
                error, at = _other_stat(buffer, start, following, np.int64(-1), row, counts, other_stats)
        if error != OK:
            return error, at, pos, lines
        pos = following
    if row < planes.shape[0]:
        planes[row, PLANE_ID] = identity
        planes[row, PLANE_NAME] = name
        planes[row, PLANE_NAME_LENGTH] = name_length
    return OK, pos, pos, lines


@compiled
def scan(buffer: Array, seed: Int, tables: Tables) -> tuple[Int, Int, Int, Int, Int]:
    """Fill the tables from `buffer` and count their rows in `counts`.

    Returns (error code, its byte offset, and the field there if parsed outside its message: length, first byte of the
    content, error code). `seed`: any number that the author of the file cannot know.
    """
    error, at = _space(buffer, seed, tables)
    if error == OK:
        return np.int64(OK), at, np.int64(0), at, np.int64(OK)
    _, _, length, start, _, again = field(buffer, at, np.int64(buffer.size))
    return error, at, length, start, again


@compiled
def _space(buffer: Array, seed: Int, tables: Tables) -> tuple[Int, Int]:
    counts, texts = tables.counts, tables.texts
    pos, end = np.int64(0), np.int64(buffer.size)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos
        if wire == _BYTES:
            if number == 1:
                error, at = _plane(buffer, start, following, seed, tables)
                if error != OK:
                    return error, at
            elif number <= 4:
                row = counts[TEXTS]
                counts[TEXTS] += 1
                if row < texts.shape[0]:
                    texts[row, TEXT_FIELD] = number
                    texts[row, TEXT_START] = start
                    texts[row, TEXT_LENGTH] = content
        pos = following
    return OK, pos
