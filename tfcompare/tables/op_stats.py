"""The ops of a run, over all hosts or for one: their stats, with the costs of compiled ops, and their times by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames import HostTables
from tfcompare.frames.grouping import any_of, combinations, distinct, sums
from tfcompare.frames.ops.op_parts import NO_STEP, SUMMED
from tfcompare.schema.arrays import Int64
from tfcompare.tables.frames import codes_of, repeated, texts_of
from tfcompare.tables.host_frames import HostFrames
from tfcompare.tables.op_parts import OP, Columns, OpTimes, Parts, merge_hosts, parts_of_hosts, rows_of
from tfcompare.tables.step_times import StepCells
from tfcompare.xspace.space import PS_PER_US

_NUMBERS = ["flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]
_OF_INSTRUCTIONS = [
    *("total_time_us", "flops", "bytes_accessed", "peak_flops_per_s", "peak_bytes_per_s"),
    *("flops_per_s", "bandwidth_bytes_per_s"),
]
_US_PER_S = 1e6
_SAME_TIME = 1e-9  # relative, of sums of the same times in another order


@dataclass(frozen=True, eq=False)
class OpTables:
    """The ops of all hosts or of one, and of one of their devices. They raise `Unknown` for an unknown host."""

    frames: HostFrames

    def times(self, host: str | None) -> OpTimes:
        """The parts of ops by step; cached for several hosts together, which take time to merge."""
        hosts = self.frames.select(host)
        if len(hosts) == 1:
            return merge_hosts(self._parts(hosts), hosts, "op_cells", "op_wall")
        names, common_steps = ("op_cells", "op_wall"), self.frames.common_steps
        return self.frames.cache.get("op times", lambda: merge_hosts(self._parts(hosts), hosts, *names, common_steps))

    def cells(self, host: str | None) -> StepCells:
        """The self time of each op in each step."""
        label = host or schema.ALL_HOSTS
        return self.frames.cache.get(("op cells", host), lambda: op_cells(self.times(host), label))

    def steps(self, host: str | None, device: str | None) -> pd.DataFrame:
        """Columns of `schema.OP_STEPS`, by op and step. Wall times are NaN if there are no steps.

        An op may have wall time in a step in which it did not start; it then has no occurrence there.
        """
        times = self.times(host) if device is None else self.times(host).on_device(device)
        label = host or schema.ALL_HOSTS
        cells = self.cells(host) if device is None else op_cells(times, label)
        ops, of_wall = times.parts.ops, times.wall
        wall = pd.DataFrame({"op": times.parts.op[of_wall["part"]], "step": of_wall["step"]})
        wall = wall.assign(wall_time_us=of_wall["wall_time_ps"] / PS_PER_US).groupby(["op", "step"]).sum().reset_index()
        op_of_row = cells.keys[OP].merge(ops.reset_index(names="op"), on=OP, how="left", validate="one_to_one")["op"]
        rows = cells.cells.assign(op=op_of_row.to_numpy()[cells.cells["row"]])
        rows = rows.merge(wall, on=["op", "step"], how="outer", validate="one_to_one")
        rows = rows.rename(columns={"time_us": "self_time_us"})
        wall_us = 0.0 if self._has_step_times(host) else np.nan
        rows = rows.fillna({"occurrences": 0, "self_time_us": 0.0, "wall_time_us": wall_us})
        names = ops.iloc[rows["op"].to_numpy()].reset_index(drop=True)
        return schema.OP_STEPS.conform(pd.concat([names, rows], axis=1).assign(host=label))

    def stats(self, host: str | None, device: str | None = None) -> tuple[pd.DataFrame, Int64]:
        """As `op_stats` returns."""
        of = self.frames.several_or_none(host)
        found, op = self.frames.cache.get(("op_stats", of, device), lambda: self._stats(of, device))
        return (found if of == host else found.assign(host=host)), op

    def _stats(self, host: str | None, device: str | None) -> tuple[pd.DataFrame, Int64]:
        hosts = self.frames.select(host)
        times = merge_hosts(self._parts(hosts), hosts, "op_totals", "op_wall_totals")
        idle = self.frames.host_table("idle", host=host)
        if device is not None:
            times, idle = times.on_device(device), idle[idle["device"] == device]
        instructions = self.frames.host_table("hlo_ops", host=host)
        if len(instructions):
            instructions = self.instructions(host)
        has_steps = self._has_step_times(host)
        return op_stats(times, idle, instructions, host or schema.ALL_HOSTS, has_steps=has_steps)

    def instructions(self, host: str | None) -> pd.DataFrame:
        """`hlo_ops` with a column `host_or_device`: where each ran, as in `op_stats`."""
        instructions, idle = (self.frames.host_table(name, host=host) for name in ("hlo_ops", "idle"))
        has_devices = idle.loc[idle["host_or_device"] == schema.DEVICE, "host"]
        side = np.where(instructions["host"].isin(has_devices), schema.DEVICE, schema.HOST)
        side = np.where(instructions["core_type"] == schema.SPARSE_CORE, schema.SPARSE_CORE, side)
        return instructions.assign(host_or_device=pd.array(side, dtype="str"))

    def _parts(self, hosts: tuple[HostTables, ...]) -> Parts:
        return self.frames.cache.get(("op parts", hosts), lambda: parts_of_hosts(hosts))

    def _has_step_times(self, host: str | None) -> bool:
        """Whether the time of any step is known."""
        return bool(self.frames.host_table("steps", host=host)["duration_us"].notna().any())


def op_stats(
    times: OpTimes, idle: pd.DataFrame, instructions: pd.DataFrame, host: str, *, has_steps: bool
) -> tuple[pd.DataFrame, Int64]:
    """(columns of `schema.OP_STATS`: device before host, self time descending, then name; the op of each row, as a row
    of `times.parts.ops`, −1 for IDLE, of which there is one row per side).

    `idle` has the columns device, host_or_device, idle_ps; `instructions` are the `hlo_ops` that `_with_costs` takes.
    Wall times are NaN if there are no steps.
    """
    of_ops = _sums_of_ops(times, times.cells, times.wall)
    ran = np.flatnonzero(of_ops.pop("cells"))
    idle_of_devices = pa.table(
        {"host_or_device": pa.array(idle["host_or_device"]), "idle_ps": idle["idle_ps"].to_numpy(np.float64)}
    )
    idle_ps = idle_of_devices.group_by("host_or_device").aggregate([("idle_ps", "sum")])
    op = np.append(ran, np.full(len(idle_ps), -1))
    of_rows = {name: np.append(values, 0)[op] for name, values in of_ops.items()}
    for name in ("total_time_us", "self_time_us"):
        of_rows[name][len(ran) :] = idle_ps["idle_ps_sum"].to_numpy() / PS_PER_US
    of_rows["wall_time_us"][len(ran) if has_steps else 0 :] = np.nan
    is_idle = pa.repeat(schema.IDLE, len(idle_ps)).cast(pa.large_string())
    sides = idle_ps["host_or_device"].cast(pa.large_string())
    none = pa.table({"host_or_device": sides, "op_type": is_idle, "op_name": is_idle})
    names = pa.concat_tables([times.parts.names.take(ran).cast(none.schema), none])
    rows = names.append_column("self_time_us", pa.array(of_rows["self_time_us"]))
    by = [("host_or_device", "ascending"), ("self_time_us", "descending"), *((name, "ascending") for name in OP[:0:-1])]
    order = pc.sort_indices(rows, sort_keys=by).to_numpy()
    texts = {"host": repeated([host], [len(op)])} | {name: texts_of(names[name].take(order)) for name in OP}
    of_rows["is_eager"] = of_rows["is_eager"].astype(np.bool_)
    columns = texts | {name: values[order] for name, values in of_rows.items()}
    if instructions.empty:
        unknown = dict.fromkeys(_NUMBERS, np.full(len(op), np.nan)) | {"bound_by": repeated([""], [len(op)])}
        return schema.OP_STATS.conform(pd.DataFrame(columns | unknown)), op[order]
    return schema.OP_STATS.conform(_with_costs(pd.DataFrame(columns), instructions)), op[order]


def op_stats_in_steps(
    whole: pd.DataFrame, op: Int64, times: OpTimes, included: pd.Series, step_count: int, recorded_steps: int
) -> pd.DataFrame:
    """`whole`, which has the columns of `schema.OP_STATS`, with the occurrences and times of the included steps alone.

    An op without any there has 0. `op` is the row of `times.parts.ops` of each row, −1 for IDLE; `included` are the
    numbers of these of `step_count` steps, in `recorded_steps` of which devices were recorded. FLOPs and bytes are the
    whole × occurrences in these steps ÷ all; the time of IDLE, which is not known by step, the whole × included steps ÷
    all, on devices ÷ recorded ones.
    """
    cells, wall = (rows_of(columns, np.isin(columns["step"], included)) for columns in (times.cells, times.wall))
    found = {name: np.append(values, 0)[op] for name, values in _sums_of_ops(times, cells, wall).items()}
    is_idle, on_device = op < 0, (whole["host_or_device"] == schema.DEVICE).to_numpy()
    share = len(included) / np.where(on_device, recorded_steps, step_count)
    of_occurrences = np.where(is_idle, share, found["occurrences"] / np.maximum(whole["occurrences"].to_numpy(), 1))
    frame = whole.copy(deep=False)
    frame["occurrences"] = found["occurrences"]
    for name in ("total_time_us", "self_time_us"):
        frame[name] = np.where(is_idle, whole[name].to_numpy() * share, found[name])
    is_unknown = is_idle | np.isnan(whole["wall_time_us"].to_numpy())
    frame["wall_time_us"] = np.where(is_unknown, np.nan, found["wall_time_us"])
    for name in schema.NOT_BY_STEP:
        frame[name] = whole[name].to_numpy() * of_occurrences
    return frame


def _sums_of_ops(times: OpTimes, cells: Columns, wall: Columns) -> dict[str, npt.NDArray[Any]]:
    """Of each op in `times.parts.ops`: how many of these cells it has, their occurrences and times in µs, whether any
    is eager, and its wall time in µs."""
    op, count = times.parts.op[cells["part"]], len(times.parts.ops)
    summed = {name: sums(op, cells[name], count) for name in SUMMED}
    wall_us = np.bincount(times.parts.op[wall["part"]], wall["wall_time_ps"] / PS_PER_US, count)
    return {
        "cells": np.bincount(op, minlength=count),
        "occurrences": summed["occurrences"],
        "total_time_us": summed["total_time_ps"] / PS_PER_US,
        "self_time_us": summed["self_time_ps"] / PS_PER_US,
        "is_eager": any_of(op, cells["is_eager"], count),
        "wall_time_us": wall_us.astype(np.float64),  # integers if there are none
    }


def ops_of_instructions(hlo_ops: pd.DataFrame) -> pd.Series:
    """The name of the op in `op_stats` that each instruction is part of; without an op, it is one of its own name."""
    both = zip(hlo_ops["op_name"].tolist(), hlo_ops["hlo_op"].tolist(), strict=True)
    return pd.Series([op.partition(":")[0] or instruction for op, instruction in both], dtype="str")


def wall_times(names: pd.DataFrame, row: Int64, wall: pd.DataFrame, **others: Int64) -> StepCells:
    """The wall times of `op_wall` or `annotation_wall` by step: the keys are the names in the `row` of each, with the
    `step_part`, and the last of the names in the rows that each of `others` gives, empty for −1."""
    firsts, code = combinations(row, wall["step_part"].to_numpy(), *others.values())
    keys = names.iloc[row[firsts]].reset_index(drop=True)
    parts = pd.array([*schema.STEP_PARTS, ""], dtype="str")
    keys["step_part"] = parts.take(wall["step_part"].to_numpy()[firsts])
    for name, of in others.items():
        keys[name] = names.iloc[:, -1].array.take(of[firsts], allow_fill=True, fill_value="")
    times = {"row": code, "step": wall["step"].to_numpy(), "wall_time_us": wall["wall_time_ps"].to_numpy() / PS_PER_US}
    return StepCells(keys, pd.DataFrame(times))


def op_cells(times: OpTimes, host: str) -> StepCells:
    """The self time of each op in each step, sorted by side, type, name and step."""
    inside = rows_of(times.cells, times.cells["step"] != NO_STEP)
    number = inside["step"]
    low = int(number.min()) if len(number) else 0
    numbers, step = distinct(number - low, int(number.max()) - low + 1 if len(number) else 0)
    steps = max(len(numbers), 1)
    of_op, code = distinct(times.parts.op[inside["part"]] * steps + step, len(times.parts.ops) * steps)
    present, op = distinct(of_op // steps, len(times.parts.ops))
    cells = pd.DataFrame(
        {
            "row": op,
            "step": (numbers + low)[of_op % steps],
            "occurrences": sums(code, inside["occurrences"], len(of_op)),
            "time_us": sums(code, inside["self_time_ps"], len(of_op)) / PS_PER_US,
        }
    )
    return StepCells(times.parts.ops.iloc[present].reset_index(drop=True).assign(host=host), cells)


def _with_costs(op_stats: pd.DataFrame, hlo_ops: pd.DataFrame) -> pd.DataFrame:
    """`op_stats` with the columns `_NUMBERS` and `bound_by`: known where an op's instructions took all of its time, and
    theirs are known. `hlo_ops` has the columns of `schema.HLO_OPS` and `host_or_device`: where they ran."""
    names = ops_of_instructions(hlo_ops)
    sides = codes_of(op_stats["host_or_device"], hlo_ops["host_or_device"])
    op = combinations(sides, codes_of(op_stats["op_name"], names))[1]
    time_us, flops, moved, peak_flops_per_s, peak_bytes_per_s, rate, bandwidth = (
        hlo_ops[name].to_numpy(np.float64) for name in _OF_INSTRUCTIONS
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = {
            "total_time_us": time_us,
            "flops": flops,
            "bytes_accessed": moved,
            "timed_flops": np.where(np.isnan(rate) & (time_us != 0), np.nan, flops),
            "timed_bytes": np.where(np.isnan(bandwidth) & (time_us != 0), np.nan, moved),
            "computing_s": flops / peak_flops_per_s,
            "moving_s": moved / peak_bytes_per_s,
        }
        groups = pd.DataFrame({"op": op[len(op_stats) :]} | parts).groupby("op")
        whole = groups.sum().where(groups.count().eq(groups.size(), axis=0))  # missing where one instruction's is
        sums = {name: column.to_numpy() for name, column in whole.reindex(op[: len(op_stats)]).items()}
        time_us = sums["total_time_us"]
        is_whole = np.isclose(time_us, op_stats["total_time_us"].to_numpy(), rtol=_SAME_TIME, atol=0.0)
        seconds = np.where(time_us > 0, time_us / _US_PER_S, np.nan)
        intensity = np.where(sums["timed_bytes"] > 0, sums["timed_flops"] / sums["timed_bytes"], np.nan)
        least_s = sums["computing_s"] - sums["moving_s"]
        numbers = {
            "flops": sums["flops"],
            "bytes_accessed": sums["bytes_accessed"],
            "flops_per_s": sums["timed_flops"] / seconds,
            "bandwidth_bytes_per_s": sums["timed_bytes"] / seconds,
            "operational_intensity": intensity,
        }
    is_unknown = ~is_whole | np.isnan(intensity) | np.isnan(least_s)
    bound_by = np.select([is_unknown, least_s >= 0], ["", "compute"], "memory")
    return op_stats.assign(
        **{name: np.where(is_whole, values, np.nan) for name, values in numbers.items()},
        bound_by=pd.Series(bound_by, op_stats.index, dtype="str"),
    )
