"""The shapes that ops allocated, as evidence that helps to match ops besides their names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.memory_events import MemoryEvents
from tfcompare.frames.ops.op_parts import OpParts


def with_shapes(parts: OpParts, memory: MemoryEvents) -> OpParts:
    """The parts with a column `shapes`: the distinct shapes allocated by ops of the same name, sorted, empty if
    none."""
    shapes = _allocated_shapes(memory)
    names = parts.parts["op_name"]
    column = pd.Series([shapes.get(name, "") for name in names], index=names.index, dtype="str")
    return OpParts(parts.parts.assign(shapes=column), parts.cells, parts.wall)


def _allocated_shapes(memory: MemoryEvents) -> dict[str, str]:
    ops, shapes = memory.op_name, memory.shape
    allocated = memory.is_allocation & (ops.code >= 0) & (shapes.code >= 0)
    pairs = np.unique(ops.code[allocated] * len(shapes.labels) + shapes.code[allocated])
    found: dict[str, set[str]] = {}
    for op, shape in zip(*_positions(pairs, len(shapes.labels)), strict=True):
        if ops.labels[op] and shapes.labels[shape]:
            found.setdefault(ops.labels[op], set()).add(shapes.labels[shape])
    return {name: " ".join(sorted(texts)) for name, texts in found.items()}


def _positions(pairs: npt.NDArray[np.int64], width: int) -> tuple[list[int], list[int]]:
    return (pairs // width).tolist(), (pairs % width).tolist()
