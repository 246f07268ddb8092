"""How charts draw slow steps: marked, and without flattening the other steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import downsampling
from tfcompare.tables import slow_steps
from tfcompare.units import format_time_us

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from tfcompare.charts.style import Scale

SYMBOL = "star"
NOTE = "star: slow step"
HOVER = "<br>slow: far longer than most steps"
CUT_ABOVE_RATIO = 2.5
"""The axis is cut above the usual steps if the longest step is more than this many times the longest usual one."""
BEYOND_NOTE = "▲ beyond the axis (double-click: all of it)"

_ROOM = 1.3
_RARE = 0.1
"""The share of steps up to which slow ones do not decide how far the axis reaches."""
_MAX_LABELS = 6
_LABEL_LEVELS = 3
_COLOUR = "#7A8798"


def is_slow(frame: pd.DataFrame, column: str = "duration_us") -> NDArray[np.bool_]:
    """Which included steps are slow by that column."""
    return slow_steps.slow_included(frame[column].to_numpy(np.float64), frame["included"].to_numpy(np.bool_))


def axis_end(frames: Sequence[pd.DataFrame], column: str) -> float | None:
    """Where to cut an axis that begins at 0, in the column's unit; None if all steps fit.

    Slow steps are beyond the axis if they are rare; if they are many, they are what the chart is about.
    """
    usual = [float(frame.loc[_within_axis(frame, column), column].max()) for frame in frames]
    longest = max((float(frame[column].max()) for frame in frames), default=0.0)
    longest_usual = max((value for value in usual if value > 0), default=0.0)
    return _ROOM * longest_usual if longest_usual > 0 and longest > CUT_ABOVE_RATIO * longest_usual else None


def _within_axis(frame: pd.DataFrame, column: str) -> NDArray[np.bool_]:
    included, slow = frame["included"].to_numpy(np.bool_), is_slow(frame, column)
    return included & ~slow if slow.sum() <= _RARE * included.sum() else included


def beyond_line_marks(frame: pd.DataFrame, column: str, end: float, scale: Scale, colour: str) -> go.Scatter | None:
    """Marks with the time of each step beyond the end of the axis, just below the edge; None without any."""
    positions = _beyond(frame, column, end)
    sides = ["middle right" if position < len(frame) * 0.7 else "middle left" for position in positions]
    levels = np.array([end * (0.96 - 0.08 * (i % _LABEL_LEVELS)) for i in range(positions.size)])  # staggered
    is_labelled = positions.size <= _MAX_LABELS
    return _marks(frame, column, positions, levels / scale.size, is_labelled, textposition=sides, marker_color=colour)


def beyond_bar_marks(frame: pd.DataFrame, column: str, end: float, scale: Scale) -> go.Scatter | None:
    """Like `beyond_line_marks`, with marks on the edge and times above it if there is room."""
    positions = _beyond(frame, column, end)
    is_labelled = bool((np.diff(positions) >= len(frame) / _MAX_LABELS).all())
    levels = np.full(positions.size, end / scale.size)
    return _marks(frame, column, positions, levels, is_labelled, textposition="top center", marker_color=_COLOUR)


def _beyond(frame: pd.DataFrame, column: str, end: float) -> NDArray[np.int64]:
    values = frame[column].to_numpy(np.float64)
    return np.flatnonzero(downsampling.steps_to_mark(values, values > end))


def _marks(
    frame: pd.DataFrame,
    column: str,
    positions: NDArray[np.int64],
    y: NDArray[np.float64],
    is_labelled: bool,
    **look: Any,
) -> go.Scatter | None:
    if not positions.size:
        return None
    rows = frame.iloc[positions]
    times = rows[column].map(format_time_us).tolist()
    return go.Scatter(
        x=positions + 1,
        y=y,
        mode="markers+text" if is_labelled else "markers",
        text=times,
        marker={"symbol": "triangle-up", "size": 10},
        customdata=np.column_stack([rows["step"].astype(str), times]),
        hovertemplate=(
            "step %{x} (number %{customdata[0]})<br><b>%{customdata[1]}</b>, beyond the axis<extra></extra>"
        ),
        showlegend=False,
        cliponaxis=False,
        **look,
    )
