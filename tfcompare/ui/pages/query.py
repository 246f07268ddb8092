"""The Query page: SQL over the tables of the chosen runs, and its answer.

A query in the URL is run without confirmation: it reads only the selected runs' tables, cannot write anything, and is
limited in time, memory and size (`tfcompare.query.process`). The worst a link can do is keep its page waiting, and one
of the `AT_ONCE` processes that all sessions share. A session runs one query at a time: a new one stops the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.query.asking import AT_ONCE, Answer, Asked, Limits
from tfcompare.query.diff_tables import DiffTables
from tfcompare.query.presets import PRESETS
from tfcompare.query.tables import BASELINE, CANDIDATE, DIFF, REPEAT, RunTables, every_table, type_of
from tfcompare.render.inline import plain
from tfcompare.run import Run
from tfcompare.text import as_code, as_markdown, middle_ellipsis
from tfcompare.ui.frame.header import chosen_steps
from tfcompare.ui.frame.loading import QUIET_S, compared, fetch
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.shell import Page, choose_steps, stop
from tfcompare.ui.widgets import tables
from tfcompare.ui.widgets.blocks import csv_of_rows
from tfcompare.units import format_bytes, format_time_us
from tfcompare.views.columns import NAMES
from tfcompare.views.csv_files import defused

MOST_ROWS = 10_000
MOST_RESULT_BYTES = 16 * 2**20
MOST_SECONDS = 30
MOST_WAITING_SECONDS = 10
LONGEST_LINK = 4_000
"""The longest query, in characters, that is stored in the URL: browsers and proxies truncate longer URLs."""

_ADDRESS = "sql"
_EDITOR = "tfcompare.query.editor"
_READY = "tfcompare.query.ready"
_ASKED = "tfcompare.query.asked"
_OUTCOME = "tfcompare.query.outcome"
_SQL_HELP = "One SELECT statement in DuckDB's dialect. Ctrl+Enter runs it. It can read only the tables below."
_TABLE_HELP = (
    "Each table has the rows of all chosen runs; the column `run` identifies the run. Those that end with `_diff` "
    "compare the baseline with each candidate."
)
LONGEST_CELL = 1_000
"""The most characters of a text that are sent to the browser; the CSV contains the full text."""

LONGEST_LABEL = 200
MOST_COLUMNS = 100
LARGEST, SMALLEST = 1e15, 1e-3
"""Numbers outside this range are written as text: the browser or the decimals shown would drop digits."""

_FINE = 1
_TEXT_LETTERS = 38
_ROW = "row"


def show(view: Page) -> None:
    """Show the page below its title."""
    tables = _tables(view)
    titles, hint = [ready.title for ready in PRESETS], "Choose one to run it; you can then edit it"
    choice: dict[str, Any] = {"key": _READY, "on_change": _take_preset, "placeholder": hint}
    st.selectbox("Example queries", range(len(PRESETS)), index=None, format_func=titles.__getitem__, **choice)
    _follow_address(tables)
    with st.form("tfcompare-query", border=False):
        st.text_area("SQL", key=_EDITOR, height=220, help=_SQL_HELP)
        st.form_submit_button("Run", icon=":material/play_arrow:", type="primary", on_click=_take_editor)
    catalogue(tables)
    sql = st.session_state[_ASKED]
    of_diffs = id(tables.diffs.comparison) if isinstance(tables.diffs, DiffTables) else 0
    identity = (sql, tables.roles, tuple((run.content_id, run.id, run.name) for run in tables.runs), of_diffs)
    stored: tuple[Any, Answer | str] | None = st.session_state.get(_OUTCOME)
    if stored is None or stored[0] != identity:
        stored = st.session_state[_OUTCOME] = (identity, _outcome(sql, tables))
    if isinstance(stored[1], str):
        st.error("The query failed:")
        st.code(stored[1], language=None, wrap_lines=True)
        return
    nothing = next((ready.nothing for ready in PRESETS if ready.sql == sql), "The query returned no rows.")
    show_answer(stored[1], tables, nothing=nothing, limits=_limits())


def _limits() -> Limits:
    memory = 2 * settings.from_environment().query_bytes // AT_ONCE  # all of them together take as much as two commands
    return Limits(MOST_SECONDS, memory, MOST_ROWS, MOST_RESULT_BYTES, MOST_WAITING_SECONDS)


def _tables(view: Page) -> RunTables:
    """The tables of baseline, candidates and replicates; of the only run if there is nothing to compare."""
    selection, readable = view.selection, [run for run in view.found if run.is_readable]
    if not readable:
        why = "; ".join(view.search.problems) or "none of the runs that were found can be read"
        stop(f"There is no run to query: {as_markdown(why)}.", "Add a folder with runs on the home page.")
    ids = list(selection.recordings) or ([readable[0].id] if len(readable) == 1 else [])
    if not ids:
        stop("No run is chosen.", "Choose one or more in the sidebar or on the home page.")
    by_id = {run.id: run for run in view.found}
    outcomes = fetch([by_id[run_id] for run_id in ids], view.settings, selection.steps)
    runs: list[Run] = []
    for outcome in outcomes.values():
        if isinstance(outcome, TfcompareError):
            st.error(as_markdown(outcome))
        else:
            runs.append(outcome)
    if not runs:
        stop("None of the chosen runs can be read.", "Choose others in the sidebar.")
    choose_steps(view, runs)
    of_id = dict.fromkeys(ids, CANDIDATE) | {selection.baseline or ids[0]: BASELINE}
    of_id |= dict.fromkeys((repeat for _, repeat in selection.repeats), REPEAT)
    roles = tuple(of_id[run.id] for run in runs)
    diffs = _diffs(selection, runs, roles)
    names = ", ".join(as_code(run.name) for run in runs)
    of_diffs = "" if diffs is None else f", in diffs per {diffs.comparison.per_what}"
    st.caption(f"Tables of {names}. Sums are over the whole profile{of_diffs}{chosen_steps(runs)}.")
    return RunTables(tuple(runs), roles, diffs=diffs)


def _diffs(selection: Selection, runs: Sequence[Run], roles: Sequence[str]) -> DiffTables | None:
    """The diffs of the candidates against the baseline, if there are both, as other pages have them."""
    baseline = next((run for run, role in zip(runs, roles, strict=True) if role == BASELINE), None)
    candidates = [run for run, role in zip(runs, roles, strict=True) if role == CANDIDATE]
    if baseline is None or not candidates:
        return None
    ids = tuple(run.id for run in candidates)
    of_all = replace(selection, baseline=baseline.id, candidates=ids, per="step", host=None)
    comparison, _ = compared(of_all, {run.id: run for run in runs})
    return DiffTables(comparison)


def _follow_address(tables: RunTables) -> None:
    """Take the query from the URL, else this session's query, else the first ready one."""
    linked = st.query_params.get(_ADDRESS)
    asked = st.session_state.get(_ASKED)
    if linked and linked != asked:
        _ask(linked)
    elif asked is None:
        _ask(next(ready.sql for ready in PRESETS if len(tables.runs) > 1 or not ready.is_of_two))
    elif linked is None:
        _write_to_url(asked)
    if _EDITOR not in st.session_state:  # the user left the page, which removed the widget's text
        st.session_state[_EDITOR] = st.session_state[_ASKED]


def _take_preset() -> None:
    chosen = st.session_state[_READY]
    # As in `sidebar.changed`, it may be what was chosen before.
    if chosen is not None and PRESETS[chosen].sql != st.session_state[_ASKED]:
        _ask_new(PRESETS[chosen].sql)


def _take_editor() -> None:
    st.session_state[_READY] = None
    st.session_state.pop(_OUTCOME, None)  # a user who asks again is willing to wait again
    _ask_new(st.session_state[_EDITOR] or "")


def _ask_new(sql: str) -> None:
    """Run a new query from the page: its rows come in their own order, however the previous ones were sorted."""
    st.query_params.pop("sort", None)
    _ask(sql)


def _ask(sql: str) -> None:
    st.session_state[_ASKED] = sql
    st.session_state[_EDITOR] = sql
    _write_to_url(sql)


def _write_to_url(sql: str) -> None:
    if len(sql) <= LONGEST_LINK:
        st.query_params[_ADDRESS] = sql
    else:
        st.query_params.pop(_ADDRESS, None)


def _outcome(sql: str, tables: RunTables) -> Answer | str:
    """The result of the query, or why there is none. Leaving the page, or running another query, stops it."""
    asked = Asked(sql, tables, _limits())
    with ThreadPoolExecutor(1, thread_name_prefix="tfcompare-query") as pool:
        future = pool.submit(asked.answer)
        try:
            _follow(asked, future)
            return future.result()
        except TfcompareError as error:
            return str(error)
        finally:
            asked.stop()


def _follow(asked: Asked, future: Future[Answer]) -> None:
    slot, since = st.empty(), monotonic()
    wait([future], timeout=QUIET_S)
    while not future.done():
        if asked.is_waiting:
            slot.caption(f"Waiting: {AT_ONCE} other queries are running.")
            since = monotonic()
        else:
            slot.caption(f"Running for {monotonic() - since:.0f} s …")
        wait([future], timeout=QUIET_S)
    slot.empty()


def show_answer(answer: Answer, runs: RunTables, *, nothing: str, limits: Limits) -> None:
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
    shown = [shown_column(str(name), str(label), cells[name]) for name, label in zip(cells, frame, strict=False)]
    if frame.shape[1] > MOST_COLUMNS:
        st.caption(f"The first {MOST_COLUMNS} of {frame.shape[1]:,} columns; the CSV has all.")
    numbered = cells.assign(**{_ROW: range(len(cells))})
    ordered, _ = tables.sortable(numbered, shown, key=f"query {answer.names}", readings=readings)
    csv_of_rows(frame.iloc[ordered[_ROW]], "query.csv", "query_csv", "The rows in the order of the table above")


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
        elif values.dtype.kind in "iuf":
            sizes = np.abs(values.to_numpy(dtype=np.float64, na_value=0))
            largest = sizes[np.isfinite(sizes)].max(initial=0)
            if largest > LARGEST or 0 < largest < SMALLEST or not np.isfinite(sizes).all():
                digits = values.map(lambda n: f"{n:.6g}" if isinstance(n, float) else str(n), na_action="ignore")
                values = digits.astype("str")
        out[name] = values
    return pd.DataFrame(out, index=frame.index)


def shown_column(name: str, label: str, cells: pd.Series) -> tables.Shown:
    """A column under the query's own name; if the schema describes a column of that name, that is its help, and ops and
    kernels begin with their innermost part."""
    is_name = label in NAMES
    label = str(defused(middle_ellipsis(label, LONGEST_LABEL)))
    if cells.dtype == "boolean":
        return tables.Shown(name, "", label, _meaning(label), "flag")
    if cells.dtype.kind in "iuf":
        unit = "µs" if cells.abs().max() < _FINE else ""  # whose cells get more decimals
        return tables.Shown(name, "", label, _meaning(label), "number", unit)
    return tables.Shown(name, "", label, _meaning(label), "text", is_name=is_name, letters=_TEXT_LETTERS)


def _meaning(label: str) -> str:
    """The meaning of columns of that name, if all tables that have one agree."""
    meanings = {c.meaning for table in every_table().values() for c in table.columns if c.name == label}
    return meanings.pop() if len(meanings) == 1 else ""


def catalogue(tables: RunTables) -> None:
    """An expander with a table selector and the columns of the selected table."""
    with st.expander("Tables and columns", icon=":material/table_rows:"):
        known, columns = every_table(), tables.columns()
        name = st.selectbox("Table", list(columns), key="tfcompare.query.table", width=420, help=_TABLE_HELP)
        st.caption(known[name.removesuffix(DIFF)].meaning)
        shown = columns_of(name) if name in known else columns_of_diff(name, columns[name], tables)
        pixels = {"Column": 220, "Type": 100, "Unit": 70}
        widths = {label: st.column_config.TextColumn(width=width) for label, width in pixels.items()}
        look: dict[str, Any] = {"hide_index": True, "height": "content", "column_config": widths}
        st.dataframe(shown, key="tfcompare.query.columns", **look)


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
