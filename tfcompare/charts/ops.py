"""Charts of the ops of two runs: the longest, those that changed the most, and where the time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.style import SELF_TIME, Quantity, Side
from tfcompare.compare.stats.verdict import FASTER, SINGLE, SLOWER
from tfcompare.units import (
    format_delta,
    format_percent,
    format_percent_change,
    format_time_us,
    format_value,
    middle_ellipsis,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

TOP = 10
MOVER_LENGTH = 48
"""Maximum length of a name next to a bar."""
ROOM_FOR_NAMES = 0.75
"""Share of the axis needed on one side of 0 for names that begin there; with less, charts side by side clip them."""
PATTERNS = {"added": "/", "removed": "x"}
"""Hatching of bars of ops that only one side has."""

NO_CLAIM = "unclear, same or not tested"

ROLES = ("baseline", "candidate")


def top_ops(side: Side, ranked: pd.DataFrame, place: str, count: int = TOP) -> go.Figure:
    """The `count` ops with the largest share of one run's self time, with their shares and cumulative shares.

    `ranked` is sorted by `self_time_us`, descending, with the columns `op_name`, `op_type`, `self_time_us`,
    `self_share` and `cumulative_share`. `place` is where they ran, e.g. `host`.
    """
    ops = ranked.head(count)
    result = style.figure(
        f"Top {len(ops)} ops on {place}: {style.safe(middle_ellipsis(side.name, 32))}",
        f"bars: share of the {side.role.lower()}'s {place} self time; hollow: cumulative share",
        height=style.rows_height(len(ops) + 1),
        legend_rows=0,
        showlegend=False,
    )
    result.add_traces(_share_and_cumulative_share(side, ops))
    result.add_traces([_text_column(ops["self_share"], 1.3), _text_column(ops["cumulative_share"], 1.6)])
    heading = {"y": -0.3, "xanchor": "right", "yanchor": "middle", "showarrow": False, "font": {"size": 11}}
    result.layout.annotations = [{"text": "share", "x": 1.3, **heading}, {"text": "cum.", "x": 1.6, **heading}]
    labels = style.shorten_distinct([str(name) for name in ops["op_name"]])
    result.update_xaxes(range=[0, 1.6], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1])
    style.name_rows(result, labels, above=0.4)
    return result


def _share_and_cumulative_share(side: Side, ops: pd.DataFrame) -> list[go.Bar | go.Scatter]:
    (below,), width = style.bar_offsets()
    rows = np.arange(len(ops)) + below
    hover = np.column_stack([
        ops["op_name"].map(style.safe), ops["op_type"].map(style.safe), ops["self_time_us"].map(format_time_us),
        ops["self_share"].map(format_percent), ops["cumulative_share"].map(format_percent),
    ])  # fmt: skip
    name = "<b>%{customdata[0]}</b><br>"
    bars = go.Bar(
        name="share",
        orientation="h",
        x=ops["self_share"],
        y=rows,
        width=width,
        marker={"color": side.colour},
        customdata=hover,
        hovertemplate=name + "%{customdata[1]}<br>self time %{customdata[2]}<br>share %{customdata[3]}<extra></extra>",
    )
    line = go.Scatter(
        name="cumulative share",
        x=ops["cumulative_share"],
        y=rows,
        mode="markers",
        marker={"color": side.colour, "symbol": f"{side.symbol}-open", "size": 8},
        customdata=hover,
        hovertemplate=name + "together with those above %{customdata[4]}<extra></extra>",
    )
    return [bars, line]


def _text_column(shares: pd.Series, x: float) -> go.Scatter:
    """Percentages with one decimal, right-aligned."""
    (below,), _ = style.bar_offsets()
    return go.Scatter(
        x=[x] * len(shares),
        y=np.arange(len(shares)) + below,
        mode="text",
        text=[f"{100 * share:.1f} %" for share in shares],
        textposition="middle left",
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )


def movers(
    changes: pd.DataFrame, metric: str, *, per: str, by: str = "op_name", quantity: Quantity = SELF_TIME
) -> go.Figure:
    """The rows of `changes` as bars from 0: less to the left, more to the right.

    Blue and orange mark what a verdict calls better or worse. Bytes are exact and need no verdict; counts are neither.
    `changes` are those of `compare.aggregate.largest_changes`, named by their column `by`, with `<metric>_change` (an
    absent side counts as 0) in the quantity's unit. An optional column `detail` is shown on hover, and `label` replaces
    the name (at most about `MOVER_LENGTH` characters). Rows that only one side has are hatched. `per` is `step`, `run`,
    or empty if the metric is no sum.
    """
    change = changes[f"{metric}_change"].astype("float64")
    scale = quantity.scale(change)
    per = f" per {per}" if per else ""
    labels = labels_of(changes, by)
    matched = changes["status"] == "matched"
    result = style.figure(
        f"The {len(changes)} largest changes of {quantity.name}" if len(changes) > 1 else f"Change of {quantity.name}",
        f"candidate − baseline{per and ','}{per}" + ("" if matched.all() else "; hatched: only one side has it"),
        height=style.rows_height(len(changes)),
        barmode="overlay",
    )
    for name, tint, chosen in _kinds(changes, change, quantity):
        for one_sided, bars in ((False, chosen & matched), (True, chosen & ~matched)):
            if bars.any():
                y = np.flatnonzero(bars.to_numpy(dtype=bool))
                trace = _mover_bars(changes[bars], y, metric, (scale, quantity.unit), by)
                alone = not (chosen & matched).any()
                trace.update(name=name, legendgroup=name, marker_color=tint, showlegend=alone or not one_sided)
                result.add_trace(trace)
    low, high = _room(change / scale.size)
    unit = f"{scale.unit}{per}".strip()
    title = f"Change of {quantity.name} ({unit})" if unit else f"Change of {quantity.name}"
    result.update_xaxes(title_text=title, tickformat="~r", range=[low, high], zeroline=True)
    # Names start or end at 0, on the side that has room for them, or else at the left edge.
    if max(-low, high) >= ROOM_FOR_NAMES * (high - low):
        style.name_rows(result, labels, x=0, xref="x", xanchor="right" if -low > high else "left")
    else:
        style.name_rows(result, labels)
    return result


def _kinds(changes: pd.DataFrame, change: pd.Series, quantity: Quantity) -> list[tuple[str, str, pd.Series]]:
    """(legend text, colour, rows) of each kind of bar."""
    less, more = f"▼ {quantity.less}", f"▲ {quantity.more}"
    if not quantity.unit:
        return [(less, style.NEUTRAL, change < 0), (more, style.NEUTRAL, change >= 0)]
    if quantity.unit == "bytes":
        return [(less, style.BETTER, change < 0), (more, style.WORSE, change >= 0)]
    better = (change < 0) & (changes["verdict"] == FASTER)
    worse = (change > 0) & (changes["verdict"] == SLOWER)
    single = changes["evidence"] == SINGLE
    return [
        (less, style.BETTER, better & ~single),
        (f"▼ likely {quantity.less}", style.LIKELY_BETTER, better & single),
        (more, style.WORSE, worse & ~single),
        (f"▲ likely {quantity.more}", style.LIKELY_WORSE, worse & single),
        (NO_CLAIM, style.NEUTRAL, ~(better | worse)),
    ]


def labels_of(rows: pd.DataFrame, by: str) -> list[str]:
    """The label next to each row's bars: its `label` if it has one, else its name, shortened."""
    labels = _labels(rows, by)
    return labels if "label" in rows else style.shorten_distinct(labels, MOVER_LENGTH)


def _labels(rows: pd.DataFrame, by: str) -> list[str]:
    """The unshortened label of each row: its `label` if it has one, else its name."""
    return [str(name) for name in rows["label" if "label" in rows else by]]


def _room(change: pd.Series) -> tuple[float, float]:
    """An axis range with room for the texts beyond the bars' ends."""
    low, high = min(0.0, float(change.min())), max(0.0, float(change.max()))
    margin = 0.4 * (high - low)
    return low - margin if low < 0 else 0.0, high + margin if high > 0 else 0.0


def _mover_bars(
    rows: pd.DataFrame, y: NDArray[np.int64], metric: str, scale_and_unit: tuple[style.Scale, str], by: str
) -> go.Bar:
    scale, unit = scale_and_unit
    what = [
        format_percent_change(ratio) if status == "matched" else status
        for ratio, status in zip(rows[f"{metric}_ratio"], rows["status"], strict=True)
    ]
    change = rows[f"{metric}_change"].map(lambda value: format_delta(value, unit))
    (below,), width = style.bar_offsets()
    return go.Bar(
        orientation="h",
        x=scale.of(rows[f"{metric}_change"]),
        y=y + below,
        width=width,
        marker={"pattern": {"shape": [PATTERNS.get(s, "") for s in rows["status"]], "size": 6, "fillmode": "replace"}},
        text=[f"{us} ({text})" for us, text in zip(change, what, strict=True)],
        textposition="outside",
        textfont={"size": 11},
        constraintext="none",
        cliponaxis=False,
        customdata=np.column_stack([
            rows[by].map(style.wrap_text), details_of(rows, by).map(style.wrap_text), what, change,
            *(rows[f"{metric}_{role}"].map(lambda value: format_value(value, unit)) for role in ROLES),
        ]),
        hovertemplate=(
            "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>change %{customdata[3]} (%{customdata[2]})"
            "<br>baseline %{customdata[4]}<br>candidate %{customdata[5]}<extra></extra>"
        ),
    )  # fmt: skip


def details_of(rows: pd.DataFrame, by: str) -> pd.Series:
    """What hovering shows of each row besides its name."""
    if "detail" in rows:
        return rows["detail"]
    place = rows["host_or_device"]
    return rows["op_type"] + " · " + place.str.lower() if by == "op_name" else place


def self_time_shares(shares: pd.DataFrame, sides: tuple[Side, Side], *, by: str, place: str) -> go.Figure:
    """Self time shares of both sides, as pairs of bars; each side's bars add up to 100 %.

    `shares` has one row per group in display order, with the columns of `tools.op_stats.time_shares`. `by` names the
    groups (`op`, `op type`), `place` where they ran (`host`).
    """
    title, whole = f"Self time on {place} by {by}", f"{place} self time"
    return share_bars(shares, sides, "self_time_us", title=title, whole=whole, axis="Share of self time")


def share_bars(
    shares: pd.DataFrame, sides: tuple[Side, Side], metric: str, *, title: str, whole: str, axis: str
) -> go.Figure:
    """Time shares of both sides, as pairs of bars; each side's bars add up to 100 %.

    `shares` has one row per group in display order, with the columns of `tools.op_stats.time_shares` for `metric`, and
    optionally `label` for groups whose names are too long to read. `whole` is what the shares are of.
    """
    labels = style.shorten_distinct(_labels(shares, "group"))
    labels = [f"{label} ({n:,} more)" if n else label for label, n in zip(labels, shares["others"], strict=True)]
    result = style.figure(
        title,
        f"share of each run's {whole}; a run's bars add up to 100 %",
        height=style.rows_height(len(shares), bars_in_a_row=2),
        legend_rows=2,
        barmode="overlay",
    )
    offsets, width = style.bar_offsets(2)
    for role, side, below in zip(ROLES, sides, offsets, strict=True):
        bars = _share_bars(shares, metric, role, side)
        result.add_trace(bars.update(y=np.arange(len(shares)) + below, width=width))
    largest = float(max(shares[f"share_{role}"].max() for role in ROLES)) if len(shares) else 1.0
    result.update_xaxes(range=[0, min(1.15, largest * 1.18)], tickformat=".0%", title_text=axis)
    style.name_rows(result, labels)
    return result


def _share_bars(shares: pd.DataFrame, metric: str, role: str, side: Side) -> go.Bar:
    texts = shares[f"share_{role}"].map(format_percent).mask(shares[f"is_absent_{role}"].astype(bool), "not there")
    return go.Bar(
        name=side.label,
        orientation="h",
        x=shares[f"share_{role}"],
        marker={"color": side.colour},
        text=texts,
        textposition="outside",
        textfont={"size": 11},
        constraintext="none",
        cliponaxis=False,
        customdata=np.column_stack(
            [shares["group"].map(style.wrap_text), texts, shares[f"{metric}_{role}"].map(format_time_us)]
        ),
        hovertemplate=f"<b>%{{customdata[0]}}</b><br>{role}: %{{customdata[1]}}, %{{customdata[2]}}<extra></extra>",
    )
