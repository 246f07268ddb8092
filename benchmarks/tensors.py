"""Tensors that come and go in a step, and the events by which an allocator tells of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.recording import Changing, Values

_BEFORE_BYTES = 1 << 26  # in use before the recording began
_KEPT = 4  # the latest tensors, which nothing frees yet
_GRANULE_BYTES = 256


class _Tensor(NamedTuple):
    at_ns: int
    line: int
    address: int
    size_bytes: int
    op: str
    shape: str
    region: str
    is_freed: bool = False


class Tensors:
    """The tensors of one step, in the memory of one allocator."""

    def __init__(self, allocator: str, capacity_bytes: int, rng: np.random.Generator) -> None:
        self._allocator = allocator
        self._capacity_bytes = capacity_bytes
        self._rng = rng
        self._changes: list[_Tensor] = []
        self._held: list[_Tensor] = []

    def allocate(self, line: int, at_ns: int, size_bytes: int, op: str, shape: str) -> None:
        """The output of an op."""
        self._held.append(self._allocated(line, at_ns, size_bytes, op, shape, "output"))

    def borrow(self, line: int, begin_ns: int, end_ns: int, size_bytes: int, op: str, shape: str) -> None:
        """What an op needs for as long as it runs."""
        tensor = self._allocated(line, begin_ns, size_bytes, op, shape, "temp")
        self._changes.append(tensor._replace(at_ns=end_ns, is_freed=True))

    def free_one(self, line: int, at_ns: int) -> None:
        """Free some tensor of those that are there by then, but for the last few."""
        there = [i for i, tensor in enumerate(self._held[:-_KEPT]) if tensor.at_ns < at_ns]
        if there:
            tensor = self._held.pop(int(self._rng.choice(there)))
            self._changes.append(tensor._replace(at_ns=at_ns, line=line, is_freed=True))

    def write(self, add: Callable[..., None], line: int, step_id: Changing) -> None:
        """All changes in the order of time, each with what is then in use; what is left is freed on `line` at last."""
        last = max(tensor.at_ns for tensor in self._changes)
        left = [t._replace(at_ns=last + 200 * i, line=line, is_freed=True) for i, t in enumerate(self._held, 1)]
        peak = _BEFORE_BYTES + sum(_rounded(t.size_bytes) for t in self._changes if not t.is_freed)
        in_use = _BEFORE_BYTES
        for tensor in sorted([*self._changes, *left], key=lambda t: t.at_ns):
            in_use += _rounded(tensor.size_bytes) * (-1 if tensor.is_freed else 1)
            stats: Values = {
                "allocator_name": self._allocator,
                "bytes_reserved": 0,
                "bytes_allocated": in_use,
                "bytes_available": self._capacity_bytes - in_use,
                "fragmentation": round(float(self._rng.random()), 6),
                "peak_bytes_in_use": peak,
                "requested_bytes": tensor.size_bytes,
                "allocation_bytes": _rounded(tensor.size_bytes),
                "addr": tensor.address,
            }
            if tensor.is_freed:
                add(tensor.line, "MemoryDeallocation", tensor.at_ns, tensor.at_ns, **stats, id=0, data_type=0)
                continue
            stats |= {"tf_op": tensor.op, "id": step_id, "region_type": tensor.region, "data_type": 1}
            add(tensor.line, "MemoryAllocation", tensor.at_ns, tensor.at_ns, **stats, shape=tensor.shape)

    def _allocated(self, line: int, at_ns: int, size_bytes: int, op: str, shape: str, region: str) -> _Tensor:
        address = 0x7F0000000000 + _GRANULE_BYTES * int(self._rng.integers(1 << 26))
        self._changes.append(_Tensor(at_ns, line, address, size_bytes, op, shape, region))
        return self._changes[-1]


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _GRANULE_BYTES) * _GRANULE_BYTES
