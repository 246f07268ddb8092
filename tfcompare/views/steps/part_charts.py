"""Charts of the parts of the average step, and waterfalls of its change by part or by op."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.fused_rows import row_name
from tfcompare.compare.side import Side
from tfcompare.schema import SIDES, STEP_PARTS, STEPS
from tfcompare.text import middle_ellipsis
from tfcompare.units import MISSING, format_delta, format_percent, format_percent_change, format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import side_colour, side_label
from tfcompare.views.steps import charts

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
_OUTSIDE = {**style.BESIDE_BAR, "textangle": 0}
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
    spread = ["" if text == MISSING else f" ± {text}" for text in shown["std_us_baseline"].map(format_time_us)]
    marker = {"color": [PART_COLOURS.get(part, OTHER_HOSTS_COLOUR) for part in shown["part"]]}
    bars = go.Bar(orientation="h", x=times / scale.size, y=np.arange(len(shown)), text=texts, marker=marker)
    hover = "%{customdata[1]}%{customdata[2]}<extra></extra>"
    template = f"<b>%{{customdata[0]}}</b><br>{style.safe(side.name)}<br>{hover}"
    texts_on_hover = np.column_stack([shown["label"], texts, spread])
    result.add_trace(bars.update(customdata=texts_on_hover, hovertemplate=template, **_OUTSIDE))
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


def parts_of_steps(side: Side, steps: pd.DataFrame, top_us: float | None = None) -> go.Figure:
    """Every step of one run by its parts, over its position: bars, or areas if bars would be too thin.

    `steps` has one row per step in order, with the columns of `schema.STEPS`. `top_us` is where the axis ends, to give
    two charts the same scale; by default it fits the steps.
    """
    parts = [part for part in STEP_PARTS if len(steps) and (steps[part] > 0).any()]
    end = charts.axis_end([steps], "duration_us") if len(steps) else None
    end = end if top_us is None else top_us
    scale = style.time_scale([end or float(steps["duration_us"].max())] if len(steps) else [])
    areas = len(steps) > style.MAX_MARKERS
    notes = ["" if areas or steps["included"].all() else EXCLUDED_NOTE, charts.BEYOND_NOTE if end else ""]
    notes.append(style.note(len(steps), style.MAX_AREA_POINTS))
    title = f"Every step by part: {style.safe(middle_ellipsis(side.name, 40))}"
    rows = max(2 * bool(end), sum(map(bool, notes)) - 1)
    look = {"showlegend": True, "barmode": "stack", "barcornerradius": 0, "bargap": 0.15}
    result = style.figure(title, "<br>".join(filter(None, notes)), height=320, legend_rows=rows, **look)
    positions = style.steps_to_draw(steps["duration_us"].to_numpy(np.float64), points=style.MAX_AREA_POINTS)
    hover, drawn = _step_hover(steps, positions), steps.iloc[positions]
    for part in parts:
        result.add_trace(_part_trace(part, drawn, scale, hover, areas).update(x=positions + 1))
    legend_below(result, len(parts))
    result.update_xaxes(
        title_text="Step, by position", tickformat=",d", range=[0.4, max(len(steps), MIN_STEPS_SHOWN) + 0.6]
    )
    result.update_yaxes(title_text=f"Time ({scale.unit})", rangemode="tozero", tickformat="~r")
    if end and (edge := charts.beyond_bar_marks(steps, "duration_us", end, scale)):
        result.add_trace(edge)
        result.update_yaxes(range=[0, end / scale.size])
    return result


def _step_hover(steps: pd.DataFrame, positions: NDArray[np.int64]) -> list[list[str]]:
    status = np.where(steps["included"].astype(bool), "", "<br>excluded")
    status = np.where(charts.is_slow(steps), charts.HOVER, status)[positions]
    rows = steps.iloc[positions]
    texts = (rows["step"].astype(str), rows["duration_us"].map(format_time_us), rows["host"].map(style.safe), status)
    return [list(row) for row in zip(*texts, strict=True)]


def _part_trace(
    part: str, steps: pd.DataFrame, scale: style.Scale, hover: list[list[str]], as_area: bool
) -> go.Scatter | go.Bar:
    label, times, colour = STEPS.column(part).label, steps[part], PART_COLOURS[part]
    share = (times / steps["duration_us"]).where(steps["duration_us"] > 0, 0.0)
    texts = [[*row, format_time_us(t), format_percent(s)] for row, t, s in zip(hover, times, share, strict=True)]
    template = (
        f"step %{{x}} (number %{{customdata[0]}})<br><b>{label} %{{customdata[4]}}</b> (%{{customdata[5]}})"
        " of %{customdata[1]}<br>host %{customdata[2]}%{customdata[3]}<extra></extra>"
    )
    if as_area:
        line = {"width": 0, "color": colour}
        trace = go.Scatter(mode="lines", line=line, stackgroup="parts", fillcolor=colour)
    else:
        pattern = {"shape": PART_PATTERNS.get(part, ""), "size": 6, "solidity": 0.2, "fillmode": "overlay"}
        opacity = np.where(steps["included"].to_numpy(dtype=bool), 1.0, EXCLUDED_OPACITY).tolist()
        trace = go.Bar(marker={"color": colour, "pattern": pattern | {"fgcolor": "#FFFFFF"}, "opacity": opacity})
    return trace.update(name=label, y=scale.of(times), customdata=texts, hovertemplate=template)


def step_waterfall(
    waterfall: Waterfall, sides: tuple[Side, Side], colours: Colours = VERDICT_COLOURS, *, narrow: bool = False
) -> go.Figure:
    """Waterfall from the baseline's average step to the candidate's, by part. `waterfall` has at least the two ends.

    Parts have short names, which are on the left of their bars. `narrow`: for a page like that of a phone.
    """
    result, labels = _waterfall(waterfall, sides, ("Average step", "part"), colours, narrow=narrow)
    result.update_xaxes(title_text="")  # its bars have units, and what they are means over is said beside the title
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
    title = f"{about} by {unit}: {format_time_us(waterfall.baseline_us)} → {format_time_us(waterfall.candidate_us)}"
    notes, height = _notes(moves, low), style.rows_height(len(moves) + 2)
    result = style.figure(title, notes, height=height, legend_rows=0, showlegend=False, barmode="overlay")
    rows = np.arange(len(moves) + 2, dtype=np.float64) + style.bar_offsets()[0][0]
    x = [value for level in levels / scale.size for value in (level, level, None)]
    y = [value for above, below in pairwise(rows) for value in (above, below, None)]  # from bar to bar
    line = {"color": style.BASELINE_COLOUR, "width": 1, "dash": "dot"}
    result.add_trace(go.Scatter(x=x, y=y, mode="lines", line=line, opacity=0.6, hoverinfo="skip"))
    for side, time_us, row in zip(sides, (levels[0], waterfall.candidate_us), (rows[0], rows[-1]), strict=True):
        result.add_trace(_end_bar(side, time_us, row, (low, scale)))
    if len(moves):
        result.add_trace(_move_bars(moves, levels, rows[1:-1], scale, colours))
    what = f"{'Wall time, mean' if unit == 'op' else 'Mean'} over the included steps ({scale.unit})"
    result.update_xaxes(title_text=what, tickformat="~r", zeroline=bool(low < 0))
    result.update_xaxes(range=[low / scale.size, (high + margin * (high - low)) / scale.size])
    each = zip(moves["name"], moves["detail"], moves["kind"], strict=True)
    labels = [row_name(str(name), str(of)) if kind == MATCHED else str(name) for name, of, kind in each]
    return result, [sides[0].role, *style.shorten_distinct(labels, letters), sides[1].role]


def _limits(levels: Sequence[float]) -> tuple[float, float]:
    """(where the axis begins, the highest level)."""
    low, high = min(levels), max(levels)
    if low < TRUNCATE_FROM * high or high == low:
        return min(0.0, low), high or 1.0
    return max(low - 0.25 * (high - low), 0.0), high


def _notes(moves: pd.DataFrame, low: float) -> str:
    notes = [] if len(moves) else ["no part changed"]
    notes += ["hatched: only one side has it"] if moves["kind"].isin(["added", "removed"]).any() else []
    notes += ["dotted: no op was running"] if (moves["kind"] == "no op running").any() else []
    notes += ["the axis does not begin at 0"] if low > 0 else []
    notes += ["below 0, since each factor is weighed by the mean of the other"] if low < 0 else []
    return "; ".join(notes)


def _end_bar(side: Side, time_us: float, row: float, axis: tuple[float, style.Scale]) -> go.Bar:
    low, scale = axis
    begin, mean = max(low, 0.0), format_time_us(time_us)
    bar = go.Bar(orientation="h", base=[begin / scale.size], x=[(time_us - begin) / scale.size], y=[row])
    bar.update(text=[f"<b>{mean}</b>"], hovertext=[f"{side_label(side)}<br>mean {mean}"], hoverinfo="text")
    return bar.update(width=style.bar_offsets()[1], marker={"color": side_colour(side)}, **_OUTSIDE)


def _move_bars(
    moves: pd.DataFrame,
    levels: NDArray[np.float64],
    rows: NDArray[np.float64],
    scale: style.Scale,
    colours: Colours,
) -> go.Bar:
    """The moves as bars, each starting at the lower of its two levels, so that its text is on its right."""
    lower, higher = np.minimum(levels[:-1], levels[1:]), np.maximum(levels[:-1], levels[1:])
    texts = [_text(move) for _, move in moves.iterrows()]
    names = [moves[column].map(style.wrap_text) for column in ("name", "detail")]
    times = [moves[f"{side}_us"].map(format_time_us) for side in SIDES]
    template = (
        "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}"
        "<br>baseline %{customdata[3]}<br>candidate %{customdata[4]}<extra></extra>"
    )
    judged = np.where(moves["delta_us"] < 0, *colours)
    colour = np.where(moves["kind"] == "no op running", UNEXPLAINED, judged).tolist()
    pattern = {"shape": [PATTERNS.get(kind, "") for kind in moves["kind"]], "size": 6, "fillmode": "replace"}
    bars = go.Bar(orientation="h", base=lower / scale.size, x=(higher - lower) / scale.size, y=rows, text=texts)
    bars.update(width=style.bar_offsets()[1], marker={"color": colour, "pattern": pattern}, **_OUTSIDE)
    return bars.update(customdata=np.column_stack([*names, texts, *times]), hovertemplate=template)


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
