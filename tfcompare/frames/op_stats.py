"""`op_stats` and `op_steps`, summed from op parts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.frames.op_parts import NO_STEP, OpParts, any_of, distinct, largest, sums
from tfcompare.xspace.space import PS_PER_US

Int64 = npt.NDArray[np.int64]

_OP = ["host_or_device", "op_type", "op_name"]
_ADDED = ["occurrences", "total_time_ps", "self_time_ps"]


def op_stats(parts: OpParts, idle: pd.DataFrame, host: str) -> pd.DataFrame:
    """Columns of `schema.OP_STATS`: device before host, self time descending, then name; an IDLE row a side.

    `idle` has the columns device, host_or_device, idle_ps.
    """
    ops = _by_op(parts, np.zeros(len(parts.cells), np.int64), 1)
    rows = pd.concat([ops, _idle_rows(idle)], ignore_index=True).assign(host=host)
    rows = rows.assign(total_time_us=rows["total_time_ps"] / PS_PER_US, self_time_us=rows["self_time_ps"] / PS_PER_US)
    order = rows.sort_values(
        ["host_or_device", "self_time_ps", "op_name", "op_type"], ascending=[True, False, True, True], kind="stable"
    )
    return schema.OP_STATS.conform(order.reset_index(drop=True))


def op_steps(parts: OpParts, host: str) -> pd.DataFrame:
    """Columns of `schema.OP_STEPS`, by op and step."""
    inside = OpParts(parts.parts, parts.cells[parts.cells["step"] != NO_STEP])
    number = inside.cells["step"].to_numpy()
    low = int(number.min()) if len(number) else 0
    numbers, step = distinct(number - low, int(number.max()) - low + 1 if len(number) else 0)
    ops = _by_op(inside, step, len(numbers))
    rows = ops.assign(host=host, step=(numbers + low)[ops["step"]], self_time_us=ops["self_time_ps"] / PS_PER_US)
    return schema.OP_STEPS.conform(rows)


def _by_op(parts: OpParts, step: Int64, steps: int) -> pd.DataFrame:
    """One row for each op in each step (of so many; that of each cell is given), ordered by side, type, name and step.

    Parts of the same name add up first; of these, times add up and occurrences are the largest.
    """
    named = parts.parts.assign(rank=parts.parts.groupby([*_OP, "part"]).ngroup())
    steps = max(steps, 1)
    part_of_cell = named["rank"].to_numpy()[parts.cells["part"]]
    of_part, code = distinct(part_of_cell * steps + step, len(named) * steps)
    occurrences, total, own = (sums(code, parts.cells[name].to_numpy(), len(of_part)) for name in _ADDED)
    is_eager = any_of(code, parts.cells["is_eager"].to_numpy(), len(of_part))

    named = named.drop_duplicates("rank").sort_values("rank")
    op_of_part = named.groupby(_OP).ngroup().to_numpy()
    of_op, code = distinct(op_of_part[of_part // steps] * steps + of_part % steps, len(named) * steps)
    ops = named[_OP].drop_duplicates().iloc[of_op // steps]
    return ops.reset_index(drop=True).assign(
        step=of_op % steps,
        occurrences=largest(code, occurrences, len(of_op)),
        total_time_ps=sums(code, total, len(of_op)),
        self_time_ps=sums(code, own, len(of_op)),
        is_eager=any_of(code, is_eager, len(of_op)),
    )


def _idle_rows(idle: pd.DataFrame) -> pd.DataFrame:
    """An IDLE row for each side there is."""
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
