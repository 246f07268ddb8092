"""The confidence intervals of the largest changes, as candidate ÷ baseline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.ops import details_of, labels_of
from tfcompare.charts.style import SELF_TIME, Quantity
from tfcompare.charts.verdicts import colour_of, draw_no_change, draw_ratio_axis, text_of
from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.units import format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE_SIDED = {ADDED: "candidate only", REMOVED: "baseline only"}
SYMBOL, END = style.CANDIDATE_SYMBOLS[0], "line-ns-open"
BEYOND = ("triangle-left", "triangle-right")

_INTERVALS_WIDTH = 0.6
"""Share of the width for the intervals; their numbers are to the right."""
_MIN_LOG_RANGE = math.log(1.1)
_MARGIN = 0.08


def change_intervals(
    changes: pd.DataFrame, ratios: pd.Series, *, by: str = "op_name", quantity: Quantity = SELF_TIME
) -> go.Figure:
    """Candidate ÷ baseline of the time per step of each row, in the same order as `charts.ops.movers`.

    `changes` are those of `compare.aggregate.largest_changes` with the columns `diff.VERDICT`, labelled as in `movers`;
    `ratios` are candidate ÷ baseline of each. Every row shows its verdict and numbers; a hollow point has no interval,
    and rows that only one side has get no point. The axis is logarithmic; the band means no change.
    """
    rows = changes.assign(ratio=ratios, detail=details_of(changes, by), name=changes[by]).to_dict("records")
    result = style.figure(
        f"Confidence intervals of the changes of {quantity.name}",
        "point: candidate ÷ baseline; line: 95 % confidence interval; hollow: not tested",
        height=style.rows_height(len(rows)),
        showlegend=False,
    )
    draw_no_change(result, len(rows))
    low, high = _axis_range(rows)
    for position, row in enumerate(rows):
        if _is_drawn(row["ratio"]):
            result.add_trace(_point(position, row, low, high))
    style.name_rows(result, labels_of(changes, by))
    result.layout.annotations = [*result.layout.annotations, *_annotations(rows)]
    draw_ratio_axis(result, low, high, f"{quantity.name.capitalize()} per step, candidate ÷ baseline")
    result.update_xaxes(domain=[0, _INTERVALS_WIDTH])
    return result


def _annotations(rows: Sequence[dict[Any, Any]]) -> list[dict[str, object]]:
    """The verdict of each row at its right end, and its numbers below, next to the interval."""
    (below,), _ = style.bar_offsets()
    end = {"x": 1, "xref": "paper", "xanchor": "right", "yanchor": "middle", "showarrow": False}
    words = [end | {"text": _word(row), "y": position} for position, row in enumerate(rows)]
    numbers = [
        end | {"text": _numbers(row), "y": position + below, "font": {"size": 11}}
        for position, row in enumerate(rows)
        if row["status"] == MATCHED
    ]
    return [*words, *numbers]


def _word(row: dict[Any, Any]) -> str:
    return ONE_SIDED.get(row["status"]) or text_of(row["verdict"], row["evidence"])


def _numbers(row: dict[Any, Any]) -> str:
    """A text like `0.512× (0.481 to 0.540)`."""
    if math.isnan(row["interval_low"]):
        return format_ratio(row["ratio"])
    low, high = (format_ratio(row[f"interval_{end}"]).removesuffix("×") for end in ("low", "high"))
    return f"{format_ratio(row['ratio'])} ({low} to {high})"


def _point(position: int, row: dict[Any, Any], lowest: float, highest: float) -> go.Scatter:
    """The row's interval, or a hollow point without one, which becomes an arrow at the edge if it is beyond the
    axis."""
    (below,), _ = style.bar_offsets()
    ends, symbols = [row["interval_low"], row["ratio"], row["interval_high"]], [END, SYMBOL, END]
    if math.isnan(row["interval_low"]):
        log = math.log(row["ratio"])
        ends = [math.exp(min(max(log, lowest), highest))]
        symbols = [f"{SYMBOL if lowest <= log <= highest else BEYOND[log > highest]}-open"]
    colour = colour_of(row["verdict"], row["evidence"])
    return go.Scatter(
        x=ends,
        y=[position + below] * len(ends),
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"symbol": symbols, "size": 10, "color": colour, "line": {"width": 2, "color": colour}},
        cliponaxis=False,
        text="<br>".join(
            [
                f"<b>{style.wrap_text(row['name'])}</b>",
                style.wrap_text(row["detail"]),
                f"{_word(row)}: {_numbers(row)}",
            ]
        ),
        hovertemplate="%{text}<extra></extra>",
    )


def _is_drawn(ratio: float) -> bool:
    return math.isfinite(ratio) and ratio > 0


def _axis_range(rows: Sequence[dict[Any, Any]]) -> tuple[float, float]:
    """(low, high) of the axis as logarithms of ratios: it includes every interval.

    Rows that were not tested are ignored, as their ratios may be huge.
    """
    logs = [
        math.log(row[f"interval_{end}"]) for row in rows for end in ("low", "high") if _is_drawn(row["interval_low"])
    ]
    low, high = min([-_MIN_LOG_RANGE, *logs]), max([_MIN_LOG_RANGE, *logs])
    room = _MARGIN * (high - low)
    return low - room, high + room
