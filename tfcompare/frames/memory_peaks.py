"""`memory_summary` and `memory_peak` of one host."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import host_table, texts
from tfcompare.frames.grouping import combinations, sums
from tfcompare.frames.memory_events import NOT_RECORDED, MemoryEvents, Texts
from tfcompare.schema.arrays import Int64
from tfcompare.xspace.space import PS_PER_US

UNEXPLAINED = "unused preallocated device memory"
"""`op_name` of heap memory that no allocation in the profile explains (TensorBoard's name): what was allocated before
the profile began, and the allocator's reserve."""

STACK = "stack"
_LABELS = ("op_name", "region_type", "data_type", "shape")
_UNEXPLAINED_LABELS = dict(zip(_LABELS, (UNEXPLAINED, "persist/dynamic", "INVALID", "unknown"), strict=True))
_STACK_LABELS = dict(zip(_LABELS, (STACK, "stack", "INVALID", "unknown"), strict=True))


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
    explained = sums(events.memory[live], _zero_if_unknown(events.allocation_bytes[live]), len(peak))
    unexplained, stack = events.heap_bytes[peak] - explained, events.stack_bytes[peak]
    with_unexplained, with_stack = np.flatnonzero(unexplained > 0), np.flatnonzero(stack > 0)
    memory = np.concatenate([events.memory[live], with_unexplained, with_stack])
    extra = np.append(unexplained[with_unexplained], stack[with_stack])
    requested = np.append(_zero_if_unknown(events.requested_bytes[live]), extra)
    allocated = np.append(_zero_if_unknown(events.allocation_bytes[live]), extra)

    columns = {}
    for name in _LABELS:
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


def _zero_if_unknown(sizes: Int64) -> Int64:
    return np.where(sizes == NOT_RECORDED, 0, sizes)
