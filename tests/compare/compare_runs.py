"""Runs as small as a test needs them: what `tfcompare.run.Run` offers, made from a few lines of text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.matching.matching import pair_rows
from tfcompare.comparison import compare
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.tables.host_frames import MeasuredCache
from tfcompare.tables.op_evidence import OpEvidence
from tfcompare.tables.slow_steps import slow_steps_frame, with_stray
from tfcompare.tables.step_kinds import step_programs
from tfcompare.tables.step_times import StepCells, run_steps

COSTS = ("flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity")
WITHOUT_COSTS = dict.fromkeys(COSTS, 0.0) | {"bound_by": ""}
"""The cells of an op without XLA instructions."""


def ops(text: str) -> pd.DataFrame:
    """An `op_stats` frame from lines of `side op_type op_name occurrences self_time_us`."""
    rows = [line.split() for line in text.strip().splitlines()]
    return op_stats([(side, op_type, name, int(n), float(time)) for side, op_type, name, n, time in rows])


def op_stats(rows: list[tuple[str, str, str, int, float]], host: str = schema.ALL_HOSTS) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["host_or_device", "op_type", "op_name", "occurrences", "self_time_us"])
    times = dict.fromkeys(("total_time_us", "wall_time_us"), frame["self_time_us"])
    frame = frame.assign(host=host, **times, is_eager=False, **WITHOUT_COSTS)
    return schema.OP_STATS.conform(frame)


def named(*names: str, op_type: str = "MatMul") -> pd.DataFrame:
    """An `op_stats` frame of ops that differ by name, each with a time of its own."""
    return op_stats([("Host", op_type, name, 1, 10.0 + i) for i, name in enumerate(names)])


def steps(durations_us: list[float], host: str = "worker", first: int = 0, set_aside: int = 0) -> pd.DataFrame:
    """A `steps` frame; `set_aside` steps at either end do not count."""
    n = len(durations_us)
    frame = pd.DataFrame(
        {
            "host": host,
            "step": range(first, first + n),
            "start_us": [sum(durations_us[:i]) for i in range(n)],
            "duration_us": durations_us,
            "included": [set_aside <= i < n - set_aside for i in range(n)],
            "stray": False,
            "host_span_us": durations_us,
            "device_span_us": np.nan,
        }
    )
    frame["host_start_us"] = frame["start_us"]
    for column in schema.STEPS.columns:
        if column.name not in frame:
            frame[column.name] = "" if column.dtype == "str" else 0.0
    return schema.STEPS.conform(frame)


def table(name: str, **columns: list[Any]) -> pd.DataFrame:
    """A frame of the table `name`; columns that are not given hold nothing worth mentioning."""
    declared = schema.table(name)
    frame = pd.DataFrame(columns)
    defaults = {"str": "", "Int64": pd.NA, "int64": 1, "float64": 1.0, "Float64": pd.NA, "bool": False}
    for column in declared.columns:
        if column.name not in frame:
            frame[column.name] = pd.Series([defaults[column.dtype]] * len(frame), dtype=column.dtype)
    return declared.conform(frame)


@dataclass
class FakeRun:
    """What `compare` asks of a `Run`."""

    id: str
    frames: dict[str, pd.DataFrame]
    info: SimpleNamespace
    content_id: str
    host_names: tuple[str, ...]
    by_host: dict[str, dict[str, pd.DataFrame]] = field(default_factory=dict)
    cells: dict[str, StepCells] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    evidence: OpEvidence = field(default_factory=OpEvidence)
    is_under_load: bool = False
    choice: StepChoice = OWN_STEPS
    why_untimed: str = ""

    lost_steps: int = 0
    are_by_marker: bool = False
    name: str = ""
    cache: MeasuredCache = field(default_factory=MeasuredCache)

    def __post_init__(self) -> None:
        self.name = self.name or self.id.rpartition("/")[2]

    @property
    def found(self) -> SimpleNamespace:
        return SimpleNamespace(name=self.name)

    @property
    def tables(self) -> FakeRun:
        return self

    def several_or_none(self, host: str | None) -> str | None:
        return host

    @property
    def kinds(self) -> FakeRun:
        return self

    @property
    def captures(self) -> tuple[FakeRun, ...]:
        return (self,)

    @cached_property
    def steps(self) -> pd.DataFrame:
        return run_steps(self._steps)

    @cached_property
    def _steps(self) -> pd.DataFrame:
        return with_stray(self.frames["steps"], is_excluded=not self.choice.counts_stray)

    def steps_on(self, host: str | None) -> pd.DataFrame:
        return self.steps if host is None else self.table("steps", host=host)

    def in_steps(self, name: str, *, host: str | None = None) -> pd.DataFrame:
        """As if every step had an equal share of the whole."""
        whole, share = self.table(name, host=host), self.info.steps_included / self.info.step_count
        if host is not None:
            steps = self.table("steps", host=host)
            share = steps["included"].mean() if len(steps) else 1 / self.info.step_count
        sums = [column.name for column in schema.table(name).columns if column.kind == "sum"]
        return whole.assign(**{column: whole[column] * share for column in sums})

    def device_count(self, host: str | None = None) -> int:
        assert host is None or host in self.host_names
        return len(self.devices)

    def has_recorded_devices(self, host: str | None = None) -> bool:
        assert host is None or host in self.host_names
        return True

    def recorded_steps(self, host: str | None = None) -> int:
        assert host is None or host in self.host_names
        return int(self.info.step_count)

    def op_shares(self, host: str) -> StepCells:
        assert host in self.host_names
        keys = ("host_or_device", "op_type", "op_name", "step_part", "stage")
        cells = pd.DataFrame({"row": [], "step": [], "wall_time_us": []}, dtype="int64")
        return StepCells(pd.DataFrame({name: [] for name in keys}, dtype="str"), cells)

    def step_cells(self, name: str, *, host: str | None = None) -> StepCells:
        assert host is None or host in self.host_names
        keys = {"op_stats": schema.OP_STATS, "kernel_stats": schema.KERNEL_STATS}[name]
        nothing = pd.DataFrame({"row": [], "step": [], "occurrences": [], "time_us": []}, dtype="int64")
        return self.cells.get(name, StepCells(keys.empty()[list(keys.keys)], nothing))

    def programs(self, host: str | None = None) -> pd.Series:
        return step_programs(self.step_cells("op_stats", host=host))

    def by_step(self, host: str | None = None, *, by_marker: bool | None = None) -> pd.Series:
        return pd.Series(dtype="str") if by_marker else self.programs(host)

    def op_types_on_devices(self, *, host: str | None = None) -> set[tuple[str, str, str]]:
        assert not self.devices, "of devices, no ops are known"
        assert host is None or host in self.host_names
        return set()

    def op_evidence(self, *, host: str | None = None) -> OpEvidence:
        assert host is None or host in self.host_names
        return self.evidence

    @property
    def path(self) -> Path:
        return Path("/logs") / self.id

    def table(self, name: str, *, host: str | None = None, device: str | None = None) -> pd.DataFrame:
        assert device is None
        if name == "slow_steps":
            return slow_steps_frame(self.table("steps", host=host), self.op_shares, host or "all")
        if name == "steps" and name in self.frames:
            return self._steps if host is None else self._steps[self._steps["host"] == host]
        if host is None:
            return self.frames[name] if name in self.frames else schema.table(name).empty()
        return self.by_host.get(host, {}).get(name, schema.table(name).empty())


def run(
    run_id: str,
    op_frame: pd.DataFrame | None = None,
    *,
    step_count: int = 1,
    step_ms: float = 25.0,
    has_steps: bool = True,
    framework: str = "TensorFlow",
    device_type: str = "CPU",
    steps_included: int = 20,
    content: str | None = None,
    step_frame: pd.DataFrame | None = None,
    hosts: tuple[str, ...] = ("worker",),
    by_host: dict[str, dict[str, pd.DataFrame]] | None = None,
) -> FakeRun:
    info = SimpleNamespace(
        run=run_id,
        step_count=step_count,
        steps_included=steps_included,
        step_time_ms_median=step_ms,
        step_time_ms_mean=step_ms,
        has_steps=has_steps,
        has_step_times=has_steps and not math.isnan(step_ms),
        framework=framework,
        device_type=device_type,
        device_name="",
        device_count=0,
        hosts=len(hosts),
        step_source="step markers",
        duration_ms=1e3,
    )
    defaults = {"int64": 0, "float64": 0.0, "str": ""}
    row = {c.name: defaults.get(c.dtype, pd.Timestamp("2026-01-01", tz="UTC")) for c in schema.RUN_INFO.columns}
    row |= {"run": run_id, "step_count": step_count, "step_time_ms_median": step_ms, "step_source": "step markers"}
    frames = {
        "op_stats": schema.OP_STATS.empty() if op_frame is None else op_frame,
        "steps": steps([step_ms * 1000] * step_count) if step_frame is None else step_frame,
        "run_info": schema.RUN_INFO.conform(pd.DataFrame([row])),
    }
    return FakeRun(run_id, frames, info, content or run_id, hosts, by_host or {})


Op = tuple[str, str, str]
"""Where an op runs, its type and its name."""


def run_of_series(
    run_id: str, series: dict[Op, np.ndarray], *, outside_us: dict[Op, float] | None = None, step_us: float = 1000.0
) -> FakeRun:
    """A run of these ops with their times in each step, and with what they took outside of all steps."""
    more = outside_us or {}
    rows = [(*op, len(times), round(float(times.sum()), 6) + more.get(op, 0.0)) for op, times in series.items()]
    count = max(len(times) for times in series.values())
    made = run(run_id, op_stats(rows), step_frame=steps([step_us] * count), step_count=count)
    made.cells["op_stats"] = cells_of(made.frames["op_stats"], list(series.values()))
    return made


def cells_of(frame: pd.DataFrame, series: list[np.ndarray], table: schema.Table = schema.OP_STATS) -> StepCells:
    """The times of each row of a table in each step, in which it ran once."""
    cells = [
        pd.DataFrame({"row": row, "step": range(len(times)), "occurrences": 1, "time_us": times})
        for row, times in enumerate(series)
    ]
    return StepCells(frame[list(table.keys)], pd.concat(cells, ignore_index=True))


def diff(name: str, before: pd.DataFrame, after: pd.DataFrame, **options: str) -> pd.DataFrame:
    """The diff of two runs that have only this table."""
    ours, theirs = run("before"), run("after")
    ours.frames[name], theirs.frames[name] = before, after
    return compare(ours, theirs, **options).diffs(name)  # type: ignore[arg-type]


def text(frame: pd.DataFrame, columns: list[str]) -> list[str]:
    """The cells of each row in a line, what is missing as a dash."""
    return [" ".join("–" if pd.isna(v) else str(v) for v in row) for row in frame[columns].itertuples(index=False)]


UNKNOWN = (OpEvidence(), OpEvidence())


def paired_names(
    before: pd.DataFrame, after: pd.DataFrame, evidence: tuple[OpEvidence, OpEvidence] = UNKNOWN
) -> list[tuple[str, str, str]]:
    """(baseline's name, candidate's, tier) of each row of `op_stats`; a side that has no such row is empty."""
    found = pair_rows(schema.OP_STATS, before, after, evidence=evidence)
    ours, theirs = (
        [side["op_name"].iloc[row] if row >= 0 else "" for row in rows]
        for side, rows in ((before, found.baseline), (after, found.candidate))
    )
    return [(b, c, tier or "") for b, c, tier in zip(ours, theirs, found.match, strict=True)]


def mirrored_pairs(
    before: pd.DataFrame, after: pd.DataFrame, evidence: tuple[OpEvidence, OpEvidence] = UNKNOWN
) -> set[tuple[str, str, str]]:
    """As `paired_names`, of sides that give the mirror image when they are swapped."""
    forth, back = paired_names(before, after, evidence), paired_names(after, before, evidence[::-1])
    assert sorted(forth) == sorted((b, c, tier) for c, b, tier in back)
    return set(forth)
