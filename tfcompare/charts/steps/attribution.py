"""Waterfall charts of the change between two runs' average steps, by part of the step or by op."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.style import side_colour, side_label
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.fused_rows import row_name
from tfcompare.compare.side import Side
from tfcompare.units import (
    format_delta,
    format_percent_change,
    format_time_us,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from tfcompare.compare.attribution import Waterfall

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
