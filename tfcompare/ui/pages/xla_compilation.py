"""The section of the XLA page on what was compiled while the runs were recorded."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.tools import xla_compilation
from tfcompare.tools.op_stats import ROLES
from tfcompare.ui.pages.xla import CHANGE
from tfcompare.ui.widgets.figures import cached
from tfcompare.ui.widgets.table_page import TablePage


def compilation(pair: Pair) -> None:
    """Which functions were traced and compiled during the capture, how often and how long."""
    st.subheader(
        "Compilation",
        help="What was traced, lowered and compiled while the profile was recorded, before the steps or in them. A "
        "function that is compiled again and again usually gets arguments of changing shapes.",
    )
    rows = _rows(pair, None)
    if pair.is_single:
        st.markdown(xla_compilation.sentence_alone(rows))
    else:
        baseline, candidate = pair.letters
        st.markdown(xla_compilation.sentence(rows, (baseline, candidate)))
    if not rows.empty:
        TABLE.show_rows(pair, None)


def _rows(pair: Pair, choice: None) -> pd.DataFrame:
    del choice
    return cached(
        pair, "compilations", lambda: xla_compilation.compilation_rows(pair.candidate, *pair.tables("compilations"))
    )


def _columns(pair: Pair, rows: pd.DataFrame, choice: None, every: bool) -> list[str]:
    del choice
    sides = ROLES[:1] if pair.is_single else ROLES
    names = ["function", "phase", *(["host"] if rows["host"].nunique() > 1 or every else [])]
    names += [f"occurrences_{role}" for role in sides]
    names += [f"total_time_us_{role}" for role in CHANGE]
    names += [f"{name}_{role}" for name in ("longest_us", "programs", "shapes") for role in sides]
    return [*names, "status"] if every else names


TABLE: TablePage[None] = TablePage(
    table=schema.COMPILATIONS,
    title=lambda _choice: "Functions",
    rows=_rows,
    columns=_columns,
    is_section=False,
    switch="all_columns_compilation",
    address="compilation_",
)
