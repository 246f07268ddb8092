"""A loaded profile run: its tables and its identity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Literal

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.errors import NoSuchKind, NoSuchSteps, TfcompareError, Unknown
from tfcompare.frames import HostTables
from tfcompare.frames.memory_events import MemoryEvents
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.frames.planes import HOST_PLANE
from tfcompare.frames.profile_reader import FrameBuilder, OnProgress, ProfileReader, build_here
from tfcompare.frames.steps.steps import WHOLE_PROFILE
from tfcompare.schema.arrays import Int64
from tfcompare.schema.runs import ABSENT, OPS
from tfcompare.sources.logdir import FoundRun, find_runs
from tfcompare.sources.machine_load import MachineLoad, read_load
from tfcompare.sources.replicates import captures_at
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice, step_choice
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.reading import HostReader, read_hosts
from tfcompare.tables.frames import Held, of_hosts, with_categories
from tfcompare.tables.hosts import hosts_frame
from tfcompare.tables.input_pipeline import input_pipeline
from tfcompare.tables.kernel_stats import (
    hlo_ops_in_steps,
    kernel_stats_in_steps,
    kernel_step_cells,
    kernel_steps,
    op_profile,
)
from tfcompare.tables.memory_timeline import timeline_of_events
from tfcompare.tables.op_evidence import OpEvidence, op_evidence
from tfcompare.tables.op_parts import OpTimes, Parts, merge_hosts, parts_of_hosts
from tfcompare.tables.op_stats import (
    op_cells,
    op_stats,
    op_stats_in_steps,
    op_steps,
    wall_times_by_annotation,
    wall_times_by_op,
)
from tfcompare.tables.slow_steps import slow_steps_frame, with_stray
from tfcompare.tables.step_programs import kind_at, kinds_among, step_programs
from tfcompare.tables.step_times import (
    StepCells,
    are_on_all_hosts,
    common_step_ids,
    numbered_alike,
    ranges_of_hosts,
    run_steps,
)
from tfcompare.text import some_of
from tfcompare.units import format_ms

CommonSteps = Callable[[str, Int64], Int64]

_US_PER_MS = 1000.0
_ENDS = 2
"""Steps at the ends of captures, which hosts rarely begin and end together."""
_MOST_NAMED = 4
"""Names in a remark."""
Stray = Literal["exclude", "include"]

_OF_HOSTS = {table: table for table in schema.HOST_TABLES if table in schema.TABLES} | {"tf_data": "tf_data_executions"}
"""Tables of a run whose rows are those of the tables of its hosts."""

_NOT_HELD = ("op_cells", "op_wall", "annotation_wall", "kernel_cells", "hlo_cells", "memory_events")
"""Tables that are by far the largest, and are made of those of the hosts each time."""

_BY_STEP = {"op_steps": "op_stats", "kernel_steps": "kernel_stats"}
"""Tables with one row per step, and the tables whose rows they break down."""

_DEVICE_TABLES = ("hosts", "op_stats", "op_steps", "copies")


@dataclass(frozen=True)
class RunInfo:
    """The single row of `run_info` as a dataclass; `schema.RUN_INFO` has the units and meanings."""

    run: str
    hosts: int
    host_names: str
    framework: str
    device_type: str
    device_name: str
    device_count: int
    clock_mhz: float
    start_time: datetime
    start_time_source: str
    duration_ms: float
    step_count: int
    steps_included: int
    step_source: str
    step_time_ms_median: float
    step_time_ms_mean: float
    size_bytes: int
    versions: str
    profiler_options: str
    command_buffers: str
    warnings: str

    @property
    def has_steps(self) -> bool:
        """Whether the profile marks its steps; otherwise the whole profile counts as one step."""
        return self.step_source != WHOLE_PROFILE

    @property
    def has_step_times(self) -> bool:
        """Whether it is known how long the steps took: there are some, and their devices were recorded."""
        return self.has_steps and not math.isnan(self.step_time_ms_mean)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A loaded run: its tables. Its timeline and the texts around instructions are read from its files when they are
    asked for, which must still be there; its other tables are in memory. A notebook shows its step time and top ops.

    `id` is the path relative to the folder it was found under, `name` the display name. `content_id` is a digest of the
    host files and the step choice: copies of a run share it wherever they are. `host_names` is sorted. `remarks` are
    sentences to read before trusting the numbers. `choice` is which steps count and what begins them. `machine_load` is
    the load of the machine during recording, None if unknown. `replicates` are further captures of the program, where
    `load` found several at one place; the tables are those of this capture.
    """

    id: str
    name: str
    path: PurePath
    content_id: str
    host_names: tuple[str, ...]
    remarks: tuple[str, ...]
    found: FoundRun
    hosts: tuple[HostTables, ...]
    choice: StepChoice = OWN_STEPS
    machine_load: MachineLoad | None = None
    replicates: tuple[Run, ...] = ()

    def __repr__(self) -> str:
        info = self.info
        steps = f"{format_ms(info.step_time_ms_mean)} per step, {info.step_count:,} steps"
        untimed = f"{info.step_count:,} steps of unknown time" if info.has_steps else "no step markers"
        return f"<Run {self.name!r}: {steps if info.has_step_times else untimed}, {info.device_type}>"

    @property
    def captures(self) -> tuple[Run, ...]:
        """This capture and its replicates: all captures of the program that were loaded, which `compare` uses."""
        return (self, *self.replicates)

    @property
    def is_under_load(self) -> bool:
        """Whether the machine is known to have been busy with other work during recording."""
        return self.machine_load is not None and self.machine_load.is_busy

    @property
    def step_marker(self) -> str | None:
        """The host event chosen to begin each step, None for the profile's own markers."""
        return self.choice.marker

    @property
    def why_untimed(self) -> str:
        """Why the profile's step markers do not count as steps, or have no time; empty if those of any host do, or if
        there are none."""
        return "" if self.info.has_step_times else next((h.why_untimed for h in self.hosts if h.why_untimed), "")

    @cached_property
    def info(self) -> RunInfo:
        """The row of `run_info`."""
        return _info(self)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Columns `step`, `duration_us`, `included`, `stray`: each step of the run, as long as on its slowest host."""
        return run_steps(self._steps_table)

    def steps_on(self, host: str | None) -> pd.DataFrame:
        """`steps`, or with `host` the table `steps` of that host."""
        return self.steps if host is None else self.table("steps", host=host)

    def has_recorded_devices(self, host: str | None = None) -> bool:
        """Whether what ran on the devices of all hosts, or of one, was recorded; also true where there are none, and
        where it is unknown, as in stores of older versions."""
        if host not in self._has_recorded_devices:
            recorded = self.host_table("recorded", host=host)
            named, device, kind, status = (recorded[name].to_numpy() for name in ("host", "device", "kind", "status"))
            of_devices = (device != HOST_PLANE) & (kind == OPS)
            known = named[of_devices & (status != ABSENT)]
            self._has_recorded_devices[host] = set(named[of_devices]) == set(known)
        return self._has_recorded_devices[host]

    @cached_property
    def _has_recorded_devices(self) -> dict[str | None, bool]:
        return {}

    @property
    def lost_steps(self) -> int:
        """How many steps were not recorded as a whole, and do not count, among others that were."""
        return int(self.steps["duration_us"].isna().sum()) if self.info.has_step_times else 0

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices with op events, sorted, such as `/device:GPU:0`."""
        idle = self.host_table("idle")
        return tuple(sorted(idle.loc[idle["host_or_device"] == schema.DEVICE, "device"].unique()))

    def device_count(self, host: str | None = None) -> int:
        """The number of devices with op events, on all hosts or on one."""
        return int((self.host_table("idle", host=host)["host_or_device"] == schema.DEVICE).sum())

    @property
    def likely_markers(self) -> tuple[str, ...]:
        """Host events that may begin each step, likeliest first; empty if the profile marks its steps itself."""
        return tuple(dict.fromkeys(name for h in self.hosts for name in h.likely_markers))

    @property
    def memory_bytes(self) -> int:
        """Memory used by the run's frames, in bytes, for caches with a size limit. It grows as tables are derived."""
        derived = sum(held.memory_bytes for held in list(self._op_stats_tables.values()))
        derived += sum(held.memory_bytes for held in list(self._tables.values()))
        derived += self._merged_times.memory_bytes if "_merged_times" in self.__dict__ else 0
        derived += sum(parts.memory_bytes for parts in list(self._held_parts.values()))
        derived += sum(held.memory_bytes for held in list(self._in_steps.values()))
        derived += sum(cells.memory_bytes for cells in list(self._cells.values()))
        derived += sum(evidence.memory_bytes for evidence in list(self._evidence.values()))
        derived += sum(run.memory_bytes for run in self.replicates)
        return sum(h.memory_bytes for h in self.hosts) + derived

    def derived_bytes(self, name: str) -> int:
        """Roughly the memory that a table with one row per op, kernel or allocation in each step would take, in bytes.

        These are made on demand, never cached, and may be far larger than what they are made of. 0 for other tables.
        """
        if name in _BY_STEP:
            return self.step_cells(_BY_STEP[name]).joined_bytes
        return sum(events.timeline_bytes for _, events in self.memory_events()) if name == "memory_timeline" else 0

    def table(self, name: str, *, host: str | None = None, device: str | None = None) -> pd.DataFrame:
        """The table `name` with the columns that `schema` declares.

        Ops are summed over hosts and devices (with `host` set to `all`) unless one is chosen; other tables have the
        rows of every host. Choosing a device is possible for ops, which drops host ops, for copies and for
        `hosts`. Raises `Unknown` for an unknown table, host or device, and for a device if the table has no rows by
        device.
        """
        schema.table(name)
        hosts = self._hosts(host)
        if device is not None and name not in _DEVICE_TABLES:
            raise Unknown("table of single devices", name, list(_DEVICE_TABLES))
        if device is not None and device not in self.devices:
            raise Unknown(f"device of {self.name}", device, list(self.devices))
        return self._table(name, hosts, host, device).copy(deep=False)

    def only(self, *hosts: str) -> Run:
        """The run with these of its hosts alone, under an id, name and content id of its own. Raises `Unknown` for an
        unknown host."""
        chosen = [frames for host in hosts for frames in self._hosts(host)]
        of_hosts = f" ({', '.join(hosts)})"
        return replace(
            self,
            id=self.id + of_hosts,
            name=self.name + of_hosts,
            content_id=_content_id(chosen, self.choice),
            host_names=tuple(sorted(hosts)),
            hosts=tuple(chosen),
            replicates=(),
        )

    def step_cells(self, name: str, *, host: str | None = None) -> StepCells:
        """The time of each row of `op_stats` (self time) or `kernel_stats` (total time) in each step.

        Keys are those of the table. Raises `Unknown` for another table or an unknown host.
        """
        hosts = self._hosts(host)
        if name not in schema.STEP_TABLES:
            raise Unknown("table with figures of single steps", name, list(schema.STEP_TABLES))
        if name == "kernel_stats":
            return kernel_step_cells(self.host_table("kernel_stats", host=host), self._cells_of("kernel_cells", hosts))
        if host not in self._cells:
            self._cells[host] = op_cells(self._op_times(hosts), _label(host))
        return self._cells[host]

    def in_steps(self, name: str, *, host: str | None = None, steps: pd.Series | None = None) -> pd.DataFrame:
        """`op_stats`, `kernel_stats` or `hlo_ops` with the occurrences and times of the included steps alone, or of
        these of them, by number.

        The rows are those of the table; one that ran only outside of these steps has 0. FLOPs and bytes are by
        occurrences, or as each recorded them; the time of IDLE is the whole × included steps ÷ all steps. Raises
        `Unknown` for another table or an unknown host. Without step markers it is the table itself.
        """
        if name not in schema.IN_STEPS:
            raise Unknown("table with figures of single steps", name, list(schema.IN_STEPS))
        if steps is not None:
            return self._table_in_steps(name, host, steps)
        if (name, host) not in self._in_steps:
            steps_of_host = self.steps_on(host)
            included = steps_of_host.loc[steps_of_host["included"].astype(bool), "step"]
            self._in_steps[name, host] = Held(self._table_in_steps(name, host, included))
        return self._in_steps[name, host].frame.copy(deep=False)

    def _table_in_steps(self, name: str, host: str | None, included: pd.Series) -> pd.DataFrame:
        whole, steps = self.table(name, host=host), self.steps_on(host)
        if steps.empty:
            return whole
        if name == "kernel_stats":
            return kernel_stats_in_steps(whole, self.step_cells(name, host=host), included)
        if name == "hlo_ops":
            return hlo_ops_in_steps(whole, self._cells_of("hlo_cells", self._hosts(host)), included)
        times, of_all = self._op_times(self._hosts(host)), (len(steps), self.recorded_steps(host))
        return op_stats_in_steps(whole, self._ops_of_rows[host, None], times, included, *of_all)

    def recorded_steps(self, host: str | None = None) -> int:
        """The number of steps, included or not, in which devices were recorded: sums over them are divided by it. All
        steps where none was, at least 1."""
        lost = np.isnan(self.steps_on(host)["duration_us"].to_numpy(np.float64))
        return max(int((~lost).sum()) or len(lost), 1)

    @cached_property
    def _in_steps(self) -> dict[tuple[str, str | None], Held]:
        return {}

    def op_shares(self, host: str) -> pd.DataFrame:
        """The share that each op of one host has in each part of each step; the shares of a part add up to it.

        Columns `host_or_device`, `op_type`, `op_name`, `step`, `step_part` (one of `schema.STEP_PARTS`), `stage` (the
        tf.data iterator that the op worked for, empty for none) and `wall_time_us`. Raises `Unknown` for an unknown
        host.
        """
        return wall_times_by_op(self.host_table("op_parts", host=host), self.host_table("op_wall", host=host))

    def annotation_shares(self, host: str) -> pd.DataFrame:
        """The time that each annotation and Python function of one host adds to each part of each step, in which no op
        runs, and between the steps (`NO_STEP`, part ""): columns `kind`, `name`, `step`, `step_part` and
        `wall_time_us`. Raises `Unknown` for an unknown host."""
        annotations, wall = (self.host_table(name, host=host) for name in ("host_annotations", "annotation_wall"))
        return wall_times_by_annotation(annotations, wall)

    def op_types_on_devices(self, *, host: str | None = None) -> pd.DataFrame:
        """Columns `host`, `device` and `op_type`: the types of ops that ran on each device, without idle time, for all
        hosts or one. Raises `Unknown` for an unknown host."""
        parts = self.host_table("op_parts", host=host)
        ran = parts.iloc[self.host_table("op_totals", host=host)["part"].unique()]
        on_devices = ran[ran["host_or_device"] == schema.DEVICE]
        return on_devices[["host", "device", "op_type"]].drop_duplicates(ignore_index=True)

    def op_evidence(self, *, host: str | None = None) -> OpEvidence:
        """Evidence that helps to match ops besides their names, for all hosts or one. Raises `Unknown` for an unknown
        host."""
        if host not in self._evidence:
            tables = (self.host_table(name, host=host) for name in ("op_parts", "kernel_stats", "hlo_ops"))
            self._evidence[host] = op_evidence(*tables)
        return self._evidence[host]

    @cached_property
    def _evidence(self) -> dict[str | None, OpEvidence]:
        return {}

    @cached_property
    def _cells(self) -> dict[str | None, StepCells]:
        return {}

    def host_table(self, name: str, *, host: str | None = None) -> pd.DataFrame:
        """A table of `schema.HOST_TABLES` of all hosts or one, host by host, with a column `host`.

        Numbers that are rows of another table, such as `part`, are rows of that table of the same hosts. Raises
        `Unknown` for an unknown host, a `TfcompareError` if the table cannot be read any more.
        """
        hosts = self._hosts(host)
        if name in _NOT_HELD:
            return _of_hosts(name, hosts)
        if name not in self._tables:
            self._tables[name] = Held(_of_hosts(name, self.hosts))
        table = self._tables[name].frame
        if host is None or len(self.hosts) == 1:
            return table.copy(deep=False)
        return _of_hosts(name, hosts) if schema.HOST_TABLES[name].rows_of else _rows_of(table, host, None)

    @cached_property
    def _tables(self) -> dict[str, Held]:
        """Each table of all hosts."""
        return {}

    def memory_events(self, *, host: str | None = None) -> list[tuple[str, MemoryEvents]]:
        """The name of each host, or of one, with what `memory_timeline` is made of, in less memory than it takes."""
        return [(h.host, MemoryEvents.from_table(h.table("memory_events"))) for h in self._hosts(host)]

    def timeline(self, host: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The tables `timeline_lanes` and `timeline_spans` of one host, with texts as categoricals."""
        (tables,) = self._hosts(host)
        return with_categories(tables.table("timeline_lanes")), with_categories(tables.table("timeline_spans"))

    def _hosts(self, host: str | None) -> tuple[HostTables, ...]:
        if host is None:
            return self.hosts
        if host not in self.host_names:
            raise Unknown(f"host of {self.name}", host, list(self.host_names))
        return tuple(h for h in self.hosts if h.host == host)

    def _table(self, name: str, hosts: tuple[HostTables, ...], host: str | None, device: str | None) -> pd.DataFrame:
        if name == "run_info":
            return schema.RUN_INFO.conform(pd.DataFrame([asdict(self.info)]))
        if name == "slow_steps":
            if host not in self._slow_steps:
                self._slow_steps[host] = slow_steps_frame(self.table("steps", host=host), self.op_shares, _label(host))
            return self._slow_steps[host]
        if name == "hosts":
            return _rows_of(self._hosts_table, host, device)
        if name == "steps":
            return _rows_of(self._steps_table, host, None)
        if name in _OF_HOSTS:
            return self._table_of_hosts(name, host, device)
        if name in _MADE_OF:
            return schema.table(name).conform(_MADE_OF[name](self, host))
        if name == "op_steps":
            return self._op_steps(hosts, host, device)
        if (host, device) not in self._op_stats_tables:
            frame, self._ops_of_rows[host, device] = self._op_stats(hosts, host, device)
            self._op_stats_tables[host, device] = Held(frame)
        return self._op_stats_tables[host, device].frame

    def _table_of_hosts(self, name: str, host: str | None, device: str | None) -> pd.DataFrame:
        """The rows of all hosts, host by host; kernels are sorted by time over all hosts instead."""
        frame = _rows_of(self.host_table(_OF_HOSTS[name], host=host), None, device)
        if name == "kernel_stats" and host is None and len(self.hosts) > 1:
            frame = frame.sort_values("total_duration_us", ascending=False, kind="stable", ignore_index=True)
        return schema.table(name).conform(frame)

    @cached_property
    def _slow_steps(self) -> dict[str | None, pd.DataFrame]:
        """Each table has one row."""
        return {}

    @cached_property
    def _hosts_table(self) -> pd.DataFrame:
        """`hosts` of all hosts: the skew of a step refers to all of them."""
        return hosts_frame(self.table("steps"), self.host_table("device_steps"))

    @cached_property
    def _steps_table(self) -> pd.DataFrame:
        """`steps` of all hosts: the stray is one step of the run."""
        steps = self.host_table("steps")
        if self.choice.kind is not None:
            steps = steps.assign(included=steps["included"] & self.is_of_chosen_kind(steps))
        return schema.STEPS.conform(self._with_stray(steps))

    def _with_stray(self, steps: pd.DataFrame) -> pd.DataFrame:
        """The steps of all hosts, of which those that are not on every host are not included, and its stray."""
        on_all_hosts = steps.assign(included=steps["included"] & are_on_all_hosts(steps))
        return with_stray(on_all_hosts, is_excluded=not self.choice.counts_stray)

    def step_programs(self, host: str | None = None) -> pd.Series:
        """The compiled program that ran in each step, or several, by the step's number in `steps`; steps of which it is
        unknown are left out."""
        if host not in self._step_programs:
            self._step_programs[host] = step_programs(self.step_cells("op_stats", host=host))
        return self._step_programs[host]

    @cached_property
    def _step_programs(self) -> dict[str | None, pd.Series]:
        return {}

    @cached_property
    def _step_markers(self) -> dict[str | None, pd.Series]:
        return {}

    def step_markers(self, host: str | None = None) -> pd.Series:
        """The name of the marker of each step, by the step's number in `steps`; steps of which it is unknown are left
        out, and all if no name marks several steps."""
        if host not in self._step_markers:
            steps = self.host_table("steps", host=host)
            number = steps["step"] if host is not None or steps.empty else common_step_ids(steps)
            names = steps["marker"].set_axis(number)[steps["marker"].to_numpy() != ""]
            names = names[~names.index.duplicated()]
            self._step_markers[host] = names if kinds_among(names) else names.iloc[:0]
        return self._step_markers[host]

    @cached_property
    def has_kinds_by_marker(self) -> bool:
        """Whether the names of markers tell several kinds of steps apart."""
        return len(kinds_among(kind_at(self._all_included, self.step_markers()))) > 1

    def kind_of_steps(self, host: str | None = None, *, by_marker: bool | None = None) -> pd.Series:
        """The kind of each step, by the step's number in `steps`; steps of which it is unknown are left out.

        It is the name of the step's marker, or else the compiled programs that ran in it: by default, the name where
        names tell several kinds apart, or no programs are known.
        """
        if by_marker is None:
            by_marker = self.has_kinds_by_marker or self.step_programs().empty
        return self.step_markers(host) if by_marker else self.step_programs(host)

    @property
    def _all_included(self) -> pd.Series:
        """The numbers of the steps that are included without a choice of kind."""
        steps = self.steps if self.choice.kind is None else run_steps(self._with_stray(self.host_table("steps")))
        return steps.loc[steps["included"].astype(bool), "step"]

    @cached_property
    def step_kinds(self) -> dict[str, int]:
        """How many steps there are of each kind, whichever is chosen, among those that are included without a choice
        of kind; the most frequent first, empty where neither markers nor programs have names."""
        return kinds_among(kind_at(self._all_included, self.kind_of_steps()))

    def is_of_chosen_kind(self, steps: pd.DataFrame) -> pd.Series:
        """Whether each row of `steps`, as for `kind_of_rows`, is of the kind that was chosen: a marker's name, or else
        a program."""
        kind = self.choice.kind
        if kind is None:
            return pd.Series(True, steps.index)
        return self.kind_of_rows(steps, by_marker=bool((self.step_markers() == kind).any())) == kind

    def kind_of_rows(self, steps: pd.DataFrame, *, by_marker: bool | None = None) -> pd.Series:
        """The kind of `kind_of_steps` for each row of `steps`, which has `host` and `step` as hosts number their steps;
        empty where unknown."""
        common = self._common_steps(self.hosts)
        number = steps["step"]
        if common is not None:
            of_hosts = steps.groupby("host", sort=False)["step"]
            places = [pd.Series(common(str(host), own.to_numpy()), own.index) for host, own in of_hosts]
            number = pd.concat(places).reindex(steps.index)
        return kind_at(number, self.kind_of_steps(by_marker=by_marker))

    @cached_property
    def _op_stats_tables(self) -> dict[tuple[str | None, str | None], Held]:
        return {}

    @cached_property
    def _ops_of_rows(self) -> dict[tuple[str | None, str | None], Int64]:
        """Beside each table of `_op_stats_tables`."""
        return {}

    def _op_stats(
        self, hosts: tuple[HostTables, ...], host: str | None, device: str | None
    ) -> tuple[pd.DataFrame, Int64]:
        times = merge_hosts(self._parts(hosts), hosts, "op_totals", "op_wall_totals")
        idle = self.host_table("idle", host=host)
        has_devices = idle.loc[idle["host_or_device"] == schema.DEVICE, "host"]
        if device is not None:
            times, idle = times.on_device(device), idle[idle["device"] == device]
        instructions = self.host_table("hlo_ops", host=host)
        if len(instructions):
            side = np.where(instructions["host"].isin(has_devices), schema.DEVICE, schema.HOST)
            side = np.where(instructions["core_type"] == schema.SPARSE_CORE, schema.SPARSE_CORE, side)
            instructions = instructions.assign(host_or_device=pd.array(side, dtype="str"))
        return op_stats(times, idle, instructions, _label(host), has_steps=self._has_step_times_on(host))

    def _parts(self, hosts: Sequence[HostTables]) -> Parts:
        """The op parts of these hosts without their times."""
        key = tuple(host.host for host in hosts)
        if key not in self._held_parts:
            self._held_parts[key] = parts_of_hosts(hosts)
        return self._held_parts[key]

    @cached_property
    def _held_parts(self) -> dict[tuple[str, ...], Parts]:
        return {}

    def _op_times(self, hosts: Sequence[HostTables]) -> OpTimes:
        """The op parts of these hosts together, by step; held for all of several, which take time to merge."""
        if hosts is self.hosts and len(hosts) > 1:
            return self._merged_times
        return merge_hosts(self._parts(hosts), hosts, "op_cells", "op_wall", self._common_steps(hosts))

    @cached_property
    def _merged_times(self) -> OpTimes:
        parts, common_steps = self._parts(self.hosts), self._common_steps(self.hosts)
        return merge_hosts(parts, self.hosts, "op_cells", "op_wall", common_steps)

    def _cells_of(self, name: str, hosts: Sequence[HostTables]) -> pd.DataFrame:
        """`kernel_cells` or `hlo_cells` of these hosts together, by the steps of the run."""
        cells, common = _of_hosts(name, hosts), self._common_steps(hosts)
        if common is not None:
            own = [common(str(name), rows["step"].to_numpy()) for name, rows in cells.groupby("host", sort=False)]
            cells = cells.assign(step=np.concatenate([np.zeros(0, np.int64), *own]))
        return cells.drop(columns="host")

    def _common_steps(self, hosts: Sequence[HostTables]) -> CommonSteps | None:
        """The steps of the run for those of a host, where hosts number them differently; `NO_STEP` for others."""
        steps = self.host_table("steps")
        if len(hosts) < 2 or steps.empty or numbered_alike(steps):
            return None
        rows = steps.assign(place=common_step_ids(steps))
        place_of = {host: own.set_index("step")["place"] for host, own in rows.groupby("host")}

        def common(host: str, step: Int64) -> Int64:
            if host not in place_of:
                return step
            places = pd.Series(step).map(place_of[host]).fillna(NO_STEP)
            return places.to_numpy(np.int64)

        return common

    def _op_steps(self, hosts: tuple[HostTables, ...], host: str | None, device: str | None) -> pd.DataFrame:
        times = self._op_times(hosts) if device is None else self._op_times(hosts).on_device(device)
        cells = self.step_cells("op_stats", host=host) if device is None else op_cells(times, _label(host))
        return op_steps(cells, times, has_steps=self._has_step_times_on(host))

    def _has_step_times_on(self, host: str | None) -> bool:
        """Whether the time of any step is known, on all hosts or one."""
        return bool(self.table("steps", host=host)["duration_us"].notna().any())


def load(
    place: str | Path | FoundRun,
    *,
    step_marker: str | None = None,
    steps: str | None = None,
    stray: Stray = "exclude",
    step_kind: str | None = None,
    join: bool = False,
    progress: OnProgress | None = None,
    fetching: OnProgress | None = None,
    build: FrameBuilder = build_here,
) -> Run:
    """Load the run at `place`: a file, run folder, logdir or found run.

    A place that holds several captures of one program, by their names (`run-1`, `run-2`, …), is a run with these
    `captures`: its tables are those of the first, and comparisons use all of them.

    `step_marker` names the host event that begins each step, for profiles without suitable markers of their own.
    `steps` restricts all tables to a range of steps by position, such as `5:25` (counted from 1, inclusive), `5:` or
    `:25`, and what ran between them. `stray`: whether a step that is far longer than all others is excluded from the
    figures, or counted (`include`). `step_kind`: only steps of that marker or program are in the figures.
    `join` is that of `find_runs`.

    Remote host files are first downloaded in parallel into the user's cache folder, unless they are there. `fetching`
    is called with the progress of downloads, `progress` with that of reading. Host files that were read before and have
    not changed come from this machine's cache; `build` reads the others.

    A damaged host file among readable ones becomes a remark. Raises a `TfcompareError` if no host file can be read
    (`NotAProfile`, `NoSuchPlace`, `TooLarge`), one cannot be downloaded (`NotFetched`) or has no such steps
    (`NoOtherSteps`), `steps` or `stray` is malformed, or there is no run (`NoRuns`) or runs of several programs
    (`SeveralRuns`) at `place`.
    """
    if stray not in ("exclude", "include"):
        raise Unknown("use of a stray", stray, ["exclude", "include"])
    choice = step_choice(step_marker, steps, counts_stray=stray == "include", kind=step_kind)
    profiles = partial(ProfileReader, fetching=fetching, build=build)
    if isinstance(place, FoundRun):
        return _read(place.opened(), choice, profiles, progress)
    found, left_out = captures_at(find_runs(place, join=join), place, join=join)
    run, *others = [_read(one.opened(), choice, profiles, progress) for one in found]
    if not others:
        return run
    remark = f"the first of {len(found)} captures of one program, by their names; comparisons use all of them"
    remarks = (*run.remarks, *(f"left out: {problem}" for problem in left_out), remark)
    return replace(run, replicates=tuple(others), remarks=remarks)


def _read(
    found: FoundRun, choice: StepChoice, profiles: Callable[..., ProfileReader], progress: OnProgress | None
) -> Run:
    """One capture with the chosen steps. Raises as `load` does."""
    cache = frame_cache()
    if choice.has_range and len(found.files) > 1:
        whole = HostReader(profiles(found, StepChoice(choice.marker)), cache)
        hosts, failures = read_hosts(found, whole, progress)
        if hosts:
            part, of_host = _steps_of_hosts(found, hosts, choice)
            remarks = [*(f"left out: {failure}" for failure in failures), *whole.remarks]
            run = read_by(HostReader(profiles(part, choice, of_host=of_host), cache), part, progress)
            return replace(run, found=found, remarks=(*run.remarks, *remarks))
    return read_by(HostReader(profiles(found, choice), cache), found, progress)


def _steps_of_hosts(
    found: FoundRun, hosts: Sequence[HostTables], choice: StepChoice
) -> tuple[FoundRun, dict[str, StepChoice]]:
    """(the run with those of these hosts alone that have steps of the chosen range; which of its steps each takes).

    Raises `NoSuchSteps` if none has.
    """
    steps = of_hosts("steps", hosts)
    ranges = ranges_of_hosts(steps, choice.first, choice.last)
    if not ranges:
        raise NoSuchSteps(found.name, str(choice.range), len(run_steps(steps)))
    without = [host.host for host in hosts if host.host not in ranges]
    left_out = [f"left out: host {host} has none of the chosen steps" for host in without]
    files = tuple(file for file in found.files if file.host in ranges)
    part = replace(found, files=files, problems=(*found.problems, *left_out))
    return part, {host: replace(choice, first=low, last=high) for host, (low, high) in ranges.items()}


def read_by(reader: HostReader, found: FoundRun, progress: OnProgress | None = None) -> Run:
    """The run with the host files that `reader` provides. Raises as `load` does."""
    if not found.files:
        raise TfcompareError("; ".join(found.problems) or f"{found.path}: no host file to read")
    hosts, failures = read_hosts(found, reader, progress)
    if not hosts:
        raise failures[0]
    load = _machine_load(found)
    busy = [f"recorded under load ({load}): step times vary more"] if load is not None and load.is_busy else []
    remarks = (
        *found.problems,
        *(f"left out: {failure}" for failure in failures),
        *_remarks(hosts),
        *busy,
        *reader.remarks,
    )
    run = Run(
        id=found.id,
        name=found.name,
        path=found.path,
        content_id=_content_id(hosts, reader.profiles.choice),
        host_names=tuple(sorted(h.host for h in hosts)),
        remarks=remarks,
        found=found,
        hosts=tuple(hosts),
        choice=reader.profiles.choice,
        machine_load=load,
    )
    if run.choice.kind is not None and not run.steps["included"].any():
        raise NoSuchKind(found.name, run.choice.kind, list(run.step_kinds))
    return run


def _machine_load(found: FoundRun) -> MachineLoad | None:
    """The load recorded next to a run on this machine; None for remote and stored runs."""
    if found.is_remote or found.is_stored:
        return None
    return read_load(Path(found.files[0].path).parent)


def _content_id(hosts: list[HostTables], choice: StepChoice) -> str:
    digest = blake2b("".join(sorted(h.digest for h in hosts)).encode(), digest_size=16)
    if choice.key is not None:
        digest.update(choice.key.encode("utf-8", "surrogatepass"))
    for host in (
        sorted(hosts, key=lambda one: one.host) if choice.has_range else ()
    ):  # a range takes other steps of each
        digest.update(host.table("steps")["step"].to_numpy().tobytes())
    if choice.counts_stray:
        digest.update(b" with stray")
    if choice.kind is not None:
        digest.update(b" of kind " + choice.kind.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _remarks(hosts: list[HostTables]) -> list[str]:
    """Cautions from the files themselves, and about files that are identical."""
    several = len(hosts) > 1
    out = [f"{h.host}: {remark}" if several else remark for h in hosts for remark in h.remarks]
    by_digest: dict[str, list[str]] = {}
    for h in hosts:
        by_digest.setdefault(h.digest, []).append(h.host)
    out += [
        f"the files of hosts {some_of(same, _MOST_NAMED)} are identical: one capture is counted {len(same)} times"
        for same in by_digest.values()
        if len(same) > 1
    ]
    if several:
        steps = of_hosts("steps", hosts)
        if (partial := common_step_ids(steps)[~are_on_all_hosts(steps)].nunique()) > _ENDS:
            out.append(f"steps that were not recorded on all hosts, and do not count: {partial:,}")
    return out


def _of_hosts(name: str, hosts: Sequence[HostTables]) -> pd.DataFrame:
    """As `of_hosts`, with numbers that are rows of another table counted over all of these hosts."""
    frame = of_hosts(name, hosts)
    for column, other in schema.HOST_TABLES[name].rows_of.items():
        first = np.cumsum([0, *(h.rows(other) for h in hosts)])[:-1]
        shift = np.repeat(first, [h.rows(name) for h in hosts])
        rows = frame[column].to_numpy()
        frame[column] = np.where(rows >= 0, rows + shift, rows).astype(rows.dtype)
    return frame


def _op_profile(run: Run, host: str | None) -> pd.DataFrame:
    return op_profile(run.host_table("hlo_ops", host=host))


def _input_pipeline(run: Run, host: str | None) -> pd.DataFrame:
    return input_pipeline(run.host_table("op_parts", host=host), run.host_table("op_totals", host=host))


def _kernel_steps(run: Run, host: str | None) -> pd.DataFrame:
    stats = run.host_table("kernel_stats", host=host)
    return kernel_steps(kernel_step_cells(stats, run.host_table("kernel_cells", host=host).drop(columns="host")))


def _memory_timeline(run: Run, host: str | None) -> pd.DataFrame:
    return timeline_of_events(run.host_table("memory_events", host=host))


_MADE_OF: dict[str, Callable[[Run, str | None], pd.DataFrame]] = {
    "op_profile": _op_profile,
    "input_pipeline": _input_pipeline,
    "kernel_steps": _kernel_steps,
    "memory_timeline": _memory_timeline,
}
"""Tables that are made of those of the hosts; the rows of one host come after those of the other."""


def _rows_of(table: pd.DataFrame, host: str | None, device: str | None) -> pd.DataFrame:
    """The rows of one host, of one device, or all."""
    for name, value in (("host", host), ("device", device)):
        table = table if value is None else table[table[name] == value].reset_index(drop=True)
    return table


def _label(host: str | None) -> str:
    return schema.ALL_HOSTS if host is None else host


def _info(run: Run) -> RunInfo:
    origins = [h.origin for h in run.hosts]
    included = run.steps.loc[run.steps["included"], "duration_us"] / _US_PER_MS
    start_time, source = _start_time(run)
    return RunInfo(
        run=run.id,
        hosts=len(run.hosts),
        host_names=", ".join(run.host_names),
        framework=_join_distinct(o.framework for o in origins),
        device_type=_join_distinct(o.device_type for o in origins),
        device_name=_join_distinct(o.device_name for o in origins),
        device_count=sum(o.device_count for o in origins),
        clock_mhz=max(o.clock_mhz for o in origins),
        start_time=start_time,
        start_time_source=source,
        duration_ms=max(o.duration_us for o in origins) / _US_PER_MS,
        step_count=max(len(run.steps), 1),
        steps_included=max(len(included), 1),
        step_source=_join_distinct(h.step_source for h in run.hosts),
        step_time_ms_median=float(included.median()),
        step_time_ms_mean=float(included.mean()),
        size_bytes=run.found.size_bytes,
        versions=_join_distinct(" ".join(one) for o in origins for one in o.versions),
        profiler_options=_join_distinct(" ".join(one) for o in origins for one in o.profiler_options),
        command_buffers=_join_distinct(o.command_buffers for o in origins),
        warnings="; ".join(run.remarks),
    )


def _start_time(run: Run) -> tuple[datetime, str]:
    started = [h.origin.start_ns for h in run.hosts if h.origin.start_ns]
    if not started:
        return run.found.recorded, run.found.recorded_source
    return datetime.fromtimestamp(min(started) / 1e9, UTC), "profile"


def _join_distinct(values: Iterable[str]) -> str:
    """The distinct values, in order, separated by commas."""
    return ", ".join(dict.fromkeys(v for v in values if v))
