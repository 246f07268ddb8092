"""Charts of the hosts of runs: heat maps of steps × hosts, and the parts of each host's average step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.compare.side import Side
from tfcompare.schema import STEPS
from tfcompare.units import format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.steps.part_charts import PART_COLOURS, PART_PATTERNS, legend_below

if TYPE_CHECKING:
    import pandas as pd

LABEL_LENGTH = 24
MOST_LABELS = 24
"""More hosts than this are labelled at intervals."""
MOST_COLUMN_LABELS, FEW_COLUMN_LABELS = 32, 10
"""Names below columns in a wide and in a narrow window."""
LEAST = 0.002
"""Parts below this share of the longest step on all hosts are not drawn."""
LOW_TO_HIGH = "Cividis"
CHANGE = [[0.0, style.BETTER], [0.5, "#D9DCE1"], [1.0, style.WORSE]]
MOST_CLICKABLE = 5_000
"""Points that nobody sees, but which are drawn one by one: a thousand take about 0.05 s."""
_ROW_PIXELS, _MOST_PIXELS = 32, 560
_PANEL_PIXELS, _SLANTED_PIXELS = 180, 60
"""The height of a panel of columns, and what names at an angle take below it."""


def colour_range(matrices: Sequence[pd.DataFrame]) -> tuple[float, float]:
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
    bar = {"orientation": "h", "thickness": 10, "y": 0, "yref": "container", "yanchor": "bottom"}
    result.add_heatmap(
        z=(matrix.to_numpy(np.float64) / scale.size).round(4),
        x=matrix.columns.to_list(),
        y=categories,
        zmin=limits[0],
        zmax=limits[1],
        colorscale=colours,
        colorbar=bar | {"ticksuffix": f" {scale.unit}", "nticks": 5},
        hovertemplate=f"<b>%{{y}}</b><br>step %{{x}}: %{{z:.4~g}} {scale.unit}<extra></extra>",
    )
    shown = _at_intervals(rows, MOST_LABELS)
    if len(shown) * matrix.shape[1] <= MOST_CLICKABLE:
        _add_points(result, matrix.columns, categories, shown, scale.unit)
    ticks = {"tickvals": [categories[row] for row in shown], "ticktext": [style.safe(names[row]) for row in shown]}
    result.update_yaxes(type="category", **ticks, range=[rows - 0.5, -0.5], showgrid=False, zeroline=False)
    result.update_xaxes(title={"text": "Step, by position", "standoff": 4}, showgrid=False, zeroline=False)
    return result.update_layout(margin_b=96)


def _at_intervals(count: int, most: int) -> range:
    """At most so many of `count` positions, evenly spaced."""
    return range(0, count, max(1, -(-count // most)))


def _add_points(result: go.Figure, steps: pd.Index, categories: Sequence[str], shown: range, unit: str) -> None:
    """Put points that nobody sees on a heat map: no page hears of a click on it, but of one on a point.

    Those of a row in `shown` are also for the rows up to the next, which are too thin to be hit one by one.
    """
    rows, every, values = len(categories), shown.step, result.data[0].z
    blocks = [values[row : row + every] for row in shown]
    low, high = (np.array([pick(block, axis=0) for block in blocks]).ravel() for pick in (np.min, np.max))
    below = [f" and {len(block) - 1} below" if len(block) > 1 else "" for block in blocks]
    called = [f"{categories[row]}{more}" for row, more in zip(shown, below, strict=True)]
    ranges = zip(low, high, strict=True)
    result.update_traces(hoverinfo="skip", hovertemplate=None)
    result.add_scatter(
        x=np.tile(steps.to_numpy(), len(shown)),
        y=np.repeat([categories[min(row + every // 2, rows - 1)] for row in shown], len(steps)),
        mode="markers",
        marker={"opacity": 0, "size": 1},
        showlegend=False,
        text=np.repeat(called, len(steps)),
        customdata=[f"{one:.4g}" if one == other else f"{one:.4g} to {other:.4g}" for one, other in ranges],
        hovertemplate=f"<b>%{{text}}</b><br>step %{{x}}: %{{customdata}} {unit}<extra></extra>",
    )
    result.update_layout(hoverdistance=-1)


def host_parts(
    title: str, sides: Sequence[tuple[Side, pd.DataFrame]], names: Sequence[str], labels: Sequence[str]
) -> go.Figure:
    """The parts of a step of each host as stacked bars: for each of `names`, called as in `labels`, one bar for each
    side, one below the other.

    Each frame has one row for each host and one column for each part of the step, in µs.
    """
    scale, parts, _ = _scale_and_parts(sides, names)
    offsets, thickness = style.bar_offsets(len(sides))
    subtitle = "" if len(sides) < 2 else "upper bar: baseline; lower bar: candidate"
    height = style.rows_height(len(names), len(sides))
    result = style.figure(title, subtitle, height=height, legend_rows=0, barmode="stack")
    for part in parts:
        for position, ((side, frame), offset) in enumerate(zip(sides, offsets, strict=True)):
            there = [name for name in names if name in frame.index]
            result.add_bar(
                orientation="h",
                x=frame.loc[there, part].to_numpy(np.float64) / scale.size,
                y=[names.index(name) + offset for name in there],
                width=thickness,
                showlegend=position == 0,
                customdata=[_hover(side, frame, name, parts) for name in there],
                hovertemplate="%{customdata}<extra></extra>",
                **_looks(part),
            )
    style.name_rows(result, list(labels))
    result.update_xaxes(title_text=f"Time ({scale.unit})")
    legend_below(result, len(parts))
    return result


def all_host_parts(
    title: str,
    sides: Sequence[tuple[Side, pd.DataFrame]],
    names: Sequence[str],
    slowest: Sequence[str],
    labels: int = MOST_COLUMN_LABELS,
) -> go.Figure:
    """As `host_parts`, for many hosts: thin columns in the order of `names`, each side in a panel of its own.

    `slowest` is the slowest host of each side, which is marked, or empty; so many `labels` are below the columns.
    """
    scale, parts, longest = _scale_and_parts(sides, names)
    bars = {"barmode": "stack", "bargap": 0, "barcornerradius": 0, "hovermode": "x unified"}
    result = style.figure(title, "", height=120 + _PANEL_PIXELS * len(sides), legend_rows=0, **bars)
    result.set_subplots(len(sides), 1, shared_xaxes=True, vertical_spacing=0.08)
    short = style.shorten_distinct(list(names), LABEL_LENGTH)
    shown = _at_intervals(len(names), labels)
    for row, (side, frame) in enumerate(sides, 1):
        there = [name for name in names if name in frame.index]
        if name := slowest[row - 1]:
            place = {"x": names.index(name), "y": longest, "ax": 0, "ay": -18}
            result.add_annotation(place, text=f"slowest: {style.safe(name)}", row=row, col=1)
        for part in parts:
            times = frame.loc[there, part].to_numpy(np.float64)
            texts = [[style.safe(name), format_time_us(us)] for name, us in zip(there, times, strict=True)]
            hover = {"customdata": texts, "hovertemplate": "%{customdata[1]}"}
            x, y = [names.index(name) for name in there], times / scale.size
            result.add_bar(x=x, y=y, showlegend=row == 1, **hover, **_looks(part), row=row, col=1)
        name = f"{side.role} ({scale.unit})" if len(sides) > 1 else f"Time ({scale.unit})"
        result.update_yaxes(title_text=name, range=[0, 1.2 * longest], row=row, col=1)
        ticks = {"tickvals": list(shown), "ticktext": [style.safe(short[at]) for at in shown], "tickangle": -60}
        heading = {"text": "<b>%{customdata[0]}</b>"}
        result.update_xaxes(**ticks, unifiedhovertitle=heading, range=[-0.5, len(names) - 0.5], row=row, col=1)
    legend_below(result, len(parts), _SLANTED_PIXELS)
    return result


def _scale_and_parts(
    sides: Sequence[tuple[Side, pd.DataFrame]], names: Sequence[str]
) -> tuple[style.Scale, list[str], float]:
    """The unit of the longest step, the parts that are long enough to be drawn, and that step in the unit."""
    frames = [frame.loc[frame.index.intersection(list(names))] for _, frame in sides]
    longest = max((float(frame.sum(axis=1).max()) for frame in frames if len(frame)), default=1.0)
    parts = [part for part in PART_COLOURS if any((frame[part] > LEAST * longest).any() for frame in frames)]
    scale = style.time_scale([longest])
    return scale, parts, longest / scale.size


def _looks(part: str) -> dict[str, Any]:
    marker = {"color": PART_COLOURS[part], "pattern": {"shape": PART_PATTERNS.get(part, "")}}
    return {"name": STEPS.column(part).label, "legendgroup": part, "marker": marker}


def _hover(side: Side, frame: pd.DataFrame, name: str, parts: Sequence[str]) -> str:
    """All parts of a host's step, the longest first."""
    times = frame.loc[[name]].iloc[0].astype("float64")
    longest = times[[part for part in parts if times[part] > 0]].sort_values(ascending=False, kind="stable")
    lines = [f"{STEPS.column(str(part)).label}: {format_time_us(time)}" for part, time in longest.items()]
    return "<br>".join([f"<b>{style.safe(name)}</b> ({side.role}): {format_time_us(float(times.sum()))}", *lines])
