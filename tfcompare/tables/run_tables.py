"""The tables of a run, over all hosts or for one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.frames import table_of_hosts
from tfcompare.frames.planes import HOST_PLANE
from tfcompare.schema.runs import ABSENT, OPS
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.tables.frames import bytes_of_frame_of, frame_of_declared
from tfcompare.tables.hlo_edges import count_edges, hlo_edges
from tfcompare.tables.host_frames import HostFrames, rows_where
from tfcompare.tables.hosts import hosts_frame
from tfcompare.tables.input_pipeline import input_pipeline
from tfcompare.tables.kernel_stats import hlo_ops_in_steps, kernel_stats_in_steps, kernel_steps, op_profile
from tfcompare.tables.memory_timeline import timeline_of_events
from tfcompare.tables.op_evidence import OpEvidence, op_evidence
from tfcompare.tables.op_parts import OP
from tfcompare.tables.op_shapes import op_shapes
from tfcompare.tables.op_stats import OpTables, op_stats_in_steps, wall_times
from tfcompare.tables.slow_steps import slow_steps_frame
from tfcompare.tables.spans import spans
from tfcompare.tables.step_kinds import StepKinds
from tfcompare.tables.step_times import StepCells
from tfcompare.units import format_bytes
from tfcompare.xspace.limits import LIMITS

_SAME_IN_HOSTS = {name: name for name in schema.HOST_TABLES if name in schema.TABLES} | {
    "tf_data": "tf_data_executions"
}
"""Tables of a run whose rows are those of the tables of its hosts."""

_BY_STEP = {"op_steps": "op_stats", "kernel_steps": "kernel_stats"}
"""Tables with one row per step, and the tables whose rows they break down."""

MOST_EDGES = 20_000_000
"""Rows of `hlo_edges`, of 80 bytes and more: a program has up to a million instructions, of few operands each."""

_DEVICE_TABLES = ("hosts", "op_stats", "op_steps", "copies")


@dataclass(frozen=True, eq=False)
class RunTables(HostFrames):
    """The tables of a run, made of those of its hosts when they are asked for. `choice` is which steps count."""

    choice: StepChoice = OWN_STEPS

    @cached_property
    def ops(self) -> OpTables:
        """The ops of the run."""
        return OpTables(self)

    @cached_property
    def kinds(self) -> StepKinds:
        """The steps of the run, and the kind of each."""
        return StepKinds(self, self.ops, self.choice)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices with op events, sorted, such as `/device:GPU:0`."""
        idle = self.host_table("idle")
        return tuple(sorted(idle.loc[idle["host_or_device"] == schema.DEVICE, "device"].unique()))

    def device_count(self, host: str | None = None) -> int:
        """The number of devices with op events, on all hosts or on one."""
        return int((self.host_table("idle", host=host)["host_or_device"] == schema.DEVICE).sum())

    @property
    def memory_bytes(self) -> int:
        """Memory used by the frames, in bytes. It grows as tables are derived."""
        return sum(host.memory_bytes for host in self.hosts) + self.cache.memory_bytes

    def derived_bytes(self, name: str) -> int:
        """Roughly the memory that a table of single events or of edges would take, in bytes.

        These are made on demand, never cached, and may be far larger than what they are made of. 0 for other tables.
        Raises a `TfcompareError` if a profile is not there any more.
        """
        if name in _WITHOUT_FRAMES:
            return bytes_of_frame_of(_WITHOUT_FRAMES[name](self, None))
        if name in _BY_STEP:
            return self.step_cells(_BY_STEP[name]).joined_bytes
        return sum(events.timeline_bytes for _, events in self.memory_events()) if name == "memory_timeline" else 0

    def check(self, name: str, host: str | None, device: str | None) -> None:
        """Raises `Unknown` as `Run.table` does."""
        schema.table(name)
        self.select(host)
        if device is not None and name not in _DEVICE_TABLES:
            raise Unknown("table of single devices", name, list(_DEVICE_TABLES))
        if device is not None and device not in self.devices:
            raise Unknown(f"device of {self.run_name}", device, list(self.devices))

    def table(self, name: str, *, host: str | None = None, device: str | None = None) -> pd.DataFrame:
        """As `Run.table`, of which the caller gets a copy. It has all tables but `run_info`."""
        if name == "steps":
            return rows_where(self.kinds.host_steps, host=host)
        if name in _SAME_IN_HOSTS:
            frame = rows_where(self.host_table(_SAME_IN_HOSTS[name], host=host), device=device)
            if name == "kernel_stats":
                frame = self._longest_first(frame, frame["total_duration_us"], host)
            return schema.table(name).conform(frame)
        if name == "hosts":
            return rows_where(self._hosts_table, host=host, device=device)
        if name == "slow_steps":
            label = host or schema.ALL_HOSTS
            return self.cache.get(
                (name, host), lambda: slow_steps_frame(self.table("steps", host=host), self.op_shares, label)
            )
        if name == "op_stats":
            return self.ops.stats(host, device)[0]
        if name == "op_steps":
            return self.ops.steps(host, device)
        if name == "kernel_steps":
            cells = self.host_table("kernel_cells", host=host).drop(columns="host")
            return kernel_steps(self.host_table("kernel_stats", host=host), cells)
        if name == "op_shapes":
            hosts = self.select(host)
            memory, counts = table_of_hosts("memory_events", hosts)
            names = pa.array([one.host for one in hosts], pa.string())
            of_rows = np.repeat(np.arange(len(hosts), dtype=np.int32), counts)
            memory = memory.append_column("host", pa.DictionaryArray.from_arrays(of_rows, names))
            others = (self.host_table(one, host=host) for one in ("hlo_ops", "op_parts", "op_operands"))
            return op_shapes(memory, *others)
        if name in _WITHOUT_FRAMES:
            return self._frame(name, _WITHOUT_FRAMES[name](self, host))
        if name == "op_profile":
            return op_profile(self.host_table("hlo_ops", host=host))
        if name == "input_pipeline":
            return input_pipeline(self.host_table("op_parts", host=host), self.host_table("op_totals", host=host))
        return timeline_of_events(self.host_table("memory_events", host=host))

    def _longest_first(self, kernels: pd.DataFrame, time_us: pd.Series, host: str | None) -> pd.DataFrame:
        """Kernels of several hosts, those with most of this time first; those of one host are in that order."""
        if host is not None or len(self.hosts) == 1:
            return kernels
        return kernels.iloc[np.argsort(-time_us.to_numpy(), kind="stable")].reset_index(drop=True)

    @cached_property
    def _hosts_table(self) -> pd.DataFrame:
        """`hosts` of all hosts: the skew of a step refers to all of them."""
        return hosts_frame(self.kinds.host_steps, self.host_table("device_steps"))

    def _frame(self, name: str, table: pa.Table) -> pd.DataFrame:
        """A table whose rows repeat texts as a frame. Raises a `TfcompareError` if that is too large."""
        if (size := bytes_of_frame_of(table)) > LIMITS.table_bytes:
            raise TfcompareError(
                f"{self.run_name}: the table {name} takes {format_bytes(size)}, and a table may take "
                f"{format_bytes(LIMITS.table_bytes)}: choose one of the hosts or a range of steps"
            )
        return frame_of_declared(schema.table(name), table)

    def _spans(self, host: str | None) -> pa.Table:
        common_steps = self.common_steps if host is None else None
        return spans(self.select(host), self.ops.instructions(host), common_steps)

    def _hlo_edges(self, host: str | None) -> pa.Table:
        """Raises a `TfcompareError` if there are too many, however short their texts."""
        if (count := self.count_edges(host=host)) > MOST_EDGES:
            raise TfcompareError(
                f"{self.run_name}: its programs have {count:,} edges, and at most {MOST_EDGES:,} are read"
            )
        return hlo_edges(self.select(host))

    def count_edges(self, *, host: str | None = None) -> int:
        """The number of rows of `hlo_edges`, which is not made. Raises as `table`."""
        return count_edges(self.select(host))

    def steps_on(self, host: str | None) -> pd.DataFrame:
        """`Run.steps`, or with `host` the table `steps` of that host."""
        return self.kinds.steps if host is None else self.table("steps", host=host).copy(deep=False)

    def recorded_steps(self, host: str | None = None) -> int:
        """The number of steps, included or not, in which devices were recorded: sums over them are divided by it. All
        steps where none was, at least 1."""
        lost = np.isnan(self.steps_on(host)["duration_us"].to_numpy(np.float64))
        return max(int((~lost).sum()) or len(lost), 1)

    def has_recorded_devices(self, host: str | None = None) -> bool:
        """Whether what ran on the devices of all hosts, or of one, was recorded; also true where there are none, and
        where it is unknown, as in stores of older versions."""
        return not self._hosts_without_record if host is None else host not in self._hosts_without_record

    @cached_property
    def _hosts_without_record(self) -> set[str]:
        recorded = self.host_table("recorded")
        host, device, kind, status = (recorded[name].to_numpy() for name in ("host", "device", "kind", "status"))
        of_devices = (device != HOST_PLANE) & (kind == OPS)
        return set(host[of_devices]) - set(host[of_devices & (status != ABSENT)])

    def step_cells(self, name: str, *, host: str | None = None) -> StepCells:
        """The time of each row of `op_stats` (self time) or `kernel_stats` (total time) in each step.

        Keys are those of the table. Raises `Unknown` for another table or an unknown host.
        """
        if name not in schema.STEP_TABLES:
            raise Unknown("table with figures of single steps", name, list(schema.STEP_TABLES))
        if name == "op_stats":
            return self.ops.cells(host)
        keys = self.host_table("kernel_stats", host=host)[list(schema.KERNEL_STATS.keys)]
        return StepCells(keys, self.cells_in_steps("kernel_cells", host=host))

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
            return self._in_steps(name, host, steps)
        of = self.several_or_none(host)
        found = self.cache.get(("in steps", name, of), lambda: self._in_steps(name, of, None))
        return found.assign(host=host) if name == "op_stats" and of != host else found.copy(deep=False)

    def _in_steps(self, name: str, host: str | None, numbers: pd.Series | None) -> pd.DataFrame:
        whole, steps = self.table(name, host=host), self.steps_on(host)
        included = steps.loc[steps["included"].astype(bool), "step"] if numbers is None else numbers
        if steps.empty:
            return whole
        if name == "kernel_stats":
            rows = self.host_table(name, host=host)
            found = kernel_stats_in_steps(rows, self.cells_in_steps("kernel_cells", host=host), included)
            return self._longest_first(found, rows["total_duration_us"], host)
        if name == "hlo_ops":
            return hlo_ops_in_steps(whole, self.cells_in_steps("hlo_cells", host=host), included)
        (_, op), of_all = self.ops.stats(host), (len(steps), self.recorded_steps(host))
        return op_stats_in_steps(whole, op, self.ops.times(host), included, *of_all)

    def op_shares(self, host: str) -> StepCells:
        """The share that each op of one host has in each part of each step; the shares of a part add up to it.

        The keys are `host_or_device`, `op_type`, `op_name`, `step_part` (one of `schema.STEP_PARTS`) and `stage` (the
        tf.data iterator that the op worked for, empty for none), the cells have `wall_time_us`. Raises `Unknown` for an
        unknown host.
        """
        ops, wall = self.host_table("op_parts", host=host), self.host_table("op_wall", host=host)
        return wall_times(ops[OP], wall["part"].to_numpy(), wall, stage=wall["stage"].to_numpy())

    def annotation_shares(self, host: str) -> StepCells:
        """The time that each annotation and Python function of one host adds to each part of each step, in which no op
        runs, and between the steps (`NO_STEP`, part ""): the keys `kind`, `name`, `step_part`, and cells with
        `wall_time_us`. Raises `Unknown` for an unknown host."""
        annotations, wall = (self.host_table(name, host=host) for name in ("host_annotations", "annotation_wall"))
        return wall_times(annotations[["kind", "name"]], wall["annotation"].to_numpy(), wall)

    def op_types_on_devices(self, *, host: str | None = None) -> set[tuple[str, str, str]]:
        """Host, device and op type: the types of ops that ran on each device, without idle time, for all hosts or one.
        Raises `Unknown` for an unknown host."""
        found: set[tuple[str, str, str]] = set()
        for one in self.select(host):
            ran = one.table("op_parts").take(one.table("op_totals")["part"].unique())
            on_devices = ran.filter(pc.equal(ran["host_or_device"], schema.DEVICE))
            pairs = zip(*(on_devices[name].to_pylist() for name in ("device", "op_type")), strict=True)
            found |= {(one.host, device, op_type) for device, op_type in pairs}
        return found

    def op_evidence(self, *, host: str | None = None) -> OpEvidence:
        """Evidence that helps to match ops besides their names, for all hosts or one. Raises `Unknown` for an unknown
        host."""
        of = self.several_or_none(host)
        tables = (self.host_table(name, host=of) for name in ("op_parts", "kernel_stats", "hlo_ops"))
        return self.cache.get(("op evidence", of), lambda: op_evidence(*tables))


_WITHOUT_FRAMES = {"spans": RunTables._spans, "hlo_edges": RunTables._hlo_edges}
"""What makes a table for all hosts or one, with texts as dictionaries: its frame may be far larger."""
