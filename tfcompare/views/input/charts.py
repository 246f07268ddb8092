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
    result = style.figure(
        "Step time and input wait", "<br>".join(filter(None, notes)),
        height=350, legend_rows=3 if len(shown) > 1 else 0,
        showlegend=False, barmode="stack", barcornerradius=0, bargap=0.15,
    )  # fmt: skip
    result.set_subplots(1, max(len(shown), 1), shared_yaxes=True, horizontal_spacing=0.04)
    scale = style.time_scale(tallest)
    for column, (side, frame) in enumerate(shown, 1):
        result.add_traces(_step_bars(side, frame, scale), rows=1, cols=column)
        result.update_xaxes(position_axis([frame]), automargin=True, row=1, col=column)
        result.update_yaxes(
            title_text=f"Time ({scale.unit})" if column == 1 else "", rangemode="tozero", tickformat="~r",
            automargin=True, row=1, col=column,
        )  # fmt: skip
        if len(shown) > 1:
            _name_panel(result, column, side)
    return result


def _has_hollow(series: Series) -> bool:
    """Whether any step is drawn as excluded; if there are very many steps, they have no markers."""
    return any(not frame["included"].all() and len(frame) <= MAX_MARKERS for _, frame in series)


def _name_panel(result: go.Figure, column: int, side: Side) -> None:
    number = "" if column == 1 else str(column)
    result.add_annotation(
        text=f"<b>{side.role}</b><br>{style.safe(middle_ellipsis(side.name, PANEL_NAME_LENGTH))}",
        xref=f"x{number} domain", yref=f"y{number} domain", x=0, y=1, xanchor="left", yanchor="bottom", align="left",
        showarrow=False,
    )  # fmt: skip


def _step_bars(side: Side, frame: pd.DataFrame, scale: style.Scale) -> list[go.Bar | go.Scatter]:
    """Waiting time and the rest as stacked bars, or as areas if the bars would be too thin."""
    positions = _areas(frame) if len(frame) > MAX_MARKERS else np.arange(len(frame))
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
    if len(frame) > MAX_MARKERS:
        line = {"width": 0, "color": side_colour(side)}
        return [
            go.Scatter(
                name=name, y=scale.of(times), mode="lines", line=line, stackgroup=side.role,
                fillcolor=_with_opacity(side_colour(side), opacity), **shared,
            )
            for name, times, opacity in parts
        ]  # fmt: skip
    included = frame["included"].to_numpy(dtype=bool)
    return [
        go.Bar(
            name=name, y=scale.of(times),
            marker={
                "color": np.where(included, _with_opacity(side_colour(side), opacity), "rgba(0,0,0,0)").tolist(),
                "line": {"color": side_colour(side), "width": np.where(included, 0, 1.5).tolist()},
            }, **shared,
        )
        for name, times, opacity in parts
    ]  # fmt: skip


def _areas(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Positions of the steps to draw areas through, retaining long steps and long waits."""
    half = downsampling.MAX_AREA_POINTS // 2
    if len(frame) <= downsampling.MAX_AREA_POINTS:
        return np.arange(len(frame))
    return np.union1d(
        *(downsampling.steps_to_draw(frame[of].to_numpy(np.float64), points=half) for of in ("duration_us", "input_us"))
    )


def _with_opacity(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _step_hover(frame: pd.DataFrame) -> NDArray[np.object_]:
    share = (frame["input_us"] / frame["duration_us"]).where(frame["duration_us"] > 0, 0.0)
    return np.column_stack([
        frame["step"].astype(str), frame["input_us"].map(format_time_us), frame["duration_us"].map(format_time_us),
        share.map(format_percent), frame["host"].map(style.safe), np.where(frame["included"], "", "<br>excluded"),
    ])  # fmt: skip


def input_shares(series: Series) -> go.Figure:
    """The share of every step spent waiting for input, all runs on one axis.

    The frames are those of `step_times`, with `input_share`, a fraction of 1.
    """
    shown = [(side, frame) for side, frame in series if len(frame)]
    notes = [EXCLUDED_NOTE if _has_hollow(shown) else ""]
    notes.append(downsampling.note(max((len(frame) for _, frame in shown), default=0)))
    result = style.figure(
        "Input wait as a share of each step", " · ".join(filter(None, notes)), height=340,
        legend_rows=len(shown), showlegend=True,
    )  # fmt: skip
    for side, frame in shown:
        positions = downsampling.steps_to_draw(frame["input_share"].fillna(0.0).to_numpy(np.float64))
        frame = frame.iloc[positions]
        included = frame["included"].to_numpy(dtype=bool)
        result.add_scatter(
            name=side_label(side), x=positions + 1, y=frame["input_share"],
            mode="lines+markers" if len(frame) <= MAX_MARKERS else "lines",
            line={"color": side_colour(side), "width": 1.5},
            marker=None if len(frame) > MAX_MARKERS else {
                "symbol": np.where(included, side_symbol(side), f"{side_symbol(side)}-open").tolist(), "size": 8,
            },
            customdata=_step_hover(frame),
            hovertemplate=(
                "step %{x} (number %{customdata[0]})<br><b>%{customdata[3]}</b>: %{customdata[1]} of %{customdata[2]}"
                "<br>host %{customdata[4]}%{customdata[5]}"
            ),
        )  # fmt: skip
    result.update_xaxes(position_axis(frame for _, frame in shown), rangemode="tozero")
    result.update_yaxes(title_text="Share of the step", rangemode="tozero", tickformat="~%")
    result.layout.margin.l = style.WIDE_AXIS_PIXELS
    return result


def shares_by_core(series: Series, cores: str) -> go.Figure:
    """Between which shares of each step the cores wait for input: a band for each run, with a line at their mean.

    `cores` is what they are called, devices or hosts.

    The frames are results of `tools.input_bound.share_by_core`.
    """
    shown = [(side, frame) for side, frame in series if len(frame)]
    most, longest = downsampling.MAX_AREA_POINTS, max((len(frame) for _, frame in shown), default=0)
    notes = [f"band: least to largest of all {cores}; line: mean"]
    notes.append(f"{most:,} of {longest:,} steps, those with the extremes among them" if longest > most else "")
    result = style.figure(
        f"Input wait of the {cores} as a share of each step", "<br>".join(filter(None, notes)), height=340,
        legend_rows=len(shown) if len(shown) > 1 else 0, showlegend=len(shown) > 1,
    )  # fmt: skip
    for side, frame in shown:
        if len(frame) > most:
            ends = [frame[of].to_numpy(np.float64) for of in ("least", "largest")]
            frame = frame.iloc[np.union1d(*(downsampling.steps_to_draw(end, points=most // 2) for end in ends))]
        result.add_scatter(
            x=[*frame["step"], *frame["step"][::-1]], y=[*frame["largest"], *frame["least"][::-1]], fill="toself",
            mode="lines", line={"width": 0}, fillcolor=_with_opacity(side_colour(side), BAND_OPACITY), hoverinfo="skip",
            showlegend=False,
        )  # fmt: skip
        texts = [frame[name].map(format_percent) for name in ("mean", "least", "largest")]
        result.add_scatter(
            name=side_label(side), x=frame["step"], y=frame["mean"], mode="lines",
            line={"color": side_colour(side), "width": 1.5},
            customdata=np.column_stack([*texts, frame["cores"].astype(str), frame["largest_on"].map(style.safe)]),
            hovertemplate=f"step %{{x}}: <b>%{{customdata[0]}}</b> on average of %{{customdata[3]}} {cores},<br>"
            "%{customdata[1]} to %{customdata[2]} (%{customdata[4]})",
        )  # fmt: skip
    result.update_xaxes(position_axis(frame for _, frame in shown))
    result.update_yaxes(title_text="Share of the step", rangemode="tozero", tickformat="~%")
    result.layout.margin.l = style.WIDE_AXIS_PIXELS
    return result


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
    legend_rows = 1 + len(present) if len(sides) > 1 else 1
    result = style.figure(
        "Self time of input ops by category",
        f"per {per}, sum of all threads<br>includes work ahead of time, for which no step waits",
        height=style.rows_height(len(categories), bars_in_a_row=len(sides)), legend_rows=legend_rows,
        barmode="overlay", showlegend=len(sides) > 1,
    )  # fmt: skip
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
