"""Charts of ops as bars: the longest of one run, and the largest changes between two."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.pair import Pair
from tfcompare.compare.stats.verdict import FASTER, SINGLE, SLOWER
from tfcompare.compare.work.terms import LESS_WORK, MORE_WORK, SAME_WORK, work_changes
from tfcompare.schema import SIDES, place_word
from tfcompare.units import format_delta, format_percent_change, format_value
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import SELF_TIME, Quantity
from tfcompare.views.ops.work_words import work_words
from tfcompare.views.verdict_marks import outcome_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOP = 15
MOVER_LENGTH = 48
"""Maximum length of a name next to a bar."""
WIDE_BARS, NARROW_BARS = 0.74, 0.56
"""The share of the width for the bars; their numbers are to the right."""
ENTRIES_IN_A_NARROW_ROW, LETTERS_IN_A_ROW = 2, 100
"""Of the legend, on a phone and elsewhere; more have a row each, or they would cover the subtitle."""
PALE_WIDTH = 0.5
INTERVAL_GAP = 0.06
PATTERNS = {"added": "/", "removed": "x"}
"""Hatching of bars of ops that only one side has."""

DOTS, ALIKE = ".", (LESS_WORK, MORE_WORK)
"""The pattern of bars whose work changed as their time did, a shade lighter, and how their names in the legend end."""

NO_CLAIM = "not significant, or not tested"
ONE_SIDED = "added or removed"


def movers(
    changes: pd.DataFrame,
    metric: str,
    *,
    per: str,
    by: str = "op_name",
    quantity: Quantity = SELF_TIME,
    letters: int = MOVER_LENGTH,
) -> go.Figure:
    """The rows of `changes` as bars from 0, less to the left, with 95 % confidence intervals; numbers are at the right.

    `changes` are those of `compare.aggregate.largest_changes`, named by their column `by`, with `<metric>_change` (an
    absent side counts as 0) in the quantity's unit. Times have the columns `diff.VERDICT`, whose interval is that of
    the ratio. An optional column `detail` is shown on hover, and `label` replaces the name. Names are cut to `letters`
    and followed by both values. With fewer than `MOVER_LENGTH`, for a narrow page, the values are left out, the title
    of the axis is short, and the numbers at the right get a larger share of the width. `per` is `step`, `run`, or empty
    if the metric is no sum.

    Significant changes are solid blue or orange, dotted where the work changed in the same direction; others are thin
    outlines; rows that only one side has are hatched. Bytes and counts are exact and need no verdict; counts are
    neither better nor worse.
    """
    change = changes[f"{metric}_change"].astype("float64")
    ends = _interval_ends(changes, metric, quantity)
    low, high = min(0.0, change.min(), ends["low"].min()), max(0.0, change.max(), ends["high"].max())
    scale = quantity.scale([low, high])
    work = _work(changes, per)
    per = f" per {per}" if per else ""
    matched = changes["status"] == "matched"
    notes = [f"candidate − baseline{per and ','}{per}"]
    notes += ["line: 95 % confidence interval"] if ends["low"].notna().any() else []
    notes += [] if matched.all() or quantity.unit == "µs" else ["hatched: added or removed"]
    is_narrow = letters < MOVER_LENGTH
    kinds = [kind for kind in _kinds(changes, change, quantity, work) if kind[2].any()]
    result = style.figure(
        f"The {len(changes)} largest changes of {quantity.name}" if len(changes) > 1 else f"Change of {quantity.name}",
        "; ".join(notes),
        height=style.rows_height(len(changes)),
        legend_rows=_legend_rows([name for name, _, _ in kinds], is_narrow=is_narrow),
        barmode="overlay",
    )
    texts = _Texts.of(changes, metric, quantity)
    for name, tint, chosen in kinds:
        for one_sided, bars in ((False, chosen & matched), (True, chosen & ~matched)):
            if bars.any():
                y = np.flatnonzero(bars.to_numpy(dtype=bool))
                trace = _mover_bars(changes[bars], y, scale.of(change[bars]), texts.hover(changes, by)[y])
                alone = not (chosen & matched).any()
                is_pale = name == NO_CLAIM and not one_sided
                if name.endswith(ALIKE):
                    trace.marker.pattern.shape = DOTS
                trace.update(name=name, legendgroup=name, showlegend=alone or not one_sided, **_look(tint, is_pale))
                result.add_trace(trace)
        known = chosen & ends["low"].notna()
        if known.any():
            lines = _interval_lines(np.flatnonzero(known), scale.of(ends["low"][known]), scale.of(ends["high"][known]))
            result.add_trace(lines.update(legendgroup=name, line_color=tint, marker_color=tint))
    margin = 0.04 * (high - low) / scale.size
    what, unit = "Change" if is_narrow else f"Change of {quantity.name}", f"{scale.unit}{per}".strip()
    result.update_xaxes(
        title_text=f"{what} ({unit})" if unit else what,
        tickformat="~r",
        range=[low / scale.size - margin, high / scale.size + margin],
        zeroline=True,
        domain=[0, NARROW_BARS if is_narrow else WIDE_BARS],
    )
    names = changes["label" if "label" in changes else by]
    labels = style.shorten_distinct(list(map(str, names)), letters)
    if not is_narrow:
        labels = [f"{label} · {ours} → {theirs}" for label, (ours, theirs) in zip(labels, texts.values, strict=True)]
    style.name_rows(result, labels)
    result.layout.annotations = [*result.layout.annotations, *texts.annotations()]
    return result


def _interval_ends(changes: pd.DataFrame, metric: str, quantity: Quantity) -> pd.DataFrame:
    """`low` and `high` of the confidence interval of each change, in the metric's unit; NaN without one."""
    if quantity.unit != "µs" or "interval_low" not in changes:
        return pd.DataFrame(np.nan, changes.index, ["low", "high"])
    baseline = changes[f"{metric}_baseline"].astype("float64")
    return pd.DataFrame({end: (changes[f"interval_{end}"] - 1) * baseline for end in ("low", "high")})


@dataclass(frozen=True)
class _Texts:
    """What is written about each row: `first` beside its name, `second` beside its bar."""

    first: list[str]
    second: list[str]
    values: NDArray[np.str_]

    @classmethod
    def of(cls, changes: pd.DataFrame, metric: str, quantity: Quantity) -> _Texts:
        """`▼ faster · −1.2 ms` and `−12 % (−13 to −11)` for times with a verdict; without one, only the numbers."""
        rows = changes.to_dict("records")
        deltas = [format_delta(row[f"{metric}_change"], quantity.unit) for row in rows]
        is_judged = [row["status"] != "matched" or quantity.unit == "µs" for row in rows]  # bytes and counts are exact
        words = [outcome_text(row) if judged else "" for row, judged in zip(rows, is_judged, strict=True)]
        first = [" · ".join(filter(None, [word, delta])) for word, delta in zip(words, deltas, strict=True)]
        second = [_percent(row, metric, quantity) for row in rows]
        values = [[format_value(row[f"{metric}_{role}"], quantity.unit) for role in SIDES] for row in rows]
        return cls(first, second, np.array(values, dtype=np.str_))

    def annotations(self) -> list[dict[str, object]]:
        """Both texts of each row at its right end."""
        (below,), _ = style.bar_offsets()
        end = {"x": 1, "xref": "paper", "xanchor": "right", "yanchor": "middle", "showarrow": False}
        return [
            end | {"text": text, "y": row + offset, "font": {"size": 11}}
            for offset, texts in ((0.0, self.first), (below, self.second))
            for row, text in enumerate(texts)
            if text
        ]

    def hover(self, changes: pd.DataFrame, by: str) -> NDArray[np.object_]:
        """The hover data of each row: its name, its `detail`, else where it ran, and the texts."""
        details = changes["detail" if "detail" in changes else "host_or_device"]
        if by == "op_name" and "detail" not in changes:
            details = changes["op_type"] + " · " + details.map(place_word)
        if "work_ratio" in changes:
            work = pd.Series([work_words(row) for _, row in changes.iterrows()], changes.index, dtype="str")
            details = details.where(work == "", details + " · " + work)
        names = changes[by].map(style.wrap_text)
        return np.column_stack([names, details.map(style.wrap_text), self.first, self.second, self.values])


def _percent(row: Mapping[Hashable, Any], metric: str, quantity: Quantity) -> str:
    """`−12 % (−13 to −11)`: the change in percent, or as a ratio if large, with its confidence interval, if any."""
    if row["status"] != "matched":
        return ""
    ratio = row[f"{metric}_ratio"]
    text = format_percent_change(ratio)
    if quantity.unit != "µs" or math.isnan(row.get("interval_low", math.nan)):
        return text
    low, high = (format_percent_change(row[f"interval_{end}"], ratio).rstrip(" %×") for end in ("low", "high"))
    return f"{text} ({low} to {high})"


def _legend_rows(names: Sequence[str], *, is_narrow: bool) -> int:
    """1, or a row for each entry where they would not fit in one."""
    is_long = len(names) > ENTRIES_IN_A_NARROW_ROW if is_narrow else len("".join(names)) > LETTERS_IN_A_ROW
    return len(names) if is_long else 1


def _work(changes: pd.DataFrame, per: str) -> pd.Series:
    """The result of `work_changes`; empty texts where rows have no work, or are per occurrence, which it is not."""
    if "work_ratio" in changes and per != "occurrence":
        return work_changes(changes)
    return pd.Series("", changes.index, dtype="str")


def _kinds(
    changes: pd.DataFrame, change: pd.Series, quantity: Quantity, work: pd.Series
) -> list[tuple[str, str, pd.Series]]:
    """(legend text, colour, rows) of each kind of bar."""
    less, more = f"▼ {quantity.less}", f"▲ {quantity.more}"
    if not quantity.unit:
        return [(less, style.NEUTRAL, change < 0), (more, style.NEUTRAL, change >= 0)]
    if quantity.unit == "bytes":
        return [(less, style.BETTER, change < 0), (more, style.WORSE, change >= 0)]
    matched = changes["status"] == "matched"
    better = (change < 0) & (changes["verdict"] == FASTER)
    worse = (change > 0) & (changes["verdict"] == SLOWER)
    single = changes["evidence"] == SINGLE
    claims = [
        (less, style.BETTER, better & ~single, LESS_WORK),
        (f"▼ likely {quantity.less}", style.LIKELY_BETTER, better & single, LESS_WORK),
        (more, style.WORSE, worse & ~single, MORE_WORK),
        (f"▲ likely {quantity.more}", style.LIKELY_WORSE, worse & single, MORE_WORK),
    ]
    by_work = []
    for name, tint, rows, alike in claims:
        others = rows & (work != alike)
        suffix = f", {SAME_WORK}" if (work[others] == SAME_WORK).all() else ""
        by_work += [(f"{name}, {alike}", tint, rows & (work == alike)), (name + suffix, tint, others)]
    return [
        *by_work,
        (NO_CLAIM, style.NEUTRAL, matched & ~(better | worse)),
        (ONE_SIDED, style.NEUTRAL, ~matched),
    ]


def _look(tint: str, is_pale: bool) -> dict[str, Any]:
    """Solid bars for what is significant or exact; thin outlines for what is not."""
    _, width = style.bar_offsets()
    if not is_pale:
        return {"width": width, "marker_color": tint}
    return {"width": PALE_WIDTH * width, "marker_color": "rgba(0,0,0,0)", "marker_line": {"color": tint, "width": 1}}


def _mover_bars(rows: pd.DataFrame, y: NDArray[np.int64], x: NDArray[np.float64], hover: NDArray[np.object_]) -> go.Bar:
    (below,), _ = style.bar_offsets()
    pattern = {"shape": [PATTERNS.get(s, "") for s in rows["status"]], "size": 6, "fillmode": "replace"}
    template = (
        "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]}"
        "<br>baseline %{customdata[4]}<br>candidate %{customdata[5]}<extra></extra>"
    )
    bars = go.Bar(orientation="h", x=x, y=y + below, marker={"pattern": pattern})
    return bars.update(customdata=hover, hovertemplate=template)


def _interval_lines(y: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64]) -> go.Scatter:
    """A line with ends for each confidence interval, just below the middle of the row's bar."""
    (below,), width = style.bar_offsets()
    x = np.column_stack([low, high, np.full(len(y), np.nan)]).ravel()
    look = {"mode": "lines+markers", "line": {"width": 2}, "marker": {"symbol": "line-ns-open", "size": 7}}
    at = np.repeat(y + below + width / 2 + INTERVAL_GAP, 3)
    return go.Scatter(x=x, y=at, **look, hoverinfo="skip", showlegend=False, cliponaxis=False)


def changes_of_pair(
    pair: Pair,
    changes: pd.DataFrame,
    metric: str,
    *,
    by: str = "op_name",
    quantity: Quantity = SELF_TIME,
    letters: int = MOVER_LENGTH,
    per: str,
) -> go.Figure:
    """The rows of `largest_changes` with the intervals of the ratio of the sums shown; tests are about the time per
    step. `per`: what the metric is per, empty for nothing."""
    if quantity.unit == "µs" and "interval_low" in changes and per != "occurrence":
        changes = changes.assign(**{end: pair.of_sums(changes[end]) for end in INTERVAL})
    return movers(changes, metric, per=per, by=by, quantity=quantity, letters=letters)
