"""`op_stats` and `op_steps`, summed from op parts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.frames.grouping import any_of, distinct, sums
from tfcompare.frames.ops.op_parts import NO_STEP, SUMMED
from tfcompare.schema.arrays import Int64
from tfcompare.tables.op_costs import with_costs
from tfcompare.tables.op_parts import OP, OpParts
from tfcompare.tables.step_cells import StepCells
from tfcompare.xspace.space import PS_PER_US


def op_stats(
    parts: OpParts, idle: pd.DataFrame, instructions: pd.DataFrame, host: str, *, has_steps: bool
) -> pd.DataFrame:
    """Columns of `schema.OP_STATS`: device before host, self time descending, then name; one IDLE row per side.

    `idle` has the columns device, host_or_device, idle_ps; `instructions` are the `hlo_ops` that `with_costs` takes.
    Wall times are NaN if there are no steps.
    """
    ops, sums_of_ops = _by_op(parts, parts.cells, np.zeros(len(parts.cells), np.int64), 1)
    ops = pd.concat([ops, sums_of_ops], axis=1)
    wall = _wall_by_op(parts, parts.wall)
    every = parts.ops.assign(wall_time_us=wall.groupby("op")["wall_time_us"].sum())
    ops = ops.merge(every, on=OP, how="left", validate="one_to_one")
    ops["wall_time_us"] = ops["wall_time_us"].fillna(0.0) if has_steps else np.nan
    rows = pd.concat([ops, _idle_rows(idle)], ignore_index=True).assign(host=host)
    rows = rows.assign(total_time_us=rows["total_time_ps"] / PS_PER_US, self_time_us=rows["self_time_ps"] / PS_PER_US)
    order = rows.sort_values(
        ["host_or_device", "self_time_ps", "op_name", "op_type"], ascending=[True, False, True, True], kind="stable"
    )
    return schema.OP_STATS.conform(with_costs(order.reset_index(drop=True), instructions))


def op_stats_in_steps(
    whole: pd.DataFrame, parts: OpParts, included: pd.Series, step_count: int, recorded_steps: int
) -> pd.DataFrame:
    """`whole`, which has the columns of `schema.OP_STATS`, with the occurrences and times of the included steps alone.

    An op without any there has 0. `included` are the numbers of these of `step_count` steps, in `recorded_steps` of
    which devices were recorded. FLOPs and bytes are the whole × occurrences in these steps ÷ all; the time of IDLE,
    which is not known by step, the whole × included steps ÷ all, on devices ÷ recorded ones.
    """
    cells, wall = (times[times["step"].isin(included)] for times in (parts.cells, parts.wall))
    ops, sums_of_ops = _by_op(parts, cells, np.zeros(len(cells), np.int64), 1)
    found = pd.concat([ops, sums_of_ops], axis=1)
    known = whole[OP].merge(found, on=OP, how="left", validate="one_to_one").fillna(dict.fromkeys(SUMMED, 0))
    of_ops = parts.ops.assign(wall_time_us=_wall_by_op(parts, wall).groupby("op")["wall_time_us"].sum())
    wall_us = whole[OP].merge(of_ops, on=OP, how="left")["wall_time_us"].fillna(0.0).to_numpy()
    is_idle, on_device = (whole["op_type"] == schema.IDLE).to_numpy(), whole["host_or_device"] == schema.DEVICE
    share = len(included) / np.where(on_device, recorded_steps, step_count)
    of_occurrences = np.where(is_idle, share, known["occurrences"] / whole["occurrences"].clip(lower=1))
    times = {"total_time_us": known["total_time_ps"] / PS_PER_US, "self_time_us": known["self_time_ps"] / PS_PER_US}
    return schema.OP_STATS.conform(
        whole.assign(
            occurrences=np.where(is_idle, 0, known["occurrences"]),
            **{name: np.where(is_idle, whole[name] * share, time_us) for name, time_us in times.items()},
            wall_time_us=np.where(is_idle | whole["wall_time_us"].isna(), np.nan, wall_us),
            **{name: whole[name] * of_occurrences for name in schema.NOT_BY_STEP},
        )
    )


def op_steps(cells: StepCells, parts: OpParts, *, has_steps: bool) -> pd.DataFrame:
    """Columns of `schema.OP_STEPS`, by op and step. Wall times are NaN if there are no steps.

    An op may have wall time in a step in which it did not start; it then has no occurrence there.
    """
    ops, wall = parts.ops, _wall_by_op(parts, parts.wall)
    op_of_row = cells.keys[OP].merge(ops.reset_index(names="op"), on=OP, how="left", validate="one_to_one")["op"]
    rows = cells.cells.assign(op=op_of_row.to_numpy()[cells.cells["row"]])
    rows = rows.merge(wall, on=["op", "step"], how="outer", validate="one_to_one")
    rows = rows.rename(columns={"time_us": "self_time_us"})
    rows = rows.fillna({"occurrences": 0, "self_time_us": 0.0, "wall_time_us": 0.0 if has_steps else np.nan})
    host = cells.keys["host"].iloc[0] if len(cells.keys) else ""
    names = ops.iloc[rows["op"].to_numpy()].reset_index(drop=True)
    return schema.OP_STEPS.conform(pd.concat([names, rows], axis=1).assign(host=host))


def _wall_by_op(parts: OpParts, wall: pd.DataFrame) -> pd.DataFrame:
    """Columns `op` (a row of `parts.ops`), `step` and `wall_time_us`, from some of the wall times of the parts."""
    of_ops = wall.assign(op=parts.op_of_part[wall["part"]], wall_time_us=wall["wall_time_ps"] / PS_PER_US)
    return of_ops.groupby(["op", "step"])["wall_time_us"].sum().reset_index()


def wall_times_by_op(ops: pd.DataFrame, wall: pd.DataFrame) -> pd.DataFrame:
    """The wall times in the frames `parts` and `wall` of `OpParts` by op: host_or_device, op_type, op_name, step,
    step_part (its name), stage (the tf.data iterator that the op worked for, empty for none), wall_time_us."""
    names = ops[OP].iloc[wall["part"]].reset_index(drop=True)
    stages = pd.Series([*ops["op_name"], ""], dtype="str")
    step_parts = np.array([*schema.STEP_PARTS, ""], np.object_)
    return names.assign(
        step=wall["step"].to_numpy(),
        step_part=pd.Series(step_parts[wall["step_part"]], dtype="str"),
        stage=stages.iloc[wall["stage"]].to_numpy(),
        wall_time_us=wall["wall_time_ps"].to_numpy() / PS_PER_US,
    )


def op_cells(parts: OpParts, host: str) -> StepCells:
    """The self time of each op in each step, sorted by side, type, name and step."""
    every = parts.cells
    inside = every[every["step"] != NO_STEP]
    number = inside["step"].to_numpy()
    low = int(number.min()) if len(number) else 0
    numbers, step = distinct(number - low, int(number.max()) - low + 1 if len(number) else 0)
    ops, found = _by_op(parts, inside, step, len(numbers))
    cells = pd.DataFrame(
        {
            "row": found["op"],
            "step": (numbers + low)[found["step"]],
            "occurrences": found["occurrences"],
            "time_us": found["self_time_ps"] / PS_PER_US,
        }
    )
    return StepCells(ops.assign(host=host), cells)


def _by_op(parts: OpParts, cells: pd.DataFrame, step: Int64, steps: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(the ops of these cells of the parts, sorted by side, type and name; one row per `op` (a position in those) and
    step).

    `step` is the position of each cell's step, of `steps` in all.
    """
    steps = max(steps, 1)
    of_op, code = distinct(parts.op_of_part[cells["part"]] * steps + step, len(parts.ops) * steps)
    present, op = distinct(of_op // steps, len(parts.ops))
    found = pd.DataFrame(
        {
            "op": op,
            "step": of_op % steps,
            **{name: sums(code, cells[name].to_numpy(), len(of_op)) for name in SUMMED},
            "is_eager": any_of(code, cells["is_eager"].to_numpy(), len(of_op)),
        }
    )
    return parts.ops.iloc[present].reset_index(drop=True), found


def _idle_rows(idle: pd.DataFrame) -> pd.DataFrame:
    """One IDLE row per side."""
    of_side = idle.astype({"idle_ps": "float64"}).groupby("host_or_device", as_index=False)["idle_ps"].sum()
    return pd.DataFrame(
        {
            "host_or_device": of_side["host_or_device"].astype("str"),
            "op_type": pd.Series(schema.IDLE, index=of_side.index, dtype="str"),
            "op_name": pd.Series(schema.IDLE, index=of_side.index, dtype="str"),
            "occurrences": 0,
            "total_time_ps": of_side["idle_ps"],
            "self_time_ps": of_side["idle_ps"],
            "is_eager": False,
        }
    )
