"""A profile as a tree of its fields, to be edited and put together again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.xspace_builder import chunk, varint

# Fields of an XSpace that hold messages, by message.
MESSAGES = {
    "space": {1: "plane"},
    "plane": {3: "line", 4: "entry", 5: "entry", 6: "stat"},
    "line": {4: "event"},
    "event": {4: "stat"},
    "entry": {2: "metadata"},
    "metadata": {5: "stat"},
    "stat": {},
}


@dataclass
class Node:
    """A field: `content` is a number, bytes (of wires 1, 2, 5), or the fields of a message of that `kind`."""

    number: int
    wire: int
    content: int | bytes | list[Node]
    kind: str = ""

    def copy(self) -> Node:
        content = [n.copy() for n in self.content] if isinstance(self.content, list) else self.content
        return Node(self.number, self.wire, content, self.kind)

    def encode(self) -> bytes:
        head = varint(self.number << 3 | self.wire)
        if isinstance(self.content, int):
            return head + varint(self.content)
        content = self.content if isinstance(self.content, bytes) else encode(self.content)
        return head + (varint(len(content)) if self.wire == 2 else b"") + content


def encode(nodes: list[Node]) -> bytes:
    return b"".join(node.encode() for node in nodes)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire, content) of each field of a well-formed message."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
            yield tag >> 3, wire, value
            continue
        length, at = read_varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
        yield tag >> 3, wire, data[at : at + length]
        at += length


def take_apart(data: bytes, kind: str = "space") -> list[Node]:
    out = []
    for number, wire, content in fields(data):
        inner = MESSAGES[kind].get(number, "") if wire == 2 else ""
        out.append(Node(number, wire, take_apart(content, inner) if inner else content, inner))
    return out


def messages(nodes: list[Node], kind: str = "space") -> Iterator[tuple[str, list[Node]]]:
    """(kind, fields) of the message and of all within it."""
    yield kind, nodes
    for node in nodes:
        if isinstance(node.content, list):
            yield from messages(node.content, node.kind)


def cut_down(data: bytes, events_per_line: int, lines_per_plane: int) -> bytes:
    """The beginning of each line of a real profile, and the names that are in use there."""
    return b"".join(
        chunk(1, _cut_plane(content, events_per_line, lines_per_plane)) if number == 1 else chunk(number, content)
        for number, _, content in fields(data)
    )


def _cut_plane(plane: bytes, events_per_line: int, lines_per_plane: int) -> bytes:
    nodes = [Node(*f) for f in fields(plane)]
    lines = [n for n in nodes if n.number == 3][:lines_per_plane]
    for line in lines:
        kept = [Node(*f) for f in fields(line.content)]
        events = [n for n in kept if n.number == 4][:events_per_line]
        line.content = encode([n for n in kept if n.number != 4] + events)
    used: dict[int, set[int]] = {4: set(), 5: set()}
    for line in lines:
        for event in take_apart(line.content, "line"):
            _note_ids(event, used)
    entries = [n for n in nodes if n.number in used and next(fields(n.content))[2] in used[n.number]]
    for entry in entries:
        for metadata in take_apart(entry.content, "entry"):
            _note_ids(metadata, used)
    entries = [n for n in nodes if n.number in used and next(fields(n.content))[2] in used[n.number]]
    return encode([n for n in nodes if n.number < 3] + lines + [e for e in entries if len(e.content) < 2000])


def _note_ids(node: Node, used: dict[int, set[int]]) -> None:
    if not isinstance(node.content, list):
        return
    for inner in node.content:
        if node.kind == "event" and inner.number == 1:
            used[4].add(inner.content)
        elif node.kind == "stat" and inner.number in (1, 7):
            used[5].add(inner.content)
        else:
            _note_ids(inner, used)
