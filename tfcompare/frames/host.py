"""All tables of one host file, built in one pass so that its event arrays can be freed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.errors import NoSuchMarker, NoSuchSteps
from tfcompare.frames.links import Links
from tfcompare.frames.memory import memory_peak, memory_summary
from tfcompare.frames.memory_events import MemoryEvents, memory_events
from tfcompare.frames.ops.copies import copies
from tfcompare.frames.ops.gpu_ops import gpu_ops
from tfcompare.frames.ops.host_ops import host_ops
from tfcompare.frames.ops.kernel_stats import Kernels, kernels_of
from tfcompare.frames.ops.op_evidence import with_shapes
from tfcompare.frames.ops.op_parts import OpEvents, OpParts, concat_parts, frame_bytes
from tfcompare.frames.ops.tpu_ops import tpu_ops
from tfcompare.frames.origin import Origin, origin_of
from tfcompare.frames.planes import device_kind, device_planes
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.idle_gaps import idle_gaps
from tfcompare.frames.steps.likely_markers import likely_markers
from tfcompare.frames.steps.step_sources import find_steps
from tfcompare.frames.steps.steps import Steps, in_range
from tfcompare.frames.steps.steps_table import steps_frame
from tfcompare.frames.steps.wall_times import op_wall_times, wall_of_parts
from tfcompare.frames.tf_data.tf_data import TfData, tf_data
from tfcompare.frames.tf_data.tf_data_functions import tf_data_functions
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.xspace import XSpace, parse

Bools = npt.NDArray[np.bool_]

_BRIEF = ("host", "digest", "origin", "step_source", "steps")


@dataclass(frozen=True, eq=False)
class HostFrames:
    """The tables built from one host file.

    `idle` has the columns device, host_or_device, idle_ps. `steps`, `idle_gaps`, `copies`, `memory_summary` and
    `memory_peak` are the tables of those names. `memory` is a compact form of `memory_timeline`. `likely_markers` are
    names of events that may begin each step; empty where the profile marks its steps itself.
    """

    host: str
    digest: str
    origin: Origin
    step_source: str
    steps: pd.DataFrame = field(repr=False)
    idle_gaps: pd.DataFrame = field(repr=False)
    parts: OpParts = field(repr=False)
    idle: pd.DataFrame = field(repr=False)
    kernels: Kernels = field(repr=False)
    copies: pd.DataFrame = field(repr=False)
    memory: MemoryEvents = field(repr=False)
    memory_summary: pd.DataFrame = field(repr=False)
    memory_peak: pd.DataFrame = field(repr=False)
    tf_data: TfData = field(repr=False)
    likely_markers: tuple[str, ...] = field(repr=False, default=())

    @property
    def remarks(self) -> list[str]:
        """What to know before trusting the numbers."""
        return [*self.origin.remarks, *self.tf_data.remarks]

    @property
    def memory_bytes(self) -> int:
        """Memory used by the frames, in bytes."""
        values = (getattr(self, f.name) for f in fields(self))
        frames = [v for v in values if isinstance(v, pd.DataFrame)] + [
            self.tf_data.pipelines,
            self.tf_data.executions,
            self.tf_data.calls,
            self.kernels.stats,
            self.kernels.cells,
        ]
        return self.parts.memory_bytes + self.memory.memory_bytes + sum(map(frame_bytes, frames))


class HostBrief(HostFrames):
    """Only what `run_info` needs of a host, small enough to send between processes. Its other tables are missing."""

    def __init__(self, frames: HostFrames) -> None:
        self.__dict__.update({name: getattr(frames, name) for name in _BRIEF}, _remarks=frames.remarks)

    @property
    def remarks(self) -> list[str]:
        """What to know before trusting the numbers."""
        remarks: list[str] = self.__dict__["_remarks"]
        return remarks


def build(space: XSpace, host: str, digest: str, choice: StepChoice = OWN_STEPS) -> HostFrames:
    """Builds the tables of one host from all its steps, or from the chosen range and what ran within it.

    Raises `NoSuchMarker` if the marker names no event of the host's threads, `NoSuchSteps` if the range holds no step.
    """
    if choice.marker is not None and not grouping.host_events_named(space, choice.marker).any():
        raise NoSuchMarker(f"host {host}", choice.marker, likely_markers(space))
    origin, links = origin_of(space), grouping.make_links(space)
    steps, is_eager = _steps(space, links, choice.marker)
    has_own_steps, full_space = steps.has_markers and choice.marker is None, space
    if choice.range is not None:
        count = len(steps.number) if steps.has_markers else 0
        steps, chosen = in_range(space, steps, choice.first, choice.last)
        if not count or not len(steps.number):
            raise NoSuchSteps(f"host {host}", choice.range, count)
        space, is_eager, links = space.with_events(chosen), is_eager[chosen], None
    around = links.around if links is not None else None
    pipelines, functions = tf_data(space, host, around=around), tf_data_functions(space, around)
    del links, around  # ops need the most memory: free the graph before building them
    ops = _op_events(space, steps, is_eager)
    times, wall = op_wall_times(space, steps, ops, functions)
    parts, idle = _ops(ops, steps, wall, space.events.start_ps)
    gaps = idle_gaps(space, steps, ops, host)
    del ops, wall
    of_steps = steps_frame(steps, times, host)
    memory = memory_events(space, steps)
    return HostFrames(
        host=host,
        digest=digest,
        origin=origin,
        step_source=steps.source,
        steps=of_steps,
        idle_gaps=gaps,
        parts=with_shapes(parts, memory),
        idle=idle,
        kernels=kernels_of(space, host, steps),
        copies=copies(space, host),
        memory=memory,
        memory_summary=memory_summary(memory, host),
        memory_peak=memory_peak(memory, host),
        tf_data=pipelines,
        likely_markers=() if has_own_steps else likely_markers(full_space),
    )


def _steps(space: XSpace, links: Links | None, step_marker: str | None) -> tuple[Steps, Bools]:
    """(the steps, whether each event ran eagerly). Both follow from the links between events."""
    stored = grouping.stored_groups(space) if links is None and step_marker is None else None
    groups = stored or grouping.group_events(space, links, step_marker)
    steps = find_steps(space, groups, marker_chosen=step_marker is not None)
    return steps, grouping.eager_events(space, links)


def _ops(
    ops: list[OpEvents], steps: Steps, wall: pd.DataFrame, start_ps: npt.NDArray[np.int64]
) -> tuple[OpParts, pd.DataFrame]:
    """(the op parts, the idle time as in `HostFrames.idle`)."""
    idle = pd.DataFrame(
        {
            "device": pd.Series([part.device for part in ops], dtype="str"),
            "host_or_device": pd.Series([part.host_or_device for part in ops], dtype="str"),
            "idle_ps": pd.Series([part.idle_ps for part in ops], dtype="int64"),
        }
    )
    parts = concat_parts([part.op_parts(steps.number, start_ps) for part in ops])
    return replace(parts, wall=wall_of_parts(ops, wall, steps.number)), idle


def _op_events(space: XSpace, steps: Steps, is_eager: Bools) -> list[OpEvents]:
    on_host = host_ops(space, steps.of_event, is_eager)
    find = tpu_ops if device_kind(space) == "TPU" else gpu_ops
    on_devices = find(space, device_planes(space), steps.of_event, is_eager)
    return [*([on_host] if on_host is not None else []), *on_devices]


def load_loops() -> None:
    """Load the compiled loops, or compile them, before the first profile needs them: most serve an empty one too."""
    build(parse(b"\x0a\x00"), "", "")
