"""The activity of each device event, and how long each device is busy."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.frames.ops.copies import KINDS, copy_kinds
from tfcompare.frames.ops.kernel_details import COLLECTIVE_KERNEL, LOCAL_KERNEL, is_kernel
from tfcompare.frames.ops.precision import SIXTEEN_BIT, THIRTY_TWO_BIT, hlo_precision, kernel_precisions
from tfcompare.frames.ops.tpu_ops import OP_LINES
from tfcompare.frames.planes import device_kind, device_planes, device_rows, events_of_lines
from tfcompare.frames.spans import lowest_kinds
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
_BUSY, _WAITS, _STANDS_AROUND, _OFF = np.arange(4, dtype=np.int8)  # a loop is not busy while it waits
_KIND_OF_ACTIVITY = np.full(len(Activity), _BUSY)
_KIND_OF_ACTIVITY[[Activity.DEVICE_WAIT, Activity.DEVICE_CONTROL]] = _WAITS, _STANDS_AROUND


def device_activities(space: XSpace) -> tuple[Int32, Int8]:
    """(rows of the device events with a duration, the activity of each), by start."""
    kind = device_kind(space)
    if kind == "CPU":
        return np.zeros(0, np.int32), np.zeros(0, np.int8)
    rows, activity = _on_tpu(space) if kind == "TPU" else _on_gpu(space)
    took_time = np.flatnonzero(space.events.duration_ps.take(rows) > 0)
    return by_start(space, rows.take(took_time), activity.take(took_time))


def by_start(space: XSpace, rows: Int32, activity: Int8) -> tuple[Int32, Int8]:
    """These events and their activities in the order in which they start."""
    order = np.argsort(space.events.start_ps.take(rows), kind="stable")
    return rows.take(order), activity.take(order)


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
    category, made = space.metadata_strings("hlo_category"), space.metadata_strings("shape_with_layout")
    of_metadata = np.full(len(names), Activity.DEVICE_COMPUTE, np.int8)
    metadata = space.events.metadata.take(rows)
    used = lookup.used(metadata, len(names))
    activity = cache(_instruction_activity)  # each core has its own entries for the same instructions
    of_metadata[used] = list(map(activity, category.texts(used), made.texts(used), names[used]))
    return rows, of_metadata.take(metadata)


def _instruction_activity(category: str, made: str, instruction: str) -> int:
    """The activity of an HLO instruction, from its category, else its name, and from the types of its operands and of
    what it `made`. What awaits a collective is one: so collectives are the time that nothing hides of them, whether
    they are asynchronous or not."""
    name = instruction.lstrip("%")
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
    if _CONTROL.match(kind):
        return Activity.DEVICE_CONTROL
    return int(_ACTIVITY_OF_PRECISION[hlo_precision(f"{instruction} {made}")])


def busy_and_span_ps(space: XSpace, rows: Int32, activity: Int8) -> Floats:
    """(busy time, time from the first event to the last) of each device plane with events, in picoseconds, as rows.

    `rows` and `activity` are the result of `device_activities`, and may have calls of the host in addition.
    """
    is_off_duty = np.isin(activity, _COPIES_OF_HOST)
    if device_kind(space) == "TPU":
        category = space.metadata_strings("hlo_category")
        of_entry = category.spread()  # −1, the last flag, without a category
        off_duty = np.array([label in _OFF_DUTY for label in [*category.labels, ""]], np.bool_)
        is_off_duty = off_duty.take(of_entry).take(space.events.metadata.take(rows))
    kind = _KIND_OF_ACTIVITY.take(activity)
    kind[is_off_duty & (kind != _WAITS)] = _OFF
    events, out = space.events, []
    first, order = lookup.grouped(space.planes_of(rows).astype(np.int32), len(space.planes))
    for plane, of_device in zip(device_planes(space), device_events(space), strict=True):
        if plane.event_count:
            own = order[first[plane.index] : first[plane.index + 1]]
            spans, found = lowest_kinds(events.start_ps, events.duration_ps, rows.take(own), kind.take(own))
            busy_ps = (spans.end_ps - spans.start_ps)[(found == _BUSY) | (found == _STANDS_AROUND)].sum()
            ran = np.append(rows.take(own)[kind.take(own) != _WAITS], of_device)
            begin = events.start_ps.take(ran)
            end = begin + events.duration_ps.take(ran)
            out.append((busy_ps, end.max() - begin.min() if len(ran) else 0))
    return np.array(out, np.float64).reshape(-1, 2)
