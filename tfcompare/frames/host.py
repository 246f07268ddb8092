"""All tables of one host file, built in one pass so that its event arrays can be freed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.errors import NoSuchMarker, NoSuchSteps, NotAProfile
from tfcompare.frames.arrow import frame_of
from tfcompare.frames.hlo.compilations import compilations
from tfcompare.frames.hlo.hlo_memory import hlo_memory
from tfcompare.frames.hlo.hlo_ops import hlo_ops
from tfcompare.frames.hlo.hlo_texts import hlo_texts
from tfcompare.frames.links import Links
from tfcompare.frames.memory import memory_peak, memory_summary
from tfcompare.frames.memory_events import MemoryEvents, memory_events
from tfcompare.frames.ops.copies import copies
from tfcompare.frames.ops.gpu_ops import gpu_ops
from tfcompare.frames.ops.host_ops import host_ops
from tfcompare.frames.ops.kernel_stats import Kernels, kernels_of
from tfcompare.frames.ops.op_parts import OpEvents, OpParts, concat_parts, frame_bytes
from tfcompare.frames.ops.op_shapes import with_shapes
from tfcompare.frames.ops.tpu_ops import tpu_ops
from tfcompare.frames.origin import Origin, origin_of
from tfcompare.frames.planes import device_kind, device_planes
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.device_steps import device_steps
from tfcompare.frames.steps.idle_gaps import idle_gaps
from tfcompare.frames.steps.likely_markers import likely_markers
from tfcompare.frames.steps.step_parts import NO_ACTIVITIES, find_activities
from tfcompare.frames.steps.step_sources import find_steps
from tfcompare.frames.steps.steps import Steps, in_range
from tfcompare.frames.steps.steps_table import steps_frame
from tfcompare.frames.steps.wall_times import op_wall_times, wall_of_parts
from tfcompare.frames.tf_data.tf_data import tf_data
from tfcompare.frames.tf_data.tf_data_functions import tf_data_functions
from tfcompare.frames.timeline import timeline
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.xspace import XSpace, parse
from tfcompare.xspace.compilation import survives_full_disk
from tfcompare.xspace.limits import LIMITS, Limits

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HostFrames:
    """The tables of one host file, and what is known of it beside them.

    `tables`: `steps`, `idle_gaps`, `copies`, `hlo_ops`, `hlo_texts`, `hlo_memory`, `compilations`, `memory_summary`,
    `memory_peak`, `kernel_stats`, `tf_data_pipelines` and `tf_data_calls` are those of that name in `schema`,
    `tf_data_executions` is its `tf_data`; `idle` has the columns device, host_or_device and idle_ps, `device_steps` is
    as the function of that name returns it; the others are the frames of `OpParts`, `Kernels` and `MemoryEvents`.
    `likely_markers`: names of events that may begin each step, where nothing marks steps, or one was named; `remarks`:
    what to know before trusting the numbers; `why_untimed`: `Steps.why_untimed`; `memory_labels`:
    `MemoryEvents.labels`; `memory_bytes`: what the tables take in memory once they are read.
    """

    host: str
    digest: str
    origin: Origin
    step_source: str
    likely_markers: tuple[str, ...]
    remarks: tuple[str, ...]
    why_untimed: str
    memory_labels: Mapping[str, tuple[str, ...]] = field(repr=False)
    memory_bytes: int
    tables: Mapping[str, pd.DataFrame] = field(repr=False)

    @property
    def kernels(self) -> Kernels:
        """The kernels, in all and step by step."""
        return Kernels(self.tables["kernel_stats"], self.tables["kernel_cells"])

    @cached_property
    def memory(self) -> MemoryEvents:
        """What `memory_timeline` is made of, in less memory than it takes."""
        return MemoryEvents.from_table(self.tables["memory_events"], self.memory_labels)


@survives_full_disk
def build(space: XSpace, host: str, digest: str, choice: StepChoice = OWN_STEPS, limits: Limits = LIMITS) -> HostFrames:
    """Builds the tables of one host from all its steps, or from the chosen range and what ran within it.

    Raises `NoSuchMarker` if the marker names no event of the host's threads, `NoSuchSteps` if the range holds no step,
    `NotAProfile` if the tables are larger than `limits` allow.
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
    activities = find_activities(space, steps, functions) if steps.has_markers else NO_ACTIVITIES
    times, wall = op_wall_times(space, steps, ops, functions, activities)
    of_devices = device_steps(space, steps, times, activities)
    del activities
    parts, idle = _ops(ops, steps, wall)
    gaps = idle_gaps(space, steps, ops, host)
    lanes_and_spans = timeline(space, steps, ops)
    of_programs = hlo_ops(space, ops, host)
    buffers, damaged_programs = hlo_memory(space, host)
    del ops, wall
    memory = memory_events(space, steps)
    parts = with_shapes(parts, memory)
    totals, kernels = parts.over_all_steps(), kernels_of(space, host, steps)
    tables = {
        "steps": steps_frame(steps, times, host),
        "device_steps": of_devices,
        "idle_gaps": gaps,
        "op_parts": parts.parts,
        "op_cells": parts.cells,
        "op_wall": parts.wall,
        "op_totals": totals.cells,
        "op_wall_totals": totals.wall,
        "idle": idle,
        "kernel_stats": kernels.stats,
        "kernel_cells": kernels.cells,
        "copies": copies(space, host),
        "hlo_ops": of_programs,
        "hlo_texts": hlo_texts(space, host, of_programs),
        "hlo_memory": buffers,
        "compilations": compilations(space, host),
        "memory_events": memory.table,
        "memory_summary": memory_summary(memory, host),
        "memory_peak": memory_peak(memory, host),
        "tf_data_pipelines": pipelines.pipelines,
        "tf_data_executions": pipelines.executions,
        "tf_data_calls": pipelines.calls,
        **lanes_and_spans,
    }
    tables = {name: frame_of(name, table) for name, table in tables.items()}
    memory_bytes = _checked_bytes(tables, limits) + sum(map(len, chain(*memory.labels.values())))
    return HostFrames(
        host=host,
        digest=digest,
        origin=origin,
        step_source=steps.source,
        likely_markers=() if has_own_steps else likely_markers(full_space),
        remarks=(*origin.remarks, *pipelines.remarks, *damaged_programs, *filter(None, [steps.why_untimed])),
        why_untimed=steps.why_untimed,
        memory_labels=memory.labels,
        memory_bytes=memory_bytes,
        tables=tables,
    )


def _checked_bytes(tables: Mapping[str, pd.DataFrame], limits: Limits) -> int:
    """The memory of the tables; raises `NotAProfile` if they are larger than `limits` allow."""
    for name, frame in tables.items():
        if len(frame) > limits.table_rows:
            raise NotAProfile(None, 0, f"at most {limits.table_rows:,} rows of {name}", f"{len(frame):,}")
    total = sum(map(frame_bytes, tables.values()))
    if total > limits.table_bytes:
        raise NotAProfile(None, 0, f"a profile whose tables take at most {limits.table_bytes:,} bytes", f"{total:,}")
    return total


def _steps(space: XSpace, links: Links | None, step_marker: str | None) -> tuple[Steps, Bools]:
    """(the steps, whether each event ran eagerly). Both follow from the links between events."""
    stored = grouping.stored_groups(space) if links is None and step_marker is None else None
    groups = stored or grouping.group_events(space, links, step_marker)
    steps = find_steps(space, groups, marker_chosen=step_marker is not None)
    return steps, grouping.eager_events(space, links)


def _ops(ops: list[OpEvents], steps: Steps, wall: pd.DataFrame) -> tuple[OpParts, pd.DataFrame]:
    """(the op parts, the idle time as in `HostFrames.idle`)."""
    idle = pd.DataFrame(
        {
            "device": pd.Series([part.device for part in ops], dtype="str"),
            "host_or_device": pd.Series([part.host_or_device for part in ops], dtype="str"),
            "idle_ps": pd.Series([part.idle_ps for part in ops], dtype="int64"),
        }
    )
    parts = concat_parts([part.op_parts(steps.number) for part in ops])
    return replace(parts, wall=wall_of_parts(ops, wall, steps.number)), idle


def _op_events(space: XSpace, steps: Steps, is_eager: Bools) -> list[OpEvents]:
    on_host = host_ops(space, steps.of_event, is_eager)
    find = tpu_ops if device_kind(space) == "TPU" else gpu_ops
    on_devices = find(space, device_planes(space), steps.of_event, is_eager)
    return [*([on_host] if on_host is not None else []), *on_devices]


def load_loops() -> None:
    """Load the compiled loops, or compile them, before the first profile needs them: most serve an empty one too."""
    build(parse(b"\x0a\x00"), "", "")
