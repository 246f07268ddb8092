"""`copies`: what one host's GPUs copied between and within memories, and what they set to a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table, texts
from tfcompare.frames.grouping import distinct, sums
from tfcompare.frames.ops.kernel_details import is_kernel
from tfcompare.frames.planes import device_kind, device_rows
from tfcompare.schema import kernels as schema
from tfcompare.schema.arrays import Int8, Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US, once_per_space

_MEMCPY_DETAILS = "memcpy_details"
_MEMSET_DETAILS = ("memset_details", "Memset_details")

KINDS = [
    *(schema.HOST_TO_DEVICE, schema.DEVICE_TO_HOST, schema.DEVICE_TO_DEVICE, schema.PEER_TO_PEER),
    *(schema.HOST_TO_HOST, schema.MEMORY_SET, schema.OTHER_COPY),
]
_KIND_OF_SIDES = {
    "hd": schema.HOST_TO_DEVICE,
    "dh": schema.DEVICE_TO_HOST,
    "dd": schema.DEVICE_TO_DEVICE,
    "pp": schema.PEER_TO_PEER,
    "hh": schema.HOST_TO_HOST,
}
_SIDE_OF_MEMORY = {"pageable": "h", "pinned": "h", "device": "d", "device_static": "d", "array": "d"}

_SIDE = "(h|d|p|host|device|peer)"
_COPY = re.compile(rf"(?:cpy|copy)[ _]?{_SIDE}_?(?:to|2)_?{_SIDE}(?![a-z])", re.I)
_SET = re.compile(r"memset|fillbuffer", re.I)
_MEMORIES = re.compile(r"kind_src:(\w+) kind_dst:(\w+)")
_SIZE = re.compile(r"(?:^|[ \n])(?:size|num_bytes):([0-9]{1,15})(?![^ \n])")
_UNKNOWN = -1

_PS_PER_S = 1e12


def copies(space: XSpace) -> pa.Table:
    """Columns of `schema.COPIES`, by device, longest time first; no rows if no GPU recorded a copy.

    The kind comes from the copy's name, else from the memories in its details, else from its stream's name. Copies made
    by kernels (AMD's `__amd_rocclr_copyBuffer`) are in `kernel_stats` instead.
    """
    if device_kind(space) != "GPU":
        return empty("copies")
    rows = device_rows(space)
    rows = rows[~is_kernel(space)[rows]]
    kind, size = copy_kinds(space)[rows], _sizes(space)[rows]
    rows, kind, size = rows[kind >= 0], kind[kind >= 0], size[kind >= 0]
    duration = space.events.duration_ps[rows]
    has_size = size != _UNKNOWN
    is_timed = has_size & (duration > 0)
    keys, code = distinct(space.planes_of(rows) * len(KINDS) + kind, len(space.planes) * len(KINDS))
    count = np.bincount(code, minlength=len(keys))
    size_bytes, duration_ps = sums(code, size, len(keys)), sums(code, duration, len(keys))
    timed_bytes, timed_ps = (sums(code, np.where(is_timed, of, 0), len(keys)) for of in (size, duration))
    order = np.lexsort((keys, -duration_ps, keys // len(KINDS)))
    is_known = np.bincount(code, has_size, len(keys)) == count
    rate = timed_bytes / np.maximum(timed_ps, 1) * _PS_PER_S
    columns = {
        "device": [space.planes[i].name for i in (keys[order] // len(KINDS)).tolist()],
        "kind": texts(keys[order] % len(KINDS), KINDS),
        "occurrences": count[order],
        "size_bytes": pa.array(size_bytes[order], mask=~is_known[order]),
        "duration_us": duration_ps[order] / PS_PER_US,
        "bandwidth_bytes_per_s": pa.array(rate[order], mask=timed_ps[order] == 0),
    }
    return host_table("copies", columns)


@once_per_space
def copy_kinds(space: XSpace) -> Int8:
    """The kind of each event as a position in `KINDS`, −1 if it is no copy."""
    details = space.strings(_MEMCPY_DETAILS)
    details_code = details.spread()
    set_to = np.logical_or.reduce([space.has(name) for name in _MEMSET_DETAILS])
    kind = np.where(details_code >= 0, np.int8(KINDS.index(schema.OTHER_COPY)), np.int8(-1))
    for better in (
        _codes(_kind_of_name, space.lines.name).take(space.events.line),
        _codes(_kind_of_memories, details.labels).take(details_code),
        _codes(_kind_of_name, space.metadata_names).take(space.events.metadata),
    ):
        np.copyto(kind, better, where=better >= 0)
    kind[set_to] = KINDS.index(schema.MEMORY_SET)
    return kind


def _codes(kind_of: Callable[[str], str | None], texts: Iterable[str]) -> Int8:
    """The kind of each text as a position in `KINDS`, −1 for none; one more −1 at the end for missing texts."""
    kinds = {text: kind_of(text) for text in dict.fromkeys(texts)}
    code = {text: KINDS.index(kind) if kind is not None else -1 for text, kind in kinds.items()}
    return np.array([*(code[text] for text in texts), -1], np.int8)


def _kind_of_name(name: str) -> str | None:
    """The kind that the name of an event or stream contains; None if it contains none or several."""
    found = {f"{source[0]}{target[0]}".lower() for source, target in _COPY.findall(name)}
    kinds = {_KIND_OF_SIDES.get(sides, schema.OTHER_COPY) for sides in found}
    if _SET.search(name):
        kinds.add(schema.MEMORY_SET)
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_memories(details: str) -> str | None:
    """The kind that NVIDIA's newer details give by source and target memory; None if either may be host or device."""
    found = _MEMORIES.search(details)
    sides = [_SIDE_OF_MEMORY.get(memory, "?") for memory in found.groups()] if found else []
    return _KIND_OF_SIDES.get("".join(sides))


def _sizes(space: XSpace) -> Int64:
    """Bytes copied or set by each event, `_UNKNOWN` if not recorded."""
    out = np.full(len(space.events), _UNKNOWN)
    for name in (_MEMCPY_DETAILS, *_MEMSET_DETAILS):
        details = space.strings(name)
        sizes = [_SIZE.search(label) for label in details.labels]
        of_label = np.array([int(size[1]) if size else _UNKNOWN for size in sizes], np.int64)
        out[details.owners] = of_label[details.codes]
    return out
