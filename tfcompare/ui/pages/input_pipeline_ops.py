"""The input ops on the input pipeline page: the table, the selected op, and the largest changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import ops
from tfcompare.charts.pair import Pair, has_steps
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.markdown import as_code
from tfcompare.run import Run
from tfcompare.schema.input import INPUT_CATEGORIES
from tfcompare.tools import input_ops, step_series
from tfcompare.tools.op_stats import with_words
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.widgets.details import open_details
from tfcompare.ui.widgets.figures import draw, draw_op_in_steps
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.views import links
from tfcompare.views.op import row_key as op_key
from tfcompare.views.view import NARROW_LETTERS

MOVERS = 10
BOTH = ("baseline", "candidate")
CHANGE = ("baseline", "candidate", "delta")
WORDS_IN = ["op_name", "category", "op_name_candidate", "category_candidate"]


@dataclass(frozen=True)
class Choice:
    """The values of the widgets above the table."""

    text: str
    category: str | None


def controls(pair: Pair) -> Choice:
    """The widgets that choose which ops are shown."""
    diff = pair.diff("input_pipeline")
    there = {*diff["category"], *diff["category_candidate"].dropna()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Filter", key="filter", bind="query-params", placeholder="words in the name", width=300,
            icon=":material/filter_alt:", help="Shows ops whose names contain all words; case does not matter",
        )  # fmt: skip
        category = st.pills(
            "Category", [name for name in INPUT_CATEGORIES if name in there], key="category", bind="query-params",
        )  # fmt: skip
    return Choice(text or "", category)


def rows_of(pair: Pair, choice: Choice) -> pd.DataFrame:
    """The rows of the table, with their shares of all input ops."""
    rows = with_words(_every_row(pair), choice.text, WORDS_IN)
    if choice.category is None:
        return rows
    return rows[(rows["category"] == choice.category) | (rows["category_candidate"] == choice.category)]


def _every_row(pair: Pair) -> pd.DataFrame:
    return input_ops.with_shares(pair.diff("input_pipeline"))


def every_op(pair: Pair) -> None:
    """The table of all input ops, followed by the largest changes among the rows shown."""
    if pair.diff("input_pipeline").empty:
        return
    choice = TABLE.show(pair)
    if not pair.is_single:
        _movers(pair, rows_of(pair, choice), choice)


def _movers(pair: Pair, rows: pd.DataFrame, choice: Choice) -> None:
    """The largest changes among the rows."""
    changes = largest_changes(rows, n=MOVERS)
    if changes.empty:
        st.caption("None of these ops changed its self time.")
        return
    several = changes["host"].nunique() > 1
    named = changes["op_name"] + (" · " + changes["host"] if several else "")
    renamed = (changes["status"] == "matched") & (changes["op_name"] != changes["op_name_candidate"])
    candidates = (" · in the candidate " + changes["op_name_candidate"].fillna("")).where(renamed, "")
    changes = changes.assign(named=named, detail=changes["category"] + candidates)
    metric, per = metric_in(changes, "self_time_us"), pair.comparison.per
    letters = NARROW_LETTERS if is_narrow() else ops.MOVER_LENGTH
    draw(pair, "movers", lambda: ops.movers(changes, metric, per=per, by="named", letters=letters), (choice, letters))


def columns(pair: Pair, rows: pd.DataFrame, choice: Choice, every: bool) -> list[str]:
    """The table's columns, most important first."""
    del pair, choice
    self_time = metric_in(rows, "self_time_us")
    host = ["host"] if every or rows["host"].nunique() > 1 else []
    moved = rows["category_candidate"].notna() & (rows["category"] != rows["category_candidate"])
    category = ["category", *(["category_candidate"] if moved.any() and not every else [])]
    names = ["op_name", *category, *host, *(f"{self_time}_{role}" for role in CHANGE)]
    names += [f"input_self_share_{role}" for role in BOTH]
    if every:
        others = [metric_in(rows, name) for name in ("occurrences", "total_time_us")]
        names += [f"{self_time}_ratio", *(f"{name}_{role}" for name in others for role in (*CHANGE, "ratio"))]
        names += [f"input_total_share_{role}" for role in BOTH]
        names += ["status", "match", "verdict", "op_name_candidate", "category_candidate"]
    return names


def everything(pair: Pair) -> pd.DataFrame:
    """All rows and columns of all candidates."""
    diff = pair.comparison.table("input_pipeline")
    parts = [input_ops.with_shares(part) for _, part in diff.groupby("candidate", sort=False)]
    return pd.concat(parts, ignore_index=True)


def row_key(rows: pd.DataFrame) -> pd.Series:
    """A unique key for each row: an added op may have the same name as an op with another match."""
    added = rows["status"].map({"added": ":added"}).fillna("")
    return rows["host"] + ":" + rows["category"] + ":" + rows["op_name"] + added


def chosen_op(pair: Pair, rows: pd.DataFrame, choice: Choice, chosen: str) -> None:
    """The selected op in a dialog."""
    del rows, choice
    every = _every_row(pair)
    found = every[row_key(every) == chosen]
    if len(found):
        open_details(str(found.iloc[0]["op_name"]), partial(_show_op, pair, found.iloc[0], chosen))


def _show_op(pair: Pair, row: pd.Series, chosen: str) -> None:
    """An op in every step of each run, and a link to everything else about it."""
    if row["status"] == "matched" and row["op_name_candidate"] != row["op_name"]:
        st.markdown(f"In the candidate: {as_code(str(row['op_name_candidate']))}")
    frames = [_in_steps(pair, row, role) for role in BOTH]
    if draw_op_in_steps(pair, str(row["op_name"]), frames, "input", chosen):
        st.caption("Work ahead of time on a separate thread may belong to no step; it is then not shown here.")
    in_stats = pair.ops(idle=False)
    in_stats = in_stats[(in_stats["host_or_device"] == schema.HOST) & (in_stats["op_name"] == row["op_name"])]
    if len(in_stats):
        show_link(pair, links.to_op_view(op_key(in_stats).iloc[0]))


def _in_steps(pair: Pair, row: pd.Series, role: str) -> pd.DataFrame:
    """The row's op in each step of one side, on the row's host; no steps if that side does not have the op."""
    run = pair.runs[BOTH.index(role)]
    if row["status"] == {"baseline": "added", "candidate": "removed"}[role] or not has_steps(run):
        return run.table("steps").iloc[:0].assign(self_time_us=0.0)
    host = _host_in(pair, run, str(row["host"]))
    name = str(row["op_name_candidate"] if role == "candidate" else row["op_name"])
    op = pd.DataFrame([{"host_or_device": schema.HOST, "op_name": name}])
    return step_series.op_by_step(run.step_cells("op_stats", host=host), run.table("steps", host=host), op)


def _host_in(pair: Pair, run: Run, host: str) -> str:
    """The run's own name for a host in a diff."""
    if run is pair.baseline:
        return host
    return host_counterparts(pair.baseline.host_names, run.host_names).get(host, host)


TABLE = TablePage(
    table=schema.INPUT_PIPELINE,
    title=lambda _choice: "Input ops",
    controls=controls,
    rows=rows_of,
    columns=columns,
    details=chosen_op,
    row_key=row_key,
    everything=everything,
    nothing=lambda _choice: "No input op matches the filter. Clear it to see all.",
)
