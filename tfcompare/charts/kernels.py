"""Charts of the kernels of two runs: where their time goes, and what runs on tensor cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.charts import ops
from tfcompare.charts.style import Quantity, Side

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

KERNEL_TIME = Quantity("kernel time", "µs", "less time", "more time")
LAUNCHES = Quantity("kernel launches", "", "fewer launches", "more launches")


def kernel_time_shares(shares: pd.DataFrame, sides: tuple[Side, Side], *, by: str) -> go.Figure:
    """Kernel time shares of both sides, as pairs of bars; each side's bars add up to 100 %.

    `shares` is the result of `tools.op_stats.time_shares` for `total_duration_us`, with a column `label` for groups
    whose names are too long to read. `by` names the groups (`kernel`, `op`).
    """
    return _shares(shares, sides, f"Kernel time by {by}")


def tensor_core_use(shares: pd.DataFrame, sides: tuple[Side, Side]) -> go.Figure:
    """Share of each side's kernel time on tensor cores, from `tools.kernel_stats.tensor_core_use`."""
    return _shares(shares, sides, "Kernel time by use of tensor cores")


def _shares(shares: pd.DataFrame, sides: tuple[Side, Side], title: str) -> go.Figure:
    return ops.share_bars(
        shares, sides, "total_duration_us", title=title, whole="kernel time", axis="Share of kernel time"
    )
