"""What the profiler recorded of a host and its devices, and what it lost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import host_table
from tfcompare.frames.grouping import any_of, combinations
from tfcompare.frames.hlo.programs import programs_of
from tfcompare.frames.ops.copies import copy_kinds
from tfcompare.frames.ops.kernel_details import is_kernel
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.planes import HOST_PLANE, are_on_host, chip_parts, device_kind, device_planes, device_rows
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema import runs as schema
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_ID_OF_LAUNCH = {"GPU": "correlation_id", "TPU": "run_id"}
"""What a launch on the host and the work that it launched have in common."""
_LEAST_KNOWN = 0.99
"""Of the earlier launches of a name, the share whose work is known: where work is missing throughout, as of calls that
launch nothing, it says nothing that later work is. In 73 captures of GPUs and TPUs it was 1 for every name."""

_FEWEST_STEPS = 3
"""With work on devices, so that it is missing in later ones: a program may begin on a device, and go on without."""

_OF_DEVICES = re.compile(r"cupti|nvml|\bgpu|roctracer|rocprof|device tracer|\btpu", re.I)
_HOST = re.compile(r"^\S+: ")
"""What stands before a message: a host's name may be that of a device, such as `gpu-node-3`."""
_NO_DEVICE = re.compile(r"no gpu|no cuda-capable device|no_device|no device", re.I)
_DROPPED = re.compile(r"dropped|reaches max|2 ?gb", re.I)
_NOT_ALLOWED = re.compile(r"privilege|permission|root|NVGPUCTRPERM", re.I)
_NOT_FOUND = re.compile(r"failed to load|not_initialized|accessible", re.I)
_REMEDIES = (
    (
        _NOT_ALLOWED,
        "the driver does not let this user profile; set the module option `NVreg_RestrictProfilingToAdminUsers=0`, or "
        "run the container with `--cap-add=SYS_ADMIN`",
    ),
    (
        _NOT_FOUND,
        "`libcupti` was not found; install CUPTI (`tensorflow[and-cuda]` and `jax[cuda12]` bring it, as does the CUDA "
        "toolkit) on the library path",
    ),
)
_ANY_REMEDY = "check that `libcupti` can be loaded and that the driver lets this user profile"
_LAUNCHING_GPU = re.compile(
    r"^((cuda|cu|hip)\w*Launch(Kernel|CooperativeKernel|Grid)|GpuExecutable::Execute)\w*$", re.M
)
_LAUNCHING_TPU = re.compile(r"^tpu::System::Execute$", re.M)
"""Names of events, each on a line of its own."""


@dataclass(frozen=True, eq=False)
class Recording:
    """What was recorded of the devices of one host.

    `status` is one of those in `schema.recorded`, `device_type` the kind of devices that the program used, also of
    those that were not recorded; `complaint` is the profiler's own message on them, empty for none; `lost`: host events
    that launched work of which nothing was recorded; `knows_launches`: whether any launch is linked to its work.
    """

    status: str
    device_type: str
    complaint: str
    lost: Int64
    knows_launches: bool = False

    @property
    def why_absent(self) -> str:
        """That nothing was recorded of the devices, and what to do, in Markdown; empty if something was."""
        if self.status != schema.ABSENT:
            return ""
        remedy = next((words for pattern, words in _REMEDIES if pattern.search(self.complaint)), _ANY_REMEDY)
        do = "" if self.device_type == "TPU" else f"{remedy}, and "
        lost = f"nothing that ran on the {self.device_type} was recorded, so times of steps are unknown"
        return f"{lost}: {do}record again"


def recording_of(space: XSpace) -> Recording:
    """What was recorded of the devices of this host. Without device events it used those of which it has planes, of
    which the profiler complains, or on which the host launched work."""
    kind, complaint = device_kind(space), _complaint(space)
    if kind != "CPU":
        has_dropped = bool(_DROPPED.search(complaint))
        lost, knows_launches = _lost_launches(space, kind, is_any=has_dropped)
        status = schema.PARTIAL if has_dropped or len(lost) else schema.WHOLE
        return Recording(status, kind, complaint, lost, knows_launches)
    names, missing = "\n".join(space.metadata_names[space.has_events].tolist()), ""
    if planes := device_planes(space):
        missing = "TPU" if planes[0].name.startswith("/device:TPU:") else "GPU"
    elif chip_parts(space) or _LAUNCHING_TPU.search(names):
        missing = "TPU"
    elif complaint or _LAUNCHING_GPU.search(names):
        missing = "GPU"
    return Recording(schema.ABSENT if missing else schema.WHOLE, missing or kind, complaint, np.zeros(0, np.int64))


def messages(space: XSpace) -> list[str]:
    """The profiler's errors and warnings, each in one line."""
    return [" ".join(text.split()) for text in (*space.errors, *space.warnings)]


def _complaint(space: XSpace) -> str:
    """The profiler's message about devices, on dropped events first; empty without any, or if there is no device."""
    found = []
    for text in messages(space):
        message = _HOST.sub("", text)
        for name in space.hostnames:
            message = message.replace(name, "")
        if _OF_DEVICES.search(message) and not _NO_DEVICE.search(message):
            found.append(text)
    return next((text for text in found if _DROPPED.search(text)), found[0] if found else "")


def _lost_launches(space: XSpace, kind: str, *, is_any: bool) -> tuple[Int64, bool]:
    """(rows of the host's launches of which devices recorded nothing, in time order: those after all whose work is
    known, or if `is_any`, all; whether the work of any launch is known).

    That happens where a device's buffer is full, or if the profiler stops while the host is far ahead of the device.
    Launches are the events of the host whose names are among those that have work on a device.
    """
    rows, ids = space.numbers(_ID_OF_LAUNCH[kind])
    on_host = are_on_host(space, rows)
    firsts, code = combinations(ids)
    calls, is_known = rows[on_host].astype(np.int64), any_of(code, ~on_host, len(firsts))[code[on_host]]
    if not is_known.any() or is_known.all():
        return np.zeros(0, np.int64), bool(is_known.any())
    name, start = space.events.metadata[calls], space.events.start_ps[calls]
    names = len(space.metadata_names)
    is_early = start <= start[is_known].max()
    known = np.bincount(name[is_known], minlength=names)
    is_launch = known >= np.maximum(_LEAST_KNOWN * np.bincount(name[is_early], minlength=names), 1)
    lost = ~is_known & ((known[name] > 0) if is_any else is_launch[name] & ~is_early)
    chosen = calls[lost]
    return chosen[np.argsort(start[lost], kind="stable")], True


def without_record(space: XSpace, recording: Recording, steps: Steps) -> Bools:
    """Which steps were not recorded as a whole: all without a record of the devices; those that launched work of which
    nothing was recorded; without launches, those that begin after the devices' last event, if all before ran something
    there."""
    out = np.full(len(steps.number), recording.status == schema.ABSENT, np.bool_)
    if out.all():
        return out
    step = steps.of_event[recording.lost]
    out[step[step >= 0]] = True
    rows = device_rows(space)
    if len(rows) and not recording.knows_launches:
        late = steps.start_ps >= (space.events.start_ps[rows] + space.events.duration_ps[rows]).max()
        has_work = np.isin(np.flatnonzero(~late), steps.of_event[rows]).all() and (~late).sum() >= _FEWEST_STEPS
        if has_work and late.sum() > 1:  # the last one may do nothing there
            out |= late
    return out


def remark(recording: Recording, lost_steps: int, steps: int) -> str:
    """What was lost, how many steps do not count for it, and what to do; empty if nothing was."""
    if recording.status == schema.ABSENT or not (len(recording.lost) or lost_steps):
        return ""
    lost = f"nothing was recorded of the work of {len(recording.lost):,} launches" if len(recording.lost) else ""
    excluded = f"{lost_steps:,} of {steps:,} steps, which were not recorded as a whole, do not count"
    has_complaint = recording.status == schema.PARTIAL and recording.complaint
    why = "the profiler dropped events" if has_complaint else "it was cut short"
    what = "; ".join(filter(None, [lost, excluded if lost_steps else ""]))
    return f"the capture is incomplete ({why}): {what}; profile fewer steps, and wait for the device before it stops"


def recorded(space: XSpace, recording: Recording, ops: Sequence[OpEvents]) -> pa.Table:
    """Columns of `schema.RECORDED` for one host: what there is of its threads, then of each device. `ops` are the op
    events of the host and its devices."""
    of_devices: dict[str, list[Int32]] = {plane.name: [] for plane in device_planes(space)}
    if recording.status == schema.ABSENT and not of_devices:
        of_devices[f"/device:{recording.device_type}"] = []
    of_host: list[Int32] = []
    for plane in ops:
        of_devices.get(plane.device, of_host).append(plane.rows)
    found = [
        (HOST_PLANE, schema.OPS, *_extent(space, _together(of_host))),
        (HOST_PLANE, schema.MEMORY, *_extent(space, space.rows_named("MemoryAllocation", "MemoryDeallocation"))),
        (HOST_PLANE, schema.INPUT, *_extent(space, _rows_of_names(space, "Iterator::"))),
        (HOST_PLANE, schema.PYTHON, *_extent(space, _rows_of_names(space, "$"))),
        (HOST_PLANE, schema.PROGRAMS, len(programs_of(space).ids), np.nan, np.nan),
    ]
    for device, several in of_devices.items():
        rows = _together(several)
        found.append((device, schema.OPS, *_extent(space, rows)))
        if recording.device_type == "GPU":
            found.append((device, schema.KERNELS, *_extent(space, rows[is_kernel(space)[rows]])))
            found.append((device, schema.COPIES, *_extent(space, rows[copy_kinds(space)[rows] >= 0])))
    devices, kinds, counts, first, last = zip(*found, strict=True)
    there = schema.PARTIAL if recording.status == schema.PARTIAL else schema.WHOLE
    statuses = [schema.WHOLE if device == HOST_PLANE else there for device in devices]
    columns = {
        "device": devices,
        "kind": kinds,
        "status": [one if count else schema.ABSENT for one, count in zip(statuses, counts, strict=True)],
        "first_us": np.array(first),
        "last_us": np.array(last),
        "events": np.array(counts, np.int64),
        "complaint": ["" if device == HOST_PLANE else recording.complaint for device in devices],
    }
    return host_table("recorded", columns)


def _extent(space: XSpace, rows: Int32 | Int64) -> tuple[int, float, float]:
    """(the number of these events, start of the first and end of the last in µs)."""
    start, time = space.events.start_ps[rows], space.events.duration_ps[rows]
    return len(rows), *((start.min() / PS_PER_US, (start + time).max() / PS_PER_US) if len(rows) else (np.nan, np.nan))


def _together(rows: list[Int32]) -> Int32:
    return np.concatenate([np.zeros(0, np.int32), *rows])


def _rows_of_names(space: XSpace, prefix: str) -> Int64:
    return space.rows_of_entries(np.array([name[: len(prefix)] == prefix for name in space.metadata_names], np.bool_))
