"""Where the time goes: bars of the time of each group, or of its share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.schema import SIDES
from tfcompare.text import capitalized, middle_ellipsis
from tfcompare.units import format_percent, format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.blocks import Facts
from tfcompare.views.chart_style import side_colour, side_label
from tfcompare.views.ops.figures import longest_first
from tfcompare.views.view import by_role

if TYPE_CHECKING:
    from collections.abc import Sequence

ABSENT = "not in this run"
COLOURS = ("#3C6FB4", "#0A7A6E", "#8A6A00", "#A0458C", "#B04A2E", "#5B54B8", "#4F7A1F", "#8C4A5A", "#37718E", "#5F6873")
"""Of the groups of a row in their order, for white text: from 4.5:1 on in contrast. The last is that of all others."""
_GAP = {"color": "rgba(255,255,255,0.4)", "width": 0.5}
_TEXT = {"textposition": "inside", "insidetextanchor": "start", "textangle": 0, "constraintext": "inside"}
_INSIDE_BAR = {**_TEXT, "insidetextfont": {"color": "#FFFFFF"}}
_WRITTEN_BAR, _NAME_PIXELS = 21, 26
"""The height in pixels of a bar with names in it, and of the label above."""
WIDE, NARROW = 800, 280
"""The width in pixels of whole bars in a window of 1,280 px, and in a narrow one; texts shrink where it is less."""
_LETTER_PIXELS, _FEWEST_LETTERS = 5.5, 5
_ROOM_FOR_TEXT = 1.22


def bars(
    pair: Pair, times: pd.DataFrame, metric: str, *, title: str, of: str, reach: float = 0.0, as_shares: bool = False
) -> Any:
    """The rows of `time_shares` as bars, of times or of shares; `of` says what time it is, such as `self time`."""
    sides = [side for side, _ in pair.shown]
    if as_shares:
        return share_bars(times, sides, metric, title=title, axis=f"Share of {of}", reach=reach)
    axis = f"{capitalized(of)} per {pair.per_what}"
    return time_bars(longest_first(times, metric), sides, metric, title=title, axis=axis, reach=reach)


def facts(pair: Pair, times: pd.DataFrame, title: str, most: int) -> Facts:
    """The largest shares of `time_shares` as texts."""
    names = times["label" if "label" in times else "group"].head(most)
    columns = [times[name].head(most).map(format_percent) for name in by_role("share", SIDES[: len(pair.shown)])]
    cells = [[str(name), *shares] for name, *shares in zip(names, *columns, strict=True)]
    more = len(times) - len(cells)
    return Facts([title, *pair.headings], cells, (1, 2), note=f"{more} more are left out." if more else "")


def time_bars(
    shares: pd.DataFrame, sides: Sequence[Side], metric: str, *, title: str, axis: str, reach: float = 0.0
) -> go.Figure:
    """The time of each group, a bar for each of `sides` (the baseline first).

    `shares` has one row per group in display order, with the columns of `tools.op_stats.time_shares` for `metric`, and
    optionally `label` for groups whose names are too long to read. `axis` says what the time is, such as `Self time per
    step`; its unit is added. The axis includes `reach`, so that charts side by side can have the same scale.
    """
    columns = [f"{metric}_{role}" for role in SIDES[: len(sides)]]
    scale = style.time_scale([reach, *shares[columns].to_numpy().ravel().tolist()])
    values = [scale.of(shares[column]) for column in columns]
    result = _bars(shares, sides, metric, values, [shares[column].map(format_time_us) for column in columns], title)
    _include(result, reach / scale.size)
    result.update_xaxes(tickformat="~r", title_text=f"{axis} ({scale.unit})")
    return result


def share_bars(
    shares: pd.DataFrame, sides: Sequence[Side], metric: str, *, title: str, axis: str, reach: float = 0.0
) -> go.Figure:
    """As `time_bars`, with the share of each group in the time of its run; the bars of a run add up to 100 %."""
    columns = [f"share_{role}" for role in SIDES[: len(sides)]]
    values = [shares[column].to_numpy(dtype=np.float64) for column in columns]
    result = _bars(shares, sides, metric, values, [shares[column].map(format_percent) for column in columns], title)
    _include(result, reach)
    result.update_xaxes(tickformat=".0%", title_text=axis)
    return result


def share_rows(
    rows: Sequence[tuple[str, pd.DataFrame]], sides: Sequence[Side], *, title: str, pixels: int = WIDE
) -> go.Figure:
    """Several distributions at a glance: for each of `rows`, a label and its groups, one whole bar for each side.

    The groups are as for `share_bars`, at most as many as `COLOURS`; a group has the same colour on both sides. Names
    are written where there is room in bars of this width; hovering shows every name.
    """
    row = _NAME_PIXELS + _WRITTEN_BAR * len(sides)
    subtitle = "upper bar: baseline; lower bar: candidate" if len(sides) > 1 else ""
    height = 118 + row * max(len(rows), 2)
    look = {"barmode": "stack", "barcornerradius": 0, "showlegend": False}
    result = style.figure(title, subtitle, height=height, legend_rows=0, **look)
    offsets, width = [(_WRITTEN_BAR * (at + 0.9)) / row for at in range(len(sides))], (_WRITTEN_BAR - 2) / row
    for role, side, below in zip(SIDES, sides, offsets, strict=False):
        for rank, colour in enumerate(COLOURS):
            there = [(at, shares) for at, (_, shares) in enumerate(rows) if rank < len(shares)]
            if not there:
                break
            groups = [shares.iloc[rank] for _, shares in there]
            parts = [float(group[f"share_{role}"]) for group in groups]
            texts = [_text_inside(str(group["group"]), part, pixels) for group, part in zip(groups, parts, strict=True)]
            hover = [[_full_name(group), format_percent(part)] for group, part in zip(groups, parts, strict=True)]
            template = f"<b>%{{customdata[0]}}</b><br>{side.role_in_text}: %{{customdata[1]}}<extra></extra>"
            y, marker = [at + below for at, _ in there], {"color": colour, "line": _GAP}
            result.add_bar(orientation="h", x=parts, y=y, width=width, marker=marker, text=texts, **_INSIDE_BAR)
            result.data[-1].update(customdata=hover, hovertemplate=template)
    result.update_xaxes(tickformat=".0%", range=[0, 1], title_text="Share of self time")
    style.name_rows(result, [label for label, _ in rows])
    return result


def _text_inside(name: str, share: float, pixels: int) -> str:
    """What is written on a segment: the name, shortened to the room that there is, and the share; else nothing."""
    percent = format_percent(share)
    letters = int(share * pixels / _LETTER_PIXELS) - len(percent) - 2
    return f"{style.safe(middle_ellipsis(name, letters))} {percent}" if letters >= _FEWEST_LETTERS else ""


def _full_name(group: pd.Series) -> str:
    more = f" ({group['others']:,} more)" if group["others"] else ""
    return style.wrap_text(f"{group['group']}{more}")


def _include(result: go.Figure, reach: float) -> None:
    """Extend the axis to `reach`, with room for texts beyond the bars."""
    largest = max([reach, *(float(x) for bars in result.data for x in bars.x)])
    result.update_xaxes(range=[0, (largest or 1.0) * _ROOM_FOR_TEXT])


def _bars(
    shares: pd.DataFrame,
    sides: Sequence[Side],
    metric: str,
    values: Sequence[np.typing.NDArray[np.float64]],
    texts: Sequence[pd.Series],
    title: str,
) -> go.Figure:
    names = [str(name) for name in shares["label" if "label" in shares else "group"]]
    labels = [
        f"{label} ({n:,} more)" if n else label
        for label, n in zip(style.shorten_distinct(names), shares["others"], strict=True)
    ]
    height, rows = style.rows_height(len(shares), len(sides)), len(sides) if len(sides) > 1 else 0
    result = style.figure(title, height=height, legend_rows=rows, showlegend=rows > 0, barmode="overlay")
    offsets, width = style.bar_offsets(len(sides))
    for role, side, below, x, text in zip(SIDES, sides, offsets, values, texts, strict=False):
        shown = text.mask(shares[f"is_absent_{role}"].astype(bool), ABSENT)
        numbers = [shares[f"{metric}_{role}"].map(format_time_us), shares[f"share_{role}"].map(format_percent)]
        figures = "%{customdata[1]}, %{customdata[2]}"
        template = f"<b>%{{customdata[0]}}</b><br>{side.role_in_text}: {figures}<extra></extra>"
        hover = np.column_stack([shares["group"].map(style.wrap_text), *numbers])
        y, marker = np.arange(len(shares)) + below, {"color": side_colour(side)}
        result.add_bar(name=side_label(side), orientation="h", x=x, y=y, width=width, marker=marker, text=shown)
        result.data[-1].update(**style.BESIDE_BAR, customdata=hover, hovertemplate=template)
    style.name_rows(result, labels)
    return result
