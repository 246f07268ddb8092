"""The tables on the query page: the result, and the catalogue of available tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from tfcompare.query.asking import Answer, Limits
from tfcompare.query.diff_tables import DiffTables
from tfcompare.query.tables import DIFF, RunTables, every_table, type_of
from tfcompare.render.inline import plain
from tfcompare.text import middle_ellipsis
from tfcompare.ui.widgets import tables
from tfcompare.units import format_bytes, format_time_us
from tfcompare.views.csv_files import defused, spreadsheet_csv

LONGEST_CELL = 1_000
"""The most characters of a text that are sent to the browser; the CSV contains the full text."""

LONGEST_LABEL = 200
MOST_COLUMNS = 100
LARGEST, SMALLEST = 1e15, 1e-3
"""Numbers outside this range are written as text: the browser or the decimals shown would drop digits."""

_FINE = 1
_TEXT_LETTERS = 38
_ROW = "row"


def show(answer: Answer, runs: RunTables, *, nothing: str, limits: Limits) -> None:
    """Show the rows in the order of the query until a header is clicked; `nothing` is shown if there are none."""
    st.caption(size_of(answer, limits))
    frame = answer.named()
    if answer.is_plan:
        for plan in frame.iloc[:, 1]:
            st.code(plan, language=None)
        return
    if frame.empty:
        st.info(nothing)
        return
    cells = for_screen(answer.frame.iloc[:, :MOST_COLUMNS])
    readings = {run.id: run.name for run in runs.runs}
    shown = [_shown(str(name), str(label), cells[name]) for name, label in zip(cells, frame, strict=False)]
    if frame.shape[1] > MOST_COLUMNS:
        st.caption(f"The first {MOST_COLUMNS} of {frame.shape[1]:,} columns; the CSV has all.")
    ordered, _ = tables.sortable(
        cells.assign(**{_ROW: range(len(cells))}), shown, key=f"query {answer.names}", readings=readings
    )
    st.download_button(
        "CSV of this row" if len(frame) == 1 else f"CSV of these {len(frame):,} rows",
        lambda: spreadsheet_csv(frame.iloc[ordered[_ROW]]),
        file_name="query.csv", mime="text/csv", icon=":material/download:", on_click="ignore", key="query_csv",
        help="The rows in the order of the table above, all pages of it, in full precision",
    )  # fmt: skip


def size_of(answer: Answer, limits: Limits) -> str:
    """The number of rows, the time taken, and whether rows were cut off."""
    count = len(answer.frame)
    took = f"in {format_time_us(answer.seconds * 1e6)}"
    if answer.cut == "rows":
        return f"The first {count:,} rows {took}. `tfcompare query` returns all rows."
    if answer.cut:
        most = format_bytes(limits.result_bytes)
        return f"The first {count:,} rows {took}, up to {most}. `tfcompare query` returns all rows."
    return f"{count:,} row{'' if count == 1 else 's'} {took}"


def for_screen(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells to send to the browser: long texts truncated, and numbers as text if it would change them."""
    out = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype == "str":
            values = values.str.slice(0, LONGEST_CELL)
        elif values.dtype.kind in "iuf" and _is_extreme(values):
            values = values.map(_written, na_action="ignore").astype("str")
        out[name] = values
    return pd.DataFrame(out, index=frame.index)


def _is_extreme(values: pd.Series) -> bool:
    sizes = np.abs(values.to_numpy(dtype=np.float64, na_value=0))
    largest = sizes[np.isfinite(sizes)].max(initial=0)
    return bool(largest > LARGEST or 0 < largest < SMALLEST or not np.isfinite(sizes).all())


def _written(number: float) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _shown(name: str, label: str, cells: pd.Series) -> tables.Shown:
    """A column under the query's own name; if the schema describes a column of that name, that is its help."""
    label = str(defused(middle_ellipsis(label, LONGEST_LABEL)))
    if cells.dtype == "boolean":
        return tables.Shown(name, "", label, _meaning(label), "flag")
    if cells.dtype.kind in "iuf":
        unit = "µs" if cells.abs().max() < _FINE else ""  # whose cells get more decimals
        return tables.Shown(name, "", label, _meaning(label), "number", unit)
    return tables.Shown(name, "", label, _meaning(label), "text", letters=_TEXT_LETTERS)


def _meaning(label: str) -> str:
    """The meaning of columns of that name, if all tables that have one agree."""
    meanings = {c.meaning for table in every_table().values() for c in table.columns if c.name == label}
    return meanings.pop() if len(meanings) == 1 else ""


_TABLE = "tfcompare.query.table"


def catalogue(tables: RunTables) -> None:
    """An expander with a table selector and the columns of the selected table."""
    with st.expander("Tables and columns", icon=":material/table_rows:"):
        known, columns = every_table(), tables.columns()
        name = st.selectbox(
            "Table", list(columns), key=_TABLE, width=420,
            help="Each table has the rows of all chosen runs; the column `run` identifies the run. Those that end with "
            "`_diff` compare the baseline with each candidate.",
        )  # fmt: skip
        st.caption(known[name.removesuffix(DIFF)].meaning)
        st.dataframe(
            columns_of(name) if name in known else columns_of_diff(name, columns[name], tables),
            hide_index=True, height="content", key="tfcompare.query.columns",
            column_config={
                "Column": st.column_config.TextColumn(width=220),
                "Type": st.column_config.TextColumn(width=100),
                "Unit": st.column_config.TextColumn(width=70),
            },
        )  # fmt: skip


def columns_of_diff(name: str, types: Mapping[str, str], tables: RunTables) -> pd.DataFrame:
    """One row per column of a diff, as `columns_of`; units are in the names."""
    rows = [
        (column, type_, "", tables.diffs.meaning(name, column) if isinstance(tables.diffs, DiffTables) else "")
        for column, type_ in types.items()
    ]
    return pd.DataFrame(rows, columns=["Column", "Type", "Unit", "Meaning"])


def columns_of(name: str) -> pd.DataFrame:
    """One row per column of a table: its name, type, unit and meaning."""
    rows = [
        (c.name, type_of(c).replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"), c.unit, plain(c.meaning))
        for c in every_table()[name].columns
    ]
    return pd.DataFrame(rows, columns=["Column", "Type", "Unit", "Meaning"])
