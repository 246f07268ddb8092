"""The allocator of the simulated GPU, and the events that it leaves in a profile."""

from __future__ import annotations

from kernels import Tensor
from training_step import Op
from xspace_writer import Line, Value

_LIMIT_BYTES = 61 << 30
_GRANULE_BYTES = 256
_APART_NS = 40
_FIRST_ADDRESS = 0x7F12_4000_0000


class DeviceMemory:
    """Chunks of device memory, each by the name of what it holds. A freed chunk is used again for its own size."""

    def __init__(self, in_use_bytes: int) -> None:
        self._in_use_bytes = _rounded(in_use_bytes)
        self._peak_bytes = self._in_use_bytes
        self._next_address = _FIRST_ADDRESS + self._in_use_bytes
        self._free: dict[int, list[int]] = {}
        self._held: dict[str, tuple[int, int]] = {}

    def warm_up(self, ops: list[Op]) -> None:
        """Go through the allocations of a step that no profile records."""
        unrecorded = Line("", 0, 0)
        for op in ops:
            self.begin(unrecorded, 0, op, 0)
            self.end(unrecorded, 0, op)
        for name in list(self._held):
            self.free(unrecorded, 0, name)

    def begin(self, line: Line, now_ns: int, op: Op, run_id: int) -> None:
        """Allocate what `op` needs."""
        if op.output is not None:
            self.allocate(line, now_ns, op.name, op.output.size_bytes, **_described(op, op.output, "output", run_id))
        if op.temporary is not None:
            size = op.temporary.size_bytes
            described = _described(op, op.temporary, "temp", run_id)
            self.allocate(line, now_ns + _APART_NS, _temporary(op), size, **described)

    def end(self, line: Line, now_ns: int, op: Op) -> None:
        """Free what nothing needs once `op` has been launched."""
        temporary = () if op.temporary is None else (_temporary(op),)
        for i, name in enumerate((*temporary, *op.frees)):
            self.free(line, now_ns + i * _APART_NS, name)

    def allocate(self, line: Line, now_ns: int, name: str, size_bytes: int, **described: Value) -> None:
        """Allocate a chunk; `described` are the stats that tell what it is for."""
        address = self._take(_rounded(size_bytes))
        self._held[name] = address, size_bytes
        self._in_use_bytes += _rounded(size_bytes)
        self._peak_bytes = max(self._peak_bytes, self._in_use_bytes)
        line.add("MemoryAllocation", now_ns, now_ns, **self._state(address, size_bytes), **described)

    def free(self, line: Line, now_ns: int, name: str) -> None:
        """Free that chunk."""
        address, size_bytes = self._held.pop(name)
        self._free.setdefault(_rounded(size_bytes), []).append(address)
        self._in_use_bytes -= _rounded(size_bytes)
        line.add("MemoryDeallocation", now_ns, now_ns, **self._state(address, size_bytes), id=0, data_type=0)

    def _take(self, size: int) -> int:
        if self._free.get(size):
            return self._free[size].pop()
        self._next_address += size
        return self._next_address - size

    def _state(self, address: int, size_bytes: int) -> dict[str, Value]:
        available = _LIMIT_BYTES - self._in_use_bytes
        in_pieces = sum(size * len(addresses) for size, addresses in self._free.items())
        return {
            "allocator_name": "GPU_0_bfc",
            "bytes_reserved": 0,
            "bytes_allocated": self._in_use_bytes,
            "bytes_available": available,
            "fragmentation": round(in_pieces / available, 8),
            "peak_bytes_in_use": self._peak_bytes,
            "requested_bytes": size_bytes,
            "allocation_bytes": _rounded(size_bytes),
            "addr": address,
        }


def _described(op: Op, tensor: Tensor, region: str, run_id: int) -> dict[str, Value]:
    shape = f"[{','.join(map(str, tensor.shape))}]"
    return {
        "tf_op": op.name,
        "id": run_id,
        "region_type": region,
        "data_type": tensor.data_type,
        "shape": shape,
    }


def _temporary(op: Op) -> str:
    return f"{op.name}#temp"


def _rounded(size_bytes: int) -> int:
    return -(-max(size_bytes, 1) // _GRANULE_BYTES) * _GRANULE_BYTES
