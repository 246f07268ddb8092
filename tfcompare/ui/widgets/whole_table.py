"""A diff as a table with all its rows: a title, a switch for all columns, the rows, and their CSVs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import streamlit as st

from tfcompare.ui.widgets import tables
from tfcompare.ui.widgets.downloads import csv_buttons


def whole_table(
    rows: pd.DataFrame,
    *,
    title: str,
    nothing: str,
    columns: Callable[[bool], Sequence[tables.Shown]],
    key: str,
    file: str,
    everything: Callable[[], pd.DataFrame],
    row_name: Callable[[pd.DataFrame], pd.Series] | None = None,
    readings: Mapping[str, str] | None = None,
) -> str | None:
    """The table of `rows`, and the name of the row that is chosen in it; `nothing` is said in place of no rows.

    `columns` gives what is shown, for the switch `All columns`; `everything` the rows of the second CSV, `file` the
    name of both. `row_name` and `readings` are as `tables.sortable` takes them.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(title, width="content")
        every = st.toggle("All columns", key="all_columns", bind="query-params")
    if rows.empty:
        st.info(nothing)
        return None
    shown = columns(every)
    ordered, chosen = tables.sortable(rows, shown, key=f"{key}_{every}", row_name=row_name, readings=readings)
    csv_buttons(ordered[[column.name for column in shown]], everything, name=file, key="csv")
    return chosen
