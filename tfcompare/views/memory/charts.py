"""Charts of memory: what is allocated over time, and what it consists of at the peak."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

from tfcompare.compare.side import Side
from tfcompare.compare.stats.verdict import SMALLEST_SIZE
from tfcompare.schema import SIDES
from tfcompare.text import middle_ellipsis
from tfcompare.units import MISSING, format_bytes, format_percent, format_percent_change, format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import Quantity, side_colour, side_label, side_symbol
from tfcompare.views.icicles import change_colours

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Align = Literal["time", "step"]
Axis = Literal["time", "share"]
Lines = Sequence[tuple[Side, "pd.DataFrame"]]
"""Runs, each with the events returned by `curve.line_of`; runs without rows are not drawn."""

LEVELS = {
    "in_use_bytes": ("in use", "the memory in use", "in use"),
    "heap_bytes": ("heap", "the heap", "on the heap"),
    "stack_bytes": ("stack", "the stack", "reserved for the stack"),
    "free_bytes": ("free", "the free memory", "free"),
    "fragmentation": ("fragmentation", "fragmentation", "fragmentation"),
}
"""What each level of a timeline is called as a choice, in a sentence, and after "memory"."""

PEAKS = {"free_bytes": "minimum"}
"""The word for the marked event if it is not a peak."""

PERCENT = style.Scale("%", 0.01)
STACKED = {"stack_bytes": ("stack", "#7B5FD9"), "heap_bytes": ("heap", "#0A9A8C"), "free_bytes": ("free", "#8C96A3")}
PANEL = 0.25
"""Share of the height for the fragmentation panel below the main one."""

GAP = 0.07
MAX_HEADROOM = 2.0
"""The axis ends at this many times the most memory in use: more free memory would leave the rest too thin."""

LABEL_LENGTH = 36
NAME_LENGTH = 80
"""Longer names are shortened in hover texts; the CSV files have them in full."""


BAND_OPACITY = 0.25
TILE_LENGTH = 24

LIVE = Quantity("memory at the peak", "bytes", "less memory", "more memory")


def typical_step(steps: Lines, level: str, axis: Axis) -> go.Figure:
    """One level over one step of each run: the median as a line, from the lowest to the highest as a band.

    The frames are those of `curve.typical_step`; those without rows are not drawn. With the axis
    `share`, both steps are drawn equally long.
    """
    shown = [(side, frame) for side, frame in steps if len(frame)]
    scale = _scale([frame["high"] for _, frame in shown], level)
    counts = dict.fromkeys(f"{frame['steps'].iloc[0]:,}" for _, frame in shown)
    several = f"line: median of {' and '.join(counts)} steps; band: lowest to highest"
    subtitle = "" if list(counts) == ["1"] else several
    result = style.figure(f"{level_title(level)} in one typical step", subtitle, height=370, legend_rows=len(shown))
    clock = style.time_scale(float(frame["time_us"].max()) for _, frame in shown)
    title = f"Time since the step's start ({clock.unit})" if axis == "time" else "Share of the step (%)"
    for side, frame in shown:
        x = clock.of(frame["time_us"]) if axis == "time" else 100 * frame["share"].to_numpy()
        for trace in _band(side, x, frame, scale):
            result.add_trace(trace)
        best = frame["median"].min() if level == "free_bytes" else frame["median"].max()
        texts = frame[["median", "low", "high"]].map(lambda value: _value(value, level)).to_numpy()
        hover = "%{customdata[0]}, %{customdata[1]} to %{customdata[2]}"
        name = f"{side_label(side)}, typical {PEAKS.get(level, 'peak')} {_value(best, level)}"
        result.add_trace(_line(side, x, scale.of(frame["median"]), hover, texts).update(name=name))
    result.layout.legend.tracegroupgap = 0
    result.update_layout(hovermode="x")
    result.update_xaxes(title_text=title, tickformat="~r", rangemode="tozero")
    result.update_yaxes(title_text=_axis_title(level, scale), tickformat="~r", rangemode=_range_mode(level))
    _leave_headroom(result, max((float(scale.of(frame["high"]).max()) for _, frame in shown), default=0.0), level)
    result.layout.margin.l = style.WIDE_AXIS_PIXELS
    return result


def _band(side: Side, x: NDArray[np.float64], frame: pd.DataFrame, scale: style.Scale) -> list[go.Scatter]:
    """An area from the lowest to the highest level."""
    line, colour = {"width": 0, "shape": "hv"}, f"rgba{(*hex_to_rgb(side_colour(side)), BAND_OPACITY)}"
    edge = partial(go.Scatter, mode="lines", line=line, legendgroup=side.role, showlegend=False, hoverinfo="skip")
    place, low, high = map(_as_float32, (x, scale.of(frame["low"]), scale.of(frame["high"])))
    return [edge(x=place, y=low), edge(x=place, y=high, fill="tonexty", fillcolor=colour)]


def timeline(levels: Lines, fragmentation: Lines, level: str, align: Align) -> go.Figure:
    """One level of both runs' memory over time as step lines, with the peaks marked.

    Fragmentation is below, on the same time axis, unless it is the level or `fragmentation` is empty. Hovering shows
    the details of each event.
    """
    shown = [(side, frame) for side, frame in levels if len(frame)]
    has_panel = level != "fragmentation" and any(len(frame) for _, frame in fragmentation)
    scale = _scale([frame[level] for _, frame in shown], level)
    subtitle = "from the first event of each run; hover for details"
    if align == "step":
        outside = any(frame["position"].min() < 1 for _, frame in shown)
        subtitle = "each step is drawn equally long" + ("; left of 1: before the first step" if outside else "")
    height = 470 if has_panel else 370
    result = style.figure(f"{level_title(level)} over time", subtitle, height=height, legend_rows=len(shown))
    result.layout.legend.tracegroupgap = 0
    result.update_layout(hovermode="x", hoverdistance=-1)  # show the nearest event of both runs
    clock = _time_axis(result, [*shown, *fragmentation], align)
    for side, frame in shown:
        line = _line(side, clock.of(frame["position"]), scale.of(frame[level]), _DETAILS, _details(frame))
        peak = _value(float(frame.loc[frame["is_peak"], level].iloc[0]), level)
        result.add_trace(line.update(name=f"{side_label(side)}, {PEAKS.get(level, 'peak')} {peak}"))
    _mark_peaks(result, shown, level, clock, scale)
    result.update_yaxes(title_text=_axis_title(level, scale), tickformat="~r", rangemode=_range_mode(level))
    result.layout.margin.l = style.WIDE_AXIS_PIXELS
    if has_panel:
        _add_panel(result, fragmentation, clock)
    return result


def level_title(level: str) -> str:
    """What titles call a level."""
    return "Fragmentation" if level == "fragmentation" else f"Memory {LEVELS[level][2]}"


def _axis_title(level: str, scale: style.Scale) -> str:
    return "Fragmentation (%)" if level == "fragmentation" else f"{LEVELS[level][2].capitalize()} ({scale.unit})"


def _range_mode(level: str) -> str:
    return "normal" if level == "free_bytes" else "tozero"


def _scale(levels: Sequence[pd.Series], level: str) -> style.Scale:
    if level == "fragmentation":
        return PERCENT
    largest = max((float(values.max()) for values in levels), default=0.0)
    return style.Quantity("memory", "bytes", "", "").scale([largest])


def _time_axis(result: go.Figure, lines: Lines, align: Align) -> style.Scale:
    """Set the axis title; returns the unit of positions."""
    if align == "step":
        result.update_xaxes(title_text="Step, by position", tickformat="~r")
        return style.Scale("", 1.0)
    clock = style.time_scale(float(frame["position"].max()) for _, frame in lines if len(frame))
    result.update_xaxes(title_text=f"Time since the first event ({clock.unit})", tickformat="~r", rangemode="tozero")
    return clock


def _line(side: Side, x: Any, y: Any, template: str, customdata: Any = None) -> go.Scatter:
    return go.Scatter(
        name=side_label(side),
        legendgroup=side.role,
        x=_as_float32(x),
        y=_as_float32(y),
        mode="lines",
        line={"color": side_colour(side), "width": 1.5, "shape": "hv"},
        customdata=customdata,
        hovertemplate=f"{side.role}: {template}<extra></extra>",
    )


def _as_float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Screen coordinates in half the bytes; hover texts use the exact values."""
    return values.astype(np.float32)


_DETAILS = (
    "<b>%{customdata[0]} of %{customdata[1]}</b>, requested %{customdata[2]}%{customdata[3]}"
    "<br>in use %{customdata[4]}: stack %{customdata[5]}, heap %{customdata[6]}"
    "<br>free %{customdata[7]}, fragmentation %{customdata[8]}<br>step number %{customdata[9]}, at %{customdata[10]}"
)
"""Hover text of each event: the fields of the TensorFlow guide, in its order."""


def _details(frame: pd.DataFrame) -> list[list[str]]:
    """The fields of `_DETAILS` for each event."""
    sizes = ("allocation_bytes", "requested_bytes", "in_use_bytes", "stack_bytes", "heap_bytes", "free_bytes")
    allocated, requested, *levels = ([format_bytes(size) for size in frame[name].tolist()] for name in sizes)
    what = []  # the op and what it allocated, each on its own line if known
    for op, *texts in zip(*(frame[n].tolist() for n in ("op_name", "region_type", "data_type", "shape")), strict=True):
        lines = filter(None, (op, " · ".join(filter(None, texts))))
        what.append("".join(f"<br>{style.safe(middle_ellipsis(text, NAME_LENGTH))}" for text in lines))
    shares, times = map(format_percent, frame["fragmentation"].tolist()), map(format_time_us, frame["time_us"].tolist())
    steps = [f"{step}" if isinstance(step, int) else MISSING for step in frame["step"].tolist()]
    columns = (frame["event"].tolist(), allocated, requested, what, *levels, shares, steps, times)
    return [list(texts) for texts in zip(*columns, strict=True)]


def _value(value: float, level: str) -> str:
    return format_percent(value) if level == "fragmentation" else format_bytes(value)


def _mark_peaks(result: go.Figure, lines: Lines, level: str, clock: style.Scale, scale: style.Scale) -> None:
    """A marker with its value at each run's peak; if two are close, the later run's label is below its marker."""
    peaks = [(side, frame[frame["is_peak"]]) for side, frame in lines]
    points = [(side, clock.of(peak["position"])[0], scale.of(peak[level])[0]) for side, peak in peaks if len(peak)]
    right = max((float(clock.of(frame["position"]).max()) for _, frame in lines), default=0.0)
    top = max((float(scale.of(frame[level]).max()) for _, frame in lines), default=0.0)
    for number, (side, x, y) in enumerate(points):
        is_close = any(abs(y - other) < 0.1 * top and abs(x - at) < 0.4 * right for _, at, other in points[:number])
        place = f"{'bottom' if is_close else 'top'} {'left' if x > right / 2 else 'right'}"
        result.add_trace(peak_marker(side, (x, y), _value(y * scale.size, level), place))
    _leave_headroom(result, top, level)


def peak_marker(side: Side, at: tuple[float, float], text: str, place: str) -> go.Scatter:
    """A marker of a run's peak with its value; `place` is Plotly's `textposition`."""
    return go.Scatter(
        x=[at[0]],
        y=[at[1]],
        mode="markers+text",
        marker={"color": side_colour(side), "symbol": side_symbol(side), "size": 11, "line": {"width": 1}},
        text=[f"<b>{text}</b>"],
        textposition=place,
        cliponaxis=False,
        legendgroup=side.role,
        showlegend=False,
        hoverinfo="skip",
    )


def _leave_headroom(result: go.Figure, top: float, level: str) -> None:
    """End the axis a little above the highest level; free memory is far from 0, so its axis is not changed."""
    if level != "free_bytes" and top > 0:
        result.update_yaxes(range=[0, 1.12 * top])


def _add_panel(result: go.Figure, fragmentation: Lines, clock: style.Scale) -> None:
    """Add the fragmentation in a panel below, on the same time axis."""
    for side, frame in fragmentation:
        if len(frame):
            texts = [format_percent(share) for share in frame["fragmentation"].tolist()]
            heights = PERCENT.of(frame["fragmentation"])
            line = _line(side, clock.of(frame["position"]), heights, "fragmentation %{text}").update(text=texts)
            result.add_trace(line.update(yaxis="y2", showlegend=False))
    result.layout.yaxis.domain = [PANEL + GAP, 1]
    result.layout.xaxis.anchor = "y2"
    axis = {"domain": [0, PANEL], "title": {"text": "Fragmentation (%)"}, "rangemode": "tozero"}
    result.layout.yaxis2 = axis | {"tickformat": "~r", "automargin": True, "nticks": 4}


def memory_composition(side: Side, frame: pd.DataFrame, align: Align) -> go.Figure:
    """Stack, heap and free memory of one run over time, stacked."""
    capacity = float(frame[list(STACKED)].sum(axis=1).max())
    top = min(capacity, MAX_HEADROOM * float(frame["in_use_bytes"].max())) or capacity
    scale = style.Quantity("memory", "bytes", "", "").scale([top])
    title = f"Stack, heap and free memory: {style.safe(middle_ellipsis(side.name, LABEL_LENGTH))}"
    is_cut = "; the axis ends below, so that what is in use can be seen" if top < capacity else ""
    result = style.figure(title, f"of {format_bytes(capacity)}{is_cut}", height=320)
    clock = _time_axis(result, [(side, frame)], align)
    for level, (name, colour) in STACKED.items():
        result.add_scatter(
            name=name,
            x=_as_float32(clock.of(frame["position"])),
            y=_as_float32(scale.of(frame[level])),
            stackgroup="memory",
            mode="lines",
            line={"width": 0.5, "color": colour, "shape": "hv"},
            text=frame[level].map(format_bytes),
            hovertemplate=f"{name} %{{text}}<extra></extra>",
        )
    result.update_layout(hovermode="x unified")
    result.update_yaxes(title_text=f"Memory ({scale.unit})", tickformat="~r", range=[0, top / scale.size])
    return result


def peak_treemap(tree: pd.DataFrame, sides: Sequence[Side], *, by: str) -> go.Figure:
    """What runs have allocated at their peaks, on one scale: area is bytes; of two runs, colour is the change.

    `tree` is the result of `tools.memory.peak_tree`; `by` names its groups (`name scope`).
    """
    alone = len(sides) == 1
    title = f"Live at the peak{'' if alone else ' of each run'}, by {by}"
    subtitle = "area: bytes" if alone else "area: bytes, both runs on one scale; colour: change"
    result = style.figure(title, subtitle, height=460, legend_rows=0, uniformtext={"minsize": 9, "mode": "hide"})
    titles = {role: side_label(side) for role, side in zip(SIDES, sides, strict=False)}
    changes: list[str] = [""] * len(tree)
    marker: dict[str, object] = {"colors": [style.NEUTRAL] * len(tree)}
    if not alone:
        before, after = tree["baseline_bytes"], tree["candidate_bytes"]
        counted = after.where((after - before).abs() >= SMALLEST_SIZE * before, before)  # else the same
        changes, marker = _changes(tree), change_colours(before.to_numpy(), counted.to_numpy(), "memory")
    return result.add_treemap(
        ids=tree["node"],
        parents=tree["parent"],
        labels=[titles.get(label) or style.safe(middle_ellipsis(label, TILE_LENGTH)) for label in tree["label"]],
        values=tree["bytes"],
        branchvalues="total",
        sort=False,
        tiling={"pad": 2},
        texttemplate="%{label}<br>%{customdata[1]}",
        textfont={"color": "white"},
        pathbar={"visible": True, "thickness": 22},
        customdata=np.column_stack([_names(tree, titles), tree["bytes"].map(format_bytes), changes]),
        hovertemplate=f"%{{customdata[0]}}<br>%{{customdata[{1 if alone else 2}]}}<extra></extra>",
        marker=marker,
    )


def _names(tree: pd.DataFrame, titles: dict[str, str]) -> list[str]:
    """The full name of each tile, and its details."""
    names = [titles.get(what) or style.safe(what) for what in tree["what"]]
    details = (f"<br>{style.safe(detail)}" if detail else "" for detail in tree["detail"])
    return [f"<b>{name}</b>{detail}" for name, detail in zip(names, details, strict=True)]


def _changes(tree: pd.DataFrame) -> list[str]:
    """Both sides of each tile, and the change."""
    texts = []
    for before, after in zip(tree["baseline_bytes"], tree["candidate_bytes"], strict=True):
        if before == 0 or after == 0:
            change = "only the candidate has it" if before == 0 else "only the baseline has it"
        else:
            change = format_percent_change(after / before)
        texts.append(f"baseline {format_bytes(before)}, candidate {format_bytes(after)}: {change}")
    return texts
