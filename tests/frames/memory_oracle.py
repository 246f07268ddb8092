"""What the tests of memory share: xprof's answer as frames, and a plain walk over the events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests import xprof_oracle
from tests.frames.tables import host_frame, steps_in
from tfcompare.frames.memory_events import MemoryEvents, memory_events, memory_peak, memory_summary
from tfcompare.schema.memory import MEMORY_PEAK, MEMORY_SUMMARY, MEMORY_TIMELINE
from tfcompare.xspace import XSpace

HOST = "worker_0"
WHAT = ["op_name", "region_type", "data_type", "shape"]

Op = tuple[str, int]
"""Name and bytes of an allocation."""


def events_of(space: XSpace) -> MemoryEvents:
    return memory_events(space, steps_in(space))


def summary_of(events: MemoryEvents) -> pd.DataFrame:
    return host_frame("memory_summary", memory_summary(events), HOST)


def peak_of(events: MemoryEvents) -> pd.DataFrame:
    return host_frame("memory_peak", memory_peak(events), HOST)


def xprof_memory(file: Path) -> dict[str, dict]:
    """xprof's profile of each memory id."""
    return xprof_oracle.tool_data("memory_profile", file).get("memoryProfilePerAllocator", {})  # type: ignore[attr-defined]


def xprof_summary(profiles: dict[str, dict]) -> pd.DataFrame:
    """Columns as `memory_summary`, less those that xprof does not have."""
    rows = []
    for memory_id, profile in sorted(profiles.items()):
        summary = profile["profileSummary"]
        peak = summary["peakStats"]
        sizes = (summary["memoryCapacity"], summary["peakBytesUsageLifetime"], peak["peakBytesInUse"])
        parts = (peak["stackReservedBytes"], peak["heapAllocatedBytes"], peak["freeMemoryBytes"])
        time_us = int(summary["peakStatsTimePs"]) / 1e6
        rows.append([memory_id, *map(int, sizes), time_us, *map(int, parts), peak["fragmentation"]])
    columns = [c for c in MEMORY_SUMMARY.column_names if c not in ("host", "allocations", "deallocations")]
    return pd.DataFrame(rows, columns=columns)


def xprof_timeline(profiles: dict[str, dict]) -> pd.DataFrame:
    """The snapshots that xprof kept: columns as `memory_timeline`, less host and step."""
    rows = []
    for memory_id, profile in profiles.items():
        for snapshot in profile["sampledTimelineSnapshots"]:
            stats, activity = snapshot["aggregationStats"], snapshot["activityMetadata"]
            stack, heap = int(stats["stackReservedBytes"]), int(stats["heapAllocatedBytes"])
            rows.append(
                described(activity)
                | {"memory_id": memory_id, "time_us": int(snapshot["timeOffsetPs"]) / 1e6}
                | {"event": activity["memoryActivity"].lower(), "fragmentation": stats["fragmentation"]}
                | {"stack_bytes": stack, "heap_bytes": heap, "in_use_bytes": stack + heap}
                | {"free_bytes": int(stats["freeMemoryBytes"])}
            )
    return pd.DataFrame(rows, columns=MEMORY_TIMELINE.column_names).drop(columns=["host", "step"])


def xprof_peak(profiles: dict[str, dict]) -> pd.DataFrame:
    """xprof's active allocations: columns as `memory_peak`, less host, not yet summed."""
    rows = []
    for memory_id, profile in profiles.items():
        for active in profile["activeAllocations"]:
            special, index = int(active["specialIndex"]), int(active["snapshotIndex"])
            snapshots, specials = profile["memoryProfileSnapshots"], profile["specialAllocations"]
            found = described(specials[special] if special >= 0 else snapshots[index]["activityMetadata"])
            count = int(active["numOccurrences"])
            sizes = {column: count * found[column] for column in ("requested_bytes", "allocation_bytes")}
            rows.append(found | sizes | {"memory_id": memory_id, "occurrences": count})
    return pd.DataFrame(rows, columns=MEMORY_PEAK.column_names).drop(columns="host")


def described(activity: dict[str, str]) -> dict[str, Any]:
    """What an allocation is of, and its sizes. A profiler that was handed no text wrote `(null)`, which names
    nothing; xprof shows it as it stands."""
    names = {"op_name": "tfOpName", "region_type": "regionType", "data_type": "dataType", "shape": "tensorShape"}
    sizes = {"requested_bytes": int(activity["requestedBytes"]), "allocation_bytes": int(activity["allocationBytes"])}
    return {ours: activity[theirs].replace("(null)", "") for ours, theirs in names.items()} | sizes


def walk(recorded: XSpace) -> dict[str, list[Op]]:
    """By memory id: (op, bytes) of what is live at the peak."""
    found: dict[str, list[Op]] = {}
    for memory_id, events in plain_events(recorded).items():
        most = max(e["stack"] + e["heap"] for e in events)
        peak = [e for e in sorted(events, key=lambda e: e["row"]) if e["stack"] + e["heap"] == most][-1]
        open_at: dict[int, Op] = {}
        for e in sorted(events, key=lambda e: (e["time"], e["row"])):
            open_at.pop(e["address"], None)
            if e["is_allocation"]:
                open_at[e["address"]] = (e["op"], e["bytes"])
            if e is peak:
                break
        found[memory_id] = list(open_at.values())
    return found


def plain_events(recorded: XSpace) -> dict[str, list[dict]]:
    """The memory events as dictionaries, by memory id."""
    numbers = ("addr", "bytes_reserved", "bytes_allocated", "allocation_bytes", "index_on_host")
    every = np.arange(len(recorded.events))
    number = {stat: recorded.number_of(stat, every, 0).tolist() for stat in numbers}
    text = {}
    for stat in ("allocator_name", "tf_op"):
        found = recorded.strings(stat)
        text[stat] = dict(zip(found.owners.tolist(), (found.labels[c] for c in found.codes), strict=True))
    out: dict[str, list[dict]] = {}
    is_allocation = recorded.events_named("MemoryAllocation")
    for row in np.flatnonzero(recorded.events_named("MemoryAllocation", "MemoryDeallocation")).tolist():
        memory_id = text["allocator_name"].get(row, str(number["index_on_host"][row]))
        out.setdefault(memory_id, []).append(
            {
                "row": row,
                "time": int(recorded.events.start_ps[row]),
                "is_allocation": bool(is_allocation[row]),
                "address": number["addr"][row],
                "stack": number["bytes_reserved"][row],
                "heap": number["bytes_allocated"][row],
                "op": text["tf_op"].get(row, ""),
                "bytes": number["allocation_bytes"][row],
            }
        )
    return out
