"""`memory_timeline` of one host: a row per allocation and deallocation, made on demand since it may be large."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.frames.memory_events import NOT_RECORDED, MemoryEvents, Texts
from tfcompare.schema.arrays import Int64
from tfcompare.schema.memory import MEMORY_TIMELINE
from tfcompare.xspace.space import PS_PER_US

_EVENTS = ("deallocation", "allocation")


def memory_timeline(events: MemoryEvents, host: str, rows: Int64 | None = None) -> pd.DataFrame:
    """Columns of `schema.memory.MEMORY_TIMELINE` for all events, or for those in `rows`, sorted by memory id and
    time."""
    rows = np.arange(len(events)) if rows is None else rows
    return MEMORY_TIMELINE.conform(
        pd.DataFrame(
            {
                "host": pd.Series(host, index=range(len(rows)), dtype="str"),
                "memory_id": _texts(Texts(events.memory, events.memory_ids), rows),
                "time_us": events.time_ps[rows] / PS_PER_US,
                "event": _texts(Texts(events.is_allocation.astype(np.int64), _EVENTS), rows),
                "op_name": _texts(events.op_name, rows),
                "requested_bytes": _sizes(events.requested_bytes[rows]),
                "allocation_bytes": _sizes(events.allocation_bytes[rows]),
                "region_type": _texts(events.region_type, rows),
                "data_type": _texts(events.data_type, rows),
                "shape": _texts(events.shape, rows),
                "step": pd.arrays.IntegerArray(events.step[rows], ~events.in_step[rows]),
                "stack_bytes": events.stack_bytes[rows],
                "heap_bytes": events.heap_bytes[rows],
                "free_bytes": events.free_bytes[rows],
                "in_use_bytes": events.in_use_bytes[rows],
                "fragmentation": events.fragmentation[rows],
            }
        )
    )


def _texts(column: Texts, rows: Int64) -> pd.Series:
    return pd.Series(pd.array(column.labels, dtype="str").take(column.code[rows]))


def _sizes(sizes: Int64) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(sizes, sizes == NOT_RECORDED)
