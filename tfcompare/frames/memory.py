"""`memory_summary`, `memory_timeline` and `memory_peak` of one host."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.frames.memory_events import NOT_RECORDED, Int64, MemoryEvents
from tfcompare.schema.memory import MEMORY_PEAK, MEMORY_SUMMARY, MEMORY_TIMELINE
from tfcompare.xspace.space import PS_PER_US

UNEXPLAINED = "unused preallocated device memory"
"""`op_name` of the heap that no allocation within the profile explains (TensorBoard's name for it): what was allocated
before, and what the allocator keeps in reserve."""

STACK = "stack"
_WHAT = ["op_name", "region_type", "data_type", "shape"]
_SIZES = ["requested_bytes", "allocation_bytes", "occurrences"]


def memory_summary(events: MemoryEvents, host: str) -> pd.DataFrame:
    """Columns of `schema.memory.MEMORY_SUMMARY`, one row a memory id, sorted by it."""
    peak, count = events.peaks(), len(events.memory_ids)
    allocations = np.bincount(events.memory[events.is_allocation], minlength=count)
    in_use = events.in_use_bytes[peak]
    highest = np.maximum(events.lifetime_peak_bytes, events.heap_bytes)
    return MEMORY_SUMMARY.conform(
        pd.DataFrame(
            {
                "host": host,
                "memory_id": pd.Series(events.memory_ids, dtype="str"),
                "allocations": allocations,
                "deallocations": np.bincount(events.memory, minlength=count) - allocations,
                "capacity_bytes": in_use + events.free_bytes[peak],
                "peak_heap_bytes": np.maximum.reduceat(highest, events.first[:-1]) if count else in_use,
                "peak_bytes": in_use,
                "peak_time_us": events.time_ps[peak] / PS_PER_US,
                "stack_bytes": events.stack_bytes[peak],
                "heap_bytes": events.heap_bytes[peak],
                "free_bytes": events.free_bytes[peak],
                "fragmentation": events.fragmentation[peak],
            }
        )
    )


def memory_timeline(events: MemoryEvents, host: str, rows: Int64 | None = None) -> pd.DataFrame:
    """Columns of `schema.memory.MEMORY_TIMELINE`: every event, or those in `rows`, by memory id and time."""
    rows = np.arange(len(events)) if rows is None else rows
    return MEMORY_TIMELINE.conform(
        pd.DataFrame(
            {
                "host": pd.Series(host, index=range(len(rows)), dtype="str"),
                "memory_id": _memory_ids(events, events.memory[rows]),
                "time_us": events.time_ps[rows] / PS_PER_US,
                "event": _EVENTS.take(events.is_allocation[rows].astype(np.int64)),
                "op_name": events.op_name.at(rows),
                "requested_bytes": _where_recorded(events.requested_bytes[rows]),
                "allocation_bytes": _where_recorded(events.allocation_bytes[rows]),
                "region_type": events.region_type.at(rows),
                "data_type": events.data_type.at(rows),
                "shape": events.shape.at(rows),
                "step": pd.arrays.IntegerArray(events.step[rows], ~events.in_step[rows]),
                "stack_bytes": events.stack_bytes[rows],
                "heap_bytes": events.heap_bytes[rows],
                "free_bytes": events.free_bytes[rows],
                "in_use_bytes": events.in_use_bytes[rows],
                "fragmentation": events.fragmentation[rows],
            }
        )
    )


def memory_peak(events: MemoryEvents, host: str) -> pd.DataFrame:
    """Columns of `schema.memory.MEMORY_PEAK`: by memory id, the largest first.

    Live is what was allocated within the profile up to the peak and not deallocated until then. What of the heap that
    leaves is a row `UNEXPLAINED`, the stack a row `STACK`.
    """
    live = _live_at_peak(events)
    special = _special(events, live)
    rows = pd.concat([_described(events, live), special], ignore_index=True)
    merged = rows.groupby(["memory", *_WHAT], sort=False, as_index=False)[_SIZES].sum()
    merged = merged.sort_values(
        ["memory", "allocation_bytes", "requested_bytes", *_WHAT], ascending=[True, False, False, *[True] * len(_WHAT)]
    ).reset_index(drop=True)
    return MEMORY_PEAK.conform(merged.assign(host=host, memory_id=_memory_ids(events, merged["memory"].to_numpy())))


def _live_at_peak(events: MemoryEvents) -> Int64:
    """Positions of the allocations whose address nothing freed or took anew up to the peak of their memory."""
    until = events.peaks()[events.memory] if len(events) else events.memory
    position = np.arange(len(events))
    ends_later = (events.following < 0) | (events.following > until)
    return np.flatnonzero(events.is_allocation & (position <= until) & ends_later)


def _described(events: MemoryEvents, live: Int64) -> pd.DataFrame:
    """A row for each of these allocations."""
    return pd.DataFrame(
        {
            "memory": events.memory[live],
            "op_name": events.op_name.at(live),
            "region_type": events.region_type.at(live),
            "data_type": events.data_type.at(live),
            "shape": events.shape.at(live),
            "requested_bytes": _known(events.requested_bytes[live]),
            "allocation_bytes": _known(events.allocation_bytes[live]),
            "occurrences": 1,
        }
    )


def _special(events: MemoryEvents, live: Int64) -> pd.DataFrame:
    """A row for what of the heap the live allocations do not explain, and one for the stack, where there is any."""
    peak = events.peaks()
    explained = np.zeros(len(peak), np.int64)
    np.add.at(explained, events.memory[live], _known(events.allocation_bytes[live]))
    frames = [
        _special_rows(UNEXPLAINED, "persist/dynamic", events.heap_bytes[peak] - explained),
        _special_rows(STACK, "stack", events.stack_bytes[peak]),
    ]
    return pd.concat(frames, ignore_index=True)


def _special_rows(name: str, region: str, amounts: Int64) -> pd.DataFrame:
    memory = np.flatnonzero(amounts > 0)
    return pd.DataFrame(
        {
            "memory": memory,
            "op_name": pd.Series(name, index=range(len(memory)), dtype="str"),
            "region_type": pd.Series(region, index=range(len(memory)), dtype="str"),
            "data_type": pd.Series("INVALID", index=range(len(memory)), dtype="str"),
            "shape": pd.Series("unknown", index=range(len(memory)), dtype="str"),
            "requested_bytes": amounts[memory],
            "allocation_bytes": amounts[memory],
            "occurrences": 1,
        }
    )


_EVENTS = pd.array(["deallocation", "allocation"], dtype="str")


def _memory_ids(events: MemoryEvents, memory: Int64) -> pd.Series:
    return pd.Series(pd.array(events.memory_ids, dtype="str").take(memory))


def _where_recorded(sizes: Int64) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(sizes, sizes == NOT_RECORDED)


def _known(sizes: Int64) -> Int64:
    return np.where(sizes == NOT_RECORDED, 0, sizes)
