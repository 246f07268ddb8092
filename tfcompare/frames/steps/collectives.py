"""`collectives`: the first op or event of each step in which one host exchanges data with others, or waits for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.planes import device_planes, host_plane
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema import DEVICE
from tfcompare.schema.arrays import Bools
from tfcompare.xspace import XSpace

_OP_TYPE = r"^(Collective(Reduce|Gather|Bcast|AllToAll|Permute)|_?Nccl(AllReduce|Reduce|Broadcast))"
_NAME = r"(?i)^(nccl|rccl|nvshmem|all-reduce|all-gather|all-to-all|ragged-all-to-all|reduce-scatter|collective-)"
"""Of libraries that reach other hosts, and of instructions: other kernels exchange data within a host."""


def are_collectives(names: pa.Array, *, op_types: bool = False) -> Bools:
    """Which of these names of events, or types of ops, are those of collectives."""
    found: Bools = pc.match_substring_regex(names, _OP_TYPE if op_types else _NAME).to_numpy(zero_copy_only=False)
    return found


def collectives(space: XSpace, steps: Steps, ops: Sequence[OpEvents]) -> pa.Table:
    """Columns `step`, `name` (of the op, or else of the event), `start_ps` and `duration_ps`, one row for each step
    with a collective; of several that start together, as `timeline_spans` sorts them.

    No rows if nothing marks steps.
    """
    names = space.shown_names
    is_one = are_collectives(pa.array(names, pa.string()))
    types = [are_collectives(plane.parts["op_type"], op_types=True) for plane in ops]
    if not steps.has_markers or not (is_one.any() or any(each.any() for each in types)):
        return empty("collectives")
    events = space.events
    chosen = is_one[events.metadata]
    for plane, of_type in zip(ops, types, strict=True):
        chosen[plane.rows[of_type[plane.part]]] = True
    lines = [i for plane in (host_plane(space), *device_planes(space)) if plane is not None for i in plane.lines]
    place = np.full(len(space.lines.name), -1, np.int64)
    place[lines] = np.arange(len(lines))
    rows = np.flatnonzero(chosen)
    rows = rows[(steps.of_event[rows] >= 0) & (place[events.line[rows]] >= 0) & (events.occurrences[rows] <= 0)]
    start, duration, name = events.start_ps[rows], events.duration_ps[rows], names[events.metadata[rows]]
    for plane in ops:
        own = np.flatnonzero(np.isin(plane.rows, rows))
        at, op = (
            np.searchsorted(rows, plane.rows[own]),
            plane.parts["op_name"].to_numpy(zero_copy_only=False)[plane.part[own]],
        )
        name[at] = np.where(op != "", op, name[at])
        if plane.host_or_device == DEVICE:
            start[at], duration[at] = plane.start_ps[own], plane.total_ps[own]
    order = np.lexsort((-duration, place[events.line[rows]], start))
    of_step, first = np.unique(steps.of_event[rows][order], return_index=True)
    at = order[first]
    return host_table(
        "collectives",
        {
            "step": steps.number[of_step],
            "name": name[at],
            "start_ps": start[at],
            "duration_ps": duration[at],
        },
    )
