"""Figures over the steps of runs: every step, their distribution, one op in every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.style import Side
from tfcompare.units import format_time_us, middle_ellipsis

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

FAR_APART = 2.0
"""Medians this many times apart: each distribution is drawn around its own, since on one axis both would be lines."""

MOST_MARKERS = 500
EXCLUDED_NOTE = "hollow: first and last step, set aside"


Series = Sequence[tuple[Side, "pd.DataFrame"]]
"""Runs, the baseline first, each with a frame of its steps; of a run without rows nothing is drawn."""


def step_times(series: Series) -> go.Figure:
    """Step time of every step of each run, over the step's position.

    The frames have one row a step in order: `step`, `host`, `duration_us`, `included`.
    """
    return _over_steps(series, "duration_us", "Step time of every step", "Step time")


def op_in_steps(series: Series, op_name: str) -> go.Figure:
    """Self time of one op in every step of each run, over the step's position.

    The frames have one row a step in order: `step`, `host`, `self_time_us` (0 where the op did not run), `included`.
    """
    name = style.safe(middle_ellipsis(op_name, 60))
    return _over_steps(series, "self_time_us", "Self time in every step", "Self time", about=name)


def _over_steps(series: Series, column: str, title: str, quantity: str, about: str = "") -> go.Figure:
    shown = [(side, frame) for side, frame in series if len(frame)]
    scale = style.time_scale(float(frame[column].max()) for _, frame in shown)
    excluded = any(not frame["included"].all() for _, frame in shown)
    subtitle = " · ".join(part for part in (about, EXCLUDED_NOTE if excluded else "") if part)
    result = style.figure(title, subtitle, height=320, legend_rows=len(shown), showlegend=True)
    result.add_traces([_step_trace(side, frame, column, scale) for side, frame in shown])
    result.update_xaxes(title_text="Step, by position", rangemode="tozero", tickformat=",d")
    result.update_yaxes(title_text=f"{quantity} ({scale.unit})", rangemode="tozero", tickformat="~r")
    return result


def _step_trace(side: Side, frame: pd.DataFrame, column: str, scale: style.Scale) -> go.Scatter:
    included = frame["included"].to_numpy(dtype=bool)
    return go.Scatter(
        name=side.label,
        x=np.arange(1, len(frame) + 1),
        y=scale.of(frame[column]),
        mode="lines+markers" if len(frame) <= MOST_MARKERS else "lines",
        line={"color": side.colour, "width": 1.5},
        marker={"symbol": np.where(included, side.symbol, f"{side.symbol}-open").tolist(), "size": 8},
        customdata=np.column_stack(
            [
                frame["step"].astype(str),
                frame[column].map(format_time_us),
                frame["host"].map(style.safe),
                np.where(included, "", "<br>set aside"),
            ]
        ),
        hovertemplate=(
            "step %{customdata[0]} (position %{x})<br><b>%{customdata[1]}</b><br>host %{customdata[2]}%{customdata[3]}"
        ),
    )


def step_distribution(series: Series) -> go.Figure:
    """Distribution of each run's included step times: every step as a point above a box of the quartiles.

    The frames have `step`, `duration_us`, `included`. Distributions that lie far apart are drawn as the deviation from
    their own median.
    """
    counted = [(side, frame[frame["included"].astype(bool)]) for side, frame in series]
    counted = [(side, frame) for side, frame in counted if len(frame)]
    medians = [float(frame["duration_us"].median()) for _, frame in counted]
    relative = min(medians, default=0.0) > 0 and max(medians) / min(medians) >= FAR_APART
    scale = style.time_scale(float(frame["duration_us"].max()) for _, frame in counted)
    result = style.figure(
        "Distribution of step times",
        "points: steps; box: quartiles" + (", around each run's median" if relative else ""),
        height=150 + 85 * len(counted),
        legend_rows=0,
        showlegend=False,
    )
    for (side, frame), median in zip(counted, medians, strict=True):
        x = frame["duration_us"].to_numpy(dtype=np.float64) / median - 1 if relative else scale.of(frame["duration_us"])
        result.add_trace(_box(f"{side.role}<br>median {format_time_us(median)}", side, frame, x))
    result.update_xaxes(
        title_text="Deviation from the run's median" if relative else f"Step time ({scale.unit})",
        tickformat=".0%" if relative else "~r",
        zeroline=relative,
    )
    result.update_yaxes(autorange="reversed")
    return result


def _box(label: str, side: Side, frame: pd.DataFrame, x: NDArray[np.float64]) -> go.Box:
    return go.Box(
        name=label,
        x=x,
        orientation="h",
        boxpoints="all",
        jitter=0.45,
        pointpos=-1.5,
        width=0.4,
        marker={"color": side.colour, "symbol": side.symbol, "size": 6, "opacity": 0.75},
        line={"color": side.colour, "width": 1.5},
        customdata=np.column_stack([frame["step"].astype(str), frame["duration_us"].map(format_time_us)]),
        hovertemplate="step %{customdata[0]}<br><b>%{customdata[1]}</b><extra></extra>",
        hoveron="points",
    )
