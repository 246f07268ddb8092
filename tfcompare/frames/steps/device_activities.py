"""The activity of each device event."""

from __future__ import annotations

import re

import numpy as np

from tfcompare.frames.ops.copies import KINDS, copy_kinds
from tfcompare.frames.ops.kernel_details import is_kernel
from tfcompare.frames.ops.precision import SIXTEEN_BIT, THIRTY_TWO_BIT, hlo_precision, kernel_precisions
from tfcompare.frames.ops.tpu_ops import OP_LINES
from tfcompare.frames.planes import device_kind, device_planes, device_rows, events_of_lines
from tfcompare.frames.steps.activities import Activity
from tfcompare.schema import kernels
from tfcompare.schema.arrays import Int8, Int32
from tfcompare.xspace import XSpace, lookup

_COLLECTIVE_KERNEL = re.compile(r"nccl|rccl", re.I)
_COLLECTIVE = re.compile(r"(all-reduce|all-gather|all-to-all|ragged-all-to-all|reduce-scatter|collective-\w+)")
_CONTROL = re.compile(r"(while|conditional|call)(?![\w-])")
_TRANSFER = re.compile(r"(send|recv)(-done)?(?![\w-])")

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
    collective = np.array([_COLLECTIVE_KERNEL.match(name) is not None for name in space.metadata_names], np.bool_)
    computing = _ACTIVITY_OF_PRECISION[kernel_precisions(space, rows)]
    activity = np.where(collective[space.events.metadata[rows]], np.int8(Activity.COLLECTIVE), computing)
    of_copy = np.array([_ACTIVITY_OF_COPY[kind] for kind in KINDS], np.int8)
    kind = copy_kinds(space)[rows]
    copied = (kind >= 0) & ~is_kernel(space)[rows]
    activity[copied] = of_copy[kind[copied]]
    return rows, activity


def _on_tpu(space: XSpace) -> tuple[Int32, Int8]:
    lines = [i for plane in device_planes(space) for i in plane.lines if space.lines.name[i] in OP_LINES]
    rows = events_of_lines(space, lines)
    category = space.metadata_strings("hlo_category")
    code = category.spread(len(space.metadata_names))
    shape = space.metadata_strings("shape_with_layout")
    shape_code = shape.spread(len(space.metadata_names))
    of_metadata = np.full(len(space.metadata_names), Activity.DEVICE_COMPUTE, np.int8)
    metadata = space.events.metadata.take(rows)
    for row in lookup.used(metadata, len(of_metadata)).tolist():
        recorded = category.labels[code[row]] if code[row] >= 0 else ""
        name = str(space.metadata_names[row])
        of_metadata[row] = _instruction_activity(recorded or name.lstrip("%"))
        if of_metadata[row] == Activity.DEVICE_COMPUTE:
            made = shape.labels[shape_code[row]] if shape_code[row] >= 0 else ""
            of_metadata[row] = _ACTIVITY_OF_PRECISION[hlo_precision(f"{name} {made}")]
    return rows, of_metadata.take(metadata)


def _instruction_activity(name: str) -> int:
    """The activity of an HLO instruction, from its category or name."""
    if name.startswith("infeed"):
        return Activity.COPY_TO_DEVICE
    if name.startswith("outfeed"):
        return Activity.COPY_TO_HOST
    if _COLLECTIVE.match(name):
        return Activity.COLLECTIVE
    if _TRANSFER.match(name):
        return Activity.COPY_BETWEEN_DEVICES
    return Activity.DEVICE_CONTROL if _CONTROL.match(name) else Activity.DEVICE_COMPUTE
