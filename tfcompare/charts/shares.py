"""Where the time goes: bars of the time of each group, or of its share, for one or two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.style import Side
from tfcompare.units import format_percent, format_time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

ROLES = ("baseline", "candidate")
ABSENT = "not in this run"
_ROOM_FOR_TEXT = 1.22


def time_bars(
    shares: pd.DataFrame, sides: Sequence[Side], metric: str, *, title: str, axis: str, reach: float = 0.0
) -> go.Figure:
    """The time of each group, a bar for each of `sides` (the baseline first).

    `shares` has one row per group in display order, with the columns of `tools.op_stats.time_shares` for `metric`, and
    optionally `label` for groups whose names are too long to read. `axis` says what the time is, such as `Self time per
    step`; its unit is added. The axis includes `reach`, so that charts side by side can have the same scale.
    """
    columns = [f"{metric}_{role}" for role in ROLES[: len(sides)]]
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
    columns = [f"share_{role}" for role in ROLES[: len(sides)]]
    values = [shares[column].to_numpy(dtype=np.float64) for column in columns]
    result = _bars(shares, sides, metric, values, [shares[column].map(format_percent) for column in columns], title)
    _include(result, reach)
    result.update_xaxes(tickformat=".0%", title_text=axis)
    return result


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
    result = style.figure(
        title,
        height=style.rows_height(len(shares), bars_in_a_row=len(sides)),
        legend_rows=len(sides) if len(sides) > 1 else 0,
        showlegend=len(sides) > 1,
        barmode="overlay",
    )
    offsets, width = style.bar_offsets(len(sides))
    for role, side, below, x, text in zip(ROLES, sides, offsets, values, texts, strict=False):
        shown = text.mask(shares[f"is_absent_{role}"].astype(bool), ABSENT)
        numbers = [shares[f"{metric}_{role}"].map(format_time_us), shares[f"share_{role}"].map(format_percent)]
        result.add_bar(
            name=side.label,
            orientation="h",
            x=x,
            y=np.arange(len(shares)) + below,
            width=width,
            marker={"color": side.colour},
            text=shown,
            **style.BESIDE_BAR,
            customdata=np.column_stack([shares["group"].map(style.wrap_text), *numbers]),
            hovertemplate=(
                f"<b>%{{customdata[0]}}</b><br>{side.role_in_text}: %{{customdata[1]}}, %{{customdata[2]}}"
                "<extra></extra>"
            ),
        )
    style.name_rows(result, labels)
    return result
