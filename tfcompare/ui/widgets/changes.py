"""What changed the most, as every page with such a chart shows it: how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from tfcompare.charts import ops
from tfcompare.charts.change_intervals import change_intervals
from tfcompare.charts.style import SELF_TIME, Quantity
from tfcompare.compare.aggregate import metric_in
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.widgets.figures import draw
from tfcompare.ui.widgets.side_by_side import two_charts

NOTHING_TESTED = (
    "None of these changes could be tested, so whether they are more than chance is not known: it takes steps that are "
    "marked, nine or more on each side, and rows that take 0.5 % of the time."
)


def largest(
    pair: Pair,
    changes: pd.DataFrame,
    metric: str,
    *,
    by: str = "op_name",
    quantity: Quantity = SELF_TIME,
    key: str = "movers",
    on: Hashable = None,
) -> None:
    """The rows of `largest_changes` as bars, and beside them as ratios with their intervals, where any was tested.

    `on` is what these rows depend on beside the pair.
    """
    name = metric_in(changes, metric)
    per = pair.comparison.per

    def bars() -> None:
        draw(pair, key, lambda: ops.movers(changes, name, per=per, by=by, quantity=quantity), (by, quantity, on))

    if changes["interval_low"].isna().all():
        bars()
        st.caption(NOTHING_TESTED)
        return
    ratios = pair.comparison.per_step(changes[f"{name}_ratio"], pair.candidate)
    with two_charts(key):
        bars()
        intervals = f"{key}_intervals"
        draw(pair, intervals, lambda: change_intervals(changes, ratios, by=by, quantity=quantity), (by, quantity, on))
