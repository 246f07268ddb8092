"""Charts of step times: over time, their spread, and marks of slow steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.compare.side import Side
from tfcompare.tables import slow_steps
from tfcompare.text import middle_ellipsis
from tfcompare.units import format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import side_colour, side_label, side_symbol

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Positions = NDArray[np.int64]
    from tfcompare.views.chart_style import Scale

CENTRE_ABOVE_RATIO = 2.0
"""If step times differ by this ratio, each distribution is drawn relative to its own; else both would be lines."""

CUT_ABOVE_RATIO = 6.0
"""The axis is cut if values span more than this many times the range of the usual steps; boxes would be lines."""

NAMES_PIXELS = 96
"""Typical width of the names next to the boxes; stating it saves Plotly a second draw."""

MAX_BOX_POINTS = 200
"""Maximum number of points above a box; of more steps, a sample spread evenly over their ranks is drawn."""

FEW_STEPS = 10
"""Up to this many steps, each has a tick."""

EXCLUDED_NOTE = "hollow: excluded (first, last and stray step, other kinds)"


Series = Sequence[tuple[Side, "pd.DataFrame"]]
"""Runs, the baseline first, each with a frame of its steps; runs without rows are not drawn."""
SYMBOL = "star"
NOTE = "star: slow step"
HOVER = "<br>slow: far longer than most steps"
SLOW_CUT_ABOVE_RATIO = 2.5
"""The axis is cut above the usual steps if the longest step is more than this many times the longest usual one."""
BEYOND_NOTE = "▲ beyond the axis (double-click: all of it)"

_ROOM = 1.3
_RARE = 0.1
"""The share of steps up to which slow ones do not decide how far the axis reaches."""
_MAX_LABELS = 6
_LABEL_LEVELS = 3
_COLOUR = "#7A8798"
_STEP = "step %{x} (number %{customdata[0]})"


def position_axis(frames: Iterable[pd.DataFrame]) -> dict[str, Any]:
    """An axis of step positions: whole numbers, each of them if there are only a few."""
    few = max((len(frame) for frame in frames), default=0) <= FEW_STEPS
    return {"title_text": "Step, by position", "tickformat": ",d", "dtick": 1 if few else None}


def step_times(series: Series) -> go.Figure:
    """Step time of every step of each run, over its position.

    The frames have one row per step in order: `step`, `host`, `duration_us`, `included`. Slow ones are marked; if
    they would flatten the others, the axis is cut above those, with the times of the slow ones at its edge.
    """
    marked = [is_slow(frame) for _, frame in series]
    return _over_steps(series, "duration_us", "Step time of every step", "Step time", slow=marked)


def op_in_steps(series: Series, op_name: str) -> go.Figure:
    """Self time of one op in every step of each run, over the step's position.

    The frames have one row per step in order: `step`, `host`, `self_time_us` (0 if the op did not run), `included`.
    """
    name = style.safe(middle_ellipsis(op_name, 60))
    return _over_steps(series, "self_time_us", "Self time in every step", "Self time", about=name)


def _over_steps(
    series: Series, column: str, title: str, quantity: str, about: str = "", slow: Sequence[Bools] | None = None
) -> go.Figure:
    """One column over the steps of each run. `slow` marks the slow steps of each frame."""
    marks = slow or [np.zeros(len(frame), np.bool_) for _, frame in series]
    shown = [(side, frame, mark) for (side, frame), mark in zip(series, marks, strict=True) if len(frame)]
    end = axis_end([frame for _, frame, _ in shown], column)
    scale = style.time_scale([end] if end else [float(frame[column].max()) for _, frame, _ in shown])
    excluded = any(not frame["included"].all() for _, frame, _ in shown)
    starred = any(mark.any() for _, _, mark in shown)
    notes = [about, EXCLUDED_NOTE if excluded else "", NOTE if starred else ""]
    thinned = style.note(max((len(frame) for _, frame, _ in shown), default=0))
    lines = list(filter(None, [" · ".join(filter(None, notes)), BEYOND_NOTE if end else "", thinned]))
    result = style.figure(
        title, "<br>".join(lines), height=320, legend_rows=len(shown) + max(len(lines) - 1, 0), showlegend=True
    )
    result.layout.legend.tracegroupgap = 0
    for side, frame, mark in shown:
        result.add_traces(_step_traces(side, frame, mark, column, scale))
    result.update_xaxes(position_axis(frame for _, frame, _ in shown), rangemode="tozero")
    result.update_yaxes(title_text=f"{quantity} ({scale.unit})", rangemode="tozero", tickformat="~r")
    if end:
        edges = [beyond_line_marks(frame, column, end, scale, side_colour(side)) for side, frame, _ in shown]
        result.add_traces([edge for edge in edges if edge is not None])
        result.update_yaxes(range=[0, end / scale.size])
    return result


def _step_traces(side: Side, frame: pd.DataFrame, slow: Bools, column: str, scale: style.Scale) -> list[go.Scatter]:
    """The run's line with a marker for each step; if there are many steps, only for marked ones."""
    included, values = frame["included"].to_numpy(dtype=bool), frame[column].to_numpy(np.float64)
    every = np.arange(len(frame))
    if len(frame) <= style.MAX_MARKERS:
        return [_step_trace(side, frame, slow, column, scale, every).update(mode="lines+markers")]
    marked = style.steps_to_mark(values, slow | ~included)
    line = _step_trace(side, frame, slow, column, scale, style.steps_to_draw(values, marked))
    line.update(mode="lines", marker=None, legendgroup=side_label(side))
    if not marked.any():
        return [line]
    signs = _step_trace(side, frame, slow, column, scale, every[marked]).update(mode="markers", showlegend=False)
    return [line, signs.update(marker_color=side_colour(side), legendgroup=side_label(side))]


def _step_trace(
    side: Side, frame: pd.DataFrame, slow: Bools, column: str, scale: style.Scale, positions: Positions
) -> go.Scatter:
    """The steps at those positions of the frame."""
    rows, slow = frame.iloc[positions], slow[positions]
    included = rows["included"].to_numpy(dtype=bool)
    symbols = np.where(included, side_symbol(side), f"{side_symbol(side)}-open")
    remarks = np.where(slow, HOVER, np.where(included, "", "<br>excluded"))
    numbers, times = rows["step"].astype(str), rows[column].map(format_time_us)
    return go.Scatter(
        name=side_label(side),
        x=positions + 1,
        y=scale.of(rows[column]),
        line={"color": side_colour(side), "width": 1.5},
        marker={"symbol": np.where(slow, SYMBOL, symbols).tolist(), "size": np.where(slow, 13, 8).tolist()},
        customdata=np.column_stack([numbers, times, rows["host"].map(style.safe), remarks]),
        hovertemplate=f"{_STEP}<br><b>%{{customdata[1]}}</b><br>host %{{customdata[2]}}%{{customdata[3]}}",
    )


def step_distribution(series: Series) -> go.Figure:
    """Distribution of each run's included step times: a box of the quartiles, and every step as a point above it.

    The frames have `step`, `duration_us`, `included`. If the distributions lie far apart, each is drawn as the
    deviation from its mean step. If slow steps would flatten the boxes, the axis is cut around the others, and the
    label gives the range of the slow ones.
    """
    counted = [(side, frame[frame["included"].astype(bool)]) for side, frame in series]
    counted = [(side, frame) for side, frame in counted if len(frame)]
    centres = [float(frame["duration_us"].mean()) for _, frame in counted]
    relative = min(centres, default=0.0) > 0 and max(centres) / min(centres) >= CENTRE_ABOVE_RATIO
    scale = style.time_scale(float(frame["duration_us"].max()) for _, frame in counted)
    drawn = [
        frame["duration_us"].to_numpy(np.float64) / centre - 1 if relative else scale.of(frame["duration_us"])
        for (_, frame), centre in zip(counted, centres, strict=True)
    ]
    span = _usual_span(drawn, [is_slow(frame) for _, frame in counted])
    is_sample = max((len(frame) for _, frame in counted), default=0) > MAX_BOX_POINTS
    points = f"{MAX_BOX_POINTS} steps, evenly over their ranks" if is_sample else "steps"
    notes = f"points: {points}; box: quartiles" + (", around each run's mean step" if relative else "")
    height = 150 + 85 * len(counted)
    result = style.figure("Distribution of step times", notes, height=height, legend_rows=0, showlegend=False)
    for (side, frame), centre, x in zip(counted, centres, drawn, strict=True):
        label = f"{side.role}<br>mean {format_time_us(centre)}" + (_beyond(frame, x, span) if span else "")
        result.add_trace(_box(label, side, frame, x))
    title = "Deviation from the run's mean step" if relative else f"Step time ({scale.unit})"
    result.update_xaxes(title_text=title, tickformat=".0%" if relative else "~r", zeroline=relative, range=span)
    result.update_yaxes(autorange="reversed", showgrid=False, zeroline=False)
    result.layout.margin.l = NAMES_PIXELS
    return result


def _usual_span(drawn: Sequence[Floats], slow: Sequence[Bools]) -> list[float] | None:
    """The ends of an axis around the usual steps; None if all steps fit without flattening the boxes."""
    usual = [x[~mark] for x, mark in zip(drawn, slow, strict=True)]
    if not usual:
        return None
    low, high = min(float(x.min()) for x in usual), max(float(x.max()) for x in usual)
    whole = max(float(x.max()) for x in drawn) - min(float(x.min()) for x in drawn)
    room = 0.15 * (high - low)
    return [low - room, high + room] if 0 < high - low < whole / CUT_ABOVE_RATIO else None


def _beyond(frame: pd.DataFrame, x: Floats, span: list[float]) -> str:
    """A text like `2 beyond: 45.0 ms` for the steps outside the axis."""
    out = (x < span[0]) | (x > span[1])
    if not out.any():
        return ""
    times = frame.loc[out, "duration_us"]
    farthest = float(times.iloc[int(np.abs(x[out]).argmax())])
    return f"<br>{int(out.sum())} beyond: {format_time_us(farthest)}"


def _box(label: str, side: Side, frame: pd.DataFrame, x: Floats) -> go.Box:
    positions = np.arange(len(x))
    if len(x) > MAX_BOX_POINTS:  # evenly over their ranks, with the smallest and the largest
        ranks = np.linspace(0, len(x) - 1, MAX_BOX_POINTS).round().astype(np.int64)
        positions = np.argsort(x, kind="stable")[ranks]
    rows, points = frame.iloc[positions], x[positions]
    texts = [[str(step), format_time_us(time)] for step, time in zip(rows["step"], rows["duration_us"], strict=True)]
    result = go.Box(name=label, orientation="h", boxpoints="all", jitter=0.45, pointpos=-1.5, width=0.4)
    marker = {"color": side_colour(side), "symbol": side_symbol(side), "size": 6, "opacity": 0.75}
    result.update(marker=marker, line={"color": side_colour(side), "width": 1.5}, hoveron="points")
    result.hovertemplate = "step number %{customdata[0]}<br><b>%{customdata[1]}</b><extra></extra>"
    if len(positions) == len(x):
        return result.update(x=points, customdata=np.array(texts))
    return result.update(_quartiles(x), y=[label], x=[points.tolist()], customdata=[texts])


def _quartiles(x: Floats) -> dict[str, list[float]]:
    """The box of all values as Plotly computes it, for a box drawn with only a sample of the points."""
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], method="hazen")
    reach = 1.5 * (high - low)
    fences = {"lowerfence": x[x >= low - reach].min(), "upperfence": x[x <= high + reach].max()}
    return {name: [float(value)] for name, value in {"q1": low, "median": middle, "q3": high, **fences}.items()}


def is_slow(frame: pd.DataFrame, column: str = "duration_us") -> NDArray[np.bool_]:
    """Which included steps are slow by that column."""
    return slow_steps.slow_included(frame[column].to_numpy(np.float64), frame["included"].to_numpy(np.bool_))


def axis_end(frames: Sequence[pd.DataFrame], column: str) -> float | None:
    """Where to cut an axis that begins at 0, in the column's unit; None if all steps fit.

    Slow steps are beyond the axis if they are rare; if they are many, they are what the chart is about.
    """
    usual = []
    for frame in frames:
        included, slow = frame["included"].to_numpy(np.bool_), is_slow(frame, column)
        within = included & ~slow if slow.sum() <= _RARE * included.sum() else included
        usual.append(float(frame.loc[within, column].max()))
    longest = max((float(frame[column].max()) for frame in frames), default=0.0)
    longest_usual = max((value for value in usual if value > 0), default=0.0)
    return _ROOM * longest_usual if longest_usual > 0 and longest > SLOW_CUT_ABOVE_RATIO * longest_usual else None


def beyond_line_marks(frame: pd.DataFrame, column: str, end: float, scale: Scale, colour: str) -> go.Scatter | None:
    """Marks with the time of each step beyond the end of the axis, just below the edge; None without any."""
    positions = _positions_beyond(frame, column, end)
    sides = ["middle right" if position < len(frame) * 0.7 else "middle left" for position in positions]
    levels = np.array([end * (0.96 - 0.08 * (i % _LABEL_LEVELS)) for i in range(positions.size)])  # staggered
    is_labelled = positions.size <= _MAX_LABELS
    return _marks(frame, column, positions, levels / scale.size, is_labelled, textposition=sides, marker_color=colour)


def beyond_bar_marks(frame: pd.DataFrame, column: str, end: float, scale: Scale) -> go.Scatter | None:
    """Like `beyond_line_marks`, with marks on the edge and times above it if there is room."""
    positions = _positions_beyond(frame, column, end)
    is_labelled = bool((np.diff(positions) >= len(frame) / _MAX_LABELS).all())
    levels = np.full(positions.size, end / scale.size)
    return _marks(frame, column, positions, levels, is_labelled, textposition="top center", marker_color=_COLOUR)


def _positions_beyond(frame: pd.DataFrame, column: str, end: float) -> NDArray[np.int64]:
    values = frame[column].to_numpy(np.float64)
    return np.flatnonzero(style.steps_to_mark(values, values > end))


def _marks(
    frame: pd.DataFrame,
    column: str,
    positions: NDArray[np.int64],
    y: NDArray[np.float64],
    is_labelled: bool,
    **look: Any,
) -> go.Scatter | None:
    if not positions.size:
        return None
    rows = frame.iloc[positions]
    times = rows[column].map(format_time_us).tolist()
    mode, marker = "markers+text" if is_labelled else "markers", {"symbol": "triangle-up", "size": 10}
    marks = go.Scatter(x=positions + 1, y=y, mode=mode, text=times, marker=marker, cliponaxis=False, showlegend=False)
    template = f"{_STEP}<br><b>%{{customdata[1]}}</b>, beyond the axis<extra></extra>"
    return marks.update(customdata=np.column_stack([rows["step"].astype(str), times]), hovertemplate=template, **look)
