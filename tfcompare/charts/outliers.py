"""Steps far from the usual ones in a figure: they are marked, and do not press the others flat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import downsampling as thinning
from tfcompare.compare.stats.estimates import outlying_steps
from tfcompare.units import format_time_us

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from tfcompare.charts.style import Scale

SYMBOL = "star"
NOTE = "star: outlying"
HOVER = "<br>outlying: moved to the edge of the usual for the verdict"
SQUASHED = 2.5
"""The longest step is so many times the longest usual one: then the axis ends above the usual ones."""
BEYOND_NOTE = "▲ beyond the axis (double-click: all of it)"

_ROOM = 1.3
_MOST_LABELS = 6
_LEVELS = 3
_COLOUR = "#7A8798"


def drawn_as_outlying(frame: pd.DataFrame, column: str = "duration_us") -> NDArray[np.bool_]:
    """Which rows are outlying in that column; none where the steps are marked by no `included`."""
    return outlying_steps(frame.assign(duration_us=frame[column]))


def axis_end(frames: Sequence[pd.DataFrame], column: str) -> float | None:
    """Where an axis that begins at 0 ends, in the column's unit; None where all that is drawn fits on it."""
    usual = [
        float(frame.loc[frame["included"].to_numpy(np.bool_) & ~drawn_as_outlying(frame, column), column].max())
        for frame in frames
    ]
    longest = max((float(frame[column].max()) for frame in frames), default=0.0)
    longest_usual = max((value for value in usual if value > 0), default=0.0)
    return _ROOM * longest_usual if longest_usual > 0 and longest > SQUASHED * longest_usual else None


def beyond_lines(frame: pd.DataFrame, column: str, end: float, scale: Scale, colour: str) -> go.Scatter | None:
    """A mark below the edge of the axis, with its time, for each step that goes beyond it; None without any."""
    places = _beyond(frame, column, end)
    sides = ["middle right" if place < len(frame) * 0.7 else "middle left" for place in places]
    levels = np.array([end * (0.96 - 0.08 * (i % _LEVELS)) for i in range(places.size)])  # neighbours can be read
    is_labelled = places.size <= _MOST_LABELS
    return _marks(frame, column, places, levels / scale.size, is_labelled, textposition=sides, marker_color=colour)


def beyond_bars(frame: pd.DataFrame, column: str, end: float, scale: Scale) -> go.Scatter | None:
    """As `beyond_lines`, on the edge and with the times above it, where they have room."""
    places = _beyond(frame, column, end)
    is_labelled = bool((np.diff(places) >= len(frame) / _MOST_LABELS).all())
    levels = np.full(places.size, end / scale.size)
    return _marks(frame, column, places, levels, is_labelled, textposition="top center", marker_color=_COLOUR)


def _beyond(frame: pd.DataFrame, column: str, end: float) -> NDArray[np.int64]:
    values = frame[column].to_numpy(np.float64)
    return np.flatnonzero(thinning.to_mark(values, values > end))


def _marks(
    frame: pd.DataFrame, column: str, places: NDArray[np.int64], y: NDArray[np.float64], is_labelled: bool, **look: Any
) -> go.Scatter | None:
    if not places.size:
        return None
    rows = frame.iloc[places]
    times = rows[column].map(format_time_us).tolist()
    return go.Scatter(
        x=places + 1,
        y=y,
        mode="markers+text" if is_labelled else "markers",
        text=times,
        marker={"symbol": "triangle-up", "size": 10},
        customdata=np.column_stack([rows["step"].astype(str), times]),
        hovertemplate=(
            "step %{customdata[0]} (position %{x})<br><b>%{customdata[1]}</b>, beyond the axis<extra></extra>"
        ),
        showlegend=False,
        cliponaxis=False,
        **look,
    )
