"""Charts of the parts of steps: the average step and every step of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import downsampling, style
from tfcompare.charts.steps import slow_steps
from tfcompare.compare.side import Side
from tfcompare.schema import STEP_PARTS, STEPS
from tfcompare.text import middle_ellipsis
from tfcompare.units import MISSING, format_percent, format_time_us

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

PART_COLOURS = {
    "compile_us": "#9A6B3F",
    "input_us": "#A08A00",
    "output_us": "#C4709A",
    "kernel_launch_us": "#7B5FD9",
    "host_compute_us": "#0A9A8C",
    "host_collectives_us": "#C2503A",
    "device_collectives_us": "#B0309A",
    "device_to_device_us": "#5E8C3A",
    "device_compute_us": "#3C7FC4",
    "device_waits_us": "#45566E",
    "idle_us": "#B9BFC8",
    "other_us": "#8C96A3",
}
OTHER_HOSTS_COLOUR = "#B0B7C3"
PART_PATTERNS = {
    "idle_us": "-",
    "other_us": "/",
    "host_collectives_us": "+",
    "device_collectives_us": "x",
    "device_to_device_us": ".",
    "device_waits_us": "|",
}

EXCLUDED_OPACITY = 0.35
EXCLUDED_NOTE = "pale: excluded (first, last and stray step, other kinds)"
MIN_STEPS_SHOWN = 8
"""The axis has room for at least this many steps: otherwise a single bar would fill the chart."""

ENTRIES_IN_A_ROW = 3
"""Legend entries in one row in a narrow window."""

LEGEND_PIXELS = 32
"""Height of a one-row legend below the axis; stating it saves Plotly a second draw."""


def step_breakdown(parts: pd.DataFrame, side: Side) -> go.Figure:
    """The average step of one run as a bar for each of its parts, with its time and share.

    `parts` is the result of `compare.attribution.part_means` with the run as baseline; parts without time are omitted.
    """
    shown = parts[parts["mean_us_baseline"] > 0]
    times = shown["mean_us_baseline"].to_numpy(np.float64)
    scale, whole = style.time_scale(times), float(times.sum())
    texts = [f"{format_time_us(time)} ({format_percent(time / whole)})" for time in times]
    result = style.figure(f"Average step by part: {format_time_us(whole)}", height=120, legend_rows=0, showlegend=False)
    result.add_trace(
        go.Bar(
            orientation="h", x=times / scale.size, y=np.arange(len(shown)), text=texts, textangle=0,
            **style.BESIDE_BAR,
            marker={"color": [PART_COLOURS.get(part, OTHER_HOSTS_COLOUR) for part in shown["part"]]},
            customdata=np.column_stack([shown["label"], texts, shown["std_us_baseline"].map(_deviation)]),
            hovertemplate=f"<b>%{{customdata[0]}}</b><br>{style.safe(side.name)}<br>%{{customdata[1]}}%{{customdata[2]}}"
            "<extra></extra>",
        )
    )  # fmt: skip
    highest = float(times.max(initial=0.0)) / scale.size or 1.0
    result.update_xaxes(title_text=f"Mean over the included steps ({scale.unit})", range=[0, 1.34 * highest])
    style.label_rows(result, [str(label) for label in shown["label"]])
    return result


def legend_below(result: go.Figure, entries: int, more_pixels: int = 0) -> None:
    """Move the legend below the axis, with room for several rows, and for `more_pixels` of labels above it."""
    room = 44 + more_pixels + style.LEGEND_ROW_PIXELS * -(-entries // ENTRIES_IN_A_ROW)
    result.update_layout(
        height=result.layout.height + room,
        margin_b=room + LEGEND_PIXELS,
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "traceorder": "normal"},
    )


def _deviation(std_us: float) -> str:
    text = format_time_us(std_us)
    return "" if text == MISSING else f" ± {text}"


def _part_marker(part: str) -> dict[str, Any]:
    pattern: dict[str, Any] = {"shape": PART_PATTERNS.get(part, ""), "size": 6, "solidity": 0.2, "fillmode": "overlay"}
    pattern["fgcolor"] = "#FFFFFF"
    return {"color": PART_COLOURS[part], "pattern": pattern}


def parts_of_steps(side: Side, steps: pd.DataFrame, top_us: float | None = None) -> go.Figure:
    """Every step of one run by its parts, over its position: bars, or areas if bars would be too thin.

    `steps` has one row per step in order, with the columns of `schema.STEPS`. `top_us` is where the axis ends, to give
    two charts the same scale; by default it fits the steps.
    """
    parts = [part for part in STEP_PARTS if len(steps) and (steps[part] > 0).any()]
    end = slow_steps.axis_end([steps], "duration_us") if len(steps) else None
    end = end if top_us is None else top_us
    scale = style.time_scale([end or float(steps["duration_us"].max())] if len(steps) else [])
    areas = len(steps) > downsampling.MAX_MARKERS
    notes = ["" if areas or steps["included"].all() else EXCLUDED_NOTE, slow_steps.BEYOND_NOTE if end else ""]
    notes.append(downsampling.note(len(steps), downsampling.MAX_AREA_POINTS))
    result = style.figure(
        f"Every step by part: {style.safe(middle_ellipsis(side.name, 40))}",
        "<br>".join(filter(None, notes)),
        height=320, legend_rows=max(2 * bool(end), sum(map(bool, notes)) - 1), showlegend=True, barmode="stack",
        barcornerradius=0, bargap=0.15,
    )  # fmt: skip
    positions = downsampling.steps_to_draw(
        steps["duration_us"].to_numpy(np.float64), points=downsampling.MAX_AREA_POINTS
    )
    hover, drawn = _step_hover(steps, positions), steps.iloc[positions]
    for part in parts:
        trace = (_area if areas else _bars)(part, drawn, scale, hover)
        result.add_trace(trace.update(x=positions + 1))
    legend_below(result, len(parts))
    result.update_xaxes(
        title_text="Step, by position", tickformat=",d", range=[0.4, max(len(steps), MIN_STEPS_SHOWN) + 0.6]
    )
    result.update_yaxes(title_text=f"Time ({scale.unit})", rangemode="tozero", tickformat="~r")
    if end and (edge := slow_steps.beyond_bar_marks(steps, "duration_us", end, scale)):
        result.add_trace(edge)
        result.update_yaxes(range=[0, end / scale.size])
    return result


def _step_hover(steps: pd.DataFrame, positions: NDArray[np.int64]) -> list[list[str]]:
    status = np.where(steps["included"].astype(bool), "", "<br>excluded")
    status = np.where(slow_steps.is_slow(steps), slow_steps.HOVER, status)[positions]
    rows = steps.iloc[positions]
    texts = (rows["step"].astype(str), rows["duration_us"].map(format_time_us), rows["host"].map(style.safe), status)
    return [list(row) for row in zip(*texts, strict=True)]


def _area(part: str, steps: pd.DataFrame, scale: style.Scale, hover: list[list[str]]) -> go.Scatter:
    line = {"width": 0, "color": PART_COLOURS[part]}
    return go.Scatter(
        mode="lines", line=line, stackgroup="parts", fillcolor=PART_COLOURS[part], **_of_part(part, steps, scale, hover)
    )


def _bars(part: str, steps: pd.DataFrame, scale: style.Scale, hover: list[list[str]]) -> go.Bar:
    opacity = np.where(steps["included"].to_numpy(dtype=bool), 1.0, EXCLUDED_OPACITY).tolist()
    return go.Bar(marker=_part_marker(part) | {"opacity": opacity}, **_of_part(part, steps, scale, hover))


def _of_part(part: str, steps: pd.DataFrame, scale: style.Scale, hover: list[list[str]]) -> dict[str, Any]:
    label, times = STEPS.column(part).label, steps[part]
    share = (times / steps["duration_us"]).where(steps["duration_us"] > 0, 0.0)
    own = [[*row, format_time_us(t), format_percent(s)] for row, t, s in zip(hover, times, share, strict=True)]
    return {
        "name": label,
        "y": scale.of(times),
        "customdata": own,
        "hovertemplate": (
            f"step %{{x}} (number %{{customdata[0]}})<br><b>{label} %{{customdata[4]}}</b> (%{{customdata[5]}})"
            " of %{customdata[1]}<br>host %{customdata[2]}%{customdata[3]}<extra></extra>"
        ),
    }
