"""A loaded profile run: its tables and its identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Literal

import pandas as pd

from tfcompare import schema
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.frames import HostFrames
from tfcompare.frames.memory import memory_timeline
from tfcompare.frames.ops.op_parts import NO_STEP, frame_bytes
from tfcompare.frames.steps.idle_gaps import decode_op_names
from tfcompare.frames.steps.steps import WHOLE_PROFILE
from tfcompare.sources.logdir import FoundRun, find_run
from tfcompare.sources.machine_load import MachineLoad, read_load
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice, step_choice
from tfcompare.store.building import FrameBuilder, build_here
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.reading import HostReader, Progress, read_hosts
from tfcompare.tables.hosts import hosts_frame
from tfcompare.tables.input_pipeline import input_pipeline
from tfcompare.tables.kernel_stats import kernel_stats_in_steps, kernel_step_cells, kernel_steps
from tfcompare.tables.op_evidence import OpEvidence, op_evidence
from tfcompare.tables.op_parts import OpParts, merge_hosts
from tfcompare.tables.op_profile import op_profile
from tfcompare.tables.op_stats import op_cells, op_stats, op_stats_in_steps, op_steps, wall_times_by_op
from tfcompare.tables.slow_steps import slow_steps_frame
from tfcompare.tables.step_cells import StepCells, concat_cells
from tfcompare.tables.step_times import common_step_ids, numbered_alike, run_steps
from tfcompare.tables.strays import with_stray
from tfcompare.units import format_ms

_US_PER_MS = 1000.0
Stray = Literal["exclude", "include"]

HOST_TABLES: dict[str, Callable[[HostFrames], pd.DataFrame]] = {
    "steps": lambda h: h.tables["steps"],
    "idle_gaps": lambda h: decode_op_names(h.tables["idle_gaps"]),
    "kernel_stats": lambda h: h.tables["kernel_stats"],
    "kernel_steps": lambda h: kernel_steps(kernel_step_cells(h.kernels.stats, h.kernels.cells)),
    "copies": lambda h: h.tables["copies"],
    "hlo_ops": lambda h: h.tables["hlo_ops"],
    "hlo_texts": lambda h: h.tables["hlo_texts"],
    "op_profile": lambda h: op_profile(h.tables["hlo_ops"]),
    "hlo_memory": lambda h: h.tables["hlo_memory"],
    "compilations": lambda h: h.tables["compilations"],
    "memory_summary": lambda h: h.tables["memory_summary"],
    "memory_timeline": lambda h: memory_timeline(h.memory, h.host),
    "memory_peak": lambda h: h.tables["memory_peak"],
    "input_pipeline": lambda h: input_pipeline(OpParts(h.tables["op_parts"], h.tables["op_totals"]), h.host),
    "tf_data_pipelines": lambda h: h.tables["tf_data_pipelines"],
    "tf_data_calls": lambda h: h.tables["tf_data_calls"],
    "tf_data": lambda h: h.tables["tf_data_executions"],
}
"""Tables with separate rows for each host, and the function that gives the rows of one host."""

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
    start_time: datetime
    start_time_source: str
    duration_ms: float
    step_count: int
    steps_included: int
    step_source: str
    step_time_ms_median: float
    step_time_ms_mean: float
    size_bytes: int
    warnings: str

    @property
    def has_steps(self) -> bool:
        """Whether the profile marks its steps; otherwise the whole profile counts as one step."""
        return self.step_source != WHOLE_PROFILE


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A loaded run. Its tables are in memory; its files are not read again. A notebook shows its step time and top ops.

    `id` is the path relative to the folder it was found under, `name` the display name. `content_id` is a digest of the
    host files and the step choice: copies of a run share it wherever they are. `host_names` is sorted. `remarks` are
    sentences to read before trusting the numbers. `choice` is which steps count and what begins them. `machine_load` is
    the load of the machine during recording, None if unknown.
    """

    id: str
    name: str
    path: PurePath
    content_id: str
    host_names: tuple[str, ...]
    remarks: tuple[str, ...]
    found: FoundRun
    hosts: tuple[HostFrames, ...]
    choice: StepChoice = OWN_STEPS
    machine_load: MachineLoad | None = None

    def __repr__(self) -> str:
        info = self.info
        steps = f"{format_ms(info.step_time_ms_mean)} per step, {info.step_count:,} steps"
        return f"<Run {self.name!r}: {steps if info.has_steps else 'no step markers'}, {info.device_type}>"

    def _repr_html_(self) -> str:
        from tfcompare.report.cell import run_html

        return run_html(self)

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
        """Why the profile's step markers do not count as steps; empty if they do, or if there are none."""
        return next((h.why_untimed for h in self.hosts if h.why_untimed), "")

    @cached_property
    def info(self) -> RunInfo:
        """The row of `run_info`."""
        return _info(self)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Columns `step`, `duration_us`, `included`, `stray`: each step of the run, as long as on its slowest host."""
        return run_steps(self.table("steps"))

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices with op events, sorted, such as `/device:GPU:0`."""
        idle = pd.concat([h.tables["idle"] for h in self.hosts])
        return tuple(sorted(idle.loc[idle["host_or_device"] == schema.DEVICE, "device"].unique()))

    @property
    def likely_markers(self) -> tuple[str, ...]:
        """Host events that may begin each step, likeliest first; empty if the profile marks its steps itself."""
        return tuple(dict.fromkeys(name for h in self.hosts for name in h.likely_markers))

    @property
    def memory_bytes(self) -> int:
        """Memory used by the run's frames, in bytes, for caches with a size limit. It grows as tables are derived."""
        derived = sum(size_bytes for _, size_bytes in list(self._op_stats_tables.values()))
        derived += sum(size_bytes for _, size_bytes in list(self._in_steps.values()))
        derived += sum(cells.memory_bytes for cells in list(self._cells.values()))
        derived += sum(evidence.memory_bytes for evidence in list(self._evidence.values()))
        return sum(h.memory_bytes for h in self.hosts) + derived

    def derived_bytes(self, name: str) -> int:
        """Roughly the memory that a table with one row per op, kernel or allocation in each step would take, in bytes.

        These are made on demand, never cached, and may be far larger than what they are made of. 0 for other tables.
        """
        if name in _BY_STEP:
            return self.step_cells(_BY_STEP[name]).joined_bytes
        return sum(h.memory.timeline_bytes for h in self.hosts) if name == "memory_timeline" else 0

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
        )

    def step_cells(self, name: str, *, host: str | None = None) -> StepCells:
        """The time of each row of `op_stats` (self time) or `kernel_stats` (total time) in each step.

        Keys are those of the table. Raises `Unknown` for another table or an unknown host.
        """
        hosts = self._hosts(host)
        if name not in schema.STEP_TABLES:
            raise Unknown("table with figures of single steps", name, list(schema.STEP_TABLES))
        if name == "kernel_stats":
            cells = self._with_common_steps(hosts, [h.kernels.cells for h in hosts])
            return concat_cells([kernel_step_cells(h.kernels.stats, c) for h, c in zip(hosts, cells, strict=True)])
        if host not in self._cells:
            self._cells[host] = op_cells(self._parts(hosts), _label(host))
        return self._cells[host]

    def in_steps(self, name: str, *, host: str | None = None) -> pd.DataFrame:
        """`op_stats` or `kernel_stats` with the occurrences and times of the included steps alone.

        The rows are those of the table; one that ran only outside of these steps has 0. What is not known by step
        (IDLE, FLOPs and bytes) is the whole × included steps ÷ all steps. Raises `Unknown` for another table or an
        unknown host. Without step markers it is the table itself.
        """
        if name not in schema.STEP_TABLES:
            raise Unknown("table with figures of single steps", name, list(schema.STEP_TABLES))
        if (name, host) not in self._in_steps:
            table = self._table_in_steps(name, host)
            self._in_steps[name, host] = table, frame_bytes(table)
        return self._in_steps[name, host][0].copy(deep=False)

    def _table_in_steps(self, name: str, host: str | None) -> pd.DataFrame:
        whole, steps = self.table(name, host=host), self.steps if host is None else self.table("steps", host=host)
        if steps.empty:
            return whole
        included = steps.loc[steps["included"].astype(bool), "step"]
        if name == "kernel_stats":
            return kernel_stats_in_steps(whole, self.step_cells(name, host=host), included)
        return op_stats_in_steps(whole, self._parts(self._hosts(host)), included, len(steps))

    @cached_property
    def _in_steps(self) -> dict[tuple[str, str | None], tuple[pd.DataFrame, int]]:
        """Each table with its bytes."""
        return {}

    def op_shares(self, host: str) -> pd.DataFrame:
        """The share that each op of one host has in each part of each step; the shares of a part add up to it.

        Columns `host_or_device`, `op_type`, `op_name`, `step`, `step_part` (one of `schema.STEP_PARTS`), `stage` (the
        tf.data iterator that the op worked for, empty for none) and `wall_time_us`. Raises `Unknown` for an unknown
        host.
        """
        (frames,) = self._hosts(host)
        return wall_times_by_op(frames.tables["op_parts"], frames.tables["op_wall"])

    def op_types_on_devices(self, *, host: str | None = None) -> pd.DataFrame:
        """Columns `host`, `device` and `op_type`: the types of ops that ran on each device, without idle time, for all
        hosts or one. Raises `Unknown` for an unknown host."""
        ran = [
            h.tables["op_parts"].iloc[h.tables["op_totals"]["part"].unique()].assign(host=h.host)
            for h in self._hosts(host)
        ]
        types = pd.concat(ran)[["host", "device", "op_type"]].drop_duplicates(ignore_index=True)
        return types[types["device"].isin(self.devices)]

    def op_evidence(self, *, host: str | None = None) -> OpEvidence:
        """Evidence that helps to match ops besides their names, for all hosts or one. Raises `Unknown` for an unknown
        host."""
        if host not in self._evidence:
            hosts = self._hosts(host)
            self._evidence[host] = op_evidence(
                *([h.tables[name] for h in hosts] for name in ("op_parts", "kernel_stats", "hlo_ops"))
            )
        return self._evidence[host]

    @cached_property
    def _evidence(self) -> dict[str | None, OpEvidence]:
        return {}

    @cached_property
    def _cells(self) -> dict[str | None, StepCells]:
        return {}

    def _hosts(self, host: str | None) -> tuple[HostFrames, ...]:
        if host is None:
            return self.hosts
        if host not in self.host_names:
            raise Unknown(f"host of {self.name}", host, list(self.host_names))
        return tuple(h for h in self.hosts if h.host == host)

    def _table(self, name: str, hosts: tuple[HostFrames, ...], host: str | None, device: str | None) -> pd.DataFrame:
        if name == "run_info":
            return schema.RUN_INFO.conform(pd.DataFrame([asdict(self.info)]))
        if name == "slow_steps":
            return slow_steps_frame(self.table("steps", host=host), self.op_shares, _label(host))
        if name == "hosts":
            return _rows_of(self._hosts_table, host, device)
        if name == "steps":
            return _rows_of(self._steps_table, host, None)
        if name in HOST_TABLES:
            return _host_rows(name, hosts, device)
        if name == "op_steps":
            return self._op_steps(hosts, host, device)
        if (host, device) not in self._op_stats_tables:
            table = self._op_stats(hosts, host, device)
            self._op_stats_tables[host, device] = table, frame_bytes(table)
        return self._op_stats_tables[host, device][0]

    @cached_property
    def _hosts_table(self) -> pd.DataFrame:
        """`hosts` of all hosts: the skew of a step refers to all of them."""
        of_each = [h.tables["device_steps"].assign(host=h.host) for h in self.hosts]
        return hosts_frame(self.table("steps"), pd.concat(of_each, ignore_index=True))

    @cached_property
    def _steps_table(self) -> pd.DataFrame:
        """`steps` of all hosts: the stray is one step of the run."""
        steps = with_stray(_host_rows("steps", self.hosts, None), is_excluded=not self.choice.counts_stray)
        return schema.STEPS.conform(steps)

    @cached_property
    def _op_stats_tables(self) -> dict[tuple[str | None, str | None], tuple[pd.DataFrame, int]]:
        """Each table with its bytes, which take too long to measure at each rerun of a page."""
        return {}

    def _op_stats(self, hosts: tuple[HostFrames, ...], host: str | None, device: str | None) -> pd.DataFrame:
        parts = merge_hosts(
            [h.tables["op_parts"] for h in hosts],
            (h.tables["op_totals"] for h in hosts),
            (h.tables["op_wall_totals"] for h in hosts),
        )
        idle = pd.concat([h.tables["idle"] for h in hosts], ignore_index=True)
        if device is not None:
            parts, idle = parts.on_device(device), idle[idle["device"] == device]
        instructions = pd.concat(map(_instructions, hosts), ignore_index=True)
        has_steps = not self.table("steps", host=host).empty
        return op_stats(parts, idle, instructions, _label(host), has_steps=has_steps)

    def _parts(self, hosts: Sequence[HostFrames]) -> OpParts:
        """The op parts of these hosts together, by step."""
        cells, wall = (
            self._with_common_steps(hosts, [h.tables[name] for h in hosts]) for name in ("op_cells", "op_wall")
        )
        return merge_hosts([h.tables["op_parts"] for h in hosts], cells, wall)

    def _with_common_steps(self, hosts: Sequence[HostFrames], frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
        """A frame of each of several hosts, whose `step` is that of `Run.steps` also where hosts number differently."""
        steps = self._steps_table
        if len(hosts) < 2 or steps.empty or numbered_alike(steps):
            return frames
        ids = steps.assign(place=common_step_ids(steps)).set_index(["host", "step"])["place"]
        return [
            frame.assign(step=frame["step"].map(ids[h.host]).fillna(NO_STEP).astype("int64"))
            if h.host in ids
            else frame
            for h, frame in zip(hosts, frames, strict=True)
        ]

    def _op_steps(self, hosts: tuple[HostFrames, ...], host: str | None, device: str | None) -> pd.DataFrame:
        parts = self._parts(hosts) if device is None else self._parts(hosts).on_device(device)
        cells = self.step_cells("op_stats", host=host) if device is None else op_cells(parts, _label(host))
        return op_steps(cells, parts, has_steps=not self.table("steps", host=host).empty)


def load(
    place: str | Path | FoundRun,
    *,
    step_marker: str | None = None,
    steps: str | None = None,
    stray: Stray = "exclude",
    join: bool = False,
    progress: Progress | None = None,
    fetching: Progress | None = None,
    build: FrameBuilder = build_here,
) -> Run:
    """Load the run at `place`: a file, run folder, logdir or found run.

    `step_marker` names the host event that begins each step, for profiles without suitable markers of their own.
    `steps` restricts all tables to a range of steps by position, such as `5:25` (counted from 1, inclusive), `5:` or
    `:25`, and what ran between them. `stray`: whether a step that is far longer than all others is excluded from the
    figures, or counted (`include`). `join` is that of `find_runs`.

    Remote host files are first downloaded in parallel into the user's cache folder, unless they are there. `fetching`
    is called with the progress of downloads, `progress` with that of reading. Host files that were read before and have
    not changed come from this machine's cache; `build` reads the others.

    A damaged host file among readable ones becomes a remark. Raises a `TfcompareError` if no host file can be read
    (`NotAProfile`, `NoSuchPlace`, `TooLarge`), one cannot be downloaded (`NotFetched`) or has no such steps
    (`NoOtherSteps`), `steps` or `stray` is malformed, or there is no run (`NoRuns`) or more than one (`SeveralRuns`) at
    `place`.
    """
    found = (place if isinstance(place, FoundRun) else find_run(place, join=join)).opened()
    if stray not in ("exclude", "include"):
        raise Unknown("use of a stray", stray, ["exclude", "include"])
    choice = step_choice(step_marker, steps, counts_stray=stray == "include")
    reader = HostReader(found, choice, fetching, frame_cache(), build)
    return read_by(reader, found, progress)


def read_by(reader: HostReader, found: FoundRun, progress: Progress | None = None) -> Run:
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
    return Run(
        id=found.id,
        name=found.name,
        path=found.path,
        content_id=_content_id(hosts, reader.choice),
        host_names=tuple(sorted(h.host for h in hosts)),
        remarks=remarks,
        found=found,
        hosts=tuple(hosts),
        choice=reader.choice,
        machine_load=load,
    )


def _machine_load(found: FoundRun) -> MachineLoad | None:
    """The load recorded next to a run on this machine; None for remote and stored runs."""
    if found.is_remote or found.is_stored:
        return None
    return read_load(Path(found.files[0].path).parent)


def _content_id(hosts: list[HostFrames], choice: StepChoice) -> str:
    digest = blake2b("".join(sorted(h.digest for h in hosts)).encode(), digest_size=16)
    if choice.key is not None:
        digest.update(choice.key.encode("utf-8", "surrogatepass"))
    if choice.counts_stray:
        digest.update(b" with stray")
    return digest.hexdigest()


def _remarks(hosts: list[HostFrames]) -> list[str]:
    """Cautions from the files themselves, and about files that are identical."""
    several = len(hosts) > 1
    out = [f"{h.host}: {remark}" if several else remark for h in hosts for remark in h.remarks]
    by_digest: dict[str, list[str]] = {}
    for h in hosts:
        by_digest.setdefault(h.digest, []).append(h.host)
    out += [
        f"the files of hosts {' and '.join(same)} are identical: one capture is counted {len(same)} times"
        for same in by_digest.values()
        if len(same) > 1
    ]
    return out


def _host_rows(name: str, hosts: tuple[HostFrames, ...], device: str | None) -> pd.DataFrame:
    """The rows of all hosts, host by host; kernels are sorted by time over all hosts instead."""
    table = schema.table(name)
    frames = [HOST_TABLES[name](h) for h in hosts]
    frames = [frame for frame in frames if len(frame)] or frames[:1]
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0].reset_index(drop=True)
    if device is not None:
        frame = frame[frame["device"] == device].reset_index(drop=True)
    if name == "kernel_stats" and len(hosts) > 1:
        frame = frame.sort_values("total_duration_us", ascending=False, kind="stable", ignore_index=True)
    return table.conform(frame)


def _rows_of(table: pd.DataFrame, host: str | None, device: str | None) -> pd.DataFrame:
    """The rows of one host, of one device, or all."""
    chosen = pd.Series(True, table.index)
    for name, value in (("host", host), ("device", device)):
        chosen &= True if value is None else table[name] == value
    return table[chosen].reset_index(drop=True)


def _instructions(frames: HostFrames) -> pd.DataFrame:
    """The host's `hlo_ops`, with `host_or_device`: where they ran."""
    has_devices = (frames.tables["idle"]["host_or_device"] == schema.DEVICE).any()
    return frames.tables["hlo_ops"].assign(host_or_device=schema.DEVICE if has_devices else schema.HOST)


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
        start_time=start_time,
        start_time_source=source,
        duration_ms=max(o.duration_us for o in origins) / _US_PER_MS,
        step_count=max(len(run.steps), 1),
        steps_included=max(len(included), 1),
        step_source=_join_distinct(h.step_source for h in run.hosts),
        step_time_ms_median=float(included.median()),
        step_time_ms_mean=float(included.mean()),
        size_bytes=run.found.size_bytes,
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
