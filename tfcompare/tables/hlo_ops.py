"""`hlo_ops` of a run in its included steps, from the instructions of its hosts by step."""

from __future__ import annotations

import pandas as pd

from tfcompare.schema.hlo import HLO_OPS
from tfcompare.xspace.space import PS_PER_US

_COSTS = {"flops": "flops_per_s", "bytes_accessed": "bandwidth_bytes_per_s"}
_COUNTS = ["executions", "occurrences"]
_TIMES = {"total_time_us": "total_time_ps", "self_time_us": "self_time_ps"}


def hlo_ops_in_steps(whole: pd.DataFrame, cells: pd.DataFrame, included: pd.Series) -> pd.DataFrame:
    """`whole`, which has the columns of `schema.HLO_OPS`, with executions and times of the included steps alone.

    `cells` are `hlo_cells` of the rows of `whole`, which are counted from 0; `included` are step numbers. Instructions
    that ran only outside of these are left out. FLOPs and bytes are by executions, and their rates as in the whole
    where no time is known.
    """
    chosen = cells[cells["step"].isin(included)]
    sums = chosen.groupby("row")[[*_COUNTS, *_TIMES.values()]].sum()
    ran = whole.loc[sums.index]
    share = sums["executions"] / ran["executions"].clip(lower=1)
    of_time = sums["total_time_ps"] / PS_PER_US / ran["total_time_us"]
    faster = (share / of_time).where(of_time > 0, 1.0)
    return HLO_OPS.conform(
        ran.assign(
            **{name: sums[name] for name in _COUNTS},
            **{name: sums[own] / PS_PER_US for name, own in _TIMES.items()},
            **{cost: ran[cost] * share for cost in _COSTS},
            **{rate: ran[rate] * faster for rate in _COSTS.values()},
        ).reset_index(drop=True)
    )
