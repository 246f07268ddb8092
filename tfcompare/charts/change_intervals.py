"""The largest changes as candidate ÷ baseline, each with its confidence interval."""

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

_BARS_END = 0.6
"""Share of the width that is left to the intervals; their numbers stand beside them."""
_LEAST_ROOM = math.log(1.1)
_MARGIN = 0.08


def change_intervals(
    changes: pd.DataFrame, ratios: pd.Series, *, by: str = "op_name", quantity: Quantity = SELF_TIME
) -> go.Figure:
    """The rows that `charts.ops.movers` draws, in the same order, as candidate ÷ baseline of their time per step.

    `changes` are those of `compare.aggregate.largest_changes` with the columns `diff.VERDICT`, named as
    for `movers`; `ratios` are candidate ÷ baseline of each. Every row has its word and its numbers; a hollow point has
    no interval, and what only one side has no point. On a logarithmic axis; the band is what counts as no change.
    """
    rows = changes.assign(ratio=ratios, detail=details_of(changes, by), name=changes[by]).to_dict("records")
    result = style.figure(
        f"Confidence intervals of the changes of {quantity.name}",
        "point: candidate ÷ baseline; line: 95 % confidence interval; hollow: not tested",
        height=style.rows_height(len(rows)),
        showlegend=False,
    )
    draw_no_change(result, len(rows))
    low, high = _reach(rows)
    for place, row in enumerate(rows):
        if _is_drawn(row["ratio"]):
            result.add_trace(_point(place, row, low, high))
    style.name_rows(result, labels_of(changes, by))
    result.layout.annotations = [*result.layout.annotations, *_words(rows)]
    draw_ratio_axis(result, low, high, f"{quantity.name.capitalize()} per step, candidate ÷ baseline")
    result.update_xaxes(domain=[0, _BARS_END])
    return result


def _words(rows: Sequence[dict[Any, Any]]) -> list[dict[str, object]]:
    """At the right end of each row its word, and below it the numbers, beside the interval."""
    (below,), _ = style.bar_places()
    end = {"x": 1, "xref": "paper", "xanchor": "right", "yanchor": "middle", "showarrow": False}
    words = [end | {"text": _word(row), "y": place} for place, row in enumerate(rows)]
    numbers = [
        end | {"text": _numbers(row), "y": place + below, "font": {"size": 11}}
        for place, row in enumerate(rows)
        if row["status"] == MATCHED
    ]
    return [*words, *numbers]


def _word(row: dict[Any, Any]) -> str:
    return ONE_SIDED.get(row["status"]) or text_of(row["verdict"], row["evidence"])


def _numbers(row: dict[Any, Any]) -> str:
    """`0.512× (0.481 to 0.540)`."""
    if math.isnan(row["interval_low"]):
        return format_ratio(row["ratio"])
    low, high = (format_ratio(row[f"interval_{end}"]).removesuffix("×") for end in ("low", "high"))
    return f"{format_ratio(row['ratio'])} ({low} to {high})"


def _point(place: int, row: dict[Any, Any], lowest: float, highest: float) -> go.Scatter:
    """The row's interval, or a hollow point, which points beyond the axis where it lies there."""
    (below,), _ = style.bar_places()
    ends, symbols = [row["interval_low"], row["ratio"], row["interval_high"]], [END, SYMBOL, END]
    if math.isnan(row["interval_low"]):
        log = math.log(row["ratio"])
        ends = [math.exp(min(max(log, lowest), highest))]
        symbols = [f"{SYMBOL if lowest <= log <= highest else BEYOND[log > highest]}-open"]
    colour = colour_of(row["verdict"], row["evidence"])
    return go.Scatter(
        x=ends,
        y=[place + below] * len(ends),
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"symbol": symbols, "size": 10, "color": colour, "line": {"width": 2, "color": colour}},
        cliponaxis=False,
        text=f"<b>{style.whole(row['name'])}</b><br>{style.whole(row['detail'])}<br>{_word(row)}: {_numbers(row)}",
        hovertemplate="%{text}<extra></extra>",
    )


def _is_drawn(ratio: float) -> bool:
    return math.isfinite(ratio) and ratio > 0


def _reach(rows: Sequence[dict[Any, Any]]) -> tuple[float, float]:
    """The logarithms of the ratios at which the axis begins and ends: it holds every interval.

    Rows that were not tested do not decide: their ratios may be huge.
    """
    logs = [
        math.log(row[f"interval_{end}"]) for row in rows for end in ("low", "high") if _is_drawn(row["interval_low"])
    ]
    low, high = min([-_LEAST_ROOM, *logs]), max([_LEAST_ROOM, *logs])
    room = _MARGIN * (high - low)
    return low - room, high + room
