"""The parts of each step as each device of a host sees them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.ops.op_segments import NO_SEGMENTS
from tfcompare.frames.planes import HOST_PLANE, device_planes
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.step_parts import Activities, explain, step_parts
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema import STEP_PARTS
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.space import PS_PER_US

Int64 = npt.NDArray[np.int64]


def device_steps(space: XSpace, steps: Steps, times: Int64, activities: Activities) -> pd.DataFrame:
    """Columns `device`, `step` and `schema.STEP_PARTS`: each step of the host on each of its devices with events.

    A device's parts are those that the step would have if the host's other devices did nothing; they add up to the
    step. A host with at most one device has the parts of its steps; without a device, it is the device `/host:CPU`.
    No rows if nothing marks steps. `times` is the result of `step_parts.explain` for all devices together, `activities`
    that of `find_activities`.
    """
    planes: dict[str, list[Plane]] = {}
    for plane in device_planes(space):
        if plane.event_count:
            planes.setdefault(plane.name, []).append(plane)
    if not steps.has_markers:
        return _frame(HOST_PLANE, steps, times).iloc[:0]
    if len(planes) < 2:
        return _frame(next(iter(planes), HOST_PLANE), steps, times)
    frames = [
        _frame(device, steps, explain(space, steps, _of_device(activities, own), NO_SEGMENTS)[0])
        for device, own in planes.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _of_device(activities: Activities, planes: list[Plane]) -> Activities:
    """The activities without those of other devices. A damaged profile may have several planes of one name."""
    kept = activities.activity == Activity.LAUNCH_CALL
    for plane in planes:
        kept |= (activities.rows >= plane.events.start) & (activities.rows < plane.events.stop)
    return replace(activities, rows=activities.rows[kept], activity=activities.activity[kept])


def _frame(device: str, steps: Steps, times: Int64) -> pd.DataFrame:
    parts = step_parts(times, steps)
    return pd.DataFrame(
        {
            "device": pd.Series([device] * len(steps.number), dtype="str"),
            "step": steps.number,
            **{part: parts[part] / PS_PER_US for part in STEP_PARTS},
        }
    )
