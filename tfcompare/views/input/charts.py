"""Charts of the input of two runs: how long each step waits for it, and how the host produces it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.compare.side import Side
from tfcompare.schema import SIDES
from tfcompare.text import middle_ellipsis
from tfcompare.units import format_percent, format_time_us
from tfcompare.views import chart_style as downsampling
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import MAX_MARKERS, side_colour, side_label, side_symbol
from tfcompare.views.steps.charts import EXCLUDED_NOTE, Series, position_axis

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

REST_OPACITY = 0.35
BAND_OPACITY = 0.25
PANEL_NAME_LENGTH = 22


def step_times(series: Series) -> go.Figure:
    """Every step of each run as a bar in its own panel: time waiting for input below, the rest above.

    The frames have one row per step in order, with `step`, `host`, `duration_us`, `input_us` and `included`. Panels
    share the time axis.
    """
    shown = [(side, frame) for side, frame in series if len(frame)]
    tallest = [float(frame["duration_us"].max()) for _, frame in shown]
    notes = ["solid: waiting for input; pale: the rest of the step", EXCLUDED_NOTE if _has_hollow(shown) else ""]
    notes.append(downsampling.note(max((len(frame) for _, frame in shown), default=0), downsampling.MAX_AREA_POINTS))
    text, legend_rows = "<br>".join(filter(None, notes)), 3 if len(shown) > 1 else 0
    bars = {"showlegend": False, "barmode": "stack", "barcornerradius": 0, "bargap": 0.15}
    result = style.figure("Step time and input wait", text, height=350, legend_rows=legend_rows, **bars)
    result.set_subplots(1, max(len(shown), 1), shared_yaxes=True, horizontal_spacing=0.04)
    scale = style.time_scale(tallest)
    for column, (side, frame) in enumerate(shown, 1):
        result.add_traces(_step_bars(side, frame, scale), rows=1, cols=column)
        result.update_xaxes(position_axis([frame]), automargin=True, row=1, col=column)
        title = f"Time ({scale.unit})" if column == 1 else ""
        result.update_yaxes(title_text=title, rangemode="tozero", tickformat="~r", automargin=True, row=1, col=column)
        if len(shown) > 1:
            name, number = style.safe(middle_ellipsis(side.name, PANEL_NAME_LENGTH)), "" if column == 1 else column
            place = {"xref": f"x{number} domain", "yref": f"y{number} domain", "x": 0, "y": 1, "xanchor": "left"}
            text = f"<b>{side.role}</b><br>{name}"
            result.add_annotation(place, text=text, yanchor="bottom", align="left", showarrow=False)
    return result


def _has_hollow(series: Series) -> bool:
    """Whether any step is drawn as excluded; if there are very many steps, they have no markers."""
    return any(not frame["included"].all() and len(frame) <= MAX_MARKERS for _, frame in series)


def _step_bars(side: Side, frame: pd.DataFrame, scale: style.Scale) -> list[go.Bar | go.Scatter]:
    """Waiting time and the rest as stacked bars, or as areas if the bars would be too thin."""
    positions = np.arange(len(frame))
    if len(frame) > downsampling.MAX_AREA_POINTS:  # long steps and long waits are retained
        columns = [frame[name].to_numpy(np.float64) for name in ("duration_us", "input_us")]
        half = downsampling.MAX_AREA_POINTS // 2
        positions = np.union1d(*(downsampling.steps_to_draw(times, points=half) for times in columns))
    frame = frame.iloc[positions]
    rest = frame["duration_us"] - frame["input_us"]
    parts = (("waiting for input", frame["input_us"], 1.0), ("rest of the step", rest, REST_OPACITY))
    shared: dict[str, Any] = {
        "x": positions + 1,
        "customdata": _step_hover(frame),
        "hovertemplate": (
            "step %{x} (number %{customdata[0]})<br><b>waits %{customdata[1]}</b> of %{customdata[2]} "
            "(%{customdata[3]})<br>host %{customdata[4]}%{customdata[5]}<extra></extra>"
        ),
    }
    included, colour = frame["included"].to_numpy(dtype=bool), side_colour(side)
    area = {"mode": "lines", "line": {"width": 0, "color": colour}, "stackgroup": side.role}
    outline = {"color": colour, "width": np.where(included, 0, 1.5).tolist()}
    traces = []
    for name, times, opacity in parts:
        fill, y = _with_opacity(colour, opacity), scale.of(times)
        if len(frame) > MAX_MARKERS:
            traces.append(go.Scatter(name=name, y=y, fillcolor=fill, **area, **shared))
        else:
            marker = {"color": np.where(included, fill, "rgba(0,0,0,0)").tolist(), "line": outline}
            traces.append(go.Bar(name=name, y=y, marker=marker, **shared))
    return traces


def _with_opacity(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _step_hover(frame: pd.DataFrame) -> NDArray[np.object_]:
    share = (frame["input_us"] / frame["duration_us"]).where(frame["duration_us"] > 0, 0.0).map(format_percent)
    times = [frame[name].map(format_time_us) for name in ("input_us", "duration_us")]
    excluded = np.where(frame["included"], "", "<br>excluded")
    return np.column_stack([frame["step"].astype(str), *times, share, frame["host"].map(style.safe), excluded])


def input_share_per_step(series: Series) -> go.Figure:
    """The share of every step spent waiting for input, all runs on one axis.

    The frames are those of `step_times`, with `input_share`, a fraction of 1.
    """
    shown = [(side, frame) for side, frame in series if len(frame)]
    notes = [EXCLUDED_NOTE if _has_hollow(shown) else ""]
    notes.append(downsampling.note(max((len(frame) for _, frame in shown), default=0)))
    title, subtitle = "Input wait as a share of each step", " · ".join(filter(None, notes))
    result = style.figure(title, subtitle, height=340, legend_rows=len(shown), showlegend=True)
    hover = (
        "step %{x} (number %{customdata[0]})<br><b>%{customdata[3]}</b>: %{customdata[1]} of %{customdata[2]}"
        "<br>host %{customdata[4]}%{customdata[5]}"
    )
    for side, frame in shown:
        positions = downsampling.steps_to_draw(frame["input_share"].fillna(0.0).to_numpy(np.float64))
        frame = frame.iloc[positions]
        symbol, line = side_symbol(side), {"color": side_colour(side), "width": 1.5}
        marker, mode = None, "lines"
        if len(frame) <= MAX_MARKERS:
            symbols = np.where(frame["included"].to_numpy(dtype=bool), symbol, f"{symbol}-open").tolist()
            marker, mode = {"symbol": symbols, "size": 8}, "lines+markers"
        looks = {"name": side_label(side), "mode": mode, "line": line, "marker": marker}
        texts = {"customdata": _step_hover(frame), "hovertemplate": hover}
        result.add_scatter(x=positions + 1, y=frame["input_share"], **looks, **texts)
    result.update_xaxes(position_axis(frame for _, frame in shown), rangemode="tozero")
    return _with_axis_of_shares(result)


def _with_axis_of_shares(result: go.Figure) -> go.Figure:
    result.update_yaxes(title_text="Share of the step", rangemode="tozero", tickformat="~%")
    result.layout.margin.l = style.WIDE_AXIS_PIXELS
    return result


def shares_by_core(series: Series, cores: str) -> go.Figure:
    """Between which shares of each step the cores wait for input: a band for each run, with a line at their mean.

    `cores` is what they are called, devices or hosts. The frames are results of `share_by_core`.
    """
    shown = [(side, frame) for side, frame in series if len(frame)]
    most, longest = downsampling.MAX_AREA_POINTS, max((len(frame) for _, frame in shown), default=0)
    notes = [f"band: least to largest of all {cores}; line: mean"]
    notes.append(f"{most:,} of {longest:,} steps, those with the extremes among them" if longest > most else "")
    title, several = f"Input wait of the {cores} as a share of each step", len(shown) > 1
    legend = {"legend_rows": len(shown) if several else 0, "showlegend": several}
    result = style.figure(title, "<br>".join(filter(None, notes)), height=340, **legend)
    hover = (
        f"step %{{x}}: <b>%{{customdata[0]}}</b> on average of %{{customdata[3]}} {cores},<br>"
        "%{customdata[1]} to %{customdata[2]} (%{customdata[4]})"
    )
    for side, frame in shown:
        if len(frame) > most:
            ends = [frame[of].to_numpy(np.float64) for of in ("least", "largest")]
            frame = frame.iloc[np.union1d(*(downsampling.steps_to_draw(end, points=most // 2) for end in ends))]
        x, y = ([*frame[there], *frame[back][::-1]] for there, back in (("step", "step"), ("largest", "least")))
        band = {"fill": "toself", "fillcolor": _with_opacity(side_colour(side), BAND_OPACITY), "line": {"width": 0}}
        result.add_scatter(x=x, y=y, mode="lines", **band, hoverinfo="skip", showlegend=False)
        texts = [frame[name].map(format_percent) for name in ("mean", "least", "largest")]
        details = np.column_stack([*texts, frame["cores"].astype(str), frame["largest_on"].map(style.safe)])
        looks = {"name": side_label(side), "mode": "lines", "line": {"color": side_colour(side), "width": 1.5}}
        result.add_scatter(x=frame["step"], y=frame["mean"], **looks, customdata=details, hovertemplate=hover)
    result.update_xaxes(position_axis(frame for _, frame in shown))
    return _with_axis_of_shares(result)


def category_times(categories: pd.DataFrame, sides: Sequence[Side], *, per: str) -> go.Figure:
    """Self time of the input ops by category, a bar for each side that has any; categories without time are left out.

    `categories` is the result of `tools.input_ops.category_times`; `sides` are the baseline and, unless it is shown
    alone, the candidate. `per` is `step` or `run`.
    """
    columns = {role: f"self_time_us_{role}" for role, _ in zip(SIDES, sides, strict=False)}
    categories = categories[categories[list(columns.values())].fillna(0.0).sum(axis=1) > 0]
    present = [role for role, column in columns.items() if categories[column].notna().any()]
    largest = [float(categories[columns[role]].max()) for role in present]
    scale = style.time_scale(largest)
    legend = {"legend_rows": 1 + len(present) if len(sides) > 1 else 1, "showlegend": len(sides) > 1}
    subtitle = f"per {per}, sum of all threads<br>includes work ahead of time, for which no step waits"
    height = style.rows_height(len(categories), bars_in_a_row=len(sides))
    result = style.figure("Self time of input ops by category", subtitle, height=height, barmode="overlay", **legend)
    offsets, width = style.bar_offsets(len(sides))
    for role, side, below in zip(SIDES, sides, offsets, strict=False):
        if role in present:
            y = np.arange(len(categories)) + below
            result.add_trace(_category_bars(categories, role, side, scale).update(y=y, width=width))
    most = max(largest, default=0.0) / scale.size
    result.update_xaxes(range=[0, most * 1.25 or 1], tickformat="~r", title_text=f"Self time per {per} ({scale.unit})")
    style.name_rows(result, [str(name).capitalize() for name in categories["category"]])
    return result


def _category_bars(categories: pd.DataFrame, role: str, side: Side, scale: style.Scale) -> go.Bar:
    times = categories[f"self_time_us_{role}"]
    shares = categories[f"share_{role}"].map(format_percent)
    texts = [f"{format_time_us(time)} ({share})" if time else "none" for time, share in zip(times, shares, strict=True)]
    return go.Bar(
        name=side_label(side),
        orientation="h",
        x=scale.of(times),
        marker={"color": side_colour(side)},
        text=texts,
        **style.BESIDE_BAR,
        customdata=np.column_stack([categories["category"].map(style.safe), texts]),
        hovertemplate=f"<b>%{{customdata[0]}}</b><br>{side.role}: %{{customdata[1]}}<extra></extra>",
    )
