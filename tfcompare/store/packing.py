"""The tables of a host file in one file, a *pack*: a zip of Parquet files, preceded by a digest.

    TFCPACK1 | 16 bytes of digest | zip: manifest.json, steps.parquet, op_parts.parquet, …

Any tool that opens zips can show the tables. A pack whose bytes do not match the digest is refused before any table is
read. Tables are read from a pack on first use.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from hashlib import blake2b
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tfcompare.frames import HostFrames
from tfcompare.frames.ops.op_parts import frame_bytes
from tfcompare.frames.origin import Origin
from tfcompare.frames.tables import ALL_ROWS, Tables

if TYPE_CHECKING:
    import pandas as pd

_MAGIC = b"TFCPACK1"
_DIGEST_BYTES = 16
_HEAD_BYTES = len(_MAGIC) + _DIGEST_BYTES
_MANIFEST = "manifest.json"
_OLDEST = (1980, 1, 1, 0, 0, 0)
_ROWS_OF_GROUP = 1 << 17
"""The number of rows per Parquet row group: reading one row decodes its whole group."""
_NOT_CACHED = ("op_cells", "op_wall")
"""Tables that are read from the pack each time: they are by far the largest, and quick to read."""


class Damaged(Exception):
    """The bytes of a file are not those that were written."""


def pack(frames: HostFrames) -> bytes:
    """The frames as bytes; equal frames give equal bytes."""
    if isinstance(frames.tables, PackedTables):
        return frames.tables.data
    manifest = {f.name: getattr(frames, f.name) for f in fields(frames) if f.name != "tables"}
    held_bytes = sum(frame_bytes(frame) for name, frame in frames.tables.items() if name not in _NOT_CACHED)
    manifest |= {"origin": asdict(frames.origin), "memory_bytes": held_bytes}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as members:
        members.writestr(zipfile.ZipInfo(_MANIFEST, _OLDEST), json.dumps(manifest))
        for name, frame in frames.tables.items():
            members.writestr(zipfile.ZipInfo(f"{name}.parquet", _OLDEST), _parquet(frame))
    body = out.getbuffer()
    return b"".join((_MAGIC, _digest(body), body))


def unpack(data: bytes) -> HostFrames:
    """The frames in the result of `pack`; their tables are read from `data` on first use.

    Raises `Damaged` for bytes that have changed since they were written.
    """
    body = memoryview(data)[_HEAD_BYTES:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEAD_BYTES] != _digest(body):
        raise Damaged
    tables = PackedTables(data)
    manifest = json.loads(tables.members.read(_MANIFEST))
    origin = manifest["origin"]
    manifest |= {
        "origin": Origin(**origin | {"remarks": tuple(origin["remarks"])}),
        "likely_markers": tuple(manifest["likely_markers"]),
        "remarks": tuple(manifest["remarks"]),
        "memory_labels": {name: tuple(labels) for name, labels in manifest["memory_labels"].items()},
        "memory_bytes": manifest["memory_bytes"] + len(data),
    }
    return HostFrames(**manifest, tables=tables)


class PackedTables(Tables):
    """The tables in a pack. Each is read on first use, and then held in memory unless it is large.

    `data` is the pack, `members` the zip in it.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.members = zipfile.ZipFile(io.BytesIO(data))  # shares the bytes, and finds the zip behind the digest
        self._held: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name in self._held:
            return self._held[name]
        frame = self.read(name)
        if name not in _NOT_CACHED:
            self._held[name] = frame
        return frame

    def __iter__(self) -> Iterator[str]:
        names = (name.removesuffix(".parquet") for name in self.members.namelist())
        return (name for name in names if name != _MANIFEST)

    def __len__(self) -> int:
        return len(self.members.namelist()) - 1

    def read(self, name: str, columns: Sequence[str] | None = None, rows: slice = ALL_ROWS) -> pd.DataFrame:
        """See `Tables`: other columns and row groups are not decoded."""
        file = pq.ParquetFile(pa.BufferReader(self.members.read(f"{name}.parquet")))
        first, stop, _ = rows.indices(file.metadata.num_rows)
        groups = range(first // _ROWS_OF_GROUP, -(-stop // _ROWS_OF_GROUP))
        table = file.read_row_groups(list(groups), columns, use_threads=False)
        table = table.slice(first - groups.start * _ROWS_OF_GROUP, max(stop - first, 0))
        frame: pd.DataFrame = table.to_pandas(use_threads=False, split_blocks=True)  # no copy
        return frame


def _parquet(frame: pd.DataFrame) -> memoryview:
    out = io.BytesIO()
    table = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1)
    # optimized for reading
    pq.write_table(table, out, row_group_size=_ROWS_OF_GROUP, compression="lz4", write_statistics=False)
    return out.getbuffer()


def _digest(body: memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()
