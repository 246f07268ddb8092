"""A run's steps as one series: the slowest host of each step, its parts, and the time of a single op."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.schema import STEP_PRECISIONS
from tfcompare.tables.step_cells import StepCells

if TYPE_CHECKING:
    from tfcompare.run import Run

LEAST_TOLD = 0.5
"""The minimum share of device computing with known precision for which a 16-bit share is given."""


def steps_of(run: Run, host: str | None) -> pd.DataFrame:
    """Each step of `run` on its slowest host, or on the host that is shown."""
    if host is not None:
        return run.table("steps", host=host)
    return with_host(run.steps, run.table("steps"))


def has_step_times(run: Run) -> bool:
    """Whether there is any step time to draw."""
    return run.info.has_step_times and len(run.steps) > 0


def may_draw(steps: Iterable[pd.DataFrame]) -> bool:
    """Whether any of these runs has several steps: a single one is a figure and no chart."""
    return any(len(frame) > 1 for frame in steps)


def with_host(run_steps: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """`run_steps` (a run's steps, each as long as on its slowest host) with that `host`.

    `steps` is the table of all hosts. The first in order of their names, where several took equally long.
    """
    hosts = steps.sort_values("host").drop_duplicates("duration_us").set_index("duration_us")["host"]
    return run_steps.assign(host=run_steps["duration_us"].map(hosts))


def sixteen_bit_share(steps: pd.DataFrame) -> float:
    """The share of 16-bit computing in the device computing with known precision, over all these steps.

    `steps` has the columns of `schema.STEPS`. NaN if the precision of less than `LEAST_TOLD` of the computing is known.
    """
    sixteen, thirty_two = (float(steps[column].sum()) for column in STEP_PRECISIONS)
    told = sixteen + thirty_two
    return sixteen / told if told > 0 and told >= LEAST_TOLD * steps["device_compute_us"].sum() else math.nan


def op_by_step(ops: StepCells, steps: pd.DataFrame, wanted: pd.DataFrame) -> pd.DataFrame:
    """The self time of some ops in each step of `steps` (one row a step): its columns, `self_time_us` and
    `occurrences`.

    `wanted` gives the keys of the ops (`host_or_device`, `op_type`, `op_name`, or some of these), which are summed; a
    step in which none of them ran has 0 of both.
    """
    keys = list(wanted.columns)
    chosen = pd.MultiIndex.from_frame(ops.keys[keys]).isin(pd.MultiIndex.from_frame(wanted))
    cells = ops.cells[chosen[ops.cells["row"]]].rename(columns={"time_us": "self_time_us"})
    totals = cells.groupby("step")[["self_time_us", "occurrences"]].sum().reindex(steps["step"], fill_value=0)
    return steps.assign(**{name: totals[name].to_numpy() for name in totals.columns})
