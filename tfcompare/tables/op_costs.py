"""What the ops in `op_stats` cost: sums over the instructions that they were compiled to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tfcompare.tables.frames import repeated

_OP = ["host_or_device", "op_name"]
_US_PER_S = 1e6
_SAME_TIME = 1e-9  # relative, of sums of the same times in another order


def with_costs(op_stats: pd.DataFrame, hlo_ops: pd.DataFrame) -> pd.DataFrame:
    """`op_stats` with the columns `flops`, `bytes_accessed`, `flops_per_s`, `bandwidth_bytes_per_s`,
    `operational_intensity` and `bound_by` of `schema.OP_STATS`.

    `hlo_ops` has the columns of `schema.HLO_OPS` and `host_or_device`: where its instructions ran. An op's figures are
    known where its instructions took all of its time, and are known of each of them.
    """
    found = op_stats[_OP].merge(_by_op(hlo_ops), on=_OP, how="left").set_axis(op_stats.index)
    is_whole = np.isclose(found["total_time_us"], op_stats["total_time_us"], rtol=_SAME_TIME, atol=0.0)
    numbers = {name: found[name].where(is_whole) for name in _NUMBERS}
    return op_stats.assign(**numbers, bound_by=found["bound_by"].where(is_whole, ""))


def unknown_costs(rows: int) -> dict[str, Any]:
    """The columns that `with_costs` adds, where no program is known."""
    return dict.fromkeys(_NUMBERS, np.full(rows, np.nan)) | {"bound_by": repeated([""], [rows])}


_NUMBERS = ["flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]


def _by_op(hlo_ops: pd.DataFrame) -> pd.DataFrame:
    """Columns `_OP`, `total_time_us`, `_NUMBERS` and `bound_by`: one row per op.

    An instruction without an op is an op of its own name, as in `op_stats`.
    """
    op_name = hlo_ops["op_name"].str.partition(":")[0]
    has_rate = hlo_ops["flops_per_s"].notna() | (hlo_ops["total_time_us"] == 0)
    moves = hlo_ops["bandwidth_bytes_per_s"].notna() | (hlo_ops["total_time_us"] == 0)
    parts = pd.DataFrame(
        {
            "host_or_device": hlo_ops["host_or_device"],
            "op_name": op_name.where(op_name != "", hlo_ops["hlo_op"]),
            "total_time_us": hlo_ops["total_time_us"],
            "flops": hlo_ops["flops"],
            "bytes_accessed": hlo_ops["bytes_accessed"],
            "timed_flops": hlo_ops["flops"].where(has_rate),
            "timed_bytes": hlo_ops["bytes_accessed"].where(moves),
            "computing_s": hlo_ops["flops"] / hlo_ops["peak_flops_per_s"],
            "moving_s": hlo_ops["bytes_accessed"] / hlo_ops["peak_bytes_per_s"],
        }
    )
    groups = parts.groupby(_OP)
    whole = groups.sum().where(groups.count().eq(groups.size(), axis=0))  # missing where one instruction's is
    seconds = (whole["total_time_us"] / _US_PER_S).where(whole["total_time_us"] > 0)
    intensity = (whole["timed_flops"] / whole["timed_bytes"]).where(whole["timed_bytes"] > 0)
    least_s = whole["computing_s"] - whole["moving_s"]
    ops = whole.assign(
        flops_per_s=whole["timed_flops"] / seconds,
        bandwidth_bytes_per_s=whole["timed_bytes"] / seconds,
        operational_intensity=intensity,
        bound_by=np.select([intensity.isna() | least_s.isna(), least_s >= 0], ["", "compute"], "memory"),
    )
    return ops[["total_time_us", *_NUMBERS, "bound_by"]].astype({"bound_by": "str"}).reset_index()
