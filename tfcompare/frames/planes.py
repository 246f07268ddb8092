"""Which planes hold the host and the devices, and which lines are recorded rather than derived."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tfcompare.schema import DEVICE, HOST, SPARSE_CORE
from tfcompare.xspace import Plane, XSpace

HOST_PLANE = "/host:CPU"
METADATA_PLANE = "/host:metadata"
ENVIRONMENT_PLANE = "Task Environment"
HLO_OP = "hlo_op"
"""The stat that names the instruction of an XLA program that an event ran."""

_TPU, _GPU, _DEVICE = "/device:TPU:", "/device:GPU:", "/device:"
_CUSTOM = "/device:CUSTOM:"
"""Planes of XLA beside those of devices, such as `/device:CUSTOM:Megascale Trace`: no device."""
_PART_OF_CHIP = re.compile(r"(/device:TPU:[0-9]+) (.+)")
"""Planes of parts of a TPU chip, such as `/device:TPU:0 SparseCore 1`: no devices either."""

_FIRST_DERIVED_LINE = -559038737  # 0xdeadbeef as a signed 32-bit number
_LAST_DERIVED_LINE = _FIRST_DERIVED_LINE + 405
STEPS_LINE = _FIRST_DERIVED_LINE
_NOTHING_RAN = ("_counters_", "Host Runtime Call")
"""Lines of device planes on which nothing ran there: samples of hardware counters, and calls of the host, which Intel's
plug-in profiler puts beside its queues (`XPU queue/0`)."""


def host_plane(space: XSpace) -> Plane | None:
    """The plane of host threads."""
    return next((p for p in space.planes if p.name == HOST_PLANE), None)


def are_on_host(space: XSpace, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each of these events is on the plane of host threads."""
    host = host_plane(space)
    own = host.events if host is not None else slice(0, 0)
    return (rows >= own.start) & (rows < own.stop)


def device_planes(space: XSpace) -> list[Plane]:
    """The TPU planes if there are any, else the GPU planes, else those of other devices, in file order.

    Profilers of plug-in devices choose the names of their planes: TensorFlow's example and Intel's write
    `/device:GPU:0`; what Apple's closed tensorflow-metal writes is not known.
    """
    planes = [p for p in space.planes if not p.name.startswith(_CUSTOM) and not _PART_OF_CHIP.fullmatch(p.name)]
    of_kinds = ([p for p in planes if p.name.startswith(prefix)] for prefix in (_TPU, _GPU, _DEVICE))
    return next(filter(None, of_kinds), [])


def chip_parts(space: XSpace) -> dict[str, list[Plane]]:
    """The planes of parts of each TPU chip, such as its SparseCores, by the name of the chip's own plane."""
    found: dict[str, list[Plane]] = {}
    for plane in space.planes:
        if part := _PART_OF_CHIP.fullmatch(plane.name):
            found.setdefault(part[1], []).append(plane)
    return found


def sparse_cores(space: XSpace) -> dict[str, list[Plane]]:
    """The planes with events of each TPU chip's SparseCores, by the name of the chip's own plane."""
    of_chips = chip_parts(space).items()
    return {chip: [p for p in parts if p.event_count and place_of(p.name) == SPARSE_CORE] for chip, parts in of_chips}


def place_of(plane_name: str) -> str:
    """Where the ops of a plane ran, as `host_or_device` in the tables: `HOST`, `DEVICE` or `SPARSE_CORE`."""
    part = _PART_OF_CHIP.fullmatch(plane_name)
    if part is not None and part[2].startswith(SPARSE_CORE):
        return SPARSE_CORE
    return HOST if plane_name == HOST_PLANE else DEVICE


def names_instructions(plane_name: str) -> bool:
    """Whether events of compiled programs on a plane are named by their instructions; those of GPUs are by kernels,
    which several instructions may share."""
    return plane_name == HOST_PLANE or plane_name.startswith(_TPU)


def other_devices(space: XSpace) -> list[str]:
    """The names of devices that ran something and are neither TPUs nor GPUs by their planes, such as `METAL:0`."""
    names = [p.name for p in device_planes(space) if p.event_count]
    return [name.removeprefix(_DEVICE) for name in names if not name.startswith((_TPU, _GPU))]


def device_kind(space: XSpace) -> str:
    """`TPU` or `GPU` if the profile has events of such devices, else `CPU`; other devices are read as GPUs are."""
    planes = [p for p in device_planes(space) if p.event_count]
    if not planes:
        return "CPU"
    return "TPU" if planes[0].name.startswith(_TPU) else "GPU"


def shown_lines(space: XSpace) -> list[int]:
    """The lines of the host, then those of each device and of the parts of its chip, that have events."""
    host, parts = host_plane(space), chip_parts(space)
    planes = [host] if host is not None else []
    for device in device_planes(space):
        planes += [device, *parts.pop(device.name, [])]
    planes += [part for of_chip in parts.values() for part in of_chip]
    return [line for plane in planes for line in plane.lines if space.lines.event_count[line]]


def recorded_lines(space: XSpace) -> npt.NDArray[np.bool_]:
    """Whether each line has recorded events; others were derived (`Steps`, `TensorFlow Ops`, …), or are of counters."""
    short = space.lines.id.astype(np.int32)  # the form in which derived lines are recognised
    is_derived = (short >= _FIRST_DERIVED_LINE) & (short <= _LAST_DERIVED_LINE)
    return ~is_derived & np.array([name not in _NOTHING_RAN for name in space.lines.name], np.bool_)


def recorded_on(space: XSpace, plane: Plane) -> npt.NDArray[np.bool_]:
    """Whether each event is on a recorded line of the plane."""
    out = np.zeros(len(space.events), np.bool_)
    recorded, first, count = recorded_lines(space), space.lines.first_event, space.lines.event_count
    for line in plane.lines:
        out[first[line] : first[line] + count[line]] = recorded[line]
    return out


def events_of_lines(space: XSpace, lines: list[int]) -> npt.NDArray[np.int32]:
    """The rows of the events on these lines, line by line, in file order."""
    chosen = np.array(lines, np.int64)
    first, count = space.lines.first_event[chosen], space.lines.event_count[chosen]
    if len(first) and (first[1:] == first[:-1] + count[:-1]).all():
        return np.arange(first[0], first[0] + count.sum(), dtype=np.int32)
    rows = np.repeat((first - (np.cumsum(count) - count)).astype(np.int32), count)
    rows += np.arange(len(rows), dtype=np.int32)
    return rows


def device_rows(space: XSpace) -> npt.NDArray[np.int32]:
    """The rows of the events on the recorded lines of all devices, device by device, in file order."""
    recorded = recorded_lines(space)
    return events_of_lines(space, [i for plane in device_planes(space) for i in plane.lines if recorded[i]])


def profile_span_ps(space: XSpace) -> tuple[int, int]:
    """(first start, last end) of all events on the host and devices."""
    host, events = host_plane(space), space.events
    planes = [*device_planes(space), *([host] if host is not None else [])]
    begins = [int(events.start_ps[p.events].min()) for p in planes if p.event_count]
    ends = [int((events.start_ps[p.events] + events.duration_ps[p.events]).max()) for p in planes if p.event_count]
    return min(begins, default=0), max(ends, default=0)
