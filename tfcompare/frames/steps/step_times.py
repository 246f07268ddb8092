"""The steps of a run, made from those of its hosts."""

from __future__ import annotations

import pandas as pd


def run_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Columns `step`, `duration_us`, `included`, one row for each step of the run: as long as on the slowest host.

    `steps` has the columns of `schema.STEPS`. Steps of several hosts are put side by side by their number, or by
    position where the hosts do not number alike; a step counts where every host that has it counts it.
    """
    if steps.empty:
        return pd.DataFrame(
            {
                "step": pd.Series(dtype="int64"),
                "duration_us": pd.Series(dtype="float64"),
                "included": pd.Series(dtype="bool"),
            }
        )
    return (
        steps.groupby(aligned(steps).rename("step"))
        .agg(duration_us=("duration_us", "max"), included=("included", "all"), start_us=("start_us", "min"))
        .sort_values("start_us", kind="stable")
        .reset_index()[["step", "duration_us", "included"]]
    )


def aligned(steps: pd.DataFrame) -> pd.Series:
    """What puts the steps of several hosts side by side: their number, or their position where hosts number otherwise.

    `steps` has at least one row.
    """
    return steps["step"] if _numbered_alike(steps) else steps.groupby("host").cumcount()


def _numbered_alike(steps: pd.DataFrame) -> bool:
    """Whether most steps of the host with the fewest are found on every other host as well."""
    numbers = [set(of_host) for _, of_host in steps.groupby("host")["step"]]
    common = set.intersection(*numbers)
    return len(common) * 2 >= min(len(n) for n in numbers)
