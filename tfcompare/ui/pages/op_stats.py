"""The parts of the op stats page: TensorBoard's TensorFlow Stats of the runs shown, and what changed between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import shares
from tfcompare.compare.aggregate import Grouping, largest_changes, metric_in, without_idle
from tfcompare.compare.diff import INTERVAL
from tfcompare.markdown import as_code
from tfcompare.schema import DEVICE, HOST
from tfcompare.tools import op_figures
from tfcompare.tools import op_stats as tf_stats
from tfcompare.ui.frame.pair import Pair, has_steps
from tfcompare.ui.widgets import op_view
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.changes import largest
from tfcompare.ui.widgets.figures import cached, draw, show
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.views import op_stats as view

Where = Literal["Device", "Host", "both"]

GROUPINGS: dict[Grouping, str] = {"op_name": "op", "op_type": "op type", "scope": "name scope"}
MOVERS = 15
CARD_PIXELS = 215
"""Room for `Self time on device per step`."""

SCOPES_HELP = (
    "The self time by layer, as ops are named. An instruction that XLA compiled counts for the op that it came from, "
    "which its program names. A fusion counts for one op: the one that XLA names for it, else the last one in it that "
    "has a name. Ops without a scope are in no layer."
)

PER_OCCURRENCE = (
    "Divide the times in the table, and the changes, by how often the op ran: for runs whose ops ran more or less "
    "often. Verdicts are on the time per step, so an op with other numbers of occurrences per step has none."
)
SELF_TIME = ("baseline", "candidate", "delta", "ratio")
BOTH = ("baseline", "candidate")


@dataclass(frozen=True)
class Choice:
    """The values of the widgets at the top of the page."""

    where: Where
    idle: bool
    by: Grouping
    text: str
    per_occurrence: bool = False

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
            help="Show the time in which no op ran as an op, as TensorBoard does by default",
        )  # fmt: skip
        per_occurrence = st.toggle("Per occurrence", key="each", bind="query-params", help=PER_OCCURRENCE)
    return Choice(cast(Where, where), idle, by, text or "", per_occurrence)


def headline(pair: Pair) -> None:
    """The change of the self time in a sentence, and as key figures."""
    st.markdown(f"### {view.headline(pair)}")
    figures = view.figures(pair)
    cards(figures, len(figures), CARD_PIXELS)


def outside_of_steps(pair: Pair, name: str) -> None:
    """What ran outside of the included steps, which figures per step leave out."""
    make = partial(op_figures.outside_of_steps, pair.comparison, pair.candidate, name)
    if sentence := cached(pair, ("outside_of_steps", name), make):
        st.caption(sentence)


def rows_of(pair: Pair, choice: Choice) -> pd.DataFrame:
    """The rows of the table: ops or groups of them, on the chosen side, that contain the words of the filter."""
    if choice.by == "op_name":
        rows, columns = pair.ops(idle=choice.idle), ["op_name", "op_type", "op_name_candidate", "op_type_candidate"]
    else:
        rows, columns = pair.groups(choice.by, idle=choice.idle), [choice.by]
    if choice.per_occurrence:
        rows = pair.comparison.rows_per_occurrence(rows, "op_stats")
    return tf_stats.with_words(rows[rows["host_or_device"].isin(choice.places)], choice.text, columns)


def movers(pair: Pair, rows: pd.DataFrame, choice: Choice) -> None:
    """The largest changes among the rows; nothing for a run alone."""
    if pair.is_single:
        return
    st.subheader("What changed")
    changes = cached(pair, ("movers", choice), lambda: largest_changes(rows, n=MOVERS))
    if changes.empty:
        st.info("None of these rows changed its self time.")
        return
    largest(pair, changes, "self_time_us", by=choice.by, on=choice)


def columns(pair: Pair, rows: pd.DataFrame, choice: Choice, every: bool) -> list[str]:
    """The table's columns, most important first."""
    side = ["host_or_device"] if rows["host_or_device"].nunique() > 1 or every else []
    self_time = [f"{metric_in(rows, 'self_time_us')}_{role}" for role in SELF_TIME]
    shares = [f"self_share_{role}" for role in BOTH]
    occurrences = _named(rows, "occurrences")
    if choice.by != "op_name":
        names = [choice.by, *side, *self_time, "verdict"]
        return names + (["status", "evidence", *INTERVAL, *shares, *occurrences, "match"] if every else [])
    wall_time = _named(rows, "wall_time_us") if every and any(map(has_steps, pair.runs)) else []
    names = ["op_name", "op_type", *side, *self_time, *wall_time, "verdict"]
    if pair.is_single and not every:
        names += [*shares[:1], *occurrences[:1]]
    elif choice.per_occurrence and not every:
        names += occurrences
    if every:
        names += ["status", "evidence", *INTERVAL, *shares, "match", *(f"rank_{role}" for role in BOTH), *occurrences]
        names += [*_named(rows, "total_time_us"), *(f"{name}_{role}" for name in _AVERAGES for role in BOTH)]
        known = [name for cost in ("flops", "bytes_accessed") for name in _named(rows, cost)]
        if rows[known].notna().any(axis=None):
            names += [*known, *(f"{name}_{role}" for name in _RATES for role in BOTH)]
        names += [*(f"is_eager_{role}" for role in BOTH), "op_name_candidate", "op_type_candidate"]
    return names


_RATES = ("flops_per_s", "bandwidth_bytes_per_s", "operational_intensity", "bound_by")
_AVERAGES = ("avg_time_us", "avg_self_time_us", "cumulative_share")


def _named(rows: pd.DataFrame, metric: str) -> list[str]:
    """The columns of a sum for both sides."""
    return [f"{metric_in(rows, metric)}_{role}" for role in BOTH]


def everything(pair: Pair) -> pd.DataFrame:
    """All rows and columns of all candidates."""
    diff = pair.comparison.table("op_stats")
    parts = [tf_stats.side_by_side(part, idle=True) for _, part in diff.groupby("candidate", sort=False)]
    return pd.concat(parts, ignore_index=True)


def row_key(rows: pd.DataFrame) -> pd.Series:
    """A unique key for each op; an added op may have the same name as a removed one."""
    names: pd.Series = rows["host_or_device"] + ":" + rows["op_type"] + ":" + rows["op_name"]
    return names.mask(rows["status"] == "added", "+" + names)


def open_op(pair: Pair, rows: pd.DataFrame, choice: Choice, chosen: str) -> None:
    """Open the view of the selected op, even if the filter hides it."""
    del rows
    every = pair.ops(idle=choice.idle)
    found = every[row_key(every) == chosen]
    if not found.empty:
        op_view.open_op_row(pair, found.iloc[0], lambda place, kind, name: f"{place}:{kind}:{name}")


def _nothing(choice: Choice) -> str:
    if not choice.text:
        return "No ops were recorded here."
    return f"No row has all words of {as_code(choice.text)}. Clear the filter to see all."


TABLE = TablePage(
    table=schema.OP_STATS,
    title=lambda choice: f"Every {GROUPINGS[choice.by]}",
    controls=controls,
    rows=rows_of,
    columns=columns,
    details=open_op,
    row_key=row_key,
    has_row_key=lambda choice: choice.by == "op_name",
    everything=everything,
    nothing=_nothing,
)


def distributions(pair: Pair, choice: Choice) -> None:
    """Where the self time goes, by op and by op type."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Where the time goes", width="content")
        as_shares = st.toggle(
            "Shares", key="shares", bind="query-params", help="Shares of each run's self time, which add up to 100 %"
        )
    groupings: tuple[Grouping, ...] = ("op_name", "op_type")
    for place in choice.places:
        groups = {by: _with_time(pair.groups(by, idle=choice.idle), place) for by in groupings}
        if groups["op_type"].empty:
            st.info(f"No op took any time on {place.lower()}.")
            continue
        times = {by: tf_stats.time_shares(rows, by) for by, rows in groups.items()}
        reach = op_figures.largest_bar(list(times.values()), "self_time_us", len(pair.shown), as_shares=as_shares)
        for column, (by, rows) in zip(side_by_side(len(groups)), times.items(), strict=True):
            with column:
                make = partial(_bars, pair, rows, by, place, reach, as_shares)
                draw(pair, f"shares_{place}_{by}", make, (choice.idle, as_shares))


def _bars(pair: Pair, times: pd.DataFrame, by: Grouping, place: str, reach: float, as_shares: bool) -> Any:
    sides = [side for side, _ in pair.shown]
    title = f"Self time on {place.lower()} by {GROUPINGS[by]}"
    if as_shares:
        axis = "Share of self time"
        return shares.share_bars(times, sides, "self_time_us", title=title, axis=axis, reach=reach)
    axis = f"Self time per {pair.comparison.per}"
    times = tf_stats.longest_first(times, "self_time_us")
    return shares.time_bars(times, sides, "self_time_us", title=title, axis=axis, reach=reach)


def _with_time(rows: pd.DataFrame, place: str) -> pd.DataFrame:
    metric = metric_in(rows, "self_time_us")
    took_time = rows[[f"{metric}_{role}" for role in BOTH]].max(axis=1) > 0
    return rows[took_time & (rows["host_or_device"] == place)]


def by_scope(pair: Pair, choice: Choice) -> None:
    """The self time by name scope."""
    st.subheader("Name scopes", help=SCOPES_HELP)
    if coverage := op_figures.scoped_time(pair.ops(idle=False), is_single=pair.is_single):
        st.caption(coverage)
    for place in choice.places:
        if figure := cached(pair, ("scopes", place), partial(view.scopes_of, pair, place)):
            show(figure, f"scopes_{place}")
        else:
            st.info(f"No op took any time on {place.lower()}.")
