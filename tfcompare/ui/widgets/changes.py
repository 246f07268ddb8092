"""The largest changes, and the verdicts on them, as shown on several pages."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from tfcompare.charts import ops
from tfcompare.charts.changes import changes_of_pair
from tfcompare.charts.pair import Pair
from tfcompare.charts.style import SELF_TIME, Quantity
from tfcompare.compare.diff import MATCHED
from tfcompare.ui.frame.narrow import is_narrow
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
    letters = NARROW_LETTERS if is_narrow() else ops.MOVER_LENGTH
    is_tested = "interval_low" in changes and changes["interval_low"].notna().any()
    if quantity.unit == "µs" and not is_tested and (changes["status"] == MATCHED).any():
        st.caption(NOTHING_TESTED)
    draw(
        pair,
        key,
        lambda: changes_of_pair(pair, changes, metric, by=by, quantity=quantity, letters=letters),
        (by, quantity, letters, on),
    )
