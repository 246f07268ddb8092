"""The activity of each device event, and how long each device is busy."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.frames.ops.copies import KINDS, copy_kinds
from tfcompare.frames.ops.kernel_details import COLLECTIVE_KERNEL, LOCAL_KERNEL, is_kernel
from tfcompare.frames.ops.precision import SIXTEEN_BIT, THIRTY_TWO_BIT, hlo_precision, kernel_precisions
from tfcompare.frames.ops.tpu_ops import OP_LINES
from tfcompare.frames.planes import device_kind, device_planes, device_rows, events_of_lines
from tfcompare.frames.spans import NO_SPANS
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.step_spans import device_events
from tfcompare.schema import kernels
from tfcompare.schema.arrays import Floats, Int8, Int32
from tfcompare.xspace import XSpace, lookup

_COLLECTIVE = re.compile(r"(all-reduce|all-gather|all-to-all|ragged-all-to-all|reduce-scatter|(async-)?collective-\w+)")
_DONE = re.compile(r"[a-z][a-z -]*-done(?![\w-])")
_TRACE_LINE, _WAIT = "XLA TraceMe", re.compile(r"(barrier-cores|dependency-wait)(?![\w-])")
_CONTROL = re.compile(r"(while|conditional|call)(?![\w-])")
_TRANSFER = re.compile(r"(send|recv)(?![\w-])")

_OFF_DUTY = frozenset(
    {"infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "async-done", "megacore fusion"}
)
"""The categories of TPU instructions that xprof 2.24.2 leaves out (`IsOffDutyOp` in xla_op_utils.h): exchanges with the
host, some waits, and what stands around others. Here all waits are left out."""
_COPIES_OF_HOST = (Activity.COPY_TO_HOST, Activity.COPY_TO_DEVICE, Activity.COPY_WITHIN_HOST)

_ACTIVITY_OF_COPY = {
    kernels.HOST_TO_DEVICE: Activity.COPY_TO_DEVICE,
    kernels.DEVICE_TO_HOST: Activity.COPY_TO_HOST,
    kernels.DEVICE_TO_DEVICE: Activity.COPY_BETWEEN_DEVICES,
    kernels.PEER_TO_PEER: Activity.COPY_BETWEEN_DEVICES,
    kernels.OTHER_COPY: Activity.COPY_BETWEEN_DEVICES,
    kernels.HOST_TO_HOST: Activity.COPY_WITHIN_HOST,
    kernels.MEMORY_SET: Activity.DEVICE_COMPUTE,
}
_ACTIVITY_OF_PRECISION = np.full(3, Activity.DEVICE_COMPUTE, np.int8)
_ACTIVITY_OF_PRECISION[[SIXTEEN_BIT, THIRTY_TWO_BIT]] = Activity.SIXTEEN_BIT_COMPUTE, Activity.THIRTY_TWO_BIT_COMPUTE


def device_activities(space: XSpace) -> tuple[Int32, Int8]:
    """(rows of the device events with a duration, the activity of each)."""
    kind = device_kind(space)
    if kind == "CPU":
        return np.zeros(0, np.int32), np.zeros(0, np.int8)
    rows, activity = _on_tpu(space) if kind == "TPU" else _on_gpu(space)
    took_time = np.flatnonzero(space.events.duration_ps.take(rows) > 0)
    return rows.take(took_time), activity.take(took_time)


def _on_gpu(space: XSpace) -> tuple[Int32, Int8]:
    rows = device_rows(space)
    names = pa.array(space.metadata_names, pa.string())
    found = pc.and_not(*(pc.match_substring_regex(names, each) for each in (COLLECTIVE_KERNEL, LOCAL_KERNEL)))
    collective = found.to_numpy(zero_copy_only=False)
    computing = _ACTIVITY_OF_PRECISION[kernel_precisions(space, rows)]
    activity = np.where(collective[space.events.metadata[rows]], np.int8(Activity.COLLECTIVE), computing)
    of_copy = np.array([_ACTIVITY_OF_COPY[kind] for kind in KINDS], np.int8)
    kind = copy_kinds(space)[rows]
    copied = (kind >= 0) & ~is_kernel(space)[rows]
    activity[copied] = of_copy[kind[copied]]
    return rows, activity


def _on_tpu(space: XSpace) -> tuple[Int32, Int8]:
    on_lines = [i for plane in device_planes(space) for i in plane.lines]
    traced = events_of_lines(space, [i for i in on_lines if space.lines.name[i] == _TRACE_LINE])
    metadata, names = space.events.metadata.take(traced), space.metadata_names
    waits = [row for row in lookup.used(metadata, len(names)).tolist() if _WAIT.match(str(names[row]))]
    ops = events_of_lines(space, [i for i in on_lines if space.lines.name[i] in OP_LINES])
    rows = np.append(ops, traced[np.isin(metadata, waits)])  # and the waits that are no instructions
    category = space.metadata_strings("hlo_category")
    code = category.spread(len(space.metadata_names))
    shape = space.metadata_strings("shape_with_layout")
    shape_code = shape.spread(len(space.metadata_names))
    of_metadata = np.full(len(space.metadata_names), Activity.DEVICE_COMPUTE, np.int8)
    metadata = space.events.metadata.take(rows)
    for row in lookup.used(metadata, len(of_metadata)).tolist():
        recorded = category.labels[code[row]] if code[row] >= 0 else ""
        name = str(space.metadata_names[row])
        of_metadata[row] = _instruction_activity(recorded, name.lstrip("%"))
        if of_metadata[row] == Activity.DEVICE_COMPUTE:
            made = shape.labels[shape_code[row]] if shape_code[row] >= 0 else ""
            of_metadata[row] = _ACTIVITY_OF_PRECISION[hlo_precision(f"{name} {made}")]
    return rows, of_metadata.take(metadata)


def _instruction_activity(category: str, name: str) -> int:
    """The activity of an HLO instruction, from its category, else its name. What awaits a collective is one: so
    collectives are the time that nothing hides of them, whether they are asynchronous or not."""
    kind = category or name
    if kind.startswith("infeed"):
        return Activity.COPY_TO_DEVICE
    if kind.startswith("outfeed"):
        return Activity.COPY_TO_HOST
    if _COLLECTIVE.match(name if kind.startswith("async-") else kind):
        return Activity.COLLECTIVE
    if _DONE.match(kind) or _WAIT.match(kind):
        return Activity.DEVICE_WAIT
    if _TRANSFER.match(kind):
        return Activity.COPY_BETWEEN_DEVICES
    return Activity.DEVICE_CONTROL if _CONTROL.match(kind) else Activity.DEVICE_COMPUTE


def busy_and_span_ps(space: XSpace, rows: Int32, activity: Int8) -> Floats:
    """(busy time, time from the first event to the last) of each device plane with events, in picoseconds, as rows.

    `rows` and `activity` are the result of `device_activities`, and may have calls of the host in addition.
    """
    plane_of_row = space.planes_of(rows)
    is_busy = ~np.isin(activity, _COPIES_OF_HOST)
    if device_kind(space) == "TPU":
        category = space.metadata_strings("hlo_category")
        of_entry = category.spread(len(space.metadata_names))  # −1, the last flag, without a category
        is_on_duty = np.array([label not in _OFF_DUTY for label in [*category.labels, ""]], np.bool_)
        is_busy = is_on_duty[of_entry[space.events.metadata[rows]]] & (activity != Activity.DEVICE_WAIT)
    is_wait, is_around = activity == Activity.DEVICE_WAIT, activity == Activity.DEVICE_CONTROL
    starts, out = space.events.start_ps, []
    for plane, of_device in zip(device_planes(space), device_events(space), strict=True):
        if plane.event_count:
            is_own = plane_of_row == plane.index
            every = np.append(rows[is_own & ~is_wait], of_device)
            ends = starts[every] + space.events.duration_ps[every]
            spans, covered = NO_SPANS, []
            for some in (is_busy & ~is_around, is_wait, is_busy & is_around):  # a loop is not busy while it waits
                chosen = rows[is_own & some]
                spans = spans.union(starts[chosen], starts[chosen] + space.events.duration_ps[chosen])
                covered.append((spans.end_ps - spans.start_ps).sum())
            busy, with_waits, in_all = covered
            out.append((busy + in_all - with_waits, np.ptp(np.append(starts[every], ends)) if len(every) else 0))
    return np.array(out, np.float64).reshape(-1, 2)
