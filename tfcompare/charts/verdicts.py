"""Verdicts as confidence intervals on an axis of ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.compare.stats.verdict import (
    FASTER,
    SAME,
    SINGLE,
    SLOWER,
    SMALLEST_EFFECT,
    UNCLEAR,
    UNTESTED,
    Verdict,
    wording,
)
from tfcompare.units import format_ratio, middle_ellipsis

SIGNS = {FASTER: "▼", SLOWER: "▲", SAME: "=", UNCLEAR: "?", UNTESTED: "–"}
"""Sign before each verdict, so that colour is not the only distinction."""

_COLOURS = {FASTER: style.BETTER, SLOWER: style.WORSE}
_LIKELY_COLOURS = {FASTER: style.LIKELY_BETTER, SLOWER: style.LIKELY_WORSE}

_MIN_LOG_RANGE = math.log(1.1)
_ROUND_RATIOS = (1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000, 1e6, 1e9)
_MIN_TICK_SPACING = 0.14
"""Minimum distance between ticks, as a share of the axis."""

_NAME_HALF = 0.22
"""Half the height of a row's name, in rows."""


@dataclass(frozen=True)
class Judged:
    """A row of verdict charts: the full `name` of what the verdict is about, and its marker."""

    name: str
    verdict: Verdict
    symbol: str = style.CANDIDATE_SYMBOLS[0]


def verdict_intervals(rows: Sequence[Judged], title: str, axis: str) -> go.Figure:
    """Candidate ÷ baseline of several times, each as a point with confidence interval and verdict.

    The axis is logarithmic, so that ×2 and ÷2 are equally far from 1; the band means no change.
    """
    result = style.figure(
        title,
        "point: candidate ÷ baseline; line: 95 % confidence interval; band: no relevant change",
        height=126 + 46 * len(rows),
        legend_rows=0,
        showlegend=False,
        margin={"l": 8, "r": 16, "t": 72, "b": 8},
    )
    draw_no_change(result, len(rows))
    for position, row in enumerate(rows):
        if is_drawn(row.verdict):
            result.add_trace(_interval(position, row))
    style.name_rows(result, [_label(row) for row in rows])
    reach = _axis_range([row.verdict for row in rows])
    draw_ratio_axis(result, -reach, reach, axis)
    return result


def draw_no_change(result: go.Figure, rows: int) -> None:
    """A line at 1 and the band of no relevant change, next to each row's interval but not through its name."""
    band = 1 + SMALLEST_EFFECT
    for row in range(rows):
        shape = {"type": "rect", "layer": "below", "y0": row + _NAME_HALF, "y1": row + 1 - _NAME_HALF}
        no_change = {"x0": 1 / band, "x1": band, "fillcolor": style.NEUTRAL, "opacity": 0.18, "line_width": 0}
        result.add_shape(shape | no_change)
        result.add_shape(shape | {"type": "line", "x0": 1, "x1": 1, "line": {"width": 1, "color": style.NEUTRAL}})


def draw_ratio_axis(result: go.Figure, low: float, high: float, title: str) -> None:
    """A logarithmic axis of ratios from exp(`low`) to exp(`high`), with round ratios as ticks."""
    ticks = _ticks(low, high)
    result.update_xaxes(
        type="log",
        range=[low / math.log(10), high / math.log(10)],
        title_text=title,
        tickvals=ticks,
        ticktext=[f"{float(f'{tick:.3g}'):,g}×" for tick in ticks],
        tickangle=0,
    )


def is_drawn(verdict: Verdict) -> bool:
    """Whether the verdict's ratio can be drawn: not if only one side took any time."""
    return verdict.has_interval and 0 < verdict.ratio < math.inf


def word_of(verdict: Verdict) -> str:
    """The verdict as text, such as `▼ likely faster`."""
    return text_of(verdict.word, verdict.evidence)


def text_of(word: str, evidence: object) -> str:
    """A verdict with its sign, such as `▼ likely faster`; `evidence` may be missing."""
    return f"{SIGNS[word]} {wording(word, str(evidence))}"


def colour_of(word: str, evidence: object) -> str:
    """The colour of a verdict: weaker if from single captures, neutral if neither better nor worse."""
    return (_LIKELY_COLOURS if evidence == SINGLE else _COLOURS).get(word, style.NEUTRAL)


def colours_of_change(verdict: Verdict) -> tuple[str, str]:
    """The colours of less and of more time under an overall `verdict`; both neutral if it claims no change."""
    if not verdict.is_claim:
        return style.NEUTRAL, style.NEUTRAL
    return colour_of(FASTER, verdict.evidence), colour_of(SLOWER, verdict.evidence)


def _label(row: Judged) -> str:
    verdict = row.verdict
    numbers = (
        f" · {format_ratio(verdict.ratio)} ({format_ratio(verdict.low)} to {format_ratio(verdict.high)})"
        if is_drawn(verdict)
        else ""
    )
    return f"{middle_ellipsis(row.name, 40)} · {word_of(verdict)}{numbers}"


def _interval(position: int, row: Judged) -> go.Scatter:
    verdict = row.verdict
    (below,), _ = style.bar_offsets()
    colour = colour_of(verdict.word, verdict.evidence)
    return go.Scatter(
        name=row.name,
        x=[verdict.low, verdict.ratio, verdict.high],
        y=[position + below] * 3,
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"symbol": ["line-ns-open", row.symbol, "line-ns-open"], "size": [10, 11, 10], "color": colour},
        customdata=[[style.wrap_text(row.name), word_of(verdict), style.wrap_text(verdict.reason)]] * 3,
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )


def _axis_range(verdicts: Sequence[Verdict]) -> float:
    """Half the range of the axis around 1, as a logarithm."""
    ends = [abs(math.log(x)) for v in verdicts if v.has_interval for x in (v.low, v.high) if x > 0 and math.isfinite(x)]
    return max([_MIN_LOG_RANGE, *ends]) * 1.15


def _ticks(low: float, high: float) -> list[float]:
    """1 and round ratios on both sides, spaced far enough apart to be readable."""
    apart = (high - low) * _MIN_TICK_SPACING
    ticks = [1.0]
    for end, sign in ((-low, -1), (high, 1)):
        last = 0.0
        for step in _ROUND_RATIOS:
            if last + apart <= math.log(step) <= end:
                last = math.log(step)
                ticks.append(step**sign)
    return sorted(ticks)
