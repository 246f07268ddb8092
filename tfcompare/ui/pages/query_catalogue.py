"""The tables that a query can read, with their columns, units and meanings."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tfcompare.query import every_table
from tfcompare.query.tables import type_of

_TABLE = "tfcompare.query.table"


def catalogue() -> None:
    """An expander with a table's columns; which table is chosen within."""
    with st.expander("Tables and columns", icon=":material/table_rows:"):
        known = every_table()
        name = st.selectbox(
            "Table", list(known), key=_TABLE, width=420,
            help="Each has the rows of all chosen runs, one after the other; `run` tells whose a row is.",
        )  # fmt: skip
        st.caption(known[name].meaning)
        st.dataframe(
            columns_of(name), hide_index=True, height="content", key="tfcompare.query.columns",
            column_config={
                "Column": st.column_config.TextColumn(width=220),
                "Type": st.column_config.TextColumn(width=100),
                "Unit": st.column_config.TextColumn(width=70),
            },
        )  # fmt: skip


def columns_of(name: str) -> pd.DataFrame:
    """A row for each column of a table: its name, type, unit and meaning."""
    rows = [
        (c.name, type_of(c).replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"), c.unit, c.meaning.replace("`", ""))
        for c in every_table()[name].columns
    ]
    return pd.DataFrame(rows, columns=["Column", "Type", "Unit", "Meaning"])
