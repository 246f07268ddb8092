"""The page that runs SQL queries on the tables of the selected runs.

A query in the URL is run without confirmation: it reads only the selected runs' tables, cannot write anything, and is
limited in time, memory and size (`tfcompare.query.process`). The worst a link can do is keep its page waiting, and one
of the `AT_ONCE` processes that all sessions share. A session runs one query at a time: a new one stops the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from time import monotonic
from typing import Any

import streamlit as st

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_code, as_markdown
from tfcompare.query.asking import AT_ONCE, Answer, Asked, Limits
from tfcompare.query.diff_tables import DiffTables
from tfcompare.query.presets import PRESETS
from tfcompare.query.tables import BASELINE, CANDIDATE, REPEAT, RunTables
from tfcompare.run import Run
from tfcompare.ui.frame.loading import QUIET_S, compared, fetch
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.shell import Page, choose_steps, chosen_steps, stop
from tfcompare.ui.pages import query_tables
from tfcompare.ui.pages.query_tables import catalogue

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


def show(view: Page) -> None:
    """Show the page below its title."""
    tables = _tables(view)
    st.selectbox(
        "Example queries", range(len(PRESETS)), index=None, key=_READY, format_func=lambda i: PRESETS[i].title,
        placeholder="Choose one to run it; you can then edit it", on_change=_take_ready,
    )  # fmt: skip
    _follow_address(tables)
    _editor()
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
    query_tables.show(stored[1], tables, nothing=nothing, limits=_limits())


def _limits() -> Limits:
    memory = 2 * settings.from_environment().query_bytes // AT_ONCE  # all of them together take as much as two commands
    return Limits(MOST_SECONDS, memory, MOST_ROWS, MOST_RESULT_BYTES, MOST_WAITING_SECONDS)


def _tables(view: Page) -> RunTables:
    """The tables of baseline, candidates and replicates; of the only run if there is nothing to compare."""
    selection, readable = view.selection, [run for run in view.found if run.is_readable]
    if not readable:
        why = "; ".join(view.search.problems) or "none of the runs that were found can be read"
        stop(
            f"There is no run to query: {as_markdown(why)}.",
            "Add a folder with runs on the home page.",
        )
    repeats = [repeat for _, repeat in selection.repeats]
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
    roles = tuple(_role(run.id, ids[0], repeats, selection) for run in runs)
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
    of_all = replace(
        selection, baseline=baseline.id, candidates=tuple(run.id for run in candidates), per="step", host=None
    )
    comparison, _ = compared(of_all, {run.id: run for run in runs})
    return DiffTables(comparison)


def _role(run_id: str, first: str, repeats: Sequence[str], selection: Selection) -> str:
    if run_id in repeats:
        return REPEAT
    return BASELINE if run_id == (selection.baseline or first) else CANDIDATE


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


def _editor() -> None:
    with st.form("tfcompare-query", border=False):
        st.text_area(
            "SQL", key=_EDITOR, height=220,
            help="One SELECT statement in DuckDB's dialect. Ctrl+Enter runs it. It can read only the tables below.",
        )  # fmt: skip
        st.form_submit_button("Run", icon=":material/play_arrow:", type="primary", on_click=_take_editor)


def _take_ready() -> None:
    chosen = st.session_state[_READY]
    # Streamlit also calls this for what was chosen before, if the page was interrupted before the widget was drawn.
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
