"""`kernel_stats` and `kernel_steps` of a run, from the kernels of its hosts."""

from __future__ import annotations

import pandas as pd

from tfcompare.schema.kernels import KERNEL_STATS, KERNEL_STEPS
from tfcompare.tables.step_cells import StepCells


def kernel_step_cells(stats: pd.DataFrame, cells: pd.DataFrame) -> StepCells:
    """The total time of each row of `kernel_stats` in each step."""
    return StepCells(stats[list(KERNEL_STATS.keys)], cells)


def kernel_steps(cells: StepCells) -> pd.DataFrame:
    """Columns of `schema.KERNEL_STEPS`."""
    return KERNEL_STEPS.conform(cells.frame().rename(columns={"time_us": "total_duration_us"}))


def kernel_stats_in_steps(whole: pd.DataFrame, cells: StepCells, included: pd.Series) -> pd.DataFrame:
    """`whole`, which has the columns of `schema.KERNEL_STATS`, with occurrences and times of the included steps alone.

    `cells` have the rows of `whole`, in any order; `included` are step numbers. A kernel without any there has 0 of
    both, and the average of the whole; shortest and longest times are always those of the whole.
    """
    chosen = cells.cells[cells.cells["step"].isin(included)]
    sums_of_rows = chosen.groupby("row")[["occurrences", "time_us"]].sum()
    sums_of_rows = sums_of_rows.reindex(range(len(cells.keys)), fill_value=0)
    keys = list(KERNEL_STATS.keys)
    rows = pd.concat([cells.keys.reset_index(drop=True), sums_of_rows.set_axis(["count", "time_us"], axis=1)], axis=1)
    found = whole[keys].merge(rows, on=keys, how="left", validate="one_to_one")
    average_us = (found["time_us"] / found["count"]).where(found["count"] > 0, whole["avg_duration_us"].to_numpy())
    return KERNEL_STATS.conform(
        whole.assign(
            occurrences=found["count"].to_numpy(),
            total_duration_us=found["time_us"].to_numpy(),
            avg_duration_us=average_us.to_numpy(),
        )
    )
