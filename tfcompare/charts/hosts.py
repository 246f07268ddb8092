"""Charts of the hosts of runs: heat maps of steps × hosts, and the parts of each host's average step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.step_parts import PART_COLOURS, PART_PATTERNS
from tfcompare.charts.style import Side
from tfcompare.schema import STEPS
from tfcompare.units import format_time_us

if TYPE_CHECKING:
    import pandas as pd

LABEL_LENGTH = 24
MOST_LABELS = 24
"""More hosts than this are labelled at intervals."""
MOST_BARS = 16
"""The bars of average steps show at most so many hosts."""
LEAST = 0.002
"""Parts below this share of the longest step on all hosts are not drawn."""
LOW_TO_HIGH = "Cividis"
CHANGE = [[0.0, style.BETTER], [0.5, "#D9DCE1"], [1.0, style.WORSE]]
_ROW_PIXELS, _MOST_PIXELS = 32, 560
_LEGEND_ENTRIES_IN_A_ROW = 3


def value_range(matrices: Sequence[pd.DataFrame]) -> tuple[float, float]:
    """The common colour scale of heat maps, in µs.

    It reaches as far as the host with the longest median: single outliers do not stretch it, but a slow host shows.
    """
    low = min(float(matrix.to_numpy(np.float64).min()) for matrix in matrices)
    high = max(_reach(matrix) for matrix in matrices)
    return (low, high) if high > low else (low, low + 1.0)


def _reach(matrix: pd.DataFrame) -> float:
    values = matrix.to_numpy(np.float64)
    return max(float(np.quantile(values, 0.99, method="lower")), float(np.median(values, axis=1).max()))


def heat_map(title: str, subtitle: str, matrix: pd.DataFrame, limits_us: tuple[float, float]) -> go.Figure:
    """Steps × hosts: `matrix` has one row for each host, the first on top, and one column for each step, in µs."""
    scale = style.time_scale(limits_us)
    return _map(title, subtitle, matrix, (limits_us[0] / scale.size, limits_us[1] / scale.size), LOW_TO_HIGH, scale)


def change_map(title: str, subtitle: str, change: pd.DataFrame) -> go.Figure:
    """The difference of two heat maps in µs: blue where the candidate takes less, orange where it takes more."""
    reach = _reach(change.abs()) or 1.0
    scale = style.time_scale([reach])
    return _map(title, subtitle, change, (-reach / scale.size, reach / scale.size), CHANGE, scale)


def _map(
    title: str,
    subtitle: str,
    matrix: pd.DataFrame,
    limits: tuple[float, float],
    colours: str | list[list[object]],
    scale: style.Scale,
) -> go.Figure:
    rows = len(matrix)
    names = style.shorten_distinct([str(name) for name in matrix.index], LABEL_LENGTH)
    categories = [style.safe(str(name)) for name in matrix.index]
    height = 150 + min(max(rows, 3) * _ROW_PIXELS, _MOST_PIXELS)
    result = style.figure(title, subtitle, height=height, legend_rows=0)
    result.add_trace(
        go.Heatmap(
            z=(matrix.to_numpy(np.float64) / scale.size).round(4),
            x=matrix.columns.to_list(),
            y=categories,
            zmin=limits[0],
            zmax=limits[1],
            colorscale=colours,
            colorbar={
                "orientation": "h",
                "thickness": 10,
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
                "ticksuffix": f" {scale.unit}",
                "nticks": 5,
            },
            hovertemplate=f"<b>%{{y}}</b><br>step %{{x}}: %{{z:.4~g}} {scale.unit}<extra></extra>",
        )
    )
    every = max(1, -(-rows // MOST_LABELS))
    shown = list(range(0, rows, every))
    result.update_yaxes(
        type="category", tickvals=[categories[row] for row in shown],
        ticktext=[style.safe(names[row]) for row in shown], range=[rows - 0.5, -0.5],
        showgrid=False, zeroline=False,
    )  # fmt: skip
    result.update_xaxes(title={"text": "Step, by position", "standoff": 4}, showgrid=False, zeroline=False)
    return result.update_layout(margin_b=96)


def host_parts(sides: Sequence[tuple[Side, pd.DataFrame]], names: Sequence[str]) -> go.Figure:
    """The parts of each host's average step as stacked bars: for each of `names` one bar for each side, one below the
    other.

    Each frame has one row for each host and one column for each part of the step, in µs.
    """
    totals = [float(frame.sum(axis=1).max()) for _, frame in sides if len(frame)] or [1.0]
    scale = style.time_scale(totals)
    parts = [
        part for part in PART_COLOURS if any((frame[part] > 0.002 * max(totals, default=1)).any() for _, frame in sides)
    ]
    offsets, thickness = style.bar_offsets(len(sides))
    result = style.figure(
        "Average step by part", _order_of(sides), height=style.rows_height(len(names), len(sides)), legend_rows=0,
        barmode="stack",
    )  # fmt: skip
    for part in parts:
        for position, ((side, frame), offset) in enumerate(zip(sides, offsets, strict=True)):
            there = [name for name in names if name in frame.index]
            values = frame.loc[there, part].to_numpy(np.float64)
            result.add_trace(
                go.Bar(
                    orientation="h",
                    x=values / scale.size,
                    y=[names.index(name) + offset for name in there],
                    width=thickness,
                    name=STEPS.column(part).label,
                    legendgroup=part,
                    showlegend=position == 0,
                    marker={"color": PART_COLOURS[part], "pattern": {"shape": PART_PATTERNS.get(part, "")}},
                    customdata=[
                        [style.safe(name), format_time_us(value)] for name, value in zip(there, values, strict=True)
                    ],
                    hovertemplate=f"<b>%{{customdata[0]}}</b><br>{STEPS.column(part).label}: %{{customdata[1]}}"
                    f"<extra>{style.safe(side.role)}</extra>",
                )
            )
    style.name_rows(result, style.shorten_distinct(list(names), style.LABEL_LENGTH))
    result.update_xaxes(title_text=f"Mean over the included steps ({scale.unit})")
    room = 44 + style.LEGEND_ROW_PIXELS * -(-len(parts) // _LEGEND_ENTRIES_IN_A_ROW)
    return result.update_layout(
        height=result.layout.height + room,
        margin_b=room + 32,
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "traceorder": "normal"},
    )


def _order_of(sides: Sequence[tuple[Side, pd.DataFrame]]) -> str:
    return "" if len(sides) < 2 else "upper bar: baseline; lower bar: candidate"
