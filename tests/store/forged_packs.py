"""Packs taken apart and put together again, with the digest to go with what was changed."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import pyarrow as pa

from tfcompare.schema import HOST_TABLES
from tfcompare.store.arrays import Encoded, decode, encode
from tfcompare.store.pack_checks import columns_now, packed_schema

_MAGIC_BYTES, _SIZE_AT, _HEAD_AT = 8, 24, 32


@dataclass
class Forged:
    """The parts of a pack: the head, which may become any JSON, the buffers of each table, each filled up to 8 bytes,
    and the zstd frame of each group."""

    magic: bytes
    head: Any
    buffers: dict[str, list[bytes]]
    frames: dict[str, bytes]

    @classmethod
    def of(cls, pack: bytes) -> Forged:
        """The parts of that pack."""
        (size,) = struct.unpack("<Q", pack[_SIZE_AT:_HEAD_AT])
        parts = cls(pack[:_MAGIC_BYTES], json.loads(pack[_HEAD_AT : _HEAD_AT + size]), {}, {})
        at = _HEAD_AT + size
        for name, group in parts.head["groups"].items():
            parts.frames[name], at = pack[at : at + group["size_bytes"]], at + group["size_bytes"]
            lengths = {table: [aligned(length) for length in sizes[2:]] for table, sizes in group["tables"].items()}
            whole = pa.decompress(parts.frames[name], sum(map(sum, lengths.values())), codec="zstd", asbytes=True)
            rest = iter(whole)
            for table, own in lengths.items():
                parts.buffers[table] = [bytes(islice(rest, length)) for length in own]
        return parts

    def sizes(self, name: str) -> list[int]:
        """What the head says of a table: its rows, the bytes of its texts, the length of each buffer."""
        sizes: list[int] = self.head["groups"][HOST_TABLES[name].group]["tables"][name]
        return sizes

    def table(self, name: str) -> pa.Table:
        """A table as it is now."""
        columns = packed_schema(name, self.head["columns"])
        return decode(columns, [Encoded(tuple(self.sizes(name)), pa.py_buffer(b"".join(self.buffers[name])), 0)])

    def put(self, name: str, table: pa.Table) -> None:
        """Put a table in place of that of this name."""
        sizes, buffers = encode(table)
        self.sizes(name)[:] = sizes
        self.put_buffers(name, buffers)

    def put_columns(self, name: str, table: pa.Table, dtypes: dict[str, str]) -> None:
        """Put a table with other columns in place of that of this name, and let the head say so."""
        self.head["columns"][name] = dtypes
        self.put(name, table)

    def lose(self, name: str) -> None:
        """Remove a table, or a column of one (`steps.idle_us`), as in the pack of a version that did not have it."""
        table, _, column = name.partition(".")
        if column:
            dtypes = self.head["columns"].get(table) or columns_now(table)
            left = {each: dtype for each, dtype in dtypes.items() if each != column}
            self.put_columns(table, self.table(table).drop_columns(column), left)
            return
        del self.head["groups"][HOST_TABLES[table].group]["tables"][table]
        del self.buffers[table]
        self._pack_group(HOST_TABLES[table].group)

    def put_buffers(self, name: str, buffers: list[bytes]) -> None:
        """Put buffers in place of those of a table, whatever the head says of them."""
        self.buffers[name] = buffers
        self._pack_group(HOST_TABLES[name].group)

    def _pack_group(self, group: str) -> None:
        own = [b"".join(self.buffers[table]) for table in self.buffers if HOST_TABLES[table].group == group]
        self.put_frame(group, pa.compress(b"".join(own), codec="zstd", asbytes=True))

    def put_frame(self, group: str, frame: bytes) -> None:
        """Put bytes in place of the zstd frame of a group."""
        self.frames[group] = frame
        self.head["groups"][group]["size_bytes"] = len(frame)

    def bytes(self) -> bytes:
        """The pack."""
        text = json.dumps(self.head).encode()
        body = b"".join((struct.pack("<Q", len(text)), text, *self.frames.values()))
        return self.magic + blake2b(body, digest_size=16).digest() + body


def forged(pack: bytes, change: Callable[[Forged], object]) -> bytes:
    """The pack, changed."""
    parts = Forged.of(pack)
    change(parts)
    return parts.bytes()


def aligned(size: int) -> int:
    """The next multiple of 8."""
    return -(-size // 8) * 8
