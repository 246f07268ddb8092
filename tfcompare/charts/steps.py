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

FAR_APART = 2.0
"""Medians this many times apart: each distribution is drawn around its own, since on one axis both would be lines."""

EXCLUDED_NOTE = "hollow: first and last step, set aside"


def step_times(sides: Sequence[Side]) -> go.Figure:
    """Step time of every step of each side, over the step's position.

    `sides[i].frame` has one row a step in order: `step`, `host`, `duration_us`, `included`.
    """
    return _over_steps(sides, "duration_us", "Step time of every step", "Step time")


def op_in_steps(sides: Sequence[Side], op_name: str) -> go.Figure:
    """Self time of one op in every step of each side, over the step's position.

    `sides[i].frame` has one row a step in order: `step`, `host`, `self_time_us` (0 where the op did not run) and
    `included`.
    """
    name = style.safe(middle_ellipsis(op_name, 60))
    return _over_steps(sides, "self_time_us", "Self time in every step", "Self time", about=name)


def _over_steps(sides: Sequence[Side], column: str, title: str, quantity: str, about: str = "") -> go.Figure:
    shown = [(position, side) for position, side in enumerate(sides) if len(side.frame)]
    scale = style.time_scale(float(side.frame[column].max()) for _, side in shown)
    excluded = any(not side.frame["included"].all() for _, side in shown)
    subtitle = " · ".join(part for part in (about, EXCLUDED_NOTE if excluded else "") if part)
    result = style.figure(title, subtitle, height=320, legend_rows=len(shown))
    for position, side in shown:
        result.add_trace(_step_trace(side, position, len(sides), column, scale))
    result.update_xaxes(title_text="Step, by position", rangemode="tozero", tickformat=",d")
    result.update_yaxes(title_text=f"{quantity} ({scale.unit})", rangemode="tozero", tickformat="~r")
    return result


def _step_trace(side: Side, position: int, sides: int, column: str, scale: style.Scale) -> go.Scatter:
    frame = side.frame
    included = frame["included"].to_numpy(dtype=bool)
    mark = style.symbol(position)
    return go.Scatter(
        name=style.side_label(side, position, sides),
        x=np.arange(1, len(frame) + 1),
        y=scale.of(frame[column]),
        mode="lines+markers" if len(frame) <= 500 else "lines",
        line={"color": style.colour(position), "width": 1.5},
        marker={"symbol": np.where(included, mark, f"{mark}-open").tolist(), "size": 8},
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


def step_distribution(sides: Sequence[Side]) -> go.Figure:
    """Distribution of each side's included step times: every step as a point above a box of the quartiles.

    `sides[i].frame` has `step`, `duration_us`, `included`. Distributions that lie far apart are drawn as the deviation
    from their own median.
    """
    counted = [(p, side, _included_times(side)) for p, side in enumerate(sides)]
    counted = [(position, side, times) for position, side, times in counted if len(times)]
    medians = [float(times.median()) for _, _, times in counted]
    relative = min(medians, default=0.0) > 0 and max(medians) / min(medians) >= FAR_APART
    scale = style.time_scale(float(times.max()) for _, _, times in counted)
    result = style.figure(
        "Distribution of step times",
        "points: steps; box: quartiles" + (", around each run's median" if relative else ""),
        height=150 + 85 * len(counted),
        legend_rows=0,
        showlegend=False,
    )
    for (position, side, times), median in zip(counted, medians, strict=True):
        x = times / median - 1 if relative else times / scale.us
        label = f"{style.role(position, len(sides))}<br>median {format_time_us(median)}"
        result.add_trace(_box(label, position, x, side.frame.loc[times.index]))
    result.update_xaxes(
        title_text="Deviation from the run's median" if relative else f"Step time ({scale.unit})",
        tickformat=".0%" if relative else "~r",
        zeroline=relative,
    )
    result.update_yaxes(autorange="reversed")
    return result


def _included_times(side: Side) -> pd.Series:
    return side.frame.loc[side.frame["included"].astype(bool), "duration_us"].astype("float64")


def _box(label: str, position: int, x: pd.Series, steps: pd.DataFrame) -> go.Box:
    tint = style.colour(position)
    return go.Box(
        name=label,
        x=x.to_numpy(),
        orientation="h",
        boxpoints="all",
        jitter=0.45,
        pointpos=-1.5,
        width=0.4,
        marker={"color": tint, "symbol": style.symbol(position), "size": 6, "opacity": 0.75},
        line={"color": tint, "width": 1.5},
        customdata=np.column_stack([steps["step"].astype(str), steps["duration_us"].map(format_time_us)]),
        hovertemplate="step %{customdata[0]}<br><b>%{customdata[1]}</b><extra></extra>",
        hoveron="points",
    )
