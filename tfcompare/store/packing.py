"""Tables of host files as bytes: the content of a cache or store.

A pack has a digest of the rest, a head in JSON, and one zstd frame for each group of tables: their buffers, one after
the other (`arrays`). The head has their sizes, so that a pack cannot use more memory than it says, which is limited.
It also has the columns of tables whose columns are not those of the first packs (`earlier`), so that packs of other
versions of tfcompare are read. A file has the groups `core` and `steps`, or one of those that are built later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from itertools import accumulate, takewhile
from typing import Any

import numpy as np
import pyarrow as pa

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostTables
from tfcompare.frames.arrow import empty
from tfcompare.frames.host import Joinable
from tfcompare.frames.origin import Origin
from tfcompare.schema import HOST_TABLES, Group
from tfcompare.schema.arrays import Int64
from tfcompare.store import arrays, pack_checks
from tfcompare.store.arrays import Encoded, Sizes, expanded_bytes
from tfcompare.store.contents import Damaged, OtherVersion, head_bytes, split_head
from tfcompare.store.pack_checks import columns_now, first_columns, packed_schema
from tfcompare.text import some_of
from tfcompare.units import format_bytes

_MAGIC = b"TFCPACK3"
_DIGEST_BYTES = 16
_HEAD_BYTES = len(_MAGIC) + _DIGEST_BYTES
_RESIDENT = "core"
"""The group whose tables stay expanded."""
_MOST_KEPT_BYTES = 64 << 20
"""Other groups that take no more stay, too, once one of their tables was asked for, of this host alone: a profile of
50 MB takes less. Expanding it takes some 40 ms, and an answer asks ten times."""
_AS_CODES = "timeline_spans"
"""The table whose texts are never written out for each row."""
_MOST_NAMED = 6


@dataclass(frozen=True)
class _Group:
    """A group of tables: the size of its zstd frame, and for each table its rows, then the lengths of its buffers."""

    size_bytes: int
    tables: dict[str, Sizes]


@dataclass(frozen=True)
class _Head:
    """`HostTables` without its tables, the groups, and the dtypes of the columns of tables, by table.

    A field that is added needs a default: heads of earlier packs lack it.
    """

    host: str
    digest: str
    origin: Origin
    step_source: str
    likely_markers: tuple[str, ...]
    remarks: tuple[str, ...]
    why_untimed: str
    groups: dict[str, _Group]
    columns: dict[str, dict[str, str]] = field(default_factory=dict)


_FACTS = [fact.name for fact in fields(_Head) if fact.name not in ("groups", "columns")]
"""What the head of a pack and `HostTables` both have."""


def pack(host: HostTables) -> bytes:
    """The tables as bytes; equal tables give equal bytes. Raises `TfcompareError` if they are too large for a pack."""
    if isinstance(host.tables, PackedTables):
        return host.tables.pack
    groups: dict[str, _Group] = {}
    frames = []
    for group in dict.fromkeys(HOST_TABLES[name].group for name in host.tables):
        pieces: list[bytes] = []
        sizes: dict[str, Sizes] = {}
        for name, table in host.tables.items():
            if HOST_TABLES[name].group == group:
                sizes[name], buffers = arrays.encode(table)
                pieces += buffers
        frames.append(pa.compress(b"".join(pieces), codec=arrays.CODEC, asbytes=True))
        groups[group] = _Group(len(frames[-1]), sizes)
    if (total := _memory(groups)) > (most := settings.from_environment().pack_bytes):
        raise TfcompareError(
            f"the tables of host {host.host} take {format_bytes(total)}, and a pack at most {format_bytes(most)}; "
            f"raise TFCOMPARE_PACK_MB"
        )
    columns = {name: dict(columns_now(name)) for name in host.tables if columns_now(name) != first_columns().get(name)}
    head = _Head(**{fact: getattr(host, fact) for fact in _FACTS}, groups=groups, columns=columns)
    body = b"".join((head_bytes(head), *frames))
    return b"".join((_MAGIC, _checksum(body), body))


def unpack(data: bytes, where: str = "the pack", group: Group = "core") -> HostTables:
    """What `pack` made bytes of; tables are expanded and checked when they are asked for.

    Raises `Damaged` for bytes that have changed since they were written, were not written by `pack`, or are not those
    of that group, with which `core` comes `steps`; `OtherVersion` for another group that lacks a table. The tables
    raise `Damaged` when they are read, naming the file `where` they are.
    """
    body = memoryview(data)[_HEAD_BYTES:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEAD_BYTES] != _checksum(body):
        raise Damaged("its bytes do not match their digest")
    head, frames = split_head(body, _Head)
    if list(head.groups) != (["core", "steps"] if group == "core" else [group]):
        raise Damaged("it has other groups of tables than it should")
    lengths = [one.size_bytes for one in head.groups.values()]
    if min(lengths) < 0 or sum(lengths) != len(frames):
        raise Damaged("its tables are not where they should be")
    for one in head.groups.values():
        for table, sizes in one.tables.items():
            arrays.check_sizes(packed_schema(table, head.columns), sizes)
    tables = PackedTables(data, frames, head, where)
    if _memory(head.groups) + tables.missing_bytes > (most := settings.from_environment().pack_bytes):
        raise Damaged(f"its tables take more than {format_bytes(most)}; raise TFCOMPARE_PACK_MB")
    if group != "core" and tables.without:
        raise OtherVersion(f"it lacks {', '.join(tables.without)}")
    facts: dict[str, Any] = {fact: getattr(head, fact) for fact in _FACTS}
    return HostTables(**facts | {"remarks": (*head.remarks, *tables.remarks)}, tables=tables)


def unpack_checked(data: bytes, group: Group = "core") -> HostTables:
    """As `unpack`, but reads each table once, so that damage is found now: for packs from other machines."""
    host = unpack(data, group=group)
    assert isinstance(host.tables, PackedTables)
    host.tables.check()
    return host


class PackedTables(Joinable):
    """The tables in a pack. A group is expanded when one of its tables is asked for, and a table checked once, then.

    A table that is not in the pack, or that lacks a column that cannot be missing, has no rows.
    """

    def __init__(self, pack: bytes, frames: memoryview, head: _Head, where: str) -> None:
        """`frames`: the zstd frames of the groups, one after the other."""
        self.pack = pack
        self._frames = frames
        self._groups = head.groups
        self._where = where
        self._schemas: dict[str, pa.Schema] = {}
        self._missing: dict[str, list[pa.Field]] = {}
        for name in self:
            if name in head.groups[HOST_TABLES[name].group].tables:
                packed = packed_schema(name, head.columns)
                missing = pack_checks.lacking(name, packed)
                if all(pack_checks.may_be_missing(name, column.name) for column in missing):
                    self._schemas[name], self._missing[name] = packed, missing
        self._resident: dict[str, pa.Table] = {}
        self._starts: dict[str, dict[str, int]] = {}
        self._expanded: dict[str, pa.Buffer] = {}
        self._checked: set[str] = set()

    @property
    def remarks(self) -> tuple[str, ...]:
        """A sentence on what today's tables have and those of the pack lack."""
        lacking = [f"{name}.{column.name}" for name in self._missing for column in self._missing[name]] + self.without
        if not lacking:
            return ()
        return (
            f"its tables were made by another version of tfcompare, without {some_of(lacking, _MOST_NAMED)}; "
            "`tfcompare ingest` again where the profile is",
        )

    @property
    def without(self) -> list[str]:
        """The tables of today that the pack has not."""
        return [name for name in self if name not in self._schemas]

    @property
    def missing_bytes(self) -> int:
        """What the columns take that the pack lacks."""
        missing = self._missing.items()
        return sum(self.rows(name) * column.type.bit_width // 8 for name, columns in missing for column in columns)

    @property
    def memory_bytes(self) -> int:
        """The memory of the pack, and of the tables that stay expanded."""
        is_here = _RESIDENT in self._groups
        kept = sum(_expanded(self._groups[group]) for group in self._expanded if group != _RESIDENT)
        return len(self.pack) + kept + (_expanded(self._groups[_RESIDENT]) + self.missing_bytes if is_here else 0)

    def __getitem__(self, name: str) -> pa.Table:
        if name in self._resident:
            return self._resident[name]
        if not self.rows(name):
            return empty(name)
        group = HOST_TABLES[name].group
        if group == _RESIDENT or _expanded(self._groups[group]) <= _MOST_KEPT_BYTES:
            self._expanded[group] = self._buffer(group)
        table = self._read(name)
        if group == _RESIDENT:
            self._resident[name] = table
        return table

    def joined(self, name: str, others: Sequence[PackedTables]) -> pa.Table:
        """See `Joinable`; raises `Damaged`."""
        every = [packed for packed in (self, *others) if packed.rows(name)]
        if any(packed._missing[name] for packed in every):
            return pa.concat_tables([packed[name] for packed in every])
        try:
            return _read(name, every) if every else empty(name)
        except Damaged:
            return pa.concat_tables([packed[name] for packed in every])  # says which is

    def check(self) -> None:
        """Read all tables once; raises `Damaged`."""
        for group in self._groups:
            buffer = self._buffer(group)
            for name in self._schemas:
                if HOST_TABLES[name].group == group and self.rows(name):
                    self._read(name, buffer)

    def __iter__(self) -> Iterator[str]:
        return (name for name, table in HOST_TABLES.items() if table.group in self._groups)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def rows(self, name: str) -> int:
        """The number of rows of a table, without reading it."""
        tables = self._groups[HOST_TABLES[name].group].tables
        return tables[name][0] if name in self._schemas else 0

    def encoded(self, name: str, buffer: pa.Buffer | None = None) -> Encoded:
        """A table as it is in the expanded buffer of its group."""
        group = HOST_TABLES[name].group
        if group not in self._starts:
            tables = self._groups[group].tables
            ends = list(accumulate(map(expanded_bytes, tables.values()), initial=0))
            self._starts[group] = dict(zip(tables, ends, strict=False))
        start = self._starts[group][name]
        return Encoded(self._groups[group].tables[name], self._buffer(group) if buffer is None else buffer, start)

    def _read(self, name: str, buffer: pa.Buffer | None = None) -> pa.Table:
        try:
            return _read(name, [self], buffer)
        except Damaged as error:
            raise Damaged(f"{self._where}: its table {name} is damaged ({error}); remove the file") from None

    def _buffer(self, name: str) -> pa.Buffer:
        """The buffers of a group."""
        if name in self._expanded:
            return self._expanded[name]
        group = self._groups[name]
        before = takewhile(lambda other: other != name, self._groups)
        start = sum(self._groups[other].size_bytes for other in before)
        try:
            return arrays.expanded(self._frames[start : start + group.size_bytes], _expanded(group))
        except Damaged as error:
            raise Damaged(f"{self._where}: its group {name} is damaged ({error}); remove the file") from None


@dataclass(frozen=True)
class _Packs:
    """See `pack_checks.Packs`."""

    packs: Sequence[PackedTables]

    def table(self, name: str) -> pa.Table:
        if len(self.packs) == 1:
            return self.packs[0][name]
        return _read(name, [packed for packed in self.packs if packed.rows(name)])

    def rows(self, name: str) -> Int64:
        return np.array([packed.rows(name) for packed in self.packs], np.int64)


def _read(name: str, packs: Sequence[PackedTables], buffer: pa.Buffer | None = None) -> pa.Table:
    """A table of packs that have rows of it, as one; `buffer`: that of its group, of a single pack."""
    encoded = [packed.encoded(name, buffer) for packed in packs]
    table = pack_checks.as_today(name, arrays.decode(packs[0]._schemas[name], encoded))
    if any(name not in packed._checked for packed in packs):
        pack_checks.check_table(name, table, _Packs(packs))
        for packed in packs:
            packed._checked.add(name)
    return table


def _memory(groups: Mapping[str, _Group]) -> int:
    """The most that the tables take: their buffers, and their texts where they are written out."""
    tables = [table for group in groups.values() for table in group.tables.items()]
    texts = sum(arrays.text_bytes(sizes) for name, sizes in tables if name != _AS_CODES)
    return sum(map(_expanded, groups.values())) + texts


def _expanded(group: _Group) -> int:
    return sum(map(expanded_bytes, group.tables.values()))


def _checksum(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()
