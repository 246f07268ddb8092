"""The largest changes, and the verdicts on them, as shown on several pages."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd
import streamlit as st

from tfcompare.charts import ops
from tfcompare.charts.change_intervals import change_intervals
from tfcompare.charts.style import SELF_TIME, Quantity
from tfcompare.charts.verdicts import Judged, is_drawn, verdict_intervals, word_of
from tfcompare.compare.aggregate import metric_in
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.widgets.figures import draw
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.text import as_markdown

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
    """The rows of `largest_changes` as bars, next to their ratios with confidence intervals if any row was tested.

    `on` is what these rows depend on, apart from the pair.
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
    left, right = side_by_side(2)
    with left:
        bars()
    with right:
        intervals = f"{key}_intervals"
        draw(pair, intervals, lambda: change_intervals(changes, ratios, by=by, quantity=quantity), (by, quantity, on))


def verdicts(pair: Pair, rows: Sequence[Judged], title: str, axis: str, *, key: str) -> None:
    """All confidence intervals in one chart, if there are any, followed by a line for each row."""
    if any(is_drawn(row.verdict) for row in rows):
        draw(pair, key, lambda: verdict_intervals(rows, title, axis))
    lines = [
        f"{as_markdown(row.name)}: **{word_of(row.verdict)}** – {as_markdown(row.verdict.reason)}." for row in rows
    ]
    caveats = dict.fromkeys(row.verdict.caveat for row in rows if row.verdict.caveat)
    lines += [f"**But {as_markdown(caveat)}.**" for caveat in caveats]
    st.markdown("\n".join(f"- {line}" for line in lines))
