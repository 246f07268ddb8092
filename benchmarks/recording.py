"""A recording to be written: its planes, the names they use, and the events of a few steps that all others vary.

Events and planes become the wire format of an XSpace here, without protobuf.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import BinaryIO, NamedTuple

# How a stat's value is written: the field number in XStat. `UINT64` becomes `INT64` where it fits, as in real files.
DOUBLE, UINT64, INT64, STR, BYTES, REF = 2, 3, 4, 5, 6, 7

NUMBERED = "#"
"""The name of an event that is called as its step is numbered: 0, 1, …"""
_FIRST_NUMBERED_ID = 1 << 20
_START_NS = 1_700_000_000_000_000_000
_LINE_START_NS = 20_000
_CLOCK_BEGAN_PS, _TICK_PS = 13_371_250, 1_250
"""When a device's own clock began to count, after the file's origin, and how long it takes to count one further."""
_MASK = (1 << 64) - 1
_SHORT = [bytes([value]) for value in range(128)]


def varint(value: int) -> bytes:
    """A number as on the wire; a negative one as its two's complement."""
    if 0 <= value < 128:
        return _SHORT[value]
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field_number: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(field_number << 3) + varint(value)


def message(field_number: int, content: bytes) -> bytes:
    """A field that holds a message or a text."""
    return _head(field_number, len(content)) + content


def _head(field_number: int, size: int) -> bytes:
    return varint(field_number << 3 | 2) + varint(size)


class Changing(NamedTuple):
    """A stat that is `value` in the first step and grows by `growth`, modulo 2^64, with each."""

    value: int
    growth: int
    kind: int = INT64


class Clock(Enum):
    """A stat that says when the event began by the device's own clock, or how long it took by it."""

    BEGIN = 1
    DURATION = 2


Constant = int | float | str | bytes
StatValue = int | float | str | Changing | Clock
Values = dict[str, StatValue]


class Names(dict[str, int]):
    """Names with ids from 1 on, in the order of first use."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self) + 1
        return self[name]


class Described(NamedTuple):
    """What a file says of all events of a name."""

    display_name: str
    stats: dict[str, Constant]


@dataclass(frozen=True)
class Plane:
    """A host or device: its threads or streams, and the names it uses; `is_numbered`: has events `NUMBERED`."""

    name: str
    lines: tuple[str, ...]
    stats: dict[str, Constant] = field(default_factory=dict)
    described: dict[str, Described] = field(default_factory=dict)
    is_numbered: bool = False
    event_names: Names = field(default_factory=Names)
    stat_names: Names = field(default_factory=Names)

    def names(self, steps: int) -> bytes:
        """The metadata of events, then of stats, since descriptions of events may name further stats."""
        numbered = {str(step): _FIRST_NUMBERED_ID + step for step in range(steps)} if self.is_numbered else {}
        events = b"".join(self._metadata(name, key) for name, key in {**self.event_names, **numbered}.items())
        for name in self.stats:
            _ = self.stat_names[name]
        stats = (message(2, number(1, key) + message(2, name.encode())) for name, key in self.stat_names.items())
        return events + b"".join(message(5, number(1, key) + of) for key, of in enumerate(stats, 1))

    def _metadata(self, name: str, key: int) -> bytes:
        said = self.described.get(name, Described("", {}))
        display = said.display_name or _op_type(name)
        stats = b"".join(message(5, self.stat(stat, value)) for stat, value in said.stats.items())
        entry = number(1, key) + message(2, name.encode()) + (message(4, display.encode()) if display else b"") + stats
        return message(4, number(1, key) + message(2, entry))

    def stat(self, name: str, value: Constant) -> bytes:
        """A stat of the plane itself, or of all events of a name."""
        if isinstance(value, str | bytes):
            text = value.encode() if isinstance(value, str) else value
            return number(1, self.stat_names[name]) + message(STR if isinstance(value, str) else BYTES, text)
        return number(1, self.stat_names[name]) + _numeric(value)

    def write(self, out: BinaryIO, lines: Sequence[BinaryIO], steps: int) -> None:
        """The plane with these lines, each a file of encoded events, in a recording of so many steps."""
        begin = message(2, self.name.encode())
        stats = b"".join(message(6, self.stat(name, value)) for name, value in self.stats.items())
        names = self.names(steps)
        heads = [
            number(1, 1000 + i) + message(2, name.encode()) + number(3, _START_NS + _LINE_START_NS)
            for i, name in enumerate(self.lines)
        ]
        sizes = [len(head) + file.tell() for head, file in zip(heads, lines, strict=True)]
        out.write(_head(1, len(begin) + sum(len(_head(3, size)) + size for size in sizes) + len(names) + len(stats)))
        out.write(begin)
        for head, size, file in zip(heads, sizes, lines, strict=True):
            out.write(_head(3, size) + head)
            file.seek(0)
            shutil.copyfileobj(file, out)
        out.write(names + stats)


class Event(NamedTuple):
    """An event of a step. `fixed`: its stats that are alike in all steps, encoded; `changing`: the others, with the
    encoded ids of their names; `name_growth`: 1 where its name is the step's number."""

    line: int
    begin_ns: int
    end_ns: int
    name: int
    name_growth: int
    fixed: bytes
    changing: tuple[tuple[bytes, Changing | Clock], ...]

    def encoded(self, step: int, begin_ps: int, end_ps: int) -> bytes:
        """The event in that step of the recording, at these times."""
        content = number(1, self.name + step * self.name_growth) + number(2, begin_ps) + number(3, end_ps - begin_ps)
        content += self.fixed
        for key, value in self.changing:
            content += message(4, key + _changed(value, step, begin_ps, end_ps))
        return message(4, content)


@dataclass(frozen=True)
class Step:
    """The events of one step, line by line and in time order within each."""

    events: list[Event]
    length_ns: int


@dataclass(frozen=True)
class Recording:
    """Planes, whose lines are numbered through, and the steps that the recording repeats with variations."""

    planes: tuple[Plane, ...]
    steps: tuple[Step, ...]


class StepBuilder:
    """Collects the events of one step in any order."""

    def __init__(self, planes: Sequence[Plane]) -> None:
        self._plane = [plane for plane in planes for _ in plane.lines]
        self._events: list[Event] = []

    def add(self, line: int, name: str, begin_ns: int, end_ns: int, /, **stats: StatValue) -> None:
        """An event on that line."""
        plane, growth = self._plane[line], int(name == NUMBERED)
        fixed, changing = [], []
        for stat, value in stats.items():
            key = number(1, plane.stat_names[stat])
            if isinstance(value, Changing | Clock):
                changing.append((key, value))
            else:
                ref = isinstance(value, str)
                fixed.append(key + (number(REF, plane.stat_names[value]) if ref else _numeric(value)))
        encoded = b"".join(message(4, stat) for stat in fixed)
        own = _FIRST_NUMBERED_ID if growth else plane.event_names[name]
        self._events.append(Event(line, begin_ns, end_ns, own, growth, encoded, tuple(changing)))

    def build(self, length_ns: int) -> Step:
        """The step, so long, with all that was added."""
        return Step(sorted(self._events, key=lambda e: (e.line, e.begin_ns, -e.end_ns)), length_ns)


def environment(length_ns: int) -> Plane:
    """The last plane of a file: when the recording began and ended."""
    times: dict[str, Constant] = {
        "profile_start_time": _START_NS,
        "profile_stop_time": _START_NS + 2 * _LINE_START_NS + length_ns,
    }
    return Plane("Task Environment", (), times)


def _changed(value: Changing | Clock, step: int, begin_ps: int, end_ps: int) -> bytes:
    if isinstance(value, Changing):
        bits = (value.value + step * value.growth) & _MASK
        return number(INT64 if value.kind == UINT64 and not bits >> 63 else value.kind, bits)
    begin, end = ((_CLOCK_BEGAN_PS + ps) // _TICK_PS * _TICK_PS for ps in (begin_ps, end_ps))
    return number(INT64, begin if value is Clock.BEGIN else end - begin)


def _numeric(value: float) -> bytes:
    if isinstance(value, float):
        return bytes([DOUBLE << 3 | 1]) + struct.pack("<d", value)
    return number(UINT64 if value >= 1 << 63 else INT64, value)


def _op_type(name: str) -> str:
    """What TensorFlow shows for `model/dense/MatMul:MatMul` and the like."""
    before, colon, after = name.rpartition(":")
    return after if colon and before and after.isidentifier() and not before.endswith(":") else ""
