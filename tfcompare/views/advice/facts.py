"""What the rules of advice look at: the tables and figures of one side, each computed once."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.side import window_of
from tfcompare.compare.tf_data.iterator_tree import setting
from tfcompare.compare.tf_data.tf_data_bottleneck import Analysis, analyse, stages
from tfcompare.compare.utilization import instructions_in_steps
from tfcompare.frames.ops.op_names import DATASET
from tfcompare.schema import DEVICE, HOST, IDLE, SPARSE_CORE, STEP_PARTS
from tfcompare.schema.kernels import MEMORY_SET
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.tables.step_times import Window
from tfcompare.units import share_of
from tfcompare.views.advice.model import WORTH_IT, Figure
from tfcompare.views.input.figures import InputWait, wait_of
from tfcompare.views.steps.figures import Gap, HostSteps, eager_share, host_steps, usual_gap
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    from tfcompare.run import Run, RunInfo

_BUSY_PARTS = ("output_us", "device_collectives_us", "device_to_device_us", "device_compute_us")

_HOST_MEMORY = "cpu|host"

FEWEST_STEPS = 3
"""The minimum number of included steps for advice on times: with fewer, a single exception could dominate."""
CORES = Figure("Cores that tf.data counts", "", lambda f: f.cores)
GAP = Figure("Longest idle gap of a step", "µs", lambda f: f.gap.length_us if f.gap else math.nan)


@dataclass(frozen=True, eq=False)
class Facts:
    """One run, on one host or on all.

    `steps`: the steps that count with their parts, one row each, on the slowest host; `device_parts`: the parts as each
    of its devices sees them (`device_steps`), in the mean over these steps and devices; `step_count`: all steps, by
    which sums of the whole profile are divided; `recorded_steps`: those of them by which sums over devices are. `ops`:
    `op_stats` without IDLE; `idle_us`: the IDLE time by side; `device_us`: the time of all ops by device; `hlo_ops`:
    the instructions in the steps that count. The other frames are the run's tables. `pipeline`: the analysis of its
    input pipeline, None without one. `host_steps`: what the average step of that host is made of, None without steps;
    `window`: from its first step to its last, None for fewer than two; `gap`: as `usual_gap`; `eager_share`: as
    `steps.figures.eager_share`; `cores`: as tf.data counts them on the host, NaN where it is unknown.
    """

    info: RunInfo
    steps: pd.DataFrame
    device_parts: Mapping[str, float]
    step_count: int
    recorded_steps: int
    wait: InputWait
    pipeline: Analysis | None
    host_steps: HostSteps | None
    window: Window | None
    gap: Gap | None
    eager_share: float
    cores: float
    ops: pd.DataFrame
    idle_us: Mapping[str, float]
    device_us: Mapping[str, float]
    kernels: pd.DataFrame
    copies: pd.DataFrame
    memory: pd.DataFrame
    input_ops: pd.DataFrame
    hlo_ops: pd.DataFrame
    hlo_memory: pd.DataFrame
    compilations: pd.DataFrame
    busy_threads: float = field(default=math.nan)

    @cached_property
    def computing_ops(self) -> pd.DataFrame:
        """The ops of the device; without one, of the host."""
        return self.ops[self.ops["host_or_device"] == (DEVICE if self.has_device else HOST)]

    @cached_property
    def device_memory(self) -> pd.DataFrame:
        """The rows of `memory_summary` on the memories of devices, by their ids, whose capacity is known."""
        rows = self.memory[self.memory["capacity_bytes"] > 0]
        return rows[~rows["memory_id"].str.contains(_HOST_MEMORY, case=False)]

    @property
    def is_jax(self) -> bool:
        """Whether the profile was captured by JAX."""
        return self.info.framework == "JAX"

    @property
    def has_device(self) -> bool:
        """Whether anything ran on a GPU or TPU."""
        return bool(self.device_us)

    @property
    def has_parts(self) -> bool:
        """Whether the parts of its steps are known."""
        return self.wait.is_known

    @property
    def per(self) -> str:
        """The unit to which sums refer: `step` or `profile`."""
        return "step" if self.info.has_steps else "profile"

    @property
    def each(self) -> str:
        """What a sum is told by in a sentence: `a step`, or `in the profile` where there are none."""
        return "a step" if self.info.has_steps else "in the profile"

    @property
    def step_us(self) -> float:
        """The mean of the included steps."""
        return self.wait.step_time_us.average

    @property
    def has_enough_steps(self) -> bool:
        """Whether it has enough steps of known time for advice; a run without any steps is analysed as a whole."""
        return not self.info.has_steps or (self.info.has_step_times and len(self.steps) >= FEWEST_STEPS)

    @property
    def waits_for_input(self) -> bool:
        """Whether the run is input bound."""
        return self.wait.is_bound

    @property
    def input_share(self) -> float:
        """The share of step time that it waits for input, without steps of the profile; 0 where it is unknown."""
        share = self.wait.share.average if self.wait.is_known else self.wait.of_profile
        return 0.0 if math.isnan(share) else share

    @property
    def compute_share(self) -> float:
        """The share of step time in which the device computes (without one, the host); 1 where steps tell no parts."""
        return self.part_share("device_compute_us" if self.has_device else "host_compute_us") if self.has_parts else 1.0

    @property
    def op_share(self) -> float:
        """The share of step time in which ops of the device run: it computes, or waits within them; as
        `compute_share` else."""
        return self.compute_share + (self.part_share("device_waits_us") if self.has_device and self.has_parts else 0.0)

    @property
    def device_busy_share(self) -> float:
        """The share of step time in which a device does anything; input counts as copying to it where it copies."""
        return sum(self.part_share(part) for part in _BUSY_PARTS)

    @property
    def bottleneck(self) -> pd.Series | None:
        """The iterator that the calls waited for the longest (`usual_bottleneck`), None where there is none."""
        return None if self.pipeline is None else self.pipeline.usual_bottleneck

    def part_us(self, part: str) -> float:
        """The average time of one of `schema.STEP_PARTS`."""
        return float(self.steps[part].mean()) if self.has_parts else math.nan

    def part_share(self, part: str) -> float:
        """The share of step time in one of `schema.STEP_PARTS`."""
        return share_of(self.part_us(part), self.step_us) if self.has_parts else math.nan

    def device_part_us(self, part: str) -> float:
        """The average time of one of `schema.STEP_PARTS` as a device sees it, whatever the other devices do."""
        return self.device_parts[part] if self.has_parts else math.nan

    def device_part_share(self, part: str) -> float:
        """The share of step time in one of `schema.STEP_PARTS` as a device sees it."""
        return share_of(self.device_part_us(part), self.step_us) if self.has_parts else math.nan

    def iterator_us(self, iterators: Collection[str]) -> float:
        """What these iterators of tf.data, by their long names, with the functions that they call, have of the waiting
        of an average step; NaN without steps."""
        if self.host_steps is None:
            return math.nan
        inside = self.host_steps.ops("input_us")
        of_tf_data = inside[inside["op_type"] == DATASET]
        chosen = stages(of_tf_data["op_name"]).isin(stages(pd.Series(list(iterators), dtype="str")))
        return float(of_tf_data.loc[chosen, "time_us"].sum(min_count=1))

    def per_step(self, total: float) -> float:
        """A sum over the profile by the number of steps; as it is where there are none."""
        return float(total) / self.step_count

    def side_us(self, side: str) -> float:
        """The self time of all ops of `Host` or `Device`, input and all."""
        return float(self.ops.loc[self.ops["host_or_device"] == side, "self_time_us"].sum())

    def per_recorded_step(self, total: float) -> float:
        """A sum over what devices did in the profile by the number of steps; as it is where there are none."""
        return float(total) / self.recorded_steps

    @property
    def kernel_us(self) -> float:
        """The time of all kernels."""
        return float(self.kernels["total_duration_us"].sum())


def longest(rows: pd.DataFrame, column: str = "self_time_us") -> pd.Series:
    """The row with the largest value of a column, the first among equals; `rows` must not be empty."""
    return rows.iloc[int(rows[column].to_numpy(dtype=float).argmax())]


def facts_of(run: Run, host: str | None = None) -> Facts:
    """The facts of a run, for one of its hosts or all; raises `Unknown` for an unknown host."""
    table = partial(run.table, host=host)
    steps = steps_of_straggler(table("steps"))
    counted = steps[steps["included"].astype(bool)]
    op_stats, iterators, copies = table("op_stats"), table("tf_data"), table("copies")
    of_steps = host_steps(run, str(steps["host"].iloc[0])) if run.info.has_steps and len(steps) else None
    is_op = (op_stats["op_type"] != IDLE) & (op_stats["host_or_device"] != SPARSE_CORE)
    ops = op_stats[is_op].reset_index(drop=True)
    idle = op_stats[op_stats["op_type"] == IDLE].set_index("host_or_device")["self_time_us"]
    analysis = analyse(table("tf_data_pipelines"), iterators)
    count = run.info.step_count if host is None else len(table("steps")) or run.info.step_count
    parts = run.tables.host_table("device_steps", host=None if counted.empty else str(counted["host"].iloc[0]))
    means = parts.loc[parts["step"].isin(counted["step"]), list(STEP_PARTS)].mean()
    return Facts(
        info=run.info,
        steps=counted,
        device_parts={str(part): float(us) for part, us in means.items()},
        step_count=max(count, 1) if run.info.has_steps else 1,
        recorded_steps=run.tables.recorded_steps(host),
        wait=wait_of(run, host),
        pipeline=None if analysis is None or analysis.feeds_device_only else analysis,
        host_steps=of_steps,
        window=window_of(run, host),
        gap=usual_gap(run, counted),
        eager_share=eager_share(ops, of_steps, run.info),
        cores=cores_of(iterators),
        ops=ops,
        idle_us={str(side): float(us) for side, us in idle.items()},
        device_us=_device_times(run, host),
        kernels=table("kernel_stats"),
        copies=copies[copies["kind"] != MEMORY_SET],
        memory=table("memory_summary"),
        input_ops=table("input_pipeline"),
        hlo_ops=instructions_in_steps(run, host).reset_index(drop=True),
        hlo_memory=table("hlo_memory"),
        compilations=table("compilations"),
        busy_threads=busy_threads(ops, run.info.duration_ms * 1e3, run.info.hosts if host is None else 1),
    )


def cores_of(iterators: pd.DataFrame) -> float:
    """How many cores tf.data counts on the host, by the settings of its iterators (rows of `tf_data`); NaN where it is
    unknown."""
    for name in ("cpu_budget", "threadpool_size"):
        values = [setting(row, name) for _, row in iterators.drop_duplicates("settings").iterrows()]
        counts = [int(text) for text in values if text.isdecimal() and int(text) > 0]
        if counts:
            return float(max(counts))
    return math.nan


_WAITING = ("Dataset", "IteratorGetNext", "MultiDeviceIterator", "Recv", "_Recv", "_HostRecv", "PyFunc", "EagerPyFunc")
"""Types of ops whose time may be waiting, for another thread or for Python's lock, and not work on a core."""


def busy_threads(ops: pd.DataFrame, duration_us: float, hosts: int) -> float:
    """How many threads of a host are within an op that computes, on average over the profile; NaN without any time."""
    working = (ops["host_or_device"] == HOST) & ~ops["op_type"].str.startswith(_WAITING)
    return share_of(float(ops.loc[working, "self_time_us"].sum()), duration_us * max(hosts, 1))


def _device_times(run: Run, host: str | None) -> dict[str, float]:
    """The time of all ops on each device that ran any."""
    parts, cells = run.tables.host_table("op_parts", host=host), run.tables.host_table("op_totals", host=host)
    device = parts["device"].where(parts["host_or_device"] == DEVICE).to_numpy()[cells["part"]]
    times = (cells["self_time_ps"].groupby(device).sum() / PS_PER_US).to_dict()
    return {device: times[device] for device in run.devices if device in times}


def with_gap(text: str, figures: tuple[Figure, ...], facts: Facts) -> tuple[str, tuple[Figure, ...]]:
    """Advice's text and figures, with a sentence on the idle gap where that is a good part of the step."""
    gap = facts.gap
    if gap is None or not gap.length_us >= WORTH_IT * facts.step_us:
        return text, figures
    what = "no device is busy" if gap.on_device else "no op runs"
    return f"{text} Longest gap in most steps: {what} for {GAP.text(facts)} {gap.place}.", (*figures, GAP)
