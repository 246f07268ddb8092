"""How much of what a device could do at most a step uses: floating-point operations, and memory bandwidth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfcompare.compare.per_device import computing_devices
from tfcompare.schema import DEVICE, SPARSE_CORE
from tfcompare.schema.hlo import MOST_UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run

Cost = Literal["flops", "bytes_accessed"]
COSTS: tuple[Cost, ...] = ("flops", "bytes_accessed")
_PEAKS = {"flops": "peak_flops_per_s", "bytes_accessed": "peak_bytes_per_s"}
_US_PER_S = 1e6
ROOFLINE = "Roofline efficiency"


def time_at_peak_us(run: Run, host: str | None, cost: Cost) -> float:
    """How long a device needs at least for its part of a step, in µs: its cost by the peak rate for its operands.

    The sum over the instructions of compiled programs in the included steps, by these steps and the devices that
    computed. FLOPs that only recompute a value are left out, as in
    model FLOPs. NaN without programs or steps, where the device's peak is not known, and where instructions of unknown
    cost take more than 1 % of the time.
    """
    steps = run.tables.steps_on(host)
    rows, count = instructions_in_steps(run, host), int(steps["included"].sum())
    if rows.empty or not count:
        return math.nan
    if cost == "flops":
        rows = rows[~rows["is_rematerialized"].astype(bool)]
    needed_us = _needed_us(rows, cost)
    return math.nan if _is_unknown(rows, needed_us) else float(needed_us.sum()) / count / computing_devices(run, host)


def instructions_in_steps(run: Run, host: str | None) -> pd.DataFrame:
    """`hlo_ops` in the included steps (`RunTables.in_steps`), as `on_devices` has them."""
    return on_devices(run.tables.in_steps("hlo_ops", host=host))


def on_devices(hlo_ops: pd.DataFrame) -> pd.DataFrame:
    """The instructions without those of SparseCores, which run beside a device's own and have other peaks."""
    is_kept = (hlo_ops["core_type"] != SPARSE_CORE).to_numpy()
    return hlo_ops if is_kept.all() else hlo_ops[is_kept]


def roofline_efficiency(rows: pd.DataFrame) -> float:
    """The time that instructions would take on the roofline, each limited by compute or memory, by the time they took.

    `rows` are those of `hlo_ops`, or have its columns. Above 1 where they read from a cache what they are said to read
    from memory. NaN without any, and where peaks or costs are unknown, as for `time_at_peak_us`.
    """
    needed_us = _needed_us(rows, "flops").combine(_needed_us(rows, "bytes_accessed"), np.maximum)
    took_us = float(rows["self_time_us"].sum())
    return float(needed_us.sum()) / took_us if took_us > 0 and not _is_unknown(rows, needed_us) else math.nan


def has_unknown_cost(rows: pd.DataFrame, costs: Sequence[Cost] = COSTS) -> pd.Series:
    """Whether any of these costs of each instruction is unknown; `rows` have the columns of `hlo_ops`."""
    return rows[list(costs)].isna().any(axis=1)


def unknown_share(rows: pd.DataFrame, costs: Sequence[Cost] = COSTS) -> float:
    """The share of the self time that instructions with an unknown cost of these take; NaN without any time."""
    took_us = float(rows["self_time_us"].sum())
    return float(rows.loc[has_unknown_cost(rows, costs), "self_time_us"].sum()) / took_us if took_us > 0 else math.nan


def duty_cycle(run: Run, host: str | None) -> float:
    """The share of the time from the first event to the last in which a device is busy, over all devices together, as
    xprof's TPU duty cycle; NaN without devices. Exchanges with the host and waits do not keep it busy."""
    planes = run.tables.host_table("idle", host=host)
    busy_ps, span_ps = planes.loc[planes["host_or_device"] == DEVICE, ["busy_ps", "span_ps"]].sum(skipna=False)
    return float(busy_ps / span_ps) if span_ps > 0 else math.nan


def _needed_us(rows: pd.DataFrame, cost: Cost) -> pd.Series:
    """How long a device needs at least for the cost of each instruction; NaN where that or the peak is unknown."""
    return (rows[cost] / rows[_PEAKS[cost]]).mask(rows[cost] == 0, 0.0) * _US_PER_S


def _is_unknown(rows: pd.DataFrame, needed_us: pd.Series) -> bool:
    unknown_us = rows.loc[needed_us.isna(), "self_time_us"].sum()
    return bool(unknown_us > MOST_UNKNOWN * rows["self_time_us"].sum())
