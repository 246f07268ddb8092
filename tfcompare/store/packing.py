"""The tables of a host file in one file, a *pack*: what is known of the file as JSON, then its tables.

    TFCPACK2 | 16 bytes of digest | 8 bytes: size of the head | head: JSON | table | table | …

A pack whose bytes do not match the digest is refused before anything is read. Tables are read on first use, and
checked then: anybody who can write to a store can make a pack whose digest is right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

import pandas as pd

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostFrames
from tfcompare.frames.ops.op_parts import frame_bytes
from tfcompare.frames.origin import Origin
from tfcompare.store.columns import Shape, decode, encode, has_texts
from tfcompare.store.pack_checks import DTYPES, Checks
from tfcompare.store.typed import Damaged, head_bytes, split_head
from tfcompare.units import format_bytes

_MAGIC = b"TFCPACK2"
_DIGEST_BYTES = 16
_HEAD_BYTES = len(_MAGIC) + _DIGEST_BYTES
_NOT_CACHED = ("op_cells", "op_wall", "timeline_spans")
"""Tables that are read from the pack each time: they are by far the largest, and quick to read."""


@dataclass(frozen=True)
class _Block:
    """A table in a pack: its shape, and the size of its compressed columns."""

    shape: Shape
    size_bytes: int


@dataclass(frozen=True)
class _Head:
    """`HostFrames` without its tables. `memory_bytes`: see `HostFrames`."""

    host: str
    digest: str
    origin: Origin
    step_source: str
    likely_markers: tuple[str, ...]
    remarks: tuple[str, ...]
    why_untimed: str
    memory_bytes: int
    tables: dict[str, _Block]


def pack(frames: HostFrames) -> bytes:
    """The frames as bytes; equal frames give equal bytes.

    Raises `TfcompareError` if the tables are too large for a pack.
    """
    if isinstance(frames.tables, PackedTables):
        return frames.tables.pack
    blocks, pieces, expanded = {}, [], 0
    for name, dtypes in DTYPES.items():
        shape, data = encode(frames.tables[name], dtypes)
        blocks[name] = _Block(shape, len(data))
        pieces.append(data)
        expanded += shape.expanded_bytes(dtypes)
    if expanded > (most := settings.pack_bytes(os.environ)):
        raise TfcompareError(
            f"the tables of host {frames.host} take {format_bytes(expanded)}, and a pack at most {format_bytes(most)}; "
            f"raise {settings.PACK_VARIABLE}"
        )
    head = _Head(
        host=frames.host,
        digest=frames.digest,
        origin=frames.origin,
        step_source=frames.step_source,
        likely_markers=frames.likely_markers,
        remarks=frames.remarks,
        why_untimed=frames.why_untimed,
        memory_bytes=sum(frame_bytes(frame) for name, frame in frames.tables.items() if name not in _NOT_CACHED),
        tables=blocks,
    )
    body = b"".join((head_bytes(head), *pieces))
    return b"".join((_MAGIC, _digest(body), body))


def unpack(data: bytes, where: str = "the pack") -> HostFrames:
    """The frames in the result of `pack`; their tables are read from `data` on first use.

    Raises `Damaged` for bytes that have changed since they were written, or were not written by `pack`. The tables
    raise it when they are read, naming the file `where` they are.
    """
    body = memoryview(data)[_HEAD_BYTES:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEAD_BYTES] != _digest(body):
        raise Damaged("its bytes do not match their digest")
    head, tables_bytes = split_head(body, _Head)
    blocks = head.tables
    if list(blocks) != list(DTYPES) or sum(block.size_bytes for block in blocks.values()) != len(tables_bytes):
        raise Damaged("its tables are not where they should be")
    expanded = {name: block.shape.expanded_bytes(DTYPES[name]) for name, block in blocks.items()}
    if sum(expanded.values()) > (most := settings.pack_bytes(os.environ)):
        raise Damaged(f"its tables take more than {format_bytes(most)}; raise {settings.PACK_VARIABLE}")
    tables = PackedTables(data, len(data) - len(tables_bytes), blocks, Checks(head.host), where)
    held = sum(size for name, size in expanded.items() if name not in _NOT_CACHED)
    return HostFrames(
        host=head.host,
        digest=head.digest,
        origin=head.origin,
        step_source=head.step_source,
        likely_markers=head.likely_markers,
        remarks=head.remarks,
        why_untimed=head.why_untimed,
        memory_bytes=max(held, head.memory_bytes) + len(data),
        tables=tables,
    )


def unpack_checked(data: bytes) -> HostFrames:
    """As `unpack`, but reads each table once, so that damage is found now: for packs from other machines."""
    frames = unpack(data)
    assert isinstance(frames.tables, PackedTables)
    frames.tables.check()
    return frames


class PackedTables(Mapping[str, pd.DataFrame]):
    """The tables in a pack. Each is read and checked on first use, and then held in memory unless it is large."""

    def __init__(self, pack: bytes, start: int, blocks: Mapping[str, _Block], checks: Checks, where: str) -> None:
        """`start`: where in `pack` the tables begin."""
        self.pack = pack
        self._where = where
        self._data = memoryview(pack)[start:]
        self._blocks = blocks
        self._checks = checks
        self._held: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name in self._held:
            return self._held[name]
        frame = self.read(name)
        if name not in _NOT_CACHED:
            self._held[name] = frame
        return frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def read(self, name: str) -> pd.DataFrame:
        """The table, from the pack; raises `Damaged`."""
        start = 0
        for other, block in self._blocks.items():
            if other == name:
                break
            start += block.size_bytes
        else:
            raise KeyError(name)
        try:
            if block.shape.expanded_bytes(DTYPES[name]):
                frame = decode(block.shape, self._data[start : start + block.size_bytes], DTYPES[name])
            else:
                frame = _empty(name)
            self._checks.check(name, frame, self)
        except Damaged as error:
            raise Damaged(f"{self._where}: its table {name} is damaged ({error}); remove the file") from None
        return frame

    def check(self) -> None:
        """Read each table once; raises `Damaged`."""
        for name in self:
            self.read(name)

    def rows(self, name: str) -> int:
        """The number of rows of a table, without reading it."""
        return self._blocks[name].shape.rows


@cache
def _empty(name: str) -> pd.DataFrame:
    """The table without rows: most tables of most packs, of which a run may have hundreds."""
    dtypes = DTYPES[name]
    return decode(Shape(0, ((0, 0),) * sum(map(has_texts, dtypes.values()))), b"", dtypes)


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()
