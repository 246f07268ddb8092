"""The parts of each step as each device of a host sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.ops.op_segments import NO_SEGMENTS
from tfcompare.frames.ops.tpu_ops import OP_LINES
from tfcompare.frames.planes import HOST_PLANE, device_planes, events_of_lines, sparse_cores
from tfcompare.frames.spans import NO_SPANS
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.step_parts import Activities, explain, step_parts
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema import STEP_PARTS
from tfcompare.schema.arrays import Bools, Floats, Int64
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.space import PS_PER_US


def device_steps(space: XSpace, steps: Steps, times: Int64, idle_ps: Int64, activities: Activities) -> pa.Table:
    """Columns `device`, `step`, `schema.STEP_PARTS` and `sparse_core_busy_us`: each step of the host on each of its
    devices with events.

    A device's parts are those that the step would have if the host's other devices did nothing; they add up to the
    step. A host with at most one device has the parts of its steps; without a device, it is the device `/host:CPU`.
    No rows if nothing marks steps, nor for steps that were not recorded as a whole. `times` is the result of
    `step_parts.explain` for all devices together, `idle_ps` that of `idle_times`, `activities` that of
    `find_activities`.
    """
    if not steps.has_markers:
        return empty("device_steps")
    names = [plane.name for plane in device_planes(space) if plane.event_count]
    devices = list(dict.fromkeys(names)) or [HOST_PLANE]  # a damaged profile may have several planes of one name
    times_of_devices = [times]
    if len(devices) > 1:
        number = {name: i for i, name in enumerate(devices)}
        device_of_plane = np.array([number.get(plane.name, -1) for plane in space.planes])
        device = device_of_plane[space.planes_of(activities.rows)]
        times_of_devices = [
            explain(space, steps, _of_device(activities, device == i), NO_SEGMENTS)[0] for i in range(len(devices))
        ]
    cores = sparse_cores(space)
    parts, known = [step_parts(of_device, steps, idle_ps) for of_device in times_of_devices], ~steps.is_lost
    return host_table(
        "device_steps",
        {
            "device": [name for name in devices for _ in range(int(known.sum()))],
            "step": np.tile(steps.number[known], len(devices)),
            **{part: np.concatenate([found[part][known] for found in parts]) / PS_PER_US for part in STEP_PARTS},
            "sparse_core_busy_us": np.concatenate(
                [_busy_us(space, steps, cores.get(device, []))[known] for device in devices]
            ),
        },
    )


def _busy_us(space: XSpace, steps: Steps, cores: Sequence[Plane]) -> Floats:
    """How long any of these TPU cores ran ops in each step; NaN if none was recorded."""
    rows = events_of_lines(space, [i for core in cores for i in core.lines if space.lines.name[i] in OP_LINES])
    if not len(rows):
        return np.full(len(steps.number), np.nan)
    start = space.events.start_ps[rows]
    busy = NO_SPANS.union(start, start + space.events.duration_ps[rows])
    return busy.covered_between(steps.start_ps, steps.end_ps) / PS_PER_US


def _of_device(activities: Activities, is_own: Bools) -> Activities:
    """The activities without those of other devices; `is_own`: which of their rows are events of the device."""
    chosen = is_own | (activities.activity == Activity.LAUNCH_CALL)
    return replace(activities, rows=activities.rows[chosen], activity=activities.activity[chosen])
