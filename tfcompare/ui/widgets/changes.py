"""The largest changes, and the verdicts on them, as shown on several pages."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from tfcompare.charts import ops
from tfcompare.charts.style import SELF_TIME, Quantity
from tfcompare.compare.aggregate import metric_in
from tfcompare.compare.diff import INTERVAL, MATCHED
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.widgets.figures import draw

NARROW_LETTERS = 22
"""The length of names next to bars on a narrow page."""

NOTHING_TESTED = "No change was tested: a test needs nine or more marked steps in each run."


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
    """The rows of `largest_changes` as bars with confidence intervals; says so if no change of time was tested.

    `metric` may be a sum, as in the schema, or any other metric of the diff. `on` is what these rows depend on, apart
    from the pair.
    """
    name = metric_in(changes, metric)
    per = pair.comparison.per if name != metric or quantity.unit != "bytes" else ""
    letters = NARROW_LETTERS if is_narrow() else ops.MOVER_LENGTH
    if quantity.unit == "µs":
        if "interval_low" in changes and changes["interval_low"].notna().any():
            changes = _with_shown_intervals(pair, changes)
        elif (changes["status"] == MATCHED).any():
            st.caption(NOTHING_TESTED)
    draw(
        pair,
        key,
        lambda: ops.movers(changes, name, per=per, by=by, quantity=quantity, letters=letters),
        (by, quantity, letters, on),
    )


def _with_shown_intervals(pair: Pair, changes: pd.DataFrame) -> pd.DataFrame:
    """The rows with intervals of the ratio of the sums shown; tests are about the time per step."""
    return changes.assign(**{end: changes[end] / pair.per_step_ratio for end in INTERVAL})
