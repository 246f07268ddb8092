"""How long each device is busy, and from its first event to its last."""

from __future__ import annotations

import numpy as np

from tfcompare.frames.planes import device_kind, device_planes
from tfcompare.frames.spans import NO_SPANS
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.step_spans import device_events
from tfcompare.schema.arrays import Bools, Floats, Int8, Int32
from tfcompare.xspace import XSpace

_OFF_DUTY = frozenset(
    {"infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "async-done", "megacore fusion"}
)
"""The categories of TPU instructions that xprof 2.24.2 leaves out (`IsOffDutyOp` in xla_op_utils.h): exchanges with the
host, waiting, and what stands around others."""
_COPIES_OF_HOST = (Activity.COPY_TO_HOST, Activity.COPY_TO_DEVICE, Activity.COPY_WITHIN_HOST)


def busy_and_span_ps(space: XSpace, rows: Int32, activity: Int8) -> Floats:
    """(busy time, time from the first event to the last) of each device plane with events, in picoseconds, as rows.

    `rows` and `activity` are the result of `device_activities`, and may have calls of the host in addition.
    """
    is_busy, plane_of_row = _is_busy(space, rows, activity), space.planes_of(rows)
    starts, out = space.events.start_ps, []
    for plane in device_planes(space):
        if plane.event_count:
            is_own = plane_of_row == plane.index
            every, busy = np.append(rows[is_own], device_events(space, plane)), rows[is_own & is_busy]
            spans = NO_SPANS.union(starts[busy], starts[busy] + space.events.duration_ps[busy])
            ends = starts[every] + space.events.duration_ps[every]
            out.append(
                ((spans.end_ps - spans.start_ps).sum(), np.ptp(np.append(starts[every], ends)) if len(every) else 0)
            )
    return np.array(out, np.float64).reshape(-1, 2)


def _is_busy(space: XSpace, rows: Int32, activity: Int8) -> Bools:
    if device_kind(space) != "TPU":
        return ~np.isin(activity, _COPIES_OF_HOST)
    category = space.metadata_strings("hlo_category")
    of_entry = category.spread(len(space.metadata_names))  # −1, the last label below, without a category
    is_busy = np.array([label not in _OFF_DUTY for label in [*category.labels, ""]], np.bool_)
    found: Bools = is_busy[of_entry[space.events.metadata[rows]]]
    return found
