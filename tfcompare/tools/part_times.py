"""The contents of the parts of a host's mean step: ops with their wall times, launches, and eager ops.

The wall times of a part's ops add up to the part, except for the time in which no op was running (`frames.wall_times`).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.attribution import OP, mean_step
from tfcompare.compare.repeats import with_keys_of
from tfcompare.frames.host_annotations import gets_input
from tfcompare.frames.ops.op_names import DATASET
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.schema import HOST, IDLE, STEP_PARTS
from tfcompare.tables.straggler import steps_of_straggler

if TYPE_CHECKING:
    from tfcompare.compare.side import Side
    from tfcompare.run import Run


@dataclass(frozen=True)
class HostSteps:
    """The mean step of one host of a run.

    `steps`: the included steps with their parts, one row per step; `shares`: the result of `Run.op_shares` for these
    steps; `launches`: kernels per included step, and copies per step, over all recorded steps; `around`: the result of
    `Run.annotation_shares` for these steps; `between` the same per step, between the steps. Of several captures, the
    column `capture` of the steps counts them from 0, and shares are weighed so that each capture counts the same.
    """

    steps: pd.DataFrame
    shares: pd.DataFrame
    launches: float
    around: pd.DataFrame
    between: pd.DataFrame

    def mean_us(self, part: str) -> float:
        """The average time of one of `schema.STEP_PARTS`."""
        return float(mean_step(self.steps)[part])

    def times_us(self, op_names: Collection[str], *, of_input: bool = False) -> pd.Series:
        """The time of host ops with these names in each step, within or outside the waiting for input."""
        own = self.shares[self.shares["host_or_device"] == HOST]
        own = own[(own["step_part"] == "input_us") == of_input]
        times = own[own["op_name"].isin(op_names)].groupby("step")["wall_time_us"].sum()
        return times.reindex(self.steps["step"]).fillna(0.0)

    def median_share(self, op_names: Collection[str], *, of_input: bool = False) -> float:
        """The median over the steps of that time as a share of the step; steps without duration do not count."""
        times = self.times_us(op_names, of_input=of_input).to_numpy()
        duration = self.steps["duration_us"].to_numpy()
        lasting = duration > 0
        return float(pd.Series(times[lasting] / duration[lasting]).median())

    def ops(self, part: str) -> pd.DataFrame:
        """The ops of a part: the columns `compare.attribution.OP` and `time_us`, the mean per step.

        Ops in a tf.data function are attributed to its iterator.
        """
        inside = self.shares[self.shares["step_part"] == part]
        of_stage = inside["stage"] != ""
        named = inside.assign(
            host_or_device=inside["host_or_device"].mask(of_stage, HOST),
            op_type=inside["op_type"].mask(of_stage, DATASET),
            op_name=inside["op_name"].mask(of_stage, inside["stage"]),
        )
        return self._per_step(named, list(OP))

    def annotations(self, part: str) -> pd.DataFrame:
        """The annotations and Python functions of a part, in time in which no op runs: the columns of `ops`, with the
        kind as type."""
        inside = self.around[self.around["step_part"] == part]
        named = inside.rename(columns={"kind": "op_type", "name": "op_name"}).assign(host_or_device=HOST)
        return self._per_step(named, list(OP))

    @property
    def getting_input(self) -> pd.Series:
        """The mean time per step in annotations and Python functions that get input, by name, the longest first."""
        return _getting_input(self.around) / max(len(self.steps), 1)

    @property
    def getting_input_between(self) -> pd.Series:
        """As `getting_input`, of the time between the steps."""
        return _getting_input(self.between)

    def function_ops(self, stage: str) -> pd.Series:
        """The mean time per step of the ops in the functions of a tf.data iterator, by op name."""
        inside = self.shares[self.shares["stage"] == stage]
        return self._per_step(inside, ["op_name"]).set_index("op_name")["time_us"]

    def _per_step(self, shares: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
        times = shares.groupby(keys)["wall_time_us"].sum().reset_index()
        return times.assign(time_us=times["wall_time_us"] / max(len(self.steps), 1))[[*keys, "time_us"]]


def _getting_input(shares: pd.DataFrame) -> pd.Series:
    names = shares[["kind", "name"]].drop_duplicates()
    chosen = {name for kind, name in names.itertuples(index=False) if gets_input(kind, name)}
    times = shares[shares["name"].isin(chosen)].groupby("name")["wall_time_us"].sum()
    found: pd.Series = times.sort_values(ascending=False, kind="stable")
    return found


def eager_share(run: Run, host: str | None = None) -> float:
    """The median over the steps of the share in which the host is busy with eager ops; NaN without host ops.

    With several hosts, on the straggler. Time in which a device is busy and time waiting for input are excluded.
    Without steps, it is the ops' self time as a share of the profile.
    """
    ops = run.table("op_stats", host=host)
    ops = ops[(ops["host_or_device"] == HOST) & (ops["op_type"] != IDLE)]
    if ops.empty:
        return math.nan
    eager = ops[ops["is_eager"].astype(bool)]
    steps = steps_of_straggler(run.table("steps", host=host))
    if not run.info.has_steps or steps.empty:
        duration_us = run.info.duration_ms * 1e3
        return min(float(eager["self_time_us"].sum()) / duration_us, 1.0) if duration_us > 0 else math.nan
    return host_steps(run, str(steps["host"].iloc[0])).median_share(eager["op_name"].tolist())


def host_steps(run: Run, host: str) -> HostSteps:
    """The average step of one host of a run."""
    included = _included(run, host)
    every = run.annotation_shares(host)
    shares, around = (one[one["step"].isin(included["step"])] for one in (run.op_shares(host), every))
    count = max(len(run.table("steps", host=host)) - 1, 1)  # from the first step to the start of the last
    between = every[every["step"] == NO_STEP]
    between = between.assign(wall_time_us=between["wall_time_us"] / count)
    kernels = run.in_steps("kernel_stats", host=host)["occurrences"].sum() / max(len(included), 1)
    copies = run.table("copies", host=host)["occurrences"].sum() / run.recorded_steps(host)
    return HostSteps(included, shares, float(kernels + copies), around, between)


def host_steps_of(side: Side) -> HostSteps:
    """The average step of the hosts of all captures of a run, with the names of ops in the first."""
    each = [host_steps(run, host) for run, host in zip(side.runs, side.hosts, strict=True) if host is not None]
    if len(each) == 1 and side.iterations == 1:
        return each[0]
    steps, shares, around, between = steps_of_captures(side), [], [], []
    for position, one in enumerate(each):
        weight = len(steps) / len(each) / max(len(one.steps), 1) / side.iterations
        named = with_keys_of(side.keys(position, "op_stats"), one.shares, OP)
        shares.append(named.assign(wall_time_us=named["wall_time_us"] * weight))
        around.append(one.around.assign(wall_time_us=one.around["wall_time_us"] * weight))
        between.append(one.between.assign(wall_time_us=one.between["wall_time_us"] / len(each) / side.iterations))
    of_ops, *of_others = (pd.concat(several, ignore_index=True) for several in (shares, around, between))
    launches = fmean(one.launches for one in each) / side.iterations
    return HostSteps(steps, of_ops, launches, *of_others)


def steps_of_captures(side: Side) -> pd.DataFrame:
    """The included steps of all captures of a run, as in `HostSteps`, with times per iteration."""
    each = side.each(_included)
    if side.iterations > 1:
        times = ["duration_us", *STEP_PARTS]
        each = [steps.assign(**(steps[times] / side.iterations)) for steps in each]
    if len(each) == 1:
        return each[0]
    return pd.concat([steps.assign(capture=number) for number, steps in enumerate(each)], ignore_index=True)


def _included(run: Run, host: str | None) -> pd.DataFrame:
    steps = run.table("steps", host=host)
    return steps[steps["included"].astype(bool)]
