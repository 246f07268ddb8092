"""Charts of compiled programs: roofline, time by scope, and memory over the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb, sample_colorscale

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.compare.side import Side
from tfcompare.compare.work.terms import LESS_WORK, MORE_WORK
from tfcompare.schema import SIDES
from tfcompare.units import format_bytes, format_percent, format_time_us, format_value
from tfcompare.views import chart_style as style
from tfcompare.views.bars import DOTS
from tfcompare.views.chart_style import side_colour, side_label, side_symbol
from tfcompare.views.icicles import CLIP, COLOURS, NEUTRAL_TILE, change_colours, changes, icicle, log_ratio, merge_small
from tfcompare.views.memory.charts import peak_marker

MOST_MARKERS = 300
LARGEST_MARKER = 30
"""Diameter in pixels."""
_TIME = "execution_time_us"
PATTERNS = {MATCHED: "", ADDED: "/", REMOVED: "\\"}
Lines = Sequence[tuple[Side, "pd.DataFrame"]]
"""Sides, each with the rows of `tools.xla_memory.over_program_order`; sides without rows are not drawn."""

HATCHES = "rgba(255,255,255,0.35)"
SPAN_OPACITY = 0.3
CLOSE = 0.8
"""The label of a lower peak is below its marker if it has more than this share of the higher one."""


def roofline(rows: pd.DataFrame, sides: Sequence[Side]) -> go.Figure:
    """FLOP rate over operational intensity, log-log: a marker per instruction and side, an arrow from one to the other.

    `rows` are `executions.instructions` of one program; those without floating-point operations or with unknown costs
    have no place. The area of a marker is the time per execution. Lines are the roofs of the devices whose peaks are
    known. At most the `MOST_MARKERS` longest instructions are shown.
    """
    longest = rows[[f"{_TIME}_{role}" for role in SIDES]].astype("float64").max(axis=1)
    rows = rows.loc[longest.sort_values(ascending=False, kind="stable").index[:MOST_MARKERS]]
    peaks = roofs(rows, len(sides))
    title = "Roofline" if peaks else "FLOP rate by FLOP per byte"
    result = style.figure(title, "area: time per execution", height=460, legend_rows=len(sides) + len(peaks))
    points = [_points(rows, role) for role in SIDES[: len(sides)]]
    largest = max((float(one["time_us"].max()) for one in points if len(one)), default=1.0)
    intensities = pd.concat([one["intensity"] for one in points])
    for of_device in peaks:  # a decade beyond the markers
        result.add_trace(_roof(of_device, (float(intensities.min()) / 10, float(intensities.max()) * 10)))
    if len(points) == 2:
        result.add_trace(_arrows(*points))
    for side, one in zip(sides, points, strict=True):
        result.add_trace(_markers(side, one, largest or 1.0))
    result.update_xaxes(type="log", title="FLOP per byte", dtick=1, tickformat="~g")
    powers = [10.0**power for power in range(19)]
    texts = [format_value(power, "FLOP/s").replace(".00", "") for power in powers]
    result.update_yaxes(type="log", tickvals=powers, ticktext=[text.replace(".0", "") for text in texts])
    return result


def has_points(rows: pd.DataFrame, sides: int) -> bool:
    """Whether any instruction has a place in the roofline of the first `sides` sides."""
    return any(len(_points(rows, role)) for role in SIDES[:sides])


def _points(rows: pd.DataFrame, role: str) -> pd.DataFrame:
    """`intensity`, `flops_per_s`, `bandwidth`, `time_us` and `name` of each instruction that has a place."""
    columns = {"intensity": "operational_intensity", "flops_per_s": "flops_per_s", "bandwidth": "bandwidth_bytes_per_s"}
    points = pd.DataFrame({name: rows[f"{column}_{role}"].astype("float64") for name, column in columns.items()})
    points = points.assign(time_us=rows[f"{_TIME}_{role}"].astype("float64"), name=rows["hlo_op"])
    return points[(points["intensity"] > 0) & (points["flops_per_s"] > 0) & (points["time_us"] > 0)]


def roofs(rows: pd.DataFrame, sides: int) -> list[tuple[float, float]]:
    """The known (peak FLOP rate, peak bandwidth) of the devices of the first `sides` sides, each once."""
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


def time_icicle(tree: pd.DataFrame, *, by: str, alone: bool) -> go.Figure:
    """Icicle chart of a program: height is `width_us`, colour the change. Added and removed parts are hatched, and
    those whose work changed as their time did dotted.

    `tree` is the result of `time_tree`; `by` names its groups (`category`). Parts too thin to see are merged. With
    `alone`, the baseline is shown without colours.
    """
    sums = [*(f"{_TIME}_{role}" for role in SIDES), "width_us"]
    nodes = merge_small(tree, tree["width_us"], sums, "\n")
    title = f"Time per execution by {by}"
    subtitle = (
        "height: the longer time of both runs; colour: change; dotted: time changed with work; hatched: in one run only"
        if not alone
        else "height: time"
    )
    result = style.figure(title, subtitle, height=460, legend_rows=0, uniformtext={"minsize": 9, "mode": "hide"})
    before, after = (nodes[f"{_TIME}_{role}"].to_numpy(np.float64) for role in SIDES)
    if alone:
        total = float(before[0]) or 1.0
        texts = [format_percent(time / total) for time in before]
        marker: dict[str, object] = {"colors": [NEUTRAL_TILE] * len(nodes)}
        template = "<b>%{customdata[1]}</b><br>%{customdata[2]}, %{customdata[0]}<extra></extra>"
    else:
        texts = changes(nodes, _TIME)
        # Plotly paints tiles with patterns black unless their colours are given one by one.
        colours = sample_colorscale(COLOURS, ((log_ratio(before, after) + CLIP) / (2 * CLIP)).tolist())
        is_alike = (nodes["work"] == MORE_WORK) & (after > before) | (nodes["work"] == LESS_WORK) & (after < before)
        shape = nodes["status"].map(PATTERNS).mask(is_alike, DOTS).tolist()
        pattern = {"shape": shape, "bgcolor": colours, "fgcolor": HATCHES, "fillmode": "replace"}
        marker = change_colours(before, after, "time") | {"colors": colours, "pattern": pattern}
        template = (
            "<b>%{customdata[1]}</b><br>change %{customdata[0]}<br>baseline %{customdata[2]}"
            "<br>candidate %{customdata[3]}<extra></extra>"
        )
    is_parent = nodes["node"].isin(nodes["parent"])
    names = nodes["label"].map(style.wrap_text).tolist()
    hover = [texts, names, *(nodes[f"{_TIME}_{role}"].map(format_time_us).tolist() for role in SIDES)]
    values = nodes["width_us"].mask(is_parent, 0.0).to_numpy(np.float64)
    tiles = icicle(nodes, values, hover, marker)
    tiles.update(branchvalues="remainder", maxdepth=-1, leaf={"opacity": 1}, hovertemplate=template)
    return result.add_trace(tiles)


def memory_over_program_order(lines: Lines, name: str, spans: Sequence[tuple[Side, pd.Series]] = ()) -> go.Figure:
    """The live bytes of both sides in the memory of that name as lines of steps, with the peaks marked.

    Programs of different length are drawn equally long. `spans` are rows of `hlo_memory` of a buffer: a rectangle each,
    as high as the buffer is large and as long as it is live.
    """
    shown = [(side, frame) for side, frame in lines if len(frame)]
    scale = style.Quantity("memory", "bytes", "", "").scale(float(frame["live_bytes"].max()) for _, frame in shown)
    counts = " and ".join(dict.fromkeys(f"{frame['positions'].iloc[0]:,}" for _, frame in shown))
    subtitle = f"live bytes after each of {counts} allocations and frees; not time"
    result = style.figure(f"{name} over program order", subtitle, height=340, legend_rows=len(shown) + len(spans))
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
    width = 3 if side.position == 0 and side.sides > 1 else 1.5  # to be seen below an equal candidate
    return go.Scatter(
        name=f"{side_label(side)}, peak {format_bytes(int(frame['live_bytes'].max()))}",
        legendgroup=side.role,
        x=[*_begin(frame["position"], frame["positions"]), 100.0],
        y=[*heights, heights[-1]],
        mode="lines",
        line={"color": side_colour(side), "width": width, "shape": "hv"},
        customdata=[*texts, texts[-1]],
        hovertemplate=f"{side.role}: %{{customdata[0]}}<br>%{{customdata[1]}}%{{customdata[2]}}<extra></extra>",
    )


def _peak(side: Side, row: pd.Series, scale: style.Scale, above: str) -> go.Scatter:
    x = _begin(row["position"], row["positions"])
    place = f"{above} {'left' if x > 50 else 'right'}"
    return peak_marker(side, (x, row["live_bytes"] / scale.size), format_bytes(int(row["live_bytes"])), place)


def _span(side: Side, buffer: pd.Series, scale: style.Scale) -> go.Scatter:
    positions = buffer["positions"]
    begin, end = _begin(buffer["first_position"], positions), 100 * buffer["last_position"] / positions
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
