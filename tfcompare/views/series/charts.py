"""The chart of a metric over many runs, with confidence intervals and change points."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfcompare.compare.stats.verdict import FASTER, REPLICATES, SLOWER
from tfcompare.units import format_percent_change, scale
from tfcompare.views import chart_style as style
from tfcompare.views.verdict_marks import colour_of

if TYPE_CHECKING:
    from tfcompare.views.series.figures import Metric

TICKS, NARROW_TICKS = 8, 3
"""The runs that are named on the axis, on a page of usual width and on a narrow one."""
_LABEL_LENGTH = 12
_MARKER_PIXELS, _SMALL_MARKER_PIXELS, _MANY = 7, 4, 300
_MARGIN = 0.4
_LABELLED_CHANGES = 12
"""With more changes than this, they are marked without their size."""


def over_runs(rows: pd.DataFrame, changes: pd.DataFrame, metric: Metric, title: str, ticks: int = TICKS) -> go.Figure:
    """The value of each run, in order, with its interval; the level between changes; a line at each change.

    Of many runs the intervals are left out, since they would cover the chart.

    `rows` and `changes` are those of a `Series`.
    """
    known = rows[rows["value"].notna()].reset_index(drop=True)
    scaled = scale(known["value"], metric.unit)
    size = scaled.size
    has_intervals = len(known) <= _MANY and bool((known["high"] > known["low"]).any())
    subtitle = "line: mean" + ("; bars: 95 % interval of a run's own steps" if has_intervals else "")
    result = style.figure(title, subtitle, height=380)
    place = np.arange(len(known), dtype=np.float64)
    if has_intervals:
        y = np.column_stack([known["low"] / size, known["high"] / size, np.full(len(known), np.nan)]).ravel()
        intervals = go.Scatter(x=np.repeat(place, 3), y=y, mode="lines", hoverinfo="skip", showlegend=False)
        result.add_trace(intervals.update(line={"color": style.BASELINE_COLOUR, "width": 1}, opacity=0.5))
    result.add_trace(_values(known, place, size))
    ends = [*known.index[known["run"].isin(changes["run"])], len(known)]
    _add_levels(result, known, ends, size)
    _add_changes(result, changes, ends[:-1], metric)
    named = np.unique(np.linspace(0, max(len(known) - 1, 0), min(ticks, len(known))).astype(np.int64))
    shown = known.iloc[named]
    labels = [label if len(label) <= _LABEL_LENGTH else f"…{label[1 - _LABEL_LENGTH :]}" for label in shown["label"]]
    dates = zip(map(style.safe, labels), shown["recorded"], strict=True)
    texts = [f"{label}<br>{recorded:%Y-%m-%d}" for label, recorded in dates]
    result.update_xaxes(tickangle=0, tickvals=named, ticktext=texts, showgrid=False, zeroline=False)
    result.update_xaxes(range=[-0.6, max(len(known) - 0.4, 0.6)])
    result.update_yaxes(title_text=f"{title} ({scaled.unit or metric.unit})", tickformat="~r", zeroline=False)
    return result.update_yaxes(range=_range(known, size))


def _range(known: pd.DataFrame, size: float) -> list[float] | None:
    """The axis shows all values, and nothing below 0; intervals that are much longer than these differ are cut."""
    if known.empty:
        return None
    low, high = known["value"].min() / size, known["value"].max() / size
    margin = _MARGIN * (high - low) or _MARGIN * abs(high) or 1.0
    return [max(low - margin, 0.0), high + margin]


def _values(known: pd.DataFrame, place: np.ndarray, size: float) -> go.Scatter:
    lines = zip(known["name"], known["tags"], known["recorded"], strict=True)
    texts = [
        f"{style.wrap_text(name)}<br>{style.wrap_text(tags)}<br>{recorded:%Y-%m-%d %H:%M:%S} UTC"
        for name, tags, recorded in lines
    ]
    pixels = _MARKER_PIXELS if len(known) <= _MANY else _SMALL_MARKER_PIXELS
    marker, template = (
        {"color": style.BASELINE_COLOUR, "size": pixels},
        "<b>%{y:.4~g}</b><br>%{customdata}<extra></extra>",
    )
    result = go.Scatter(x=place, y=known["value"] / size, mode="markers", marker=marker, showlegend=False)
    return result.update(customdata=texts, hovertemplate=template)


def _add_levels(result: go.Figure, known: pd.DataFrame, ends: list[int], size: float) -> None:
    """The geometric mean of the runs between two changes."""
    x: list[float] = []
    y: list[float] = []
    for begin, end in pairwise([0, *ends]):
        values = known["value"].iloc[begin:end]
        values = values[values > 0]
        if len(values):
            level = float(np.exp(np.log(values).mean())) / size
            x += [begin - 0.5, end - 0.5, np.nan]
            y += [level, level, np.nan]
    line = {"color": style.CANDIDATE_COLOURS[0], "width": 2}
    result.add_trace(go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False))


def _add_changes(result: go.Figure, changes: pd.DataFrame, places: list[int], metric: Metric) -> None:
    """A line before the first run after each change, with its size."""
    is_labelled = len(changes) <= _LABELLED_CHANGES
    for at, ratio in zip(places, changes["ratio"], strict=True):
        is_worse = (ratio > 1) != metric.is_better_if_larger
        colour = colour_of(SLOWER if is_worse else FASTER, REPLICATES)
        line = {"line_width": 1.5, "line_dash": "dash", "line_color": colour}
        text = {"annotation_text": f"<b>{format_percent_change(ratio)}</b>" if is_labelled else None}
        result.add_vline(at - 0.5, **line, **text, annotation_font_color=colour, annotation_position="top left")
