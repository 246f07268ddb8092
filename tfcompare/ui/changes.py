"""What changed the most, as every page with such a chart shows it: how much, and how sure that is."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tfcompare.charts import ops
from tfcompare.charts.change_intervals import change_intervals
from tfcompare.charts.style import SELF_TIME, Quantity
from tfcompare.compare.movers import metric_in
from tfcompare.ui.pair import Pair, show, two_charts

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
) -> None:
    """The rows of `largest_changes` as bars, and beside them as ratios with their intervals, where any was tested."""
    name = metric_in(changes, metric)
    figure = ops.movers(changes, name, per=pair.comparison.per, by=by, quantity=quantity)
    if changes["interval_low"].isna().all():
        show(figure, key)
        st.caption(NOTHING_TESTED)
        return
    ratios = pair.comparison.per_step(changes[f"{name}_ratio"], pair.candidate)
    with two_charts():
        show(figure, key)
        show(change_intervals(changes, ratios, by=by, quantity=quantity), f"{key}_intervals")
