"""Charts of the parts of the average step, and waterfalls of its change by part or by op."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.fused_rows import row_name
from tfcompare.compare.side import Side
from tfcompare.schema import STEP_PARTS, STEPS
from tfcompare.text import middle_ellipsis
from tfcompare.units import MISSING, format_delta, format_percent, format_percent_change, format_time_us
from tfcompare.views import chart_style as downsampling
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import side_colour, side_label
from tfcompare.views.steps import charts as slow_steps

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from tfcompare.compare.attribution import Waterfall

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
PATTERNS = {"added": "/", "removed": "x", "no op running": "."}
"""Hatching of bars that only one side has, and of time in which no op was running."""

UNEXPLAINED = style.BASELINE_COLOUR
"""Colour of time in which no op was running, which is neither better nor worse."""

TRUNCATE_FROM = 0.5
"""The axis does not begin at 0 if the lowest value is at least this share of the highest: changes would be too thin."""

Colours = tuple[str, str]
"""The colours of less and of more time; `verdicts.colours_of_change` returns them for a verdict."""
VERDICT_COLOURS: Colours = (style.BETTER, style.WORSE)

NAME_LENGTH, NARROW_NAME_LENGTH = 72, 48
TEXT_MARGIN, NARROW_TEXT_MARGIN = 0.34, 0.95
"""The room for text beside the longest bar, as a share of that bar."""


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


def step_waterfall(
    waterfall: Waterfall, sides: tuple[Side, Side], colours: Colours = VERDICT_COLOURS, *, narrow: bool = False
) -> go.Figure:
    """Waterfall from the baseline's average step to the candidate's, by part. `waterfall` has at least the two ends.

    Parts have short names, which are on the left of their bars. `narrow`: for a page like that of a phone.
    """
    result, labels = _waterfall(waterfall, sides, ("Average step", "part"), colours, narrow=narrow)
    style.label_rows(result, labels, style.bar_offsets()[0][0])
    return result


def part_waterfall(
    waterfall: Waterfall,
    sides: tuple[Side, Side],
    label: str,
    colours: Colours = VERDICT_COLOURS,
    *,
    narrow: bool = False,
) -> go.Figure:
    """Waterfall from the baseline's average time of one part of the step to the candidate's, by op. `label` names the
    part; `narrow` is as above."""
    what = "factor" if (waterfall.moves["kind"] == "factor").any() else "op"
    result, labels = _waterfall(waterfall, sides, (label, what), colours, narrow=narrow)
    style.name_rows(result, labels)
    return result


def _waterfall(
    waterfall: Waterfall, sides: tuple[Side, Side], names: tuple[str, str], colours: Colours, *, narrow: bool
) -> tuple[go.Figure, list[str]]:
    """The figure, and the label of each row."""
    about, unit = names
    moves = waterfall.moves.iloc[:0] if waterfall.is_empty else waterfall.moves
    levels = waterfall.levels_us[: len(moves) + 1]
    scale = style.time_scale([*levels, waterfall.candidate_us])
    low, high = _limits([*levels, waterfall.baseline_us, waterfall.candidate_us])
    margin, letters = (NARROW_TEXT_MARGIN, NARROW_NAME_LENGTH) if narrow else (TEXT_MARGIN, NAME_LENGTH)
    ends = tuple(map(format_time_us, (waterfall.baseline_us, waterfall.candidate_us)))
    result = style.figure(
        f"{about} by {unit}: {ends[0]} → {ends[1]}",
        "; ".join(_notes(moves, low)),
        height=style.rows_height(len(moves) + 2),
        legend_rows=0,
        showlegend=False,
        barmode="overlay",
    )
    rows = np.arange(len(moves) + 2, dtype=np.float64) + style.bar_offsets()[0][0]
    result.add_trace(_connectors(levels / scale.size, rows))
    for side, time_us, row in zip(sides, (levels[0], waterfall.candidate_us), (rows[0], rows[-1]), strict=True):
        result.add_trace(_end_bar(side, time_us, row, (low, scale)))
    if len(moves):
        bars = _move_bars(moves, levels, rows[1:-1], scale)
        result.add_trace(bars.update(marker_color=_colours_of(moves, colours)))
    what = "Wall time, mean" if unit == "op" else "Mean"
    result.update_xaxes(
        title_text=f"{what} over the included steps ({scale.unit})",
        range=[low / scale.size, (high + margin * (high - low)) / scale.size],
        tickformat="~r",
        zeroline=bool(low < 0),
    )
    ends_of = [side.role for side in sides]
    each = zip(moves["name"], moves["detail"], moves["kind"], strict=True)
    labels = [row_name(str(name), str(of)) if kind == MATCHED else str(name) for name, of, kind in each]
    parts = style.shorten_distinct(labels, letters)
    return result, [ends_of[0], *parts, ends_of[1]]


def _limits(levels: Sequence[float]) -> tuple[float, float]:
    """(where the axis begins, the highest level)."""
    low, high = min(levels), max(levels)
    if low < TRUNCATE_FROM * high or high == low:
        return min(0.0, low), high or 1.0
    return max(low - 0.25 * (high - low), 0.0), high


def _notes(moves: pd.DataFrame, low: float) -> list[str]:
    notes = [] if len(moves) else ["no part changed"]
    notes += ["hatched: only one side has it"] if moves["kind"].isin(["added", "removed"]).any() else []
    notes += ["dotted: no op was running"] if (moves["kind"] == "no op running").any() else []
    notes += ["the axis does not begin at 0"] if low > 0 else []
    return [*notes, "below 0, since each factor is weighed by the mean of the other"] if low < 0 else notes


def _connectors(levels: NDArray[np.float64], rows: NDArray[np.float64]) -> go.Scatter:
    """Dotted lines from the end of each bar to the start of the next."""
    x = [value for level in levels for value in (level, level, None)]
    y = [value for above, below in pairwise(rows) for value in (above, below, None)]
    return go.Scatter(
        x=x, y=y, mode="lines", line={"color": style.BASELINE_COLOUR, "width": 1, "dash": "dot"}, opacity=0.6,
        hoverinfo="skip",
    )  # fmt: skip


def _end_bar(side: Side, time_us: float, row: float, axis: tuple[float, style.Scale]) -> go.Bar:
    low, scale = axis
    begin = max(low, 0.0)
    return go.Bar(
        orientation="h", base=[begin / scale.size], x=[(time_us - begin) / scale.size], y=[row],
        width=style.bar_offsets()[1], marker={"color": side_colour(side)},
        text=[f"<b>{format_time_us(time_us)}</b>"], hovertext=[f"{side_label(side)}<br>mean {format_time_us(time_us)}"],
        hoverinfo="text", **_OUTSIDE,
    )  # fmt: skip


_OUTSIDE: dict[str, Any] = {**style.BESIDE_BAR, "textangle": 0}


def _move_bars(
    moves: pd.DataFrame, levels: NDArray[np.float64], rows: NDArray[np.float64], scale: style.Scale
) -> go.Bar:
    """The moves as bars, each starting at the lower of its two levels, so that its text is on its right."""
    lower, higher = np.minimum(levels[:-1], levels[1:]), np.maximum(levels[:-1], levels[1:])
    texts = [_text(move) for _, move in moves.iterrows()]
    return go.Bar(
        orientation="h", base=lower / scale.size, x=(higher - lower) / scale.size, y=rows, width=style.bar_offsets()[1],
        marker={
            "pattern": {"shape": [PATTERNS.get(k, "") for k in moves["kind"]], "size": 6, "fillmode": "replace"},
        },
        text=texts,
        customdata=np.column_stack([
            moves["name"].map(style.wrap_text), moves["detail"].map(style.wrap_text), texts,
            moves["baseline_us"].map(format_time_us), moves["candidate_us"].map(format_time_us),
        ]),
        hovertemplate=(
            "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}"
            "<br>baseline %{customdata[3]}<br>candidate %{customdata[4]}<extra></extra>"
        ), **_OUTSIDE,
    )  # fmt: skip


def _colours_of(moves: pd.DataFrame, colours: Colours) -> list[str]:
    less, more = colours
    found = np.where(moves["delta_us"] < 0, less, more)
    return [str(c) for c in np.where(moves["kind"] == "no op running", UNEXPLAINED, found)]


def _text(move: pd.Series) -> str:
    delta = float(move["delta_us"])
    if delta == 0:
        return "unchanged"
    sign = "▼" if delta < 0 else "▲"
    ours, theirs = move["baseline_us"], move["candidate_us"]
    why = {"added": "added", "removed": "removed", "factor": move["detail"]}.get(move["kind"], "")
    if not why and ours > 0 and theirs == theirs:
        why = format_percent_change(theirs / ours)
    return f"{sign} {format_delta(delta, 'µs')}" + (f" ({why})" if why else "")
