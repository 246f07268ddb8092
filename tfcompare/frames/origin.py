"""Where, when and on what hardware a host's profile was recorded."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tfcompare.errors import NotAProfile
from tfcompare.frames.hlo.command_buffers import instructions_of, unattributed_kernels
from tfcompare.frames.hlo.programs import MOST_PROGRAMS, programs_of
from tfcompare.frames.ops.kernel_details import is_kernel
from tfcompare.frames.planes import (
    ENVIRONMENT_PLANE,
    METADATA_PLANE,
    device_kind,
    device_planes,
    host_plane,
    other_devices,
    profile_span_ps,
)
from tfcompare.frames.recorded import Recording, messages
from tfcompare.hlo.proto_fields import integer_fields
from tfcompare.schema.runs import ABSENT, WHOLE
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.space import PS_PER_US

_COMPUTE_UNITS = "core_count"
_MODELS: dict[tuple[object, object, object], tuple[str, int, int]] = {
    (6, 0, 56): ("Tesla P100", 10, 20),
    (7, 0, 80): ("Tesla V100", 14, 40),
    (7, 5, 40): ("Tesla T4", 14, 20),  # with 8 GB, a GeForce RTX 2070 Super
    (8, 0, 108): ("A100", 38, 100),
    (8, 6, 72): ("A10", 20, 30),
    (8, 6, 80): ("A10G", 20, 30),  # with 12 GB, a GeForce RTX 3080 Ti
    (8, 9, 58): ("L4", 20, 30),
    (9, 0, 114): ("H100 PCIe", 70, 100),
    (9, 0, 132): ("H100", 70, 90),  # with 96 or 141 GB, a GH200 or H200
}
"""NVIDIA's models, as in its data sheets: (compute capability, SMs) and from how many GB of memory to how many."""
_VERSION = "_version"
_LONGEST_CUDA_VERSION = 6
_REPEATED = ("cpu", "gpu", "cuda_runtime")
"""Versions that repeat another one, or say nothing."""
_TRACERS = {2: "host tracer", 3: "device tracer", 4: "Python tracer"}
"""The fields of `tensorflow.ProfileOptions` (tsl's `profiler_options.proto`) whose levels decide how much is recorded,
and thereby how much the recording itself takes. A field that is absent is 0."""
_MAX_REMARK_LENGTH = 300
_MOST_KHZ = 1e8
"""100 GHz: no device has a clock like that."""

Named = tuple[tuple[str, str], ...]
"""(name, text) of what a profile tells, in order."""


@dataclass(frozen=True)
class Origin:
    """The environment of one host. `start_ns` is Unix time in nanoseconds, 0 if unknown; `clock_mhz` is the highest
    clock rate of its devices as they say, 0 if unknown. `versions` are those of libraries and drivers by name, such as
    `("jax", "0.11.2")`, `profiler_options` such as `("host tracer", "2")`; none if the profile does not have them.
    `command_buffers`: `used` or `not used` on GPUs, else empty."""

    host_name: str
    framework: str
    device_type: str
    device_name: str
    device_count: int
    clock_mhz: float
    start_ns: int
    duration_us: float
    versions: Named
    profiler_options: Named
    command_buffers: str
    remarks: tuple[str, ...]


def origin_of(space: XSpace, recording: Recording) -> Origin:
    """The recording environment stored in the file; what `recording` says is no remark."""
    start, end = profile_span_ps(space)
    environment = next((p.stats for p in space.planes if p.name == ENVIRONMENT_PLANE), {})
    metadata = next((p.stats for p in space.planes if p.name == METADATA_PLANE), {})
    started = environment.get("profile_start_time", 0)
    reported = recording.complaint if recording.status != WHOLE else ""
    used = [p for p in device_planes(space) if p.event_count]
    rates = [plane.stats.get("clock_rate") for plane in used]
    clocks = [rate / 1000 for rate in rates if isinstance(rate, int) and 0 < rate < _MOST_KHZ]
    versions = {name.removesuffix(_VERSION): text for name, text in metadata.items() if name.endswith(_VERSION)}
    buffers = ""
    if device_kind(space) == "GPU":
        buffers = "used" if len(instructions_of(space).in_buffers) else "not used"
    return Origin(
        host_name=", ".join(space.hostnames),
        framework=_framework(space.metadata_names[space.has_events].tolist()),
        device_type=recording.device_type,
        device_name=_device_name(used[0]) if used else "",
        device_count=len(device_planes(space) if recording.status == ABSENT else used),
        clock_mhz=max(clocks, default=0.0),
        start_ns=started if isinstance(started, int) else 0,
        duration_us=(end - start) / PS_PER_US,
        versions=tuple(
            (_one_line(name.replace("_", " ")), _one_line(_readable(name, text)))
            for name, text in sorted(versions.items())
            if isinstance(text, str) and text and name not in _REPEATED
        ),
        profiler_options=_profiler_options(environment.get("profile_options")),
        command_buffers=buffers,
        remarks=(*(_one_line(text) for text in messages(space) if text != reported), *_remarks(space)),
    )


def _readable(name: str, version: str) -> str:
    """CUDA counts 13.0 as 13000; others are written as they are."""
    if name.startswith("cuda") and version.isascii() and version.isdecimal() and len(version) <= _LONGEST_CUDA_VERSION:
        return f"{int(version) // 1000}.{int(version) % 1000 // 10}"
    return version


def _profiler_options(message: object) -> Named:
    """The levels of the tracers; none if the profile does not have them, or they are damaged."""
    if not isinstance(message, bytes):
        return ()
    with suppress(NotAProfile):
        levels = integer_fields(memoryview(message))
        return tuple((name, str(levels.get(number, 0))) for number, name in _TRACERS.items())
    return ()


def _one_line(text: str) -> str:
    """The profiler's message on one line, shortened for display."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_REMARK_LENGTH else f"{line[:_MAX_REMARK_LENGTH]} …"


def _framework(names: list[str]) -> str:
    """`JAX` or `TensorFlow`, recognised by event names that only one of them records; empty if unknown."""
    if any(n.startswith(("PjitFunction", "PyClient", "jit_", "$api.py")) or "xla_pmap" in n for n in names):
        return "JAX"
    if any(n.startswith(("EagerExecute", "EagerLocalExecute", "ExecutorState", "FunctionRun")) for n in names):
        return "TensorFlow"
    return "JAX" if any("PjRt" in n for n in names) else ""


def _device_name(plane: Plane) -> str:
    """A device's model and memory size: as recorded, or else what `_MODELS` knows, or composed of vendor, compute
    capability and number of compute units."""
    stats = plane.stats
    for recorded in ("device_type_string", "gpu_device_name"):
        if isinstance(name := stats.get(recorded), str) and name:
            return name
    words = []
    vendor, units, memory = stats.get("device_vendor"), stats.get(_COMPUTE_UNITS), stats.get("memory_size")
    major, minor = stats.get("compute_cap_major"), stats.get("compute_cap_minor")
    is_nvidia = vendor == "Nvidia"
    model, least, most = _MODELS.get((major, minor, units), ("", 0, 0))
    if is_nvidia and isinstance(memory, int) and least <= memory / 1e9 < most:
        return f"NVIDIA {model}, {memory / 1e9:.1f} GB"
    if isinstance(vendor, str):
        words.append(vendor)
    if isinstance(major, int) and isinstance(minor, int):
        words.append(f"compute capability {major}.{minor}")
    if isinstance(units, int):
        words.append(f"{units} {'SMs' if is_nvidia else 'compute units'}")
    if isinstance(memory, int):
        words.append(f"{memory / 1e9:.1f} GB")
    return ", ".join(words)


def _remarks(space: XSpace) -> list[str]:
    """What a reader should know about this file before trusting its numbers."""
    out = []
    if not len(space.events):
        out.append("the profile holds no events")
    elif host_plane(space) is None:
        out.append("the profile holds no host threads")
    unnamed = int((space.events.metadata == len(space.metadata_names) - 1).sum())
    if unnamed:
        out.append(f"events without a name in the file: {unnamed:,}")
    if space.events.odd_times:
        out.append(f"events with times that cannot be: {space.events.odd_times:,}; do not trust their place and length")
    if hidden := unattributed_kernels(space):
        out.append(hidden)
    if further := programs_of(space).left_out:
        out.append(f"XLA programs that are left out, beyond the {MOST_PROGRAMS:,} largest: {further:,}")
    if others := other_devices(space):
        out.append(f"devices that are neither GPUs nor TPUs are read like GPUs: {_one_line(', '.join(others))}")
    if device_kind(space) == "GPU" and not is_kernel(space).any():
        out.append(
            "the profiler of the devices recorded no kernels, as those of plug-in devices may: launch sizes, tensor "
            "cores and precision are unknown"
        )
    return out
