"""Tiny XSpaces as bytes, written by hand: no TensorFlow, no protobuf.

    space(
        plane(
            "/host:CPU",
            line("python", event("train", 0, 100, _r=1, step_num=7), event("MatMul:MatMul", 10, 20)),
        )
    )

Times are microseconds. A stat's kind follows from its value: int, float, str and bytes are `int64_value`,
`double_value`, `str_value` and `bytes_value`; `U64(…)` and `Ref("…")` are the other two. Metadata maps are made from
the names in use. Bytes among the contents of a space, plane or line are written as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

PS_PER_US = 1_000_000


class U64(int):
    """An unsigned stat."""


class Ref(str):
    """A text stat that refers to the stat metadata of its plane."""

    __slots__ = ()


Value = int | float | str | bytes
Stats = dict[str, Value]

# The wire format


def varint(number: int) -> bytes:
    """The number as protobuf writes it; negative ones take ten bytes."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def integer(number: int, value: int) -> bytes:
    """A varint field."""
    return tag(number, 0) + varint(value)


def chunk(number: int, content: bytes | str) -> bytes:
    """A length-delimited field: text, bytes or a message."""
    content = content.encode() if isinstance(content, str) else content
    return tag(number, 2) + varint(len(content)) + content


def fixed64(number: int, content: bytes) -> bytes:
    assert len(content) == 8
    return tag(number, 1) + content


def fixed32(number: int, content: bytes) -> bytes:
    assert len(content) == 4
    return tag(number, 5) + content


def double(number: int, value: float) -> bytes:
    return fixed64(number, struct.pack("<d", value))


# What an XSpace is made of


@dataclass(frozen=True)
class Meta:
    """An event's metadata where it is more than a name."""

    name: str
    display_name: str = ""
    stats: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Event:
    """`occurrences`: an aggregated event, which has no offset; `extra`: bytes to write at its end."""

    name: str | Meta
    offset_ps: int
    duration_ps: int
    stats: tuple[tuple[str, Value], ...] = ()
    occurrences: int | None = None
    extra: bytes = b""


@dataclass(frozen=True)
class Line:
    name: str
    contents: tuple[Event | bytes, ...]
    id: int = 0
    timestamp_ns: int = 0


@dataclass(frozen=True)
class Plane:
    """`ids` sets the metadata ids of some names, of events and stats alike; `metadata` says where the maps stand."""

    name: str
    contents: tuple[Line | bytes, ...]
    id: int = 0
    stats: tuple[tuple[str, Value], ...] = ()
    ids: dict[str, int] = field(default_factory=dict, hash=False)
    metadata: Literal["after", "before", "between"] = "after"

    def encode(self) -> bytes:
        writer = _PlaneWriter(self.ids)
        body = [writer.line(c) if isinstance(c, Line) else c for c in self.contents]
        stats = [chunk(6, writer.stat(name, value)) for name, value in self.stats]
        maps = writer.maps()
        middle = {"after": len(body), "before": 0, "between": (len(body) + 1) // 2}[self.metadata]
        head = integer(1, self.id) + chunk(2, self.name)
        return b"".join([head, *body[:middle], maps, *body[middle:], *stats])


def space(
    *planes: Plane | bytes,
    hostnames: Iterable[str] = (),
    errors: Iterable[str] = (),
    warnings: Iterable[str] = (),
) -> bytes:
    """The bytes of an `.xplane.pb` file."""
    texts = [chunk(n, text) for n, texts in ((2, errors), (3, warnings), (4, hostnames)) for text in texts]
    return b"".join([*(chunk(1, p.encode()) if isinstance(p, Plane) else p for p in planes), *texts])


def plane(name: str, *contents: Line | bytes, stats: Stats | None = None, **options: object) -> Plane:
    return Plane(name, contents, stats=tuple((stats or {}).items()), **options)


def line(name: str, *contents: Event | bytes, id: int = 0, at_us: float = 0) -> Line:
    """A thread or stream whose events' times count from `at_us`."""
    return Line(name, contents, id, round(at_us * 1000))


def event(name: str | Meta, start_us: float, duration_us: float, stats: Stats | None = None, /, **more: Value) -> Event:
    """An event; stats whose name is no Python name go into the dictionary."""
    every = ((stats or {}) | more).items()
    return Event(name, round(start_us * PS_PER_US), round(duration_us * PS_PER_US), tuple(every))


def aggregated(name: str | Meta, occurrences: int, duration_us: float, /, **stats: Value) -> Event:
    """An event that stands for several, whose times are not known."""
    return replace(event(name, 0, duration_us, **stats), occurrences=occurrences)


def meta(name: str, display_name: str = "", stats: Stats | None = None, /, **more: Value) -> Meta:
    """An event's metadata with stats of its own."""
    return Meta(name, display_name, tuple(((stats or {}) | more).items()))


class _PlaneWriter:
    """Writes the lines of one plane and gathers what their metadata maps need."""

    def __init__(self, ids: dict[str, int]) -> None:
        self._fixed = ids
        self._events: dict[str | Meta, int] = {}
        self._stats: dict[str, int] = {}

    def line(self, line: Line) -> bytes:
        head = integer(1, line.id) + chunk(2, line.name) + integer(3, line.timestamp_ns)
        return chunk(3, head + b"".join(chunk(4, self.event(c)) if isinstance(c, Event) else c for c in line.contents))

    def event(self, event: Event) -> bytes:
        when = integer(2, event.offset_ps) if event.occurrences is None else integer(5, event.occurrences)
        head = integer(1, self._id(self._events, event.name)) + when + integer(3, event.duration_ps)
        return head + b"".join(chunk(4, self.stat(name, value)) for name, value in event.stats) + event.extra

    def stat(self, name: str, value: Value) -> bytes:
        return integer(1, self._id(self._stats, name)) + self._value(value)

    def maps(self) -> bytes:
        events = b"".join(chunk(4, _entry(i, self._metadata(i, name))) for name, i in self._events.items())
        stats = b"".join(chunk(5, _entry(i, integer(1, i) + chunk(2, name))) for name, i in self._stats.items())
        return events + stats

    def _metadata(self, number: int, name: str | Meta) -> bytes:
        it = name if isinstance(name, Meta) else Meta(name)
        shown = chunk(4, it.display_name) if it.display_name else b""
        stats = b"".join(chunk(5, self.stat(key, value)) for key, value in it.stats)
        return integer(1, number) + chunk(2, it.name) + shown + stats

    def _value(self, value: Value) -> bytes:
        if isinstance(value, Ref):
            return integer(7, self._id(self._stats, str(value)))
        if isinstance(value, U64):
            return integer(3, value)
        if isinstance(value, int):
            return integer(4, value)
        if isinstance(value, float):
            return double(2, value)
        return chunk(5 if isinstance(value, str) else 6, value)

    def _id(self, known: dict[str | Meta, int] | dict[str, int], name: str | Meta) -> int:
        plain = name.name if isinstance(name, Meta) else name
        if name not in known:
            known[name] = self._fixed.get(plain, len(known) + 1)
        return known[name]


def _entry(key: int, value: bytes) -> bytes:
    return integer(1, key) + chunk(2, value)
