"""How far the instructions of an XLA program are from the peaks of the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.style import side_colour, side_label, side_symbol
from tfcompare.compare.side import Side
from tfcompare.schema import SIDES
from tfcompare.units import format_time_us, format_value

MOST_MARKERS = 300
LARGEST_MARKER = 30
"""Diameter in pixels."""
_TIME = "execution_time_us"


def roofline(rows: pd.DataFrame, sides: Sequence[Side]) -> go.Figure:
    """FLOP rate over operational intensity, log-log: a marker per instruction and side, an arrow from one to the other.

    `rows` are `executions.instructions` of one program; those without floating-point operations or with unknown costs
    have no place. The area of a marker is the time per execution. Lines are the roofs of the devices whose peaks are
    known. At most the `MOST_MARKERS` longest instructions are shown.
    """
    longest = rows[[f"{_TIME}_{role}" for role in SIDES]].astype("float64").max(axis=1)
    rows = rows.loc[longest.sort_values(ascending=False, kind="stable").index[:MOST_MARKERS]]
    roofs = _roofs(rows, len(sides))
    title = "Roofline" if roofs else "FLOP rate by FLOP per byte"
    result = style.figure(title, "area: time per execution", height=460, legend_rows=len(sides) + 1)
    points = [_points(rows, role) for role in SIDES[: len(sides)]]
    largest = max((float(one["time_us"].max()) for one in points if len(one)), default=1.0)
    reach = _reach(points)
    for roof in roofs:
        result.add_trace(_roof(roof, reach))
    if len(points) == 2:
        result.add_trace(_arrows(*points))
    for side, one in zip(sides, points, strict=True):
        result.add_trace(_markers(side, one, largest or 1.0))
    result.update_xaxes(type="log", title="FLOP per byte", dtick=1, tickformat="~g")
    powers = [10.0**power for power in range(19)]
    texts = [format_value(power, "FLOP/s").replace(".00", "") for power in powers]
    result.update_yaxes(type="log", tickvals=powers, ticktext=[text.replace(".0", "") for text in texts])
    return result


def has_roofs(rows: pd.DataFrame, sides: int) -> bool:
    """Whether the peaks of any device of the first `sides` sides are known."""
    return bool(_roofs(rows, sides))


def has_points(rows: pd.DataFrame, sides: int) -> bool:
    """Whether any instruction has a place in the roofline of the first `sides` sides."""
    return any(len(_points(rows, role)) for role in SIDES[:sides])


def _points(rows: pd.DataFrame, role: str) -> pd.DataFrame:
    """`intensity`, `flops_per_s`, `bandwidth`, `time_us` and `name` of each instruction that has a place."""
    columns = {"intensity": "operational_intensity", "flops_per_s": "flops_per_s", "bandwidth": "bandwidth_bytes_per_s"}
    points = pd.DataFrame({name: rows[f"{column}_{role}"].astype("float64") for name, column in columns.items()})
    points = points.assign(time_us=rows[f"{_TIME}_{role}"].astype("float64"), name=rows["hlo_op"])
    return points[(points["intensity"] > 0) & (points["flops_per_s"] > 0) & (points["time_us"] > 0)]


def _reach(points: Sequence[pd.DataFrame]) -> tuple[float, float]:
    """The range of intensities that the roofs span: a decade beyond the markers."""
    intensities = pd.concat([one["intensity"] for one in points])
    return float(intensities.min()) / 10, float(intensities.max()) * 10


def _roofs(rows: pd.DataFrame, sides: int) -> list[tuple[float, float]]:
    """The (peak FLOP rate, peak bandwidth) of the devices of the sides, each once."""
    names = [(f"peak_flops_per_s_{role}", f"peak_bytes_per_s_{role}") for role in SIDES[:sides]]
    peaks = pd.concat([rows[list(pair)].set_axis(["flops", "bytes"], axis=1) for pair in names]).dropna()
    return list(peaks.drop_duplicates().itertuples(index=False, name=None))


def _roof(peaks: tuple[float, float], reach: tuple[float, float]) -> go.Scatter:
    flops, moved = peaks
    corners = sorted({reach[0], flops / moved, max(reach[1], 10 * flops / moved)})
    return go.Scatter(
        x=corners,
        y=[min(flops, moved * intensity) for intensity in corners],
        mode="lines",
        line={"color": style.NEUTRAL, "width": 2, "dash": "dot"},
        name=f"Peak {format_value(flops, 'FLOP/s')}, {format_value(moved, 'bytes/s')}",
        hoverinfo="skip",
    )


def _arrows(ours: pd.DataFrame, theirs: pd.DataFrame) -> go.Scatter:
    """An arrow for each instruction that both sides show."""
    both = ours.join(theirs.add_suffix("_after"), how="inner")
    ends = [
        [value for start, end in zip(both[name], both[f"{name}_after"], strict=True) for value in (start, end, None)]
        for name in ("intensity", "flops_per_s")
    ]
    return go.Scatter(
        x=ends[0],
        y=ends[1],
        mode="lines+markers",
        line={"color": style.NEUTRAL, "width": 1.5},
        marker={"symbol": "arrow", "angleref": "previous", "size": [0, 12, 0] * len(both), "color": style.NEUTRAL},
        showlegend=False,
        hoverinfo="skip",
    )


def _markers(side: Side, points: pd.DataFrame, largest_us: float) -> go.Scatter:
    hover = [
        points["name"].map(style.wrap_text),
        points["time_us"].map(format_time_us),
        points["flops_per_s"].map(lambda value: format_value(value, "FLOP/s")),
        points["bandwidth"].map(lambda value: format_value(value, "bytes/s")),
    ]
    return go.Scatter(
        x=points["intensity"],
        y=points["flops_per_s"],
        mode="markers",
        name=side_label(side),
        customdata=np.column_stack(hover),
        marker={
            "symbol": side_symbol(side),
            "color": side_colour(side),
            "opacity": 0.65,
            "size": points["time_us"],
            "sizemode": "area",
            "sizeref": 2 * largest_us / LARGEST_MARKER**2,
            "sizemin": 5,
        },
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} per execution<br>%{customdata[2]}"
        f"<br>%{{customdata[3]}}<extra>{side.role}</extra>",
    )
