"""When a profile was captured and on what kind of devices, from the heads of its planes; no event is read."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tfcompare.sources.logdir.check import LENGTH_DELIMITED, VARINT, varint
from tfcompare.sources.logdir.files import open_untouched

_MOST_UNPACKED_BYTES = 256 << 20
"""Of a gzip file no more is unpacked: its environment is then unknown."""
_CLOCKS_APART_NS = 100_000_000
"""How far the clocks of two hosts may be apart: NTP keeps them within this."""
_MOST_PLANES = 10_000
"""A profile has a plane for each device and a few more: beyond this the file is not looked at any further."""
_LONGEST_HEAD = 512
"""Bytes at the beginning of a plane that hold its id and name."""
_LARGEST_ENVIRONMENT = 1 << 20
_ENVIRONMENT = b"Task Environment"
_DEVICE = re.compile(rb"/device:(GPU|TPU):")
_PLANES = _ID = 1
_NAME = 2
_STAT_METADATA, _STATS = 5, 6
_FIXED_BYTES = {1: 8, 5: 4}


@dataclass(frozen=True)
class Outline:
    """`start_ns` and `stop_ns`: when profiling began and ended (Unix time), 0 if the file does not say.

    `devices` are the kinds of devices that it has planes of: `GPU`, `TPU`; none on a CPU alone.
    """

    start_ns: int = 0
    stop_ns: int = 0
    devices: frozenset[str] = frozenset()

    @property
    def has_time(self) -> bool:
        """Whether both times are known."""
        return 0 < self.start_ns <= self.stop_ns

    def overlaps(self, other: Outline) -> bool:
        """Whether both were profiled at some common time, as far as is known: True if either has no times."""
        if not (self.has_time and other.has_time):
            return True
        return max(self.start_ns, other.start_ns) <= min(self.stop_ns, other.stop_ns) + _CLOCKS_APART_NS


def outline(path: Path) -> Outline:
    """The outline of the profile at `path`; of a damaged or unreadable file, what was found up to there."""
    times: dict[bytes, int] = {}
    devices = set()
    try:
        with os.fdopen(open_untouched(path), "rb") as file:
            for name, plane in _planes(_plain(file)):
                if found := _DEVICE.match(name):
                    devices.add(found[1].decode())
                elif plane and not times:  # a second environment is no profiler's
                    times = _integers(plane)
    except (OSError, EOFError, ValueError, zlib.error):
        pass
    return Outline(times.get(b"profile_start_time", 0), times.get(b"profile_stop_time", 0), frozenset(devices))


def _plain(file: BinaryIO) -> BinaryIO | gzip.GzipFile:
    is_gzip = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if is_gzip else file


def _planes(file: BinaryIO | gzip.GzipFile) -> Iterator[tuple[bytes, bytes]]:
    """(name, contents) of each plane; the contents only of the task's environment."""
    end = 0
    for _ in range(_MOST_PLANES):
        if isinstance(file, gzip.GzipFile) and end > _MOST_UNPACKED_BYTES:
            return
        file.seek(end)
        field, length, begin = _head(file.read(_LONGEST_HEAD), 0)
        begin, end = end + begin, end + begin + length
        if field == _PLANES:
            file.seek(begin)
            head = file.read(min(length, _LONGEST_HEAD))
            name = next((value for number, value in _fields(head) if number == _NAME), b"")
            if name == _ENVIRONMENT and length <= _LARGEST_ENVIRONMENT:
                yield name, head + file.read(length - len(head))
            else:
                yield name, b""


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """(number of the field that begins here, length of its value, where the value begins)."""
    tag, at = varint(data, at)
    kind = tag & 7
    if kind == LENGTH_DELIMITED:
        length, at = varint(data, at)
        return tag >> 3, length, at
    if kind == VARINT:
        return tag >> 3, varint(data, at)[1] - at, at
    if kind in _FIXED_BYTES:
        return tag >> 3, _FIXED_BYTES[kind], at
    raise ValueError("a kind of field that no profile has")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, value) of each field that is complete."""
    at = 0
    while at < len(data):
        number, length, at = _head(data, at)
        if at + length > len(data):
            return
        yield number, data[at : at + length]
        at += length


def _integers(plane: bytes) -> dict[bytes, int]:
    """The plane's stats that are integers, by name."""
    names: dict[int, bytes] = {}
    values: dict[int, int] = {}
    for number, content in _fields(plane):
        if number == _STAT_METADATA:
            entry = dict(_fields(dict(_fields(content)).get(2, b"")))
            names[_integer(entry.get(_ID))] = entry.get(_NAME, b"")
        elif number == _STATS:
            stat = dict(_fields(content))
            integer = stat.get(3, stat.get(4))
            if integer is not None:
                values[_integer(stat.get(_ID))] = _integer(integer)
    return {names[key]: value for key, value in values.items() if key in names}


def _integer(data: bytes | None) -> int:
    return varint(data, 0)[0] if data else 0
