"""The wire format of an XSpace, scanned in one pass into flat arrays.

Field numbers are those of `xplane.proto` (OpenXLA, `xla/tsl/profiler/protobuf`). Every read is checked against the end
of its message; what does not fit ends the scan with a code and the byte offset. A table that turns out too small is
counted on, not written to: the caller allocates what was counted and scans anew.

A value of a stat is kept as its 64 bits; of strings and bytes, the offset of their first byte in the buffer.
"""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled

# What a scan can end with.
OK, CUT_VARINT, LONG_VARINT, PAST_END, BAD_TAG = 0, 1, 2, 3, 4

# Rows of `counts`, and the tables they count.
PLANES, LINES, EVENTS, EVENT_STATS, EVENT_METADATA, STAT_METADATA, OTHER_STATS, TEXTS = range(8)

# Columns of the small tables (int64 matrices).
PLANE_ID, PLANE_NAME, PLANE_NAME_LENGTH = range(3)
LINE_PLANE, LINE_ID, LINE_NAME, LINE_NAME_LENGTH, LINE_TIMESTAMP_NS, LINE_FIRST_EVENT, LINE_EVENT_COUNT = range(7)
META_PLANE, META_ID, META_NAME, META_NAME_LENGTH, META_DISPLAY, META_DISPLAY_LENGTH = range(6)
STAT_OWNER, STAT_PLANE, STAT_ID, STAT_KIND, STAT_VALUE, STAT_LENGTH = range(6)
TEXT_FIELD, TEXT_START, TEXT_LENGTH = range(3)
WIDTHS = {PLANES: 3, LINES: 7, EVENT_METADATA: 6, STAT_METADATA: 4, OTHER_STATS: 6, TEXTS: 3}

# Kinds of a stat's value: the field number it was written in.
NO_VALUE, DOUBLE, UINT64, INT64, STR, BYTES, REF = 0, 2, 3, 4, 5, 6, 7

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@compiled
def _varint(buffer: Array, pos: Int, end: Int) -> tuple[Int, Int]:
    """(value, next position); next position −1: cut off, −2: longer than ten bytes."""
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


@compiled
def field(buffer: Array, pos: Int, end: Int) -> tuple[Int, Int, Int, Int, Int, Int]:
    """(field number, wire type, value or length, first byte of the content, next position, error code)."""
    tag, after = _varint(buffer, pos, end)
    if after < 0:
        return np.int64(0), 0, np.int64(0), pos, pos, -after
    number = (tag >> 3) & 0x1FFFFFFF
    wire = tag & 7
    if number == 0 or tag < 0 or tag > 0xFFFFFFFF:
        return number, wire, np.int64(0), pos, pos, BAD_TAG
    if wire == _VARINT:
        value, following = _varint(buffer, after, end)
        if following < 0:
            return number, wire, value, after, pos, -following
        return number, wire, value, after, following, OK
    if wire == _BYTES:
        length, start = _varint(buffer, after, end)
        if start < 0:
            return number, wire, length, after, pos, -start
        if length < 0 or length > end - start:
            return number, wire, length, start, pos, PAST_END
        return number, wire, length, start, start + length, OK
    if wire == _FIXED64 or wire == _FIXED32:
        length = np.int64(8 if wire == _FIXED64 else 4)
        if length > end - after:
            return number, wire, length, after, pos, PAST_END
        return number, wire, length, after, after + length, OK
    return number, wire, np.int64(0), pos, pos, BAD_TAG


@compiled
def _bits64(buffer: Array, pos: Int) -> Int:
    """The eight little-endian bytes at `pos`, already known to be there."""
    value = np.int64(0)
    for i in range(8):
        value |= np.int64(buffer[pos + i]) << (8 * i)
    return value


@compiled
def _stat(buffer: Array, pos: Int, end: Int) -> tuple[Int, Int, Int, Int, Int, Int]:
    """(metadata id, kind, value, length, error code, byte offset of the error)."""
    key, kind, value, length = np.int64(0), 0, np.int64(0), np.int64(0)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return key, kind, value, length, error, pos
        if wire == _VARINT and number == 1:
            key = content
        elif wire == _VARINT and (number == UINT64 or number == INT64 or number == REF):
            kind, value, length = number, content, np.int64(0)
        elif wire == _FIXED64 and number == DOUBLE:
            kind, value, length = number, _bits64(buffer, start), np.int64(0)
        elif wire == _BYTES and (number == STR or number == BYTES):
            kind, value, length = number, start, content
        pos = following
    return key, kind, value, length, OK, pos


@compiled
def _event(
    buffer: Array,
    pos: Int,
    end: Int,
    line: Int,
    counts: Array,
    event_line: Array,
    event_id: Array,
    event_offset: Array,
    event_duration: Array,
    event_count: Array,
    stat_event: Array,
    stat_id: Array,
    stat_kind: Array,
    stat_value: Array,
    stat_length: Array,
) -> tuple[Int, Int]:
    row = counts[EVENTS]
    counts[EVENTS] += 1
    key, offset, duration, occurrences = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos
        if wire == _VARINT:
            if number == 1:
                key = content
            elif number == 2:
                offset, occurrences = content, np.int64(0)
            elif number == 3:
                duration = content
            elif number == 5:
                offset, occurrences = np.int64(0), content
        elif wire == _BYTES and number == 4:
            name, kind, value, length, error, at = _stat(buffer, start, following)
            if error != OK:
                return error, at
            index = counts[EVENT_STATS]
            counts[EVENT_STATS] += 1
            if index < stat_event.size:
                stat_event[index] = row
                stat_id[index] = name
                stat_kind[index] = kind
                stat_value[index] = value
                stat_length[index] = length
        pos = following
    if row < event_line.size:
        event_line[row] = line
        event_id[row] = key
        event_offset[row] = offset
        event_duration[row] = duration
        event_count[row] = occurrences
    return OK, pos


@compiled
def _line(
    buffer: Array,
    pos: Int,
    end: Int,
    plane: Int,
    counts: Array,
    lines: Array,
    event_line: Array,
    event_id: Array,
    event_offset: Array,
    event_duration: Array,
    event_count: Array,
    stat_event: Array,
    stat_id: Array,
    stat_kind: Array,
    stat_value: Array,
    stat_length: Array,
) -> tuple[Int, Int]:
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
                error, at = _event(
                    buffer, start, following, row, counts, event_line, event_id, event_offset, event_duration,
                    event_count, stat_event, stat_id, stat_kind, stat_value, stat_length
                )  # fmt: skip
                if error != OK:
                    return error, at
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
    """A stat of a plane (owner −1) or of an entry of its event metadata."""
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
def _plane(
    buffer: Array,
    pos: Int,
    end: Int,
    counts: Array,
    planes: Array,
    lines: Array,
    event_metadata: Array,
    stat_metadata: Array,
    other_stats: Array,
    event_line: Array,
    event_id: Array,
    event_offset: Array,
    event_duration: Array,
    event_count: Array,
    stat_event: Array,
    stat_id: Array,
    stat_kind: Array,
    stat_value: Array,
    stat_length: Array,
) -> tuple[Int, Int]:
    row = counts[PLANES]
    counts[PLANES] += 1
    identity, name, name_length = np.int64(0), np.int64(0), np.int64(0)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos
        at = pos
        if wire == _VARINT and number == 1:
            identity = content
        elif wire == _BYTES:
            if number == 2:
                name, name_length = start, content
            elif number == 3:
                error, at = _line(
                    buffer, start, following, row, counts, lines, event_line, event_id, event_offset, event_duration,
                    event_count, stat_event, stat_id, stat_kind, stat_value, stat_length
                )  # fmt: skip
            elif number == 4:
                error, at = _metadata(
                    buffer, start, following, row, EVENT_METADATA, counts, event_metadata, other_stats
                )
            elif number == 5:
                error, at = _metadata(buffer, start, following, row, STAT_METADATA, counts, stat_metadata, other_stats)
            elif number == 6:
                error, at = _other_stat(buffer, start, following, -1, row, counts, other_stats)
        if error != OK:
            return error, at
        pos = following
    if row < planes.shape[0]:
        planes[row, PLANE_ID] = identity
        planes[row, PLANE_NAME] = name
        planes[row, PLANE_NAME_LENGTH] = name_length
    return OK, pos


@compiled
def scan(
    buffer: Array,
    counts: Array,
    planes: Array,
    lines: Array,
    event_metadata: Array,
    stat_metadata: Array,
    other_stats: Array,
    texts: Array,
    event_line: Array,
    event_id: Array,
    event_offset: Array,
    event_duration: Array,
    event_count: Array,
    stat_event: Array,
    stat_id: Array,
    stat_kind: Array,
    stat_value: Array,
    stat_length: Array,
) -> tuple[Int, Int]:
    """Fill the tables from `buffer` and count their rows in `counts`: (error code, byte offset)."""
    pos, end = np.int64(0), np.int64(buffer.size)
    while pos < end:
        number, wire, content, start, following, error = field(buffer, pos, end)
        if error != OK:
            return error, pos
        if wire == _BYTES:
            if number == 1:
                error, at = _plane(
                    buffer, start, following, counts, planes, lines, event_metadata, stat_metadata, other_stats,
                    event_line, event_id, event_offset, event_duration, event_count,
                    stat_event, stat_id, stat_kind, stat_value, stat_length
                )  # fmt: skip
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


@compiled
def intern_bytes(buffer: Array, starts: Array, lengths: Array, codes: Array, firsts: Array) -> Int:
    """Give equal byte strings equal codes: fills `codes`, and `firsts` with one row of each; returns how many."""
    size = 16
    while size < 2 * starts.size:
        size *= 2
    slots = np.full(size, -1, np.int64)
    found = 0
    for row in range(starts.size):
        start, length = starts[row], lengths[row]
        hashed = np.uint64(14695981039346656037)
        for i in range(start, start + length):
            hashed = (hashed ^ np.uint64(buffer[i])) * np.uint64(1099511628211)
        slot = np.int64((hashed ^ (hashed >> np.uint64(29))) & np.uint64(size - 1))
        while True:
            code = slots[slot]
            if code < 0:
                slots[slot] = found
                firsts[found] = row
                codes[row] = found
                found += 1
                break
            other = firsts[code]
            if lengths[other] == length:
                same = True
                other_start = starts[other]
                for i in range(length):
                    if buffer[start + i] != buffer[other_start + i]:
                        same = False
                        break
                if same:
                    codes[row] = code
                    break
            slot = (slot + 1) & (size - 1)
    return found


@compiled
def dense_rows(ids: Array, rows: Array, first: Int, last: Int, wanted: Array, missing: Int, out: Array) -> None:
    """For `wanted[first:last]`, the row of the entry with that id (`ids` sorted, `rows` along); `missing` for none."""
    low, high = (ids[0], ids[-1]) if ids.size else (np.int64(0), np.int64(-1))
    direct = ids.size > 0 and low >= 0 and high < 8 * ids.size + 1024
    table = np.full(high + 1 if direct else 1, missing, np.int32)
    if direct:
        for i in range(ids.size):
            table[ids[i]] = rows[i]
    for i in range(first, last):
        key = wanted[i]
        if key < low or key > high:
            out[i] = missing
        elif direct:
            out[i] = table[key]
        else:
            at = np.searchsorted(ids, key)
            out[i] = rows[at] if ids[at] == key else missing
