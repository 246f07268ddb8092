"""What the parts of a run's average step are made of, as far as its tables tell: ops, copies, kernels, launches.

Ops are those of the steps that count, on the host that counts in each. Copies and kernels are not told apart by step:
theirs are the sums over the whole profile, divided by all steps of all hosts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.frames.step_times import aligned
from tfcompare.schema import DEVICE
from tfcompare.schema.kernels import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, OTHER_COPY, PEER_TO_PEER
from tfcompare.step_series import on_slowest_host

if TYPE_CHECKING:
    from tfcompare.run import Run

RUNS_AHEAD = ("Prefetch", "ParallelInterleave", "ParallelMap", "MapAndBatch", "ParseExample", "ParallelBatch")
"""Stages of tf.data that let those before them work on threads of their own, while the step goes on."""

_WAITS_FOR_INPUT = ("IteratorGetNext", "MultiDeviceIteratorGetNext")
_COLLECTIVE = re.compile(r"nccl|rccl", re.I)
_COPIES_OF = {
    "input_us": (HOST_TO_DEVICE,),
    "output_us": (DEVICE_TO_HOST,),
    "device_to_device_us": (DEVICE_TO_DEVICE, PEER_TO_PEER, OTHER_COPY),
}
TIMES = ["op_type", "op_name", "time_us"]


@dataclass(frozen=True)
class Recorded:
    """What one run holds of its average step.

    `steps`: the included steps with their parts, one row each; `ops`: `host_or_device`, `op_type`, `op_name` and
    `time_us`, the self time per included step; `copies`, `kernels` and `input_ops`: the tables of all its hosts, of
    which sums are divided by `host_steps`, their steps in all.
    """

    steps: pd.DataFrame
    ops: pd.DataFrame
    copies: pd.DataFrame
    kernels: pd.DataFrame
    input_ops: frozenset[str]
    host_steps: int

    def mean_us(self, part: str) -> float:
        """The average time of one of `schema.STEP_PARTS`."""
        return float(self.steps[part].mean())


def recorded(run: Run, host: str | None = None) -> Recorded:
    """What `run` holds of its average step, on one host or on the slowest of each step."""
    steps = run.table("steps", host=host)
    counted = on_slowest_host(steps)
    counted = counted[counted["included"].astype(bool)]
    copies, kernels, stages = (run.table(name, host=host) for name in ("copies", "kernel_stats", "input_pipeline"))
    host_steps = max(run.info.step_count, 1) * max(steps["host"].nunique(), 1)
    return Recorded(counted, _op_times(run, steps, counted), copies, kernels, frozenset(stages["op_name"]), host_steps)


def _op_times(run: Run, steps: pd.DataFrame, counted: pd.DataFrame) -> pd.DataFrame:
    """The self time of each op per step, from each step on the host that counts there."""
    names = ["host_or_device", "op_type", "op_name"]
    if counted.empty:
        return pd.DataFrame(columns=[*names, "time_us"])
    own_number = steps.assign(place=aligned(steps)).set_index(["host", "place"])["step"]
    parts = []
    for host, of_host in counted.groupby("host"):
        numbers = own_number.loc[host].loc[of_host["step"]]
        ops = run.table("op_steps", host=str(host))
        parts.append(ops[ops["step"].isin(numbers)])
    times = pd.concat(parts).groupby(names)["self_time_us"].sum().reset_index()
    return times.assign(time_us=times["self_time_us"] / len(counted))[[*names, "time_us"]]


def ops_of(run: Recorded, part: str) -> pd.DataFrame:
    """The ops that a part of the step may be made of: `op_type`, `op_name`, `time_us`.

    Input: what waits for it, and the stages of pipelines that run while the step waits, which those before a stage in
    `RUNS_AHEAD` do not. Host compute: the other ops of the host; with a device, those that launch nothing there. Device
    compute: the device's ops that run kernels or set memory; on TPUs all ops.
    """
    on_device = run.ops["host_or_device"] == DEVICE
    names = run.ops["op_name"]
    is_input = names.isin(run.input_ops) | run.ops["op_type"].str.startswith(_WAITS_FOR_INPUT)
    if part == "input_us":
        chosen = ~on_device & is_input & ~names.map(runs_ahead).astype(bool)
    elif part == "host_compute_us":
        chosen = ~on_device & ~is_input & ~names.isin(names[on_device])
    else:
        chosen = on_device & (_runs_kernels(run, names) if len(run.kernels) else True)
    return run.ops.loc[chosen, TIMES]


def _runs_kernels(run: Recorded, names: pd.Series) -> pd.Series:
    kernels = run.kernels[~_is_collective(run.kernels)]
    is_set = names.str.contains("memset", case=False, regex=False)
    return names.isin(kernels["op_name"]) | names.isin(kernels["kernel_name"]) | is_set


def ahead_us(run: Recorded) -> float:
    """The self time per step of the stages of tf.data that work ahead of the step."""
    is_ahead = run.ops["op_name"].isin(run.input_ops) & run.ops["op_name"].map(runs_ahead).astype(bool)
    return float(run.ops.loc[is_ahead, "time_us"].sum())


def runs_ahead(name: str) -> bool:
    """Whether a stage of tf.data, by its long name, works for one that lets it run ahead of the step."""
    stage = name.split("::")
    return stage[0] == "Iterator" and any(above.startswith(RUNS_AHEAD) for above in stage[1:-1])


def transfers_of(run: Recorded, part: str) -> pd.DataFrame:
    """The copies that a part is made of, by kind; of collectives the kernels: `op_type`, `op_name`, `time_us`."""
    if part == "device_collectives_us":
        kernels = run.kernels[_is_collective(run.kernels)]
        times = kernels.groupby("kernel_name", as_index=False)["total_duration_us"].sum()
        return _per_step(run, "kernel", times["kernel_name"], times["total_duration_us"])
    copies = run.copies[run.copies["kind"].isin(_COPIES_OF[part])]
    times = copies.groupby("kind", as_index=False)["duration_us"].sum()
    return _per_step(run, "copy", "Copies, " + times["kind"].astype("str"), times["duration_us"])


def _per_step(run: Recorded, kind: str, names: pd.Series, times: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"op_type": kind, "op_name": names, "time_us": times / run.host_steps})


def launches_of(run: Recorded) -> float:
    """Kernels and copies per step: how often the host gives something to a device."""
    return float(run.kernels["occurrences"].sum() + run.copies["occurrences"].sum()) / run.host_steps


def _is_collective(kernels: pd.DataFrame) -> pd.Series:
    return kernels["kernel_name"].str.match(_COLLECTIVE).astype(bool)
