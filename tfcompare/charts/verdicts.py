"""Verdicts as intervals: how sure a change is, at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.style import Side
from tfcompare.compare.verdict import FASTER, SLOWER, SMALLEST_EFFECT, Verdict
from tfcompare.units import format_ratio, middle_ellipsis

WORDS = {
    "faster": "▼ faster",
    "slower": "▲ slower",
    "same": "= same",
    "unclear": "? cannot tell",
    "untested": "– not tested",
}
"""What is written of each verdict, with a sign, so that colour is not the only one."""

COLOURS = {FASTER: style.BETTER, SLOWER: style.WORSE}
_NEUTRAL = "#7A8798"
_LEAST_ROOM = math.log(1.1)


def step_time_intervals(verdicts: Sequence[tuple[Side, Verdict]]) -> go.Figure:
    """Candidate ÷ baseline of the step time of each candidate, as a point with its interval and the word on it.

    On a logarithmic axis, so that twice and half are equally far from no change; the band is what counts as none.
    """
    result = style.figure(
        "How sure the change of the step time is",
        "point: candidate ÷ baseline; line: 95 % interval; band: too little to count",
        height=116 + 46 * len(verdicts),
        legend_rows=0,
        showlegend=False,
    )
    band = 1 + SMALLEST_EFFECT
    result.add_vrect(x0=1 / band, x1=band, fillcolor=_NEUTRAL, opacity=0.18, line_width=0)
    result.add_vline(x=1, line_width=1, line_color=_NEUTRAL)
    for row, (side, verdict) in enumerate(verdicts):
        if verdict.has_interval:
            result.add_trace(_interval(row, side, verdict))
    style.name_rows(result, [_label(side, verdict) for side, verdict in verdicts])
    reach = _reach([verdict for _, verdict in verdicts])
    result.update_xaxes(
        type="log",
        range=[-reach / math.log(10), reach / math.log(10)],
        title_text="Step time, candidate ÷ baseline",
        tickvals=_ticks(reach),
        ticktext=[format_ratio(tick) for tick in _ticks(reach)],
    )
    return result


def word_of(verdict: Verdict) -> str:
    """The verdict as it is written, e.g. `▼ faster`."""
    return WORDS[verdict.word]


def _label(side: Side, verdict: Verdict) -> str:
    numbers = (
        f" · {format_ratio(verdict.ratio)} ({format_ratio(verdict.low)} to {format_ratio(verdict.high)})"
        if verdict.has_interval
        else ""
    )
    return f"{middle_ellipsis(side.name, 40)} · {word_of(verdict)}{numbers}"


def _interval(row: int, side: Side, verdict: Verdict) -> go.Scatter:
    (below,), _ = style.bar_places()
    colour = COLOURS.get(verdict.word, _NEUTRAL)
    return go.Scatter(
        name=side.name,
        x=[verdict.low, verdict.ratio, verdict.high],
        y=[row + below] * 3,
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"symbol": ["line-ns-open", side.symbol, "line-ns-open"], "size": [10, 11, 10], "color": colour},
        customdata=[[style.safe(side.name), word_of(verdict), style.whole(verdict.reason)]] * 3,
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )


def _reach(verdicts: Sequence[Verdict]) -> float:
    """How far from no change the axis reaches on either side, as a logarithm."""
    ends = [abs(math.log(x)) for v in verdicts if v.has_interval for x in (v.low, v.high) if x > 0 and math.isfinite(x)]
    return max([_LEAST_ROOM, *ends]) * 1.15


def _ticks(reach: float) -> list[float]:
    """Round ratios on both sides of 1 that lie within reach."""
    steps = (1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
    inside = [step for step in steps if math.log(step) <= reach]
    shown = inside[-4:] if len(inside) > 4 else inside
    return sorted([1 / step for step in shown] + [1.0] + list(shown))
