"""The largest changes of a pair of runs as bars."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from tfcompare.charts import ops
from tfcompare.charts.style import SELF_TIME, Quantity
from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.pair import Pair


def changes_of_pair(
    pair: Pair,
    changes: pd.DataFrame,
    metric: str,
    *,
    by: str = "op_name",
    quantity: Quantity = SELF_TIME,
    letters: int = ops.MOVER_LENGTH,
    per: str,
) -> go.Figure:
    """The rows of `largest_changes` with the intervals of the ratio of the sums shown; tests are about the time per
    step. `per`: what the metric is per, empty for nothing."""
    if quantity.unit == "µs" and "interval_low" in changes and per != "occurrence":
        changes = changes.assign(**{end: pair.of_sums(changes[end]) for end in INTERVAL})
    return ops.movers(changes, metric, per=per, by=by, quantity=quantity, letters=letters)
