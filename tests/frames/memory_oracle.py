"""What the tests of memory share: xprof's answer as frames, and a plain walk over the events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests import xprof_oracle
from tfcompare.frames.memory_events import MemoryEvents, memory_events
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.step_sources import find_steps
from tfcompare.schema.memory import MEMORY_PEAK, MEMORY_SUMMARY, MEMORY_TIMELINE
from tfcompare.xspace import XSpace

HOST = "worker_0"
WHAT = ["op_name", "region_type", "data_type", "shape"]

Op = tuple[str, int]
"""Name and bytes of an allocation."""


def events_of(space: XSpace) -> MemoryEvents:
    links = grouping.make_links(space)
    stored = grouping.stored_groups(space) if links is None else None
    return memory_events(space, find_steps(space, stored or grouping.group_events(space, links, None)))


def xprof_memory(file: Path) -> dict[str, dict]:
    """xprof's profile of each memory id."""
    profile = xprof_oracle.tool_data("memory_profile", file)
    return profile.get("memoryProfilePerAllocator", {})  # type: ignore[attr-defined]


def xprof_summary(profiles: dict[str, dict]) -> pd.DataFrame:
    rows = []
    for memory_id, profile in sorted(profiles.items()):
        summary, peak = profile["profileSummary"], profile["profileSummary"]["peakStats"]
        rows.append(
            {
                "memory_id": memory_id,
                "capacity_bytes": int(summary["memoryCapacity"]),
                "peak_heap_bytes": int(summary["peakBytesUsageLifetime"]),
                "peak_bytes": int(peak["peakBytesInUse"]),
                "peak_time_us": int(summary["peakStatsTimePs"]) / 1e6,
                "stack_bytes": int(peak["stackReservedBytes"]),
                "heap_bytes": int(peak["heapAllocatedBytes"]),
                "free_bytes": int(peak["freeMemoryBytes"]),
                "fragmentation": peak["fragmentation"],
            }
        )
    return pd.DataFrame(rows, columns=MEMORY_SUMMARY.column_names).drop(
        columns=["host", "allocations", "deallocations"]
    )


def xprof_timeline(profiles: dict[str, dict]) -> pd.DataFrame:
    """The snapshots that xprof kept: columns as `memory_timeline`, less host and step."""
    rows = []
    for memory_id, profile in profiles.items():
        for snapshot in profile["sampledTimelineSnapshots"]:
            stats, activity = snapshot["aggregationStats"], snapshot["activityMetadata"]
            stack, heap = int(stats["stackReservedBytes"]), int(stats["heapAllocatedBytes"])
            rows.append(
                {
                    "memory_id": memory_id,
                    "time_us": int(snapshot["timeOffsetPs"]) / 1e6,
                    "event": activity["memoryActivity"].lower(),
                    **described(activity),
                    "requested_bytes": int(activity["requestedBytes"]),
                    "allocation_bytes": int(activity["allocationBytes"]),
                    "stack_bytes": stack,
                    "heap_bytes": heap,
                    "free_bytes": int(stats["freeMemoryBytes"]),
                    "in_use_bytes": stack + heap,
                    "fragmentation": stats["fragmentation"],
                }
            )
    return pd.DataFrame(rows, columns=MEMORY_TIMELINE.column_names).drop(columns=["host", "step"])


def xprof_peak(profiles: dict[str, dict]) -> pd.DataFrame:
    """xprof's active allocations: columns as `memory_peak`, less host, not yet summed."""
    rows = []
    for memory_id, profile in profiles.items():
        for active in profile["activeAllocations"]:
            special, index = int(active["specialIndex"]), int(active["snapshotIndex"])
            snapshots, specials = profile["memoryProfileSnapshots"], profile["specialAllocations"]
            activity = specials[special] if special >= 0 else snapshots[index]["activityMetadata"]
            count = int(active["numOccurrences"])
            rows.append(
                {
                    "memory_id": memory_id,
                    **described(activity),
                    "requested_bytes": int(activity["requestedBytes"]) * count,
                    "allocation_bytes": int(activity["allocationBytes"]) * count,
                    "occurrences": count,
                }
            )
    return pd.DataFrame(rows, columns=MEMORY_PEAK.column_names).drop(columns="host")


def described(activity: dict[str, str]) -> dict[str, str]:
    return {
        "op_name": _named(activity["tfOpName"]),
        "region_type": _named(activity["regionType"]),
        "data_type": activity["dataType"],
        "shape": activity["tensorShape"],
    }


def walk(recorded: XSpace) -> dict[str, tuple[list[Op], list[Op]]]:
    """By memory id: (op, bytes) of what is live at the peak, and of what was freed before it."""
    found: dict[str, tuple[list[Op], list[Op]]] = {}
    for memory_id, events in plain_events(recorded).items():
        most = max(e["stack"] + e["heap"] for e in events)
        peak = [e for e in sorted(events, key=lambda e: e["row"]) if e["stack"] + e["heap"] == most][-1]
        open_at: dict[int, Op] = {}
        freed = []
        for e in sorted(events, key=lambda e: (e["time"], e["row"])):
            if e["address"] in open_at:
                freed.append(open_at.pop(e["address"]))
            if e["is_allocation"]:
                open_at[e["address"]] = (e["op"], e["bytes"])
            if e is peak:
                break
        found[memory_id] = (list(open_at.values()), freed)
    return found


def plain_events(recorded: XSpace) -> dict[str, list[dict]]:
    """The memory events as dictionaries, by memory id."""
    number = {
        stat: recorded.number_of_each(stat, 0)
        for stat in ("addr", "bytes_reserved", "bytes_allocated", "allocation_bytes", "index_on_host")
    }
    text = {}
    for stat in ("allocator_name", "tf_op"):
        found = recorded.strings(stat)
        text[stat] = dict(zip(found.owners.tolist(), (found.labels[c] for c in found.codes), strict=True))
    out: dict[str, list[dict]] = {}
    is_allocation = recorded.named("MemoryAllocation")
    for row in np.flatnonzero(recorded.named("MemoryAllocation", "MemoryDeallocation")).tolist():
        memory_id = text["allocator_name"].get(row, str(number["index_on_host"][row]))
        out.setdefault(memory_id, []).append(
            {
                "row": row,
                "time": int(recorded.events.start_ps[row]),
                "is_allocation": bool(is_allocation[row]),
                "address": int(number["addr"][row]),
                "stack": int(number["bytes_reserved"][row]),
                "heap": int(number["bytes_allocated"][row]),
                "op": text["tf_op"].get(row, ""),
                "bytes": int(number["allocation_bytes"][row]),
            }
        )
    return out


def _named(text: str) -> str:
    """What a profiler wrote that was handed no text names nothing; xprof shows it as it stands."""
    return "" if text == "(null)" else text
