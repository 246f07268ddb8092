"""The tables of one host file, built group by group so that its event arrays can be freed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from tfcompare.errors import NoSuchMarker, NoSuchSteps, NotAProfile
from tfcompare.frames.arrow import dense_text_bytes, host_table
from tfcompare.frames.hlo.compilations import compilations
from tfcompare.frames.hlo.hlo_ops import instructions
from tfcompare.frames.hlo.hlo_programs import hlo_contents, hlo_memory, hlo_programs, hlo_texts
from tfcompare.frames.host_annotations import find_annotations
from tfcompare.frames.links import Links
from tfcompare.frames.memory_events import memory_events, memory_peak, memory_summary
from tfcompare.frames.ops.copies import copies
from tfcompare.frames.ops.framework_ops import gpu_ops, host_ops, op_operands, with_shapes
from tfcompare.frames.ops.kernel_stats import kernels_of
from tfcompare.frames.ops.op_parts import OpEvents, op_parts
from tfcompare.frames.ops.tpu_ops import tpu_ops
from tfcompare.frames.origin import Origin, origin_of
from tfcompare.frames.planes import device_kind, device_planes
from tfcompare.frames.recorded import Recording, recorded, recording_of, remark, without_record
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.device_activities import busy_and_span_ps, device_activities
from tfcompare.frames.steps.step_parts import NO_ACTIVITIES, find_activities, idle_times
from tfcompare.frames.steps.step_sources import find_steps, likely_markers
from tfcompare.frames.steps.step_tables import collectives, device_steps, idle_gaps, op_wall_times, steps_frame
from tfcompare.frames.steps.steps import Steps, in_range
from tfcompare.frames.tf_data.tf_data import tf_data
from tfcompare.frames.tf_data.tf_data_functions import tf_data_functions
from tfcompare.frames.timeline import timeline
from tfcompare.schema import SPARSE_CORE
from tfcompare.schema.arrays import Bools, Floats, Int32
from tfcompare.schema.host_tables import HOST_TABLES, LATE, Group
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.xspace import XSpace, parse
from tfcompare.xspace.compilation import survives_full_disk
from tfcompare.xspace.limits import LIMITS, Limits

_CHANGED = (
    *("memory_events", "memory_summary", "memory_peak", "recorded", "collectives", "idle", "op_totals", "op_cells"),
    *("kernel_stats", "kernel_cells", "hlo_cells", "hlo_texts", "hlo_programs", "timeline_lanes", "timeline_spans"),
    *("host_annotations", "annotation_wall"),
)
_CHANGED_TWICE = ("host", "steps", "device_steps", "op_parts", "op_wall", "op_wall_totals", "idle_gaps", "hlo_ops")
NUMBERS = dict.fromkeys((*HOST_TABLES, "host"), 1) | dict.fromkeys(_CHANGED, 2) | dict.fromkeys(_CHANGED_TWICE, 3)
"""Of each table, and of the other facts of a host, a number to raise (`| {"steps": 2}`) when the same profile gives
another content: files with another number are built anew where the profile is there. `tests/store/test_versions.py`
asks for it."""

_ALL_LOST = "no step was recorded as a whole, so times of steps are unknown: record fewer steps, or with fewer tracers"


class Joinable(Mapping[str, pa.Table]):
    """Tables of a host that are read faster together with those of other hosts."""

    @abstractmethod
    def rows(self, name: str) -> int:
        """The number of rows of a table, without reading it."""

    @abstractmethod
    def joined(self, name: str, others: Sequence[Any]) -> pa.Table:
        """A table of this host and of others, of the same class: the rows of one after those of the other."""


class LazyTables:
    """The groups of tables that are made when one of their tables is first asked for."""

    def __init__(self, make: Callable[[Group], Mapping[str, pa.Table]]) -> None:
        """`make` raises a `TfcompareError` for a group that cannot be made any more."""
        self._make = make
        self._made: dict[Group, Mapping[str, pa.Table]] = {}
        self._locks: dict[Group, Lock] = {group: Lock() for group in LATE}

    def __getitem__(self, group: Group) -> Mapping[str, pa.Table]:
        with self._locks[group]:
            if group not in self._made:
                self._made[group] = self._make(group)
            return self._made[group]

    @property
    def memory_bytes(self) -> int:
        """The memory of the groups that were made."""
        return sum(map(memory_bytes, list(self._made.values())))


@dataclass(frozen=True, eq=False)
class HostTables:
    """The tables of one host file, and what is known of it beside them.

    `tables` are those of some groups of `schema.HOST_TABLES`; `late` has those that are made when they are asked for.
    `likely_markers`: names of events that may begin each step, where nothing marks steps, or one was named; `remarks`:
    what to know before trusting the numbers; `why_untimed`: `Steps.why_untimed`.
    """

    host: str
    digest: str
    origin: Origin
    step_source: str
    likely_markers: tuple[str, ...]
    remarks: tuple[str, ...]
    why_untimed: str
    tables: Mapping[str, pa.Table] = field(repr=False)
    late: LazyTables | None = field(default=None, repr=False)

    def table(self, name: str) -> pa.Table:
        """The table of that name in `schema.HOST_TABLES`. Raises a `TfcompareError` if its group cannot be made."""
        return self.group(name)[name]

    def rows(self, name: str) -> int:
        """The number of rows of a table; raises as `table`."""
        group = self.group(name)
        return group.rows(name) if isinstance(group, Joinable) else len(group[name])

    def group(self, name: str) -> Mapping[str, pa.Table]:
        """The tables among which that of this name is; raises as `table`."""
        group = HOST_TABLES[name].group
        return self.tables if self.late is None or group not in LATE else self.late[group]

    @property
    def memory_bytes(self) -> int:
        """The memory that the tables take now."""
        return memory_bytes(self.tables) + (self.late.memory_bytes if self.late is not None else 0)


def table_of_hosts(name: str, hosts: Sequence[HostTables]) -> tuple[pa.Table, list[int]]:
    """(a table of one or more hosts, the rows of one after those of the other, texts with the labels of each; the
    number of rows of each host). Raises as `HostTables.table`."""
    is_late = HOST_TABLES[name].group in LATE
    groups = [host.group(name) if is_late else host.tables for host in hosts]
    first, *others = groups
    if isinstance(first, Joinable) and others and all(type(other) is type(first) for other in others):
        return first.joined(name, others), [host.rows(name) for host in hosts]
    tables = [group[name] for group in groups]
    return pa.concat_tables(tables) if others else tables[0], [*map(len, tables)]


def memory_bytes(tables: Mapping[str, pa.Table]) -> int:
    """The memory that tables take; those of a pack know theirs."""
    known = getattr(tables, "memory_bytes", None)
    return sum(table.nbytes for table in tables.values()) if known is None else int(known)


@survives_full_disk
def build(
    space: XSpace,
    host: str,
    digest: str,
    choice: StepChoice = OWN_STEPS,
    limits: Limits = LIMITS,
    group: Group = "core",
) -> HostTables:
    """Builds the tables of one host from all its steps, or from the chosen range and what ran within it: those of one
    group; `core` comes with `steps`, which is mostly the same work.

    Raises `NoSuchMarker` if the marker names no event of the host's threads, `NoSuchSteps` if the range holds no step,
    `NotAProfile` if the tables are larger than `limits` allow.
    """
    if choice.marker is not None and not grouping.host_events_named(space, choice.marker).any():
        raise NoSuchMarker(f"host {host}", choice.marker, likely_markers(space))
    recording = recording_of(space)
    origin, links = origin_of(space, recording), grouping.make_links(space)
    steps, is_eager = _steps(space, links, choice.marker)
    if steps.has_markers:
        steps = replace(steps, lost=without_record(space, recording, steps))
    found = remark(recording, int(steps.is_lost.sum()), len(steps.number))
    has_own_steps, full_space = steps.has_markers and choice.marker is None, space
    if choice.range is not None:
        count = len(steps.number) if steps.has_markers else 0
        steps, chosen = in_range(space, steps, choice.first, choice.last)
        if not count or not len(steps.number):
            raise NoSuchSteps(f"host {host}", choice.range, count)
        space, is_eager, links = space.with_events(chosen), is_eager[chosen], None
    remarks: list[str] = []
    if group == "timeline":
        tables: dict[str, pa.Table] = timeline(space, steps, _op_events(space, steps, is_eager))
    elif group == "programs":
        ran = instructions(space, _op_events(space, steps, is_eager), steps).ops
        tables = {"hlo_texts": hlo_texts(space, ran), "hlo_programs": hlo_programs(space, ran)}
    else:
        around = links.around if links is not None else None
        del links
        tables, remarks = _core(space, steps, is_eager, around, recording, choice.marker)
    _check_size(tables, limits)
    is_all_lost = steps.has_markers and len(steps.number) > 0 and steps.is_lost.all()
    why_untimed = recording.why_absent or steps.why_untimed or (_ALL_LOST if is_all_lost else "")
    return HostTables(
        host=host,
        digest=digest,
        origin=origin,
        step_source=steps.source,
        likely_markers=() if has_own_steps else likely_markers(full_space),
        remarks=(*origin.remarks, *remarks, *filter(None, [found, why_untimed])),
        why_untimed=why_untimed,
        tables=tables,
    )


def _core(
    space: XSpace, steps: Steps, is_eager: Bools, around: Int32 | None, recording: Recording, marker: str | None
) -> tuple[dict[str, pa.Table], list[str]]:
    """(the tables of `core` and `steps`, remarks on what was left out)."""
    pipelines, functions = tf_data(space, around=around), tf_data_functions(space, around)
    del around  # ops need the most memory: free the graph before building them
    every = _op_events(space, steps, is_eager)
    ops = [plane for plane in every if plane.host_or_device != SPARSE_CORE]
    activities = find_activities(space, steps, functions) if steps.has_markers else NO_ACTIVITIES
    parts = op_parts(every, steps.number)  # those of SparseCores come last
    annotations = find_annotations(space, steps, ops, marker)
    explained = op_wall_times(space, steps, ops, parts, functions, activities, annotations)
    times = explained.activities
    idle_ps = idle_times(space, steps, activities, ops)
    of_devices = device_steps(space, steps, times, idle_ps, activities)
    on_devices = (activities.rows, activities.activity) if steps.has_markers else device_activities(space)
    del activities
    idle = _idle(ops, busy_and_span_ps(space, *on_devices))
    gaps, of_hosts = idle_gaps(space, steps, ops), collectives(space, steps, ops)
    of_programs = instructions(space, every, steps)
    buffers, damaged_programs = hlo_memory(space)
    operands = op_operands(space, ops)
    of_capture = recorded(space, recording, ops)
    del ops, every
    memory, kernels = memory_events(space, steps), kernels_of(space, steps)
    tables = {
        "recorded": of_capture,
        "steps": steps_frame(steps, times, idle_ps),
        "device_steps": of_devices,
        "collectives": of_hosts,
        "op_parts": with_shapes(parts.parts, memory),
        "op_operands": operands,
        "op_totals": parts.totals,
        "op_wall_totals": explained.totals,
        "idle": idle,
        "host_annotations": annotations.table(explained.annotations if steps.has_markers else None),
        "kernel_stats": kernels.stats,
        "copies": copies(space),
        "hlo_ops": of_programs.ops,
        "hlo_contents": hlo_contents(space, of_programs.ops),
        "hlo_memory": buffers,
        "compilations": compilations(space),
        "memory_events": memory.table,
        "memory_summary": memory_summary(memory),
        "memory_peak": memory_peak(memory),
        "tf_data_pipelines": pipelines.pipelines,
        "tf_data_executions": pipelines.executions,
        "tf_data_calls": pipelines.calls,
        "idle_gaps": gaps,
        "op_cells": parts.cells,
        "op_wall": explained.wall,
        "annotation_wall": explained.annotations,
        "kernel_cells": kernels.cells,
        "hlo_cells": of_programs.cells,
    }
    return tables, [*pipelines.remarks, *damaged_programs, *filter(None, [annotations.remark])]


def _check_size(tables: Mapping[str, pa.Table], limits: Limits) -> None:
    """Raises `NotAProfile` if the tables are larger than `limits` allow."""
    for name, table in tables.items():
        if len(table) > limits.table_rows:
            raise NotAProfile(None, 0, f"at most {limits.table_rows:,} rows of {name}", f"{len(table):,}")
    dense = [table for name, table in tables.items() if HOST_TABLES[name].group != "timeline"]
    total = memory_bytes(tables) + sum(map(dense_text_bytes, dense))
    if total > limits.table_bytes:
        raise NotAProfile(None, 0, f"a profile whose tables take at most {limits.table_bytes:,} bytes", f"{total:,}")


def _steps(space: XSpace, links: Links | None, step_marker: str | None) -> tuple[Steps, Bools]:
    """(the steps, whether each event ran eagerly). Both follow from the links between events."""
    stored = grouping.stored_groups(space) if links is None and step_marker is None else None
    groups = stored or grouping.group_events(space, links, step_marker)
    steps = find_steps(space, groups, marker_chosen=step_marker is not None)
    return steps, grouping.eager_events(space, links)


def _idle(ops: Sequence[OpEvents], busy_and_span: Floats) -> pa.Table:
    """The table `idle`: the time in which no op of a plane ran and, of devices, busy time and span."""
    on_host = np.full((len(ops) - len(busy_and_span), 2), np.nan)
    busy_ps, span_ps = np.concatenate([on_host, busy_and_span]).T
    columns = {
        "device": [plane.device for plane in ops],
        "host_or_device": [plane.host_or_device for plane in ops],
        "idle_ps": np.array([plane.idle_ps for plane in ops], np.int64),
        "busy_ps": busy_ps,
        "span_ps": span_ps,
    }
    return host_table("idle", columns)


def _op_events(space: XSpace, steps: Steps, is_eager: Bools) -> list[OpEvents]:
    on_host = host_ops(space, steps.of_event, is_eager)
    find = gpu_ops if device_kind(space) == "GPU" else tpu_ops
    on_devices = find(space, device_planes(space), steps.of_event, is_eager)
    return [*([on_host] if on_host is not None else []), *on_devices]


def load_loops() -> None:
    """Load the compiled loops, or compile them, before the first profile needs them: most serve an empty one too."""
    build(parse(b"\x0a\x00"), "", "")
