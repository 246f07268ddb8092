"""`hlo_ops` of a run in its included steps, from the instructions of its hosts by step."""

from __future__ import annotations

import pandas as pd

from tfcompare.schema.hlo import HLO_OPS
from tfcompare.xspace.space import PS_PER_US

_COUNTS = ["executions", "occurrences"]
_COSTS = ["flops", "bytes_accessed"]
_TIMES = {"total_time_us": "total_time_ps", "self_time_us": "self_time_ps"}


def hlo_ops_in_steps(whole: pd.DataFrame, cells: pd.DataFrame, included: pd.Series) -> pd.DataFrame:
    """`whole`, which has the columns of `schema.HLO_OPS`, with executions and times of the included steps alone.

    `cells` are `hlo_cells` of the rows of `whole`, which are counted from 0; `included` are step numbers. FLOPs and
    bytes are by executions, unless each was recorded. An instruction without any there has 0 of all. Rates are always
    those of the whole.
    """
    groups = cells[cells["step"].isin(included)].groupby("row")
    sums = groups[[*_COUNTS, *_TIMES.values()]].sum().reindex(range(len(whole)), fill_value=0)
    share = sums["executions"] / whole["executions"].clip(lower=1)
    recorded = groups[_COSTS].sum().where(groups[_COSTS].count().eq(groups.size(), axis=0)).reindex(sums.index)
    return HLO_OPS.conform(
        whole.assign(
            **{name: sums[name] for name in _COUNTS},
            **{name: sums[own] / PS_PER_US for name, own in _TIMES.items()},
            **{cost: recorded[cost].fillna(whole[cost] * share) for cost in _COSTS},
        )
    )
