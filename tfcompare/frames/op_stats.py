"""`op_stats` and `op_steps`, summed from op parts."""

from __future__ import annotations

import pandas as pd

from tfcompare import schema
from tfcompare.frames import op_parts

_OP = ["host_or_device", "op_type", "op_name"]
_PS_PER_US = 1e6


def op_stats(parts: pd.DataFrame, idle: pd.DataFrame, host: str) -> pd.DataFrame:
    """Columns of `schema.OP_STATS`: device before host, self time descending, then name; an IDLE row a side.

    `parts` has the columns of `op_parts.COLUMNS`; `idle` the columns device, host_or_device, idle_ps.
    """
    of_part = _sum(parts, [*_OP, "part"])
    ops = _of_ops(of_part, _OP)
    rows = pd.concat([ops, _idle_rows(idle)], ignore_index=True).assign(host=host)
    rows = rows.assign(total_time_us=rows["total_time_ps"] / _PS_PER_US, self_time_us=rows["self_time_ps"] / _PS_PER_US)
    order = rows.sort_values(
        ["host_or_device", "self_time_ps", "op_name", "op_type"], ascending=[True, False, True, True], kind="stable"
    )
    return schema.OP_STATS.conform(order.reset_index(drop=True))


def op_steps(parts: pd.DataFrame, host: str) -> pd.DataFrame:
    """Columns of `schema.OP_STEPS`, by op and step."""
    inside = parts[parts["step"] != op_parts.NO_STEP]
    ops = _of_ops(_sum(inside, [*_OP, "part", "step"]), [*_OP, "step"])
    rows = ops.assign(host=host, self_time_us=ops["self_time_ps"] / _PS_PER_US)
    return schema.OP_STEPS.conform(rows.sort_values([*_OP, "step"], kind="stable").reset_index(drop=True))


def _sum(parts: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    return parts.groupby(by, sort=False, as_index=False).agg(
        occurrences=("occurrences", "sum"),
        total_time_ps=("total_time_ps", "sum"),
        self_time_ps=("self_time_ps", "sum"),
        is_eager=("is_eager", "any"),
    )


def _of_ops(of_part: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Parts to ops: times add up, occurrences are the largest of the parts."""
    return of_part.groupby(by, sort=False, as_index=False).agg(
        occurrences=("occurrences", "max"),
        total_time_ps=("total_time_ps", "sum"),
        self_time_ps=("self_time_ps", "sum"),
        is_eager=("is_eager", "any"),
    )


def _idle_rows(idle: pd.DataFrame) -> pd.DataFrame:
    """An IDLE row for each side there is."""
    of_side = idle.groupby("host_or_device", as_index=False)["idle_ps"].sum()
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


def merge_hosts(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The op parts of several hosts in one frame; on the host side an op is known by its name alone."""
    every = pd.concat(parts, ignore_index=True) if parts else op_parts.empty_frame()
    if len(parts) < 2:
        return every
    on_host = every["host_or_device"] == schema.HOST
    first_type = every[on_host].groupby("op_name", sort=False)["op_type"].first()
    every.loc[on_host, "op_type"] = every.loc[on_host, "op_name"].map(first_type)
    return every
