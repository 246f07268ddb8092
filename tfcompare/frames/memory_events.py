"""The memory allocations and deallocations that one host recorded, by allocator, and the peaks of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfcompare.frames.arrow import host_table, texts
from tfcompare.frames.grouping import combinations, distinct, sums
from tfcompare.frames.planes import are_on_host
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema.arrays import Bools, Floats, Int64
from tfcompare.xspace import XSpace, decoding, lookup
from tfcompare.xspace.compilation import Array, compiled
from tfcompare.xspace.space import PS_PER_US

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
NOT_RECORDED = -1
_NULL_TEXT = "(null)"
"""What a profiler writes that was handed no text at all."""
_MAX_BYTES = 1 << 60  # sums of a few such numbers still fit 64 bits
_BYTES_OF_TIMELINE_ROW = 200  # of its numbers, and of what points to its texts
_TEXTS = ("op_name", "region_type", "data_type", "shape")

# TensorFlow 2.3 to 2.5 on Windows wrote a null character, which is removed when the file is read, in place of the first
# character of texts of up to 15.
_ALLOCATORS = ("GPU_0_bfc", "gpu_host_bfc", "gpu_async_0", "cpu", "mklcpu")
"""TensorFlow's allocators that record memory, with 0 for any number."""
_FIRST_CHARACTER = {name[1:]: name[0] for name in _ALLOCATORS}
CUT = ",…]"
"""How a shape ends whose further dimensions are lost."""
_SHAPE_WITHOUT_BRACKET = re.compile(r"\d[\d,]*\]?|\]")

UNEXPLAINED = "unused preallocated device memory"
"""`op_name` of heap memory that no allocation in the profile explains (TensorBoard's name): what was allocated before
the profile began, and the allocator's reserve."""

STACK = "stack"
_UNEXPLAINED_LABELS = dict(zip(_TEXTS, (UNEXPLAINED, "persist/dynamic", "INVALID", "unknown"), strict=True))
_STACK_LABELS = dict(zip(_TEXTS, (STACK, "stack", "INVALID", "unknown"), strict=True))


@dataclass(frozen=True, eq=False)
class Texts:
    """One text per event: `labels[code[i]]`. Labels are distinct."""

    code: Int64
    labels: tuple[str, ...]

    @classmethod
    def of(cls, code: Int64, labels: Iterable[str]) -> Texts:
        """The texts `labels[code[i]]`, empty for code −1. Labels may repeat, and be of no event."""
        names = ["", *labels]
        used, place = distinct(code + 1, len(names))
        position = {name: i for i, name in enumerate(dict.fromkeys(names[i] for i in used))}
        return cls(np.array([position[names[i]] for i in used], np.int64)[place], tuple(position))

    @classmethod
    def from_column(cls, column: pa.ChunkedArray) -> Texts:
        """The texts of a column of dictionaries."""
        array = column.unify_dictionaries().combine_chunks()
        return cls(array.indices.to_numpy().astype(np.int64), tuple(array.dictionary.to_pylist()))

    @property
    def column(self) -> pa.DictionaryArray:
        """The texts as a column."""
        return texts(self.code, self.labels)

    def copied_from(self, source: Int64) -> Texts:
        """These texts, with each event's replaced by that of event `source[i]` where `source[i]` is not −1."""
        return Texts(np.where(source >= 0, self.code[source], self.code), self.labels)


@dataclass(frozen=True, eq=False)
class MemoryEvents:
    """Memory events sorted by memory id, then time, then position in the file.

    The events of `memory_ids[m]` are `first[m]:first[m + 1]`; `memory` is m for each of them. `following` is the next
    event at the same address of the same memory id, −1 for none. A deallocation has the op, region, data type and shape
    of the allocation that it frees, and its sizes if it has none of its own. Sizes may be `NOT_RECORDED`. `step` is a
    step's number, valid where `in_step` is set.
    """

    memory_ids: tuple[str, ...]
    first: Int64
    memory: Int64
    row: Int64
    time_ps: Int64
    is_allocation: Bools
    following: Int64
    stack_bytes: Int64
    heap_bytes: Int64
    free_bytes: Int64
    lifetime_peak_bytes: Int64
    fragmentation: Floats
    requested_bytes: Int64
    allocation_bytes: Int64
    op_name: Texts
    region_type: Texts
    data_type: Texts
    shape: Texts
    step: Int64
    in_step: Bools

    def __len__(self) -> int:
        return len(self.row)

    @property
    def timeline_bytes(self) -> int:
        """Roughly the memory that `memory_timeline` would take, in bytes."""
        texts = 0
        for column in (self.op_name, self.region_type, self.data_type, self.shape):
            texts += int(np.array([*map(len, column.labels)], np.int64)[column.code].sum())
        return texts + _BYTES_OF_TIMELINE_ROW * len(self)

    @property
    def in_use_bytes(self) -> Int64:
        """Stack and heap together."""
        return self.stack_bytes + self.heap_bytes

    @classmethod
    def from_table(cls, table: pa.Table) -> MemoryEvents:
        """The events in the host table `memory_events`, whose memory ids are sorted and have events each."""
        memory = Texts.from_column(table["memory_id"])
        columns: dict[str, Any] = {name: table[name].to_numpy() for name in _NUMERIC}
        columns |= {name: Texts.from_column(table[name]) for name in _TEXTS}
        return cls(memory.labels, lookup.ranges(memory.code, len(memory.labels)), memory.code, **columns)

    @property
    def table(self) -> pa.Table:
        """The host table `memory_events`."""
        columns = {name: getattr(self, name) for name in _NUMERIC}
        columns |= {name: getattr(self, name).column for name in _TEXTS}
        return host_table("memory_events", {"memory_id": texts(self.memory, self.memory_ids), **columns})

    def peaks(self) -> Int64:
        """For each memory id, the position of the event with the most memory in use, the file's last if several tie."""
        if not len(self):
            return np.zeros(0, np.int64)
        begin, in_use = self.first[:-1], self.in_use_bytes
        is_largest = in_use == np.maximum.reduceat(in_use, begin)[self.memory]
        last = np.maximum.reduceat(np.where(is_largest, self.row, -1), begin)
        return np.flatnonzero(self.row == last[self.memory])


def memory_events(space: XSpace, steps: Steps) -> MemoryEvents:
    """The memory events of the host plane; empty if none were recorded."""
    rows = space.rows_named(ALLOCATION, DEALLOCATION)
    rows = rows[are_on_host(space, rows)]
    memory_ids, memory = _memory_ids(space, rows)
    order = np.lexsort((space.events.start_ps[rows], memory))
    numbers = _numbers_of(space, rows, order)
    rows, memory = rows[order], memory[order]
    is_allocation = space.events_named(ALLOCATION)[rows]
    previous, following = _neighbours(memory, numbers.integers("addr", 0))
    freed = np.where(~is_allocation & (previous >= 0) & is_allocation[previous], previous, -1)
    shares, has_type = numbers.floats("fragmentation"), numbers.has_integer("data_type")
    found, which = np.unique(numbers.integers("data_type", 0), return_inverse=True)
    return MemoryEvents(
        memory_ids=memory_ids,
        first=lookup.ranges(memory, len(memory_ids)),
        memory=memory,
        row=rows,
        time_ps=space.events.start_ps[rows],
        is_allocation=is_allocation,
        following=following,
        stack_bytes=numbers.amounts("bytes_reserved", 0),
        heap_bytes=numbers.amounts("bytes_allocated", 0),
        free_bytes=numbers.amounts("bytes_available", 0),
        lifetime_peak_bytes=numbers.amounts("peak_bytes_in_use", 0),
        fragmentation=np.where((shares >= 0) & (shares <= 1), shares, np.nan),  # no profiler writes others
        requested_bytes=_sizes(numbers.amounts("requested_bytes", NOT_RECORDED), freed),
        allocation_bytes=_sizes(numbers.amounts("allocation_bytes", NOT_RECORDED), freed),
        op_name=_texts(space, "tf_op", rows).copied_from(freed),
        region_type=_texts(space, "region_type", rows).copied_from(freed),
        data_type=Texts.of(np.where(has_type, which, -1), map(data_type_name, found.tolist())).copied_from(freed),
        shape=_texts(space, "shape", rows, _shape).copied_from(freed),
        step=steps.number[steps.of_event[rows]],
        in_step=(steps.of_event[rows] >= 0) & steps.has_markers,
    )


_NUMERIC = [f.name for f in fields(MemoryEvents) if f.name not in ("memory_ids", "first", "memory", *_TEXTS)]


_NUMBERS = (
    *("addr", "data_type", "bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use"),
    *("fragmentation", "requested_bytes", "allocation_bytes"),
)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Numeric stats of some events, one row per name in `_NUMBERS`. `kind` is 0 where an event lacks the stat."""

    kind: npt.NDArray[np.uint8]
    value: Int64

    def has_integer(self, name: str) -> Bools:
        kind = self.kind[_NUMBERS.index(name)]
        is_integer: Bools = (kind == decoding.INT64) | (kind == decoding.UINT64)
        return is_integer

    def integers(self, name: str, absent: int) -> Int64:
        """Integer values; unsigned numbers from 2^63 on are reinterpreted as signed."""
        return np.where(self.has_integer(name), self.value[_NUMBERS.index(name)], absent)

    def amounts(self, name: str, absent: int) -> Int64:
        """Byte counts, recorded as integers or doubles, clipped to a plausible range."""
        out = np.clip(self.integers(name, absent), min(absent, 0), _MAX_BYTES)
        is_double = self.kind[_NUMBERS.index(name)] == decoding.DOUBLE
        doubles = self.value[_NUMBERS.index(name)][is_double].view(np.float64)
        out[is_double] = np.clip(np.nan_to_num(doubles), 0, _MAX_BYTES)
        return out

    def floats(self, name: str) -> Floats:
        """Values recorded as doubles or integers; NaN where missing."""
        value, is_double = self.value[_NUMBERS.index(name)], self.kind[_NUMBERS.index(name)] == decoding.DOUBLE
        return np.where(is_double, value.view(np.float64), np.where(self.has_integer(name), value, np.nan))


def _numbers_of(space: XSpace, rows: Int64, order: Int64) -> _Numbers:
    """The numeric stats of the events `rows[order]`. `rows` is in file order."""
    column_of_name = np.full(len(space.stat_names), -1, np.int8)
    for column, name in enumerate(_NUMBERS):
        if name in space.stat_names:
            column_of_name[space.stat_names[name]] = column
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    kind, value = np.zeros((len(_NUMBERS), len(rows)), np.uint8), np.zeros((len(_NUMBERS), len(rows)), np.int64)
    stats = (space.event_stats.owner, space.event_stats.name, space.event_stats.kind, space.event_stats.value)
    _fill_columns(stats, column_of_name, rows, place, kind, value)
    return _Numbers(kind, value)


@compiled
def _fill_columns(
    stats: tuple[Array, ...], column_of_name: Array, rows: Array, place: Array, kinds: Array, values: Array
) -> None:
    """Write the stats of the events in `rows` into their columns, at each event's place; of duplicates the last wins.

    `stats`: the columns `owner`, `name`, `kind` and `value`; owners and `rows` are in file order.
    """
    owner, name, kind, value = stats
    at = 0
    for i in range(rows.size):
        while at < owner.size and owner[at] < rows[i]:
            at += 1
        while at < owner.size and owner[at] == rows[i]:
            column = column_of_name[name[at]]
            if column >= 0:
                kinds[column, place[i]] = kind[at]
                values[column, place[i]] = value[at]
            at += 1


def _memory_ids(space: XSpace, rows: Int64) -> tuple[tuple[str, ...], Int64]:
    """(the memory ids, sorted; that of each event). The id is the allocator's name, or else the device's number."""
    found = space.strings("allocator_name")
    code, labels = found.spread()[rows].astype(np.int64), [*map(_label, found.labels)]
    # With the first character that TensorFlow on Windows lost, if only one fits.
    labels = [_FIRST_CHARACTER.get(re.sub(r"\d+", "0", label), "") + label for label in labels]
    for stat in ("index_on_host", "device_ordinal"):
        unnamed = (code < 0) & space.have(stat, rows)
        numbers, which = np.unique(space.number_of(stat, rows[unnamed], 0), return_inverse=True)
        code[unnamed] = len(labels) + which
        labels += map(str, numbers.tolist())
    in_order = sorted({*labels, ""})
    rank = {label: i for i, label in enumerate(in_order)}
    used, code = distinct(np.array([rank[label] for label in (*labels, "")])[code], len(in_order))
    return tuple(in_order[i] for i in used), code


def _neighbours(memory: Int64, address: Int64) -> tuple[Int64, Int64]:
    """(position of the previous, of the next event at the same address of the same memory id), −1 for none."""
    addresses, code = combinations(memory, address)
    _, order = lookup.grouped(code.astype(np.int32), len(addresses))
    here, after = order[:-1], order[1:]
    same = code[here] == code[after]
    previous, following = np.full((2, len(order)), -1, np.int64)
    previous[after[same]] = here[same]
    following[here[same]] = after[same]
    return previous, following


def _sizes(recorded: Int64, freed: Int64) -> Int64:
    """The sizes; on TPUs only allocations record one, so a deallocation gets that of the allocation it frees."""
    return np.where((recorded == NOT_RECORDED) & (freed >= 0), recorded[freed], recorded)


def _label(recorded: str) -> str:
    return "" if recorded == _NULL_TEXT else recorded


def _shape(recorded: str) -> str:
    """The shape; `[32,…]` if the rest is lost, as on Windows: without its `[`, TensorFlow split the text at commas."""
    shape = _label(recorded)
    if _SHAPE_WITHOUT_BRACKET.fullmatch(shape):
        shape = f"[{shape}"
    return f"{shape}{CUT}" if shape.startswith("[") and not shape.endswith("]") else shape


def _texts(space: XSpace, name: str, rows: Int64, label: Callable[[str], str] = _label) -> Texts:
    found = space.strings(name)
    return Texts.of(found.spread()[rows].astype(np.int64), map(label, found.labels))


_DATA_TYPES = (
    *("INVALID", "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool"),
    *("qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource"),
    *("variant", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"),
    *("float8_e5m2fnuz", "int4", "uint4", "int2", "uint2", "float4_e2m1fn"),
)
"""TensorFlow's data types by number (`DataType` in tensorflow/core/framework/types.proto)."""
_FIRST_REFERENCE = 100


def data_type_name(number: int) -> str:
    """The data type's name in TensorFlow's spelling: `float`, `half`, or `float_ref` for a reference type."""
    is_reference = number > _FIRST_REFERENCE
    plain = number - _FIRST_REFERENCE if is_reference else number
    name = _DATA_TYPES[plain] if 0 <= plain < len(_DATA_TYPES) else f"unknown dtype enum ({plain})"
    return f"{name}_ref" if is_reference else name


def memory_summary(events: MemoryEvents) -> pa.Table:
    """The host table `memory_summary`: one row per memory id, sorted by memory id."""
    peak, count = events.peaks(), len(events.memory_ids)
    allocations = np.bincount(events.memory[events.is_allocation], minlength=count)
    in_use = events.in_use_bytes[peak]
    highest = np.maximum(events.lifetime_peak_bytes, events.heap_bytes)
    columns = {
        "memory_id": events.memory_ids,
        "allocations": allocations,
        "deallocations": np.bincount(events.memory, minlength=count) - allocations,
        "capacity_bytes": in_use + events.free_bytes[peak],
        "peak_heap_bytes": np.maximum.reduceat(highest, events.first[:-1]) if count else in_use,
        "peak_bytes": in_use,
        "peak_time_us": events.time_ps[peak] / PS_PER_US,
        **{name: getattr(events, name)[peak] for name in ("stack_bytes", "heap_bytes", "free_bytes", "fragmentation")},
    }
    return host_table("memory_summary", columns)


def memory_peak(events: MemoryEvents) -> pa.Table:
    """The host table `memory_peak`, by memory id, largest allocations first.

    Live at the peak is what was allocated within the profile and not freed by then. The heap that these allocations do
    not explain gets a row `UNEXPLAINED`, the stack a row `STACK`.
    """
    peak = events.peaks()
    until, position = peak[events.memory] if len(events) else events.memory, np.arange(len(events))
    ends_later = (events.following < 0) | (events.following > until)  # neither freed nor its address reused before
    live = np.flatnonzero(events.is_allocation & (position <= until) & ends_later)
    requested, allocated = (np.maximum(sizes[live], 0) for sizes in (events.requested_bytes, events.allocation_bytes))
    explained = sums(events.memory[live], allocated, len(peak))
    unexplained, stack = events.heap_bytes[peak] - explained, events.stack_bytes[peak]
    with_unexplained, with_stack = np.flatnonzero(unexplained > 0), np.flatnonzero(stack > 0)
    memory = np.concatenate([events.memory[live], with_unexplained, with_stack])
    extra = np.append(unexplained[with_unexplained], stack[with_stack])
    requested, allocated = np.append(requested, extra), np.append(allocated, extra)

    columns = {}
    for name in _TEXTS:
        extra_texts = [_UNEXPLAINED_LABELS[name]] * len(with_unexplained) + [_STACK_LABELS[name]] * len(with_stack)
        column: Texts = getattr(events, name)
        labels = sorted({*column.labels, *extra_texts})
        rank = {label: i for i, label in enumerate(labels)}
        of_label = np.array([rank[label] for label in column.labels], np.int64)
        of_extra = np.array([rank[text] for text in extra_texts], np.int64)
        columns[name] = np.append(of_label[column.code[live]], of_extra), labels
    codes = [code for code, _ in columns.values()]
    firsts, row = combinations(memory, *codes)
    requested, allocated = sums(row, requested, len(firsts)), sums(row, allocated, len(firsts))
    keys = [memory[firsts], -allocated, -requested, *(code[firsts] for code in codes)]
    order = np.lexsort(keys[::-1])
    first = firsts[order]
    found = {
        "memory_id": texts(memory[first], events.memory_ids),
        **{name: texts(code[first], labels) for name, (code, labels) in columns.items()},
        "requested_bytes": requested[order],
        "allocation_bytes": allocated[order],
        "occurrences": np.bincount(row, minlength=len(firsts))[order],
    }
    return host_table("memory_peak", found)
