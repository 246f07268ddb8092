"""Planes to the wire format: what stands around the events."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from benchmarks.encode import head, message, number
from benchmarks.recording import DOUBLE, FIRST_NUMBERED_ID, INT64, UINT64, Constant, Described, Plane

_COPIED_BYTES = 1_000_000
_START_NS = 1_700_000_000_000_000_000
_LINE_START_NS = 20_000
_STR, _BYTES = 5, 6
_NOTHING = Described("", {})


def names_size(plane: Plane) -> int:
    """How many bytes the plane's names take, and what is said of them."""
    return len(_names(plane, 0))


def write_plane(out: BinaryIO, plane: Plane, lines: Sequence[BinaryIO], steps: int) -> None:
    """A plane of these lines, each a file of encoded events, in a recording of so many steps."""
    begin = message(2, plane.name.encode())
    stats = b"".join(message(6, _stat(plane, name, value)) for name, value in plane.stats.items())
    names = _names(plane, steps)
    heads = [
        number(1, 1000 + i) + message(2, name.encode()) + number(3, _START_NS + _LINE_START_NS)
        for i, name in enumerate(plane.lines)
    ]
    sizes = [len(line_head) + file.tell() for line_head, file in zip(heads, lines, strict=True)]
    out.write(head(1, len(begin) + sum(len(head(3, size)) + size for size in sizes) + len(names) + len(stats)))
    out.write(begin)
    for line_head, size, file in zip(heads, sizes, lines, strict=True):
        out.write(head(3, size) + line_head)
        file.seek(0)
        shutil.copyfileobj(file, out, _COPIED_BYTES)
    out.write(names + stats)


def write_environment(out: BinaryIO, length_ns: int) -> None:
    """The end of the file: when the recording began and ended, and on which host it was made."""
    times: dict[str, Constant] = {
        "profile_start_time": _START_NS,
        "profile_stop_time": _START_NS + 2 * _LINE_START_NS + length_ns,
    }
    write_plane(out, Plane("Task Environment", (), times), [], 0)
    out.write(message(4, b"localhost"))


def _names(plane: Plane, steps: int) -> bytes:
    """The metadata of events, then of stats, since what is said of events may name further stats."""
    events = b"".join(_event_metadata(plane, key, name) for name, key in _event_names(plane, steps))
    for name in plane.stats:
        _ = plane.stat_names[name]
    stats = b"".join(
        message(5, number(1, key) + message(2, number(1, key) + message(2, name.encode())))
        for name, key in plane.stat_names.ids.items()
    )
    return events + stats


def _event_names(plane: Plane, steps: int) -> Iterator[tuple[str, int]]:
    yield from plane.event_names.ids.items()
    if plane.is_numbered:
        yield from ((str(step), FIRST_NUMBERED_ID + step) for step in range(steps))


def _event_metadata(plane: Plane, key: int, name: str) -> bytes:
    described = plane.described.get(name, _NOTHING)
    display = described.display_name or _op_type(name)
    stats = b"".join(message(5, _stat(plane, stat, value)) for stat, value in described.stats.items())
    entry = number(1, key) + message(2, name.encode()) + (message(4, display.encode()) if display else b"") + stats
    return message(4, number(1, key) + message(2, entry))


def _op_type(name: str) -> str:
    """What TensorFlow shows for `model/dense/MatMul:MatMul` and the like."""
    before, colon, after = name.rpartition(":")
    return after if colon and before and after.isidentifier() and not before.endswith(":") else ""


def _stat(plane: Plane, name: str, value: Constant) -> bytes:
    key = number(1, plane.stat_names[name])
    if isinstance(value, str):
        return key + message(_STR, value.encode())
    if isinstance(value, bytes):
        return key + message(_BYTES, value)
    if isinstance(value, float):
        return key + bytes([DOUBLE << 3 | 1]) + struct.pack("<d", value)
    return key + number(UINT64 if value >= 1 << 63 else INT64, value)
