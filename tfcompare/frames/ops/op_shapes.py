"""The shapes that ops allocated, as evidence that helps to match ops besides their names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfcompare.frames.memory_events import CUT, MemoryEvents


def with_shapes(parts: pa.Table, memory: MemoryEvents) -> pa.Table:
    """The table `op_parts` with its column `shapes`: the distinct shapes allocated by ops of the same name, sorted,
    empty if none, and if one is cut: it would seem equal to others, or unlike its own in another run."""
    shapes, names = _allocated_shapes(memory), parts["op_name"].combine_chunks()
    of_name = pa.array([shapes.get(name, "") for name in names.dictionary.to_pylist()], pa.string())
    at = parts.schema.get_field_index("shapes")
    return parts.set_column(at, parts.schema.field(at), of_name.take(names.indices).dictionary_encode())


def _allocated_shapes(memory: MemoryEvents) -> dict[str, str]:
    ops, shapes = memory.op_name, memory.shape
    allocated = memory.is_allocation & (ops.code >= 0) & (shapes.code >= 0)
    pairs = np.unique(ops.code[allocated] * len(shapes.labels) + shapes.code[allocated])
    found: dict[str, set[str]] = {}
    for op, shape in zip(*_positions(pairs, len(shapes.labels)), strict=True):
        if ops.labels[op] and shapes.labels[shape]:
            found.setdefault(ops.labels[op], set()).add(shapes.labels[shape])
    return {
        name: " ".join(sorted(texts)) for name, texts in found.items() if not any(text.endswith(CUT) for text in texts)
    }


def _positions(pairs: npt.NDArray[np.int64], width: int) -> tuple[list[int], list[int]]:
    return (pairs // width).tolist(), (pairs % width).tolist()
