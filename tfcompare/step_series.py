"""A run's steps as one series: the slowest host of each step, and one op in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def slowest_host(steps: pd.DataFrame) -> pd.DataFrame:
    """One row a step, in order: that of the host on which it took longest; the columns of `steps`.

    Steps of several hosts are the same step where they stand at the same position among the steps of their host.
    """
    position = steps.groupby("host", sort=False).cumcount()
    ordered = steps.assign(position=position).sort_values(
        ["position", "duration_us", "host"], ascending=[True, False, True], kind="stable"
    )
    return ordered.drop_duplicates("position").drop(columns="position").reset_index(drop=True)


def op_by_step(op_steps: pd.DataFrame, steps: pd.DataFrame, op: dict[str, str]) -> pd.DataFrame:
    """The self time of one op in each step of `steps` (one row a step): its columns, `self_time_us` and `occurrences`.

    `op` gives the op's keys (`host_or_device`, `op_type`, `op_name`); a step in which it did not run has 0 of both.
    """
    chosen = np.logical_and.reduce([op_steps[key] == value for key, value in op.items()])
    totals = (
        op_steps[chosen].groupby("step")[["self_time_us", "occurrences"]].sum().reindex(steps["step"], fill_value=0)
    )
    return steps.assign(**{name: totals[name].to_numpy() for name in totals.columns})
