"""The parts of the op stats page: TensorBoard's TensorFlow Stats for both sides, and the changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import ops, scopes
from tfcompare.compare.aggregate import Grouping, largest_changes, metric_in, without_idle
from tfcompare.compare.diff import INTERVAL
from tfcompare.schema import DEVICE, HOST
from tfcompare.tools import op_stats as tf_stats
from tfcompare.tools import step_series
from tfcompare.ui.frame.pair import Pair, has_steps, steps_of
from tfcompare.ui.widgets import manual
from tfcompare.ui.widgets.changes import largest
from tfcompare.ui.widgets.figures import cached, draw, draw_op_in_steps
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.ui.widgets.text import as_code
from tfcompare.units import format_percent

Where = Literal["Device", "Host", "both"]

GROUPINGS: dict[Grouping, str] = {"op_name": "op", "op_type": "op type", "scope": "name scope"}
MOVERS = 15

SELF_TIME = ("baseline", "candidate", "delta", "ratio")
BOTH = ("baseline", "candidate")


@dataclass(frozen=True)
class Choice:
    """The values of the widgets at the top of the page."""

    where: Where
    idle: bool
    by: Grouping
    text: str

    @property
    def places(self) -> tuple[str, ...]:
        """Host, device or both, the device first."""
        return (DEVICE, HOST) if self.where == "both" else (self.where,)


def controls(pair: Pair) -> Choice:
    """The widgets that choose which ops are shown, and how."""
    ran_on = set(without_idle(pair.diff())["host_or_device"])
    present = [place for place in (DEVICE, HOST) if place in ran_on]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.segmented_control(
            "Group by", list(GROUPINGS), default="op_name", required=True, format_func=GROUPINGS.__getitem__,
            key="by", bind="query-params",
        )  # fmt: skip
        where = present[0] if present else HOST
        if len(present) > 1:
            where = st.segmented_control(
                "Where", ["Device", "Host", "both"], default="both", required=True, key="where", bind="query-params",
            )  # fmt: skip
        text = st.text_input(
            "Filter", key="filter", bind="query-params", placeholder="words in name or type", width=300,
            icon=":material/filter_alt:", help="All words must be in an op's name or type; case does not matter",
        )  # fmt: skip
        idle = st.toggle(
            "IDLE", key="idle", bind="query-params",
            help="Count the time in which no op ran as an op, as TensorBoard does unless told not to",
        )  # fmt: skip
    return Choice(cast(Where, where), idle, by, text or "")


def coverage(pair: Pair) -> None:
    """Show the share of the time that is matched."""
    shares = pair.comparison.coverage()
    row = shares[shares["candidate"] == pair.candidate.id].iloc[0]
    if row["matched_share"] == row["matched_share"]:
        st.caption(
            f"{format_percent(row['matched_share'])} of both runs' self time is in ops that have a counterpart, "
            f"{format_percent(row['exact_share'])} under the same name. IDLE counts in neither."
        )


def rows_of(pair: Pair, choice: Choice) -> pd.DataFrame:
    """The rows of the table: ops or groups of them, on the chosen side, that contain the words of the filter."""
    if choice.by == "op_name":
        rows, columns = pair.ops(idle=choice.idle), ["op_name", "op_type", "op_name_candidate", "op_type_candidate"]
    else:
        rows, columns = pair.groups(choice.by, idle=choice.idle), [choice.by]
    return tf_stats.with_words(rows[rows["host_or_device"].isin(choice.places)], choice.text, columns)


def movers(pair: Pair, rows: pd.DataFrame, choice: Choice) -> None:
    """The largest changes among the rows."""
    st.subheader("What changed")
    changes = cached(pair, ("movers", choice), lambda: largest_changes(rows, n=MOVERS))
    if changes.empty:
        st.info("Nothing among these rows changed its self time.")
        return
    largest(pair, changes, "self_time_us", by=choice.by, on=choice)


def columns(pair: Pair, rows: pd.DataFrame, choice: Choice, every: bool) -> list[str]:
    """The table's columns, most important first."""
    del rows
    per = "_per_step" if pair.comparison.per == "step" else ""
    side = ["host_or_device"] if choice.where == "both" or every else []
    self_time = [f"self_time_us{per}_{role}" for role in SELF_TIME]
    shares = [f"self_share_{role}" for role in BOTH]
    occurrences = [f"occurrences{per}_{role}" for role in BOTH]
    if choice.by != "op_name":
        names = [choice.by, *side, *self_time, "status", "verdict"]
        return names + (["evidence", *INTERVAL, *shares, *occurrences, "match"] if every else [])
    wall_time = [f"wall_time_us{per}_{role}" for role in BOTH] if every and any(map(has_steps, pair.runs)) else []
    names = ["op_name", "op_type", *side, *self_time, *wall_time, "status", "verdict"]
    if every:
        names += ["evidence", *INTERVAL, *shares, "match", *(f"rank_{role}" for role in BOTH), *occurrences]
        names += [f"{name}_{role}" for name in _TIMES_AND_SHARES.format(per=per).split() for role in BOTH]
        names += [*(f"is_eager_{role}" for role in BOTH), "op_name_candidate", "op_type_candidate"]
    return names


_TIMES_AND_SHARES = "total_time_us{per} avg_time_us avg_self_time_us cumulative_share"


def everything(pair: Pair) -> pd.DataFrame:
    """All rows and columns of all candidates."""
    diff = pair.comparison.table("op_stats")
    parts = [tf_stats.side_by_side(part, idle=True) for _, part in diff.groupby("candidate", sort=False)]
    return pd.concat(parts, ignore_index=True)


def row_key(rows: pd.DataFrame) -> pd.Series:
    """A unique key for each op; an added op may have the same name as a removed one."""
    names: pd.Series = rows["host_or_device"] + ":" + rows["op_type"] + ":" + rows["op_name"]
    return names.mask(rows["status"] == "added", "+" + names)


def chosen_op(pair: Pair, rows: pd.DataFrame, choice: Choice, chosen: str | None) -> None:
    """The selected op in every step of both runs."""
    del rows
    every = pair.ops(idle=True)
    found = every[row_key(every) == chosen]
    if found.empty and choice.by == "op_name":
        st.caption(
            "Choose a row, at its left end, to see that op in every step of both runs, and to pair or part it by hand."
        )
    if found.empty:
        return
    row = found.iloc[0]
    st.markdown(f"#### {as_code(str(row['op_name']))} in every step")
    _pair_manually(pair, every, row)
    frames = [_in_steps(pair, row, role) for role in BOTH]
    draw_op_in_steps(pair, str(row["op_name"]), frames, chosen)


def _pair_manually(pair: Pair, every: pd.DataFrame, row: pd.Series) -> None:
    """Match the selected op manually, or separate it from its match."""
    here = every[every["host_or_device"] == row["host_or_device"]]
    side = "candidate" if row["status"] == "added" else "baseline"
    subject = manual.Subject(
        None if row["status"] == "added" else (str(row["op_name"]),),
        None if row["status"] == "removed" else (str(row["op_name_candidate"]),),
        kind=str(row["op_type"]),
        time_us=float(row[f"{metric_in(every, 'self_time_us')}_{side}"]),
        match=str(row["match"]),
    )
    if row["op_type"] != schema.IDLE:
        rows = manual.Rows(
            here, ("op_name",), "self_time_us", lambda name, kind, _: f"{row['host_or_device']}:{kind}:{name[0]}"
        )
        manual.of_row(pair, subject, rows)


def _in_steps(pair: Pair, row: pd.Series, role: str) -> pd.DataFrame:
    """The row's op in each step of one side; no steps if that side does not have the op."""
    run = pair.runs[BOTH.index(role)]
    steps_of_run = steps_of(pair.comparison, run)
    if row["status"] == {"baseline": "added", "candidate": "removed"}[role] or not has_steps(run):
        return steps_of_run.iloc[:0].assign(self_time_us=0.0)
    suffix = "_candidate" if role == "candidate" else ""
    op = {"host_or_device": row["host_or_device"], **{k: row[f"{k}{suffix}"] for k in ("op_type", "op_name")}}
    return step_series.op_by_step(run.step_cells("op_stats", host=pair.host_of(run)), steps_of_run, op)


def _nothing(choice: Choice) -> str:
    if not choice.text:
        return "The profiles hold no ops here."
    return f"No row has all words of {as_code(choice.text)}. Clear the filter to see all."


TABLE = TablePage(
    table=schema.OP_STATS,
    title=lambda choice: f"Every {GROUPINGS[choice.by]}",
    controls=controls,
    rows=rows_of,
    columns=columns,
    changes=movers,
    details=chosen_op,
    row_key=row_key,
    has_row_key=lambda choice: choice.by == "op_name",
    everything=everything,
    nothing=_nothing,
)


def distributions(pair: Pair, choice: Choice) -> None:
    """Where the self time goes, by op and by op type, for both sides."""
    st.subheader("Where the time goes")
    groupings: tuple[Grouping, ...] = ("op_name", "op_type")
    for place in choice.places:
        groups = {by: _with_time(pair.groups(by, idle=choice.idle), place) for by in groupings}
        if groups["op_type"].empty:
            st.info(f"No op took any time on {place.lower()}.")
            continue
        for column, (by, rows) in zip(side_by_side(len(groups)), groups.items(), strict=True):
            with column:
                draw(pair, f"shares_{place}_{by}", partial(_shares, pair, rows, by, place), choice.idle)


def _shares(pair: Pair, rows: pd.DataFrame, by: Grouping, place: str) -> Any:
    shares = tf_stats.time_shares(rows, by)
    return ops.self_time_shares(shares, pair.sides, by=GROUPINGS[by], place=place.lower())


def _with_time(rows: pd.DataFrame, place: str) -> pd.DataFrame:
    metric = metric_in(rows, "self_time_us")
    took_time = rows[[f"{metric}_{role}" for role in BOTH]].max(axis=1) > 0
    return rows[took_time & (rows["host_or_device"] == place)]


def by_scope(pair: Pair, choice: Choice) -> None:
    """The self time of both runs by name scope."""
    st.subheader("Name scopes")
    tree = pair.scopes()
    roots = tree["node"].str.split("/", n=1).str[0]
    metric = metric_in(tree, "self_time_us")
    took_time = tree[[f"{metric}_{role}" for role in BOTH]].max(axis=1) > 0
    for place in choice.places:
        here = tree[took_time & (roots == place)]
        if here.empty:
            st.info(f"No op took any time on {place.lower()}.")
            continue
        icicle = partial(scopes.scope_icicle, here, metric, per=pair.comparison.per, place=place.lower())
        draw(pair, f"scopes_{place}", icicle)
