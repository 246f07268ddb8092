"""Chart of the memory of an XLA program over its program order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

from tfcompare.charts import style
from tfcompare.charts.memory import peak_marker
from tfcompare.charts.style import side_colour, side_label
from tfcompare.compare.side import Side
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    import pandas as pd

Lines = Sequence[tuple[Side, "pd.DataFrame"]]
"""Sides, each with the rows of `tools.xla_memory.over_program_order`; sides without rows are not drawn."""

SPAN_OPACITY = 0.3
CLOSE = 0.8
"""The label of a lower peak is below its marker if it has more than this share of the higher one."""


def memory_over_program_order(lines: Lines, name: str, spans: Sequence[tuple[Side, pd.Series]] = ()) -> go.Figure:
    """The live bytes of both sides in the memory of that name as lines of steps, with the peaks marked.

    Programs of different length are drawn equally long. `spans` are rows of `hlo_memory` of a buffer: a rectangle each,
    as high as the buffer is large and as long as it is live.
    """
    shown = [(side, frame) for side, frame in lines if len(frame)]
    scale = style.Quantity("memory", "bytes", "", "").scale(float(frame["live_bytes"].max()) for _, frame in shown)
    counts = " and ".join(dict.fromkeys(f"{frame['positions'].iloc[0]:,}" for _, frame in shown))
    result = style.figure(
        f"{name} over program order",
        f"live bytes after each of {counts} allocations and frees; not time",
        height=340,
        legend_rows=len(shown) + len(spans),
    )
    for side, buffer in spans:
        result.add_trace(_span(side, buffer, scale))
    for side, frame in shown:
        result.add_trace(_line(side, frame, scale))
    peaks = [(side, frame[frame["is_peak"]].iloc[0]) for side, frame in shown]
    for side, peak in peaks:
        is_below = any(CLOSE * other["live_bytes"] < peak["live_bytes"] < other["live_bytes"] for _, other in peaks)
        result.add_trace(_peak(side, peak, scale, "bottom" if is_below else "top"))
    result.update_layout(hovermode="x")
    result.layout.legend.tracegroupgap = 0
    result.update_xaxes(title_text="Share of the program order (%)", range=[0, 100])
    top = max(float(scale.of(frame["live_bytes"]).max()) for _, frame in shown)
    result.update_yaxes(title_text=f"Live ({scale.unit})", tickformat="~r", range=[0, 1.15 * top or 1.0])
    result.layout.margin.l = style.WIDE_AXIS_PIXELS
    return result


def _line(side: Side, frame: pd.DataFrame, scale: style.Scale) -> go.Scatter:
    columns = ("live_bytes", "position", "positions", "event")
    texts = [
        [format_bytes(size), f"{position:,} of {positions:,}", f": {style.wrap_text(event)}" if event else ""]
        for size, position, positions, event in zip(*(frame[name].tolist() for name in columns), strict=True)
    ]
    heights = scale.of(frame["live_bytes"]).tolist()
    return go.Scatter(
        name=f"{side_label(side)}, peak {format_bytes(int(frame['live_bytes'].max()))}",
        legendgroup=side.role,
        x=[*_begin(frame["position"], frame["positions"]), 100.0],
        y=[*heights, heights[-1]],
        mode="lines",
        line={"color": side_colour(side), "width": _width(side), "shape": "hv"},
        customdata=[*texts, texts[-1]],
        hovertemplate=f"{side.role}: %{{customdata[0]}}<br>%{{customdata[1]}}%{{customdata[2]}}<extra></extra>",
    )


def _width(side: Side) -> float:
    """A baseline is wider, so that it can be seen below an equal candidate."""
    return 3 if side.position == 0 and side.sides > 1 else 1.5


def _peak(side: Side, row: pd.Series, scale: style.Scale, above: str) -> go.Scatter:
    x = _begin(row["position"], row["positions"])
    place = f"{above} {'left' if x > 50 else 'right'}"
    return peak_marker(side, (x, row["live_bytes"] / scale.size), format_bytes(int(row["live_bytes"])), place)


def _span(side: Side, buffer: pd.Series, scale: style.Scale) -> go.Scatter:
    begin, end = (
        _begin(buffer["first_position"], buffer["positions"]),
        100 * buffer["last_position"] / buffer["positions"],
    )
    top = buffer["size_bytes"] / scale.size
    name = style.safe(str(buffer["hlo_op"]) or "unknown")
    return go.Scatter(
        name=name if side.sides == 1 else f"{name}, {side.role_in_text}",
        x=[begin, begin, end, end],
        y=[0, top, top, 0],
        fill="toself",
        fillcolor=f"rgba{(*hex_to_rgb(side_colour(side)), SPAN_OPACITY)}",
        mode="lines",
        line={"color": side_colour(side), "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )


def _begin(position: Any, positions: Any) -> Any:
    """Where the stretch after an allocation or free begins, in percent of the program."""
    return 100 * (position - 1) / positions
