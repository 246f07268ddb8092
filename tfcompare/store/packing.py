"""Tables of host files as bytes: the content of a cache or store.

A pack has a digest of the rest, a head in JSON, and one zstd frame for each group of tables. A frame expands to the
buffers of the group's Arrow arrays, one after the other, each from a multiple of 8 bytes on; the head has their sizes.
Nothing in the bytes says how to read them: types are those that `schema.HOST_TABLES` declares. So a pack that anybody
may have written cannot use more memory than its head says, which is limited.

For each column these are: of numbers and flags the values (flags as bits); of nullable numbers the bits that are set
where a value is known, then the values; of texts the position of each row's text among the labels, then where each
label begins and the last ends, then the labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostTables
from tfcompare.frames.arrow import TEXT, arrow_schema, empty
from tfcompare.frames.origin import Origin
from tfcompare.schema import HOST_TABLES
from tfcompare.store.pack_checks import check_table
from tfcompare.store.typed import Damaged, head_bytes, split_head
from tfcompare.units import format_bytes

_MAGIC = b"TFCPACK3"
_DIGEST_BYTES = 16
_HEAD_BYTES = len(_MAGIC) + _DIGEST_BYTES
_CODEC = "zstd"
_ALIGNMENT = 8
_LONGEST = 1 << 30
"""The largest number of rows of a table, and of bytes of a buffer: offsets of texts are 32-bit numbers."""
_HELD = "core"
"""The group whose tables stay expanded: the others are by far the largest, asked for rarely, and quick to expand."""


@dataclass(frozen=True)
class _Group:
    """A group of tables: the size of its zstd frame, and for each table its rows, then the lengths of its buffers."""

    size_bytes: int
    tables: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class _Head:
    """`HostTables` without its tables, and the groups."""

    host: str
    digest: str
    origin: Origin
    step_source: str
    likely_markers: tuple[str, ...]
    remarks: tuple[str, ...]
    why_untimed: str
    groups: dict[str, _Group]


def pack(host: HostTables) -> bytes:
    """The tables as bytes; equal tables give equal bytes. Raises `TfcompareError` if they are too large for a pack."""
    if isinstance(host.tables, PackedTables):
        return host.tables.pack
    groups: dict[str, _Group] = {}
    frames = []
    expanded = 0
    for group in dict.fromkeys(HOST_TABLES[name].group for name in host.tables):
        pieces: list[bytes] = []
        sizes: dict[str, tuple[int, ...]] = {}
        for name, table in host.tables.items():
            if HOST_TABLES[name].group == group:
                buffers = [buffer for column in table.columns for buffer in _buffers(column)]
                sizes[name] = len(table), *map(len, buffers)
                pieces += [buffer.ljust(_aligned(len(buffer)), b"\0") for buffer in buffers]
        data = b"".join(pieces)
        frames.append(pa.compress(data, codec=_CODEC, asbytes=True))
        groups[group] = _Group(len(frames[-1]), sizes)
        expanded += len(data)
    if expanded > (most := settings.pack_bytes(os.environ)):
        raise TfcompareError(
            f"the tables of host {host.host} take {format_bytes(expanded)}, and a pack at most {format_bytes(most)}; "
            f"raise {settings.PACK_VARIABLE}"
        )
    head = _Head(
        host=host.host,
        digest=host.digest,
        origin=host.origin,
        step_source=host.step_source,
        likely_markers=host.likely_markers,
        remarks=host.remarks,
        why_untimed=host.why_untimed,
        groups=groups,
    )
    body = b"".join((head_bytes(head), *frames))
    return b"".join((_MAGIC, _digest(body), body))


def unpack(data: bytes, where: str = "the pack") -> HostTables:
    """What `pack` made bytes of; tables are expanded and checked when they are asked for.

    Raises `Damaged` for bytes that have changed since they were written, or were not written by `pack`. The tables
    raise it when they are read, naming the file `where` they are.
    """
    body = memoryview(data)[_HEAD_BYTES:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEAD_BYTES] != _digest(body):
        raise Damaged("its bytes do not match their digest")
    head, frames = split_head(body, _Head)
    if not head.groups or sum(group.size_bytes for group in head.groups.values()) != len(frames):
        raise Damaged("its tables are not where they should be")
    for name, group in head.groups.items():
        if list(group.tables) != [table.name for table in HOST_TABLES.values() if table.group == name]:
            raise Damaged(f"its group {name!r} has other tables than it should")
        for table, sizes in group.tables.items():
            _check_sizes(table, sizes)
    if sum(map(_expanded, head.groups.values())) > (most := settings.pack_bytes(os.environ)):
        raise Damaged(f"its tables take more than {format_bytes(most)}; raise {settings.PACK_VARIABLE}")
    return HostTables(
        host=head.host,
        digest=head.digest,
        origin=head.origin,
        step_source=head.step_source,
        likely_markers=head.likely_markers,
        remarks=head.remarks,
        why_untimed=head.why_untimed,
        tables=PackedTables(data, frames, head.groups, head.host, where),
    )


def unpack_checked(data: bytes) -> HostTables:
    """As `unpack`, but reads each table once, so that damage is found now: for packs from other machines."""
    host = unpack(data)
    for name in host.tables:
        host.tables[name]
    return host


def unpacked(host: HostTables) -> HostTables:
    """The host with its tables expanded, whatever it was read from."""
    return replace(host, tables=dict(host.tables))


class PackedTables(Mapping[str, pa.Table]):
    """The tables in a pack. A group is expanded when one of its tables is asked for, and a table checked then."""

    def __init__(self, pack: bytes, frames: memoryview, groups: Mapping[str, _Group], host: str, where: str) -> None:
        """`frames`: the zstd frames of the groups, one after the other."""
        self.pack = pack
        self._frames = frames
        self._groups = groups
        self._host = host
        self._where = where
        self._held: dict[str, pa.Table] = {}
        self._expanded: pa.Buffer | None = None

    @property
    def memory_bytes(self) -> int:
        """The memory of the pack, and of the tables that stay expanded."""
        return len(self.pack) + (_expanded(self._groups[_HELD]) if _HELD in self._groups else 0)

    def __getitem__(self, name: str) -> pa.Table:
        if name in self._held:
            return self._held[name]
        table = self._read(name)
        if HOST_TABLES[name].group == _HELD:
            self._held[name] = table
        return table

    def __iter__(self) -> Iterator[str]:
        return (name for group in self._groups.values() for name in group.tables)

    def __len__(self) -> int:
        return sum(len(group.tables) for group in self._groups.values())

    def rows(self, name: str) -> int:
        """The number of rows of a table, without reading it."""
        return self._groups[HOST_TABLES[name].group].tables[name][0]

    def _read(self, name: str) -> pa.Table:
        group = self._groups[HOST_TABLES[name].group]
        if not group.tables[name][0]:
            return empty(name)
        try:
            start = sum(_table_bytes(group.tables[other]) for other in _before(name, group.tables))
            table = _table(name, group.tables[name], self._buffer(HOST_TABLES[name].group), start)
            check_table(name, table, self._host, self)
        except Damaged as error:
            raise Damaged(f"{self._where}: its table {name} is damaged ({error}); remove the file") from None
        return table

    def _buffer(self, name: str) -> pa.Buffer:
        """The buffers of a group."""
        if name == _HELD and self._expanded is not None:
            return self._expanded
        group = self._groups[name]
        start = sum(self._groups[other].size_bytes for other in _before(name, self._groups))
        size = _expanded(group)
        try:
            buffer = pa.decompress(self._frames[start : start + group.size_bytes], size, codec=_CODEC)
        except (OSError, ValueError) as error:  # pa.ArrowInvalid is a ValueError
            raise Damaged(f"its group is not of {size:,} bytes ({error})") from None
        if name == _HELD:
            self._expanded = buffer
        return buffer


def _buffers(column: pa.ChunkedArray) -> list[bytes]:
    """The buffers of a column, as the module's docstring says."""
    array = column.combine_chunks()
    if array.type == TEXT:
        labels = array.dictionary
        _, offsets, data = labels.buffers()
        ends = np.frombuffer(offsets, np.int32)[labels.offset : labels.offset + len(labels) + 1]
        text = bytes(memoryview(data)[int(ends[0]) : int(ends[-1])]) if data is not None else b""
        return [_values(array.indices).tobytes(), (ends - ends[0]).tobytes(), text]
    if array.type == pa.bool_():
        return [_bits(_values(array))]
    if array.null_count:
        return [_bits(_values(array.is_valid())), _values(array.fill_null(0)).tobytes()]
    return [b"", _values(array).tobytes()]


def _values(array: pa.Array) -> npt.NDArray[Any]:
    if array.null_count:
        raise ValueError("a value is missing")
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def _bits(flags: npt.NDArray[np.bool_]) -> bytes:
    return np.packbits(flags, bitorder="little").tobytes()


def _table(name: str, sizes: tuple[int, ...], data: pa.Buffer, at: int) -> pa.Table:
    """The table with buffers of these sizes from `at` on; raises `Damaged` for arrays that cannot be."""
    rows, lengths = sizes[0], iter(sizes[1:])

    def following() -> pa.Buffer:
        nonlocal at
        length = next(lengths)
        found = data.slice(at, length)
        at += _aligned(length)
        return found

    arrays = []
    for field in arrow_schema(name):
        try:
            if field.type == TEXT:
                indices, offsets, text = following(), following(), following()
                labels = pa.Array.from_buffers(pa.string(), offsets.size // 4 - 1, [None, offsets, text])
                labels.validate(full=True)
                array = pa.DictionaryArray.from_buffers(TEXT, rows, [None, indices], labels)
            elif field.type == pa.bool_():
                array = pa.Array.from_buffers(field.type, rows, [None, following()])
            else:
                known = following()
                array = pa.Array.from_buffers(field.type, rows, [known if known.size else None, following()])
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise Damaged(f"{field.name}: {error}") from None
        if field.type == TEXT and pc.count_distinct(array.dictionary).as_py() < len(array.dictionary):
            raise Damaged(f"{field.name}: labels repeat")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=arrow_schema(name))


def _check_sizes(name: str, sizes: tuple[int, ...]) -> None:
    """Raises `Damaged` unless a table may have so many rows and buffers of these sizes."""
    if not sizes or any(not 0 <= size <= _LONGEST for size in sizes):
        raise Damaged(f"a size of its table {name} is out of range")
    rows, lengths = sizes[0], list(sizes[1:])
    bits = -(-rows // 8)
    for column, field in zip(HOST_TABLES[name].columns.values(), arrow_schema(name), strict=True):
        if field.type == TEXT:
            own, lengths = lengths[:3], lengths[3:]
            is_right = len(own) == 3 and own[0] == 4 * rows and own[1] >= 4 and own[1] % 4 == 0
        elif field.type == pa.bool_():
            own, lengths = lengths[:1], lengths[1:]
            is_right = own == [bits]
        else:
            own, lengths = lengths[:2], lengths[2:]
            may_be = (0, bits) if column.dtype in ("Int64", "Float64") else (0,)
            is_right = len(own) == 2 and own[0] in may_be and own[1] == rows * (field.type.bit_width // 8)
        if not is_right:
            raise Damaged(f"its table {name} has a column {field.name} of another size")
    if lengths:
        raise Damaged(f"its table {name} has more columns than it should")


def _table_bytes(sizes: tuple[int, ...]) -> int:
    return sum(map(_aligned, sizes[1:]))


def _expanded(group: _Group) -> int:
    return sum(map(_table_bytes, group.tables.values()))


def _before(name: str, names: Mapping[str, object]) -> list[str]:
    order = list(names)
    return order[: order.index(name)]


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _aligned(size: int) -> int:
    """The next multiple of 8."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT
