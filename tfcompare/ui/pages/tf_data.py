"""The parts of the tf.data page: the input bottleneck of each run, and what changed about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.charts.verdicts import Judged
from tfcompare.compare.aggregate import metric_in
from tfcompare.compare.diff import Side, diff_table
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.tf_data.call_verdicts import CallVerdict
from tfcompare.compare.tf_data.iterator_tree import whereabouts
from tfcompare.compare.tf_data.tf_data_change import Analysis, Sides, analyse
from tfcompare.ui.frame import sidebar, state
from tfcompare.ui.pages.tf_data_graphs import HOW_TO_READ
from tfcompare.ui.widgets.figures import cached
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.ui.widgets.verdict_line import verdict_lines
from tfcompare.views import tf_data as view

SUFFIXES = ("baseline", "candidate")
MOST_SHOWN = 4
"""The number of pipelines whose verdict is shown above the table: those with the longest mean call."""

HOW_TO_RECORD = (
    "Record a program that reads from a `tf.data.Dataset` (TensorFlow 2.4 or newer), with "
    "`tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)`."
)


@dataclass(frozen=True)
class Choice:
    """The widgets' values: a row of the pipelines' diff, and the rank of the execution (0 is the slowest)."""

    row: pd.Series
    rank: int

    def pipeline(self, role: int) -> str:
        """The name of the pipeline on one side, empty if that side does not have it."""
        alone = ("added", "removed")[role]
        if self.row["status"] == alone:
            return ""
        return str(self.row["pipeline"] if role == 0 else self.row["pipeline_candidate"])


def headline(pair: Pair) -> bool:
    """Show the bottlenecks, or how to record tf.data; returns whether there is more to show."""
    sides = _analysis_of(pair, 0), _analysis_of(pair, 1)
    if sides == (None, None):
        st.markdown(f"### No tf.data calls were recorded{'' if pair.is_single else ' in either run'}")
        st.info(HOW_TO_RECORD)
        return False
    st.markdown(f"### {view.headline(pair, sides)}")
    if None in sides:
        st.info(HOW_TO_RECORD)
    return True


def _analysis_of(pair: Pair, role: int, **chosen: str | int) -> Analysis | None:
    def make() -> Analysis | None:
        pipelines, executions = (pair.tables(name)[role] for name in ("tf_data_pipelines", "tf_data"))
        return analyse(pipelines, executions, **chosen)  # type: ignore[arg-type]

    return cached(pair, ("analysis", role, *chosen.items()), make)


def verdicts(pair: Pair) -> None:
    """The verdict on the mean call to each pipeline, and a link to what the calls cost a step."""
    if not pair.is_identical:
        calls = [call for call in cached(pair, "verdicts", partial(_verdicts, pair)) if not call.feeds_device]
        longest = sorted(calls, key=lambda call: -max(call.baseline_us, call.candidate_us))
        several = len({call.host for call in calls}) > 1
        verdict_lines([
            Judged(f"Mean call to {call.name}{f' on {call.host}' if several else ''}", call.verdict)
            for call in longest[:MOST_SHOWN]
        ])  # fmt: skip
        if len(longest) > MOST_SHOWN:
            st.caption(f"The {MOST_SHOWN} pipelines with the longest mean call; the table has all verdicts.")
    sidebar.link("pages/5_Input_pipeline.py", "Input wait per step", state.chosen(), icon=":material/input:")


def _verdicts(pair: Pair) -> list[CallVerdict]:
    return pair.comparison.call_verdicts(pair.candidate, pair.diff("tf_data_pipelines"))


def _pipeline_columns(pair: Pair, rows: pd.DataFrame, choice: None, every: bool) -> list[str]:
    del pair, choice
    calls, slow_calls = (metric_in(rows, name) for name in ("calls", "slow_calls"))
    names = ["pipeline", *(["host"] if every or rows["host"].nunique() > 1 else [])]
    names += ["pipeline_candidate"] if every or _are_renamed(rows) else []
    names += [f"mean_latency_us_{role}" for role in (*SUFFIXES, "delta", "ratio")] + ["verdict"]
    names += [f"max_latency_us_{role}" for role in (*SUFFIXES, *(["delta", "ratio"] if every else []))]
    names += [f"{calls}_{role}" for role in SUFFIXES]
    names += ["status"] if every or (rows["status"] != "matched").any() else []
    if not every:
        return names
    more = (slow_calls, "min_latency_us", "bottleneck_self_time_us", "bottleneck")
    return [*names, "evidence", *(f"{name}_{role}" for name in more for role in SUFFIXES)]


def _are_renamed(rows: pd.DataFrame) -> bool:
    matched = rows[rows["status"] == "matched"]
    return bool((matched["pipeline"] != matched["pipeline_candidate"]).any())


def explain_renamed(rows: pd.DataFrame) -> None:
    """How pipelines with different names are matched, if any are."""
    if _are_renamed(rows):
        st.caption("The runs have different pipelines. Pipelines with the most similar graphs are matched.")


PIPELINES = TablePage(
    table=schema.TF_DATA_PIPELINES,
    title=lambda _choice: "Pipelines",
    rows=lambda pair, _choice: pair.diff("tf_data_pipelines"),
    columns=_pipeline_columns,
    switch="all_pipeline_columns",
    address="pipelines_",
)


def controls(rows: pd.DataFrame) -> Choice:
    """The widgets that choose the pipeline and its execution; by default the longest call."""
    st.subheader("One execution", anchor=False, help=HOW_TO_READ)
    longest = rows[["max_latency_us_baseline", "max_latency_us_candidate"]].max(axis=1)
    feeds = rows[["feeds_device_baseline", "feeds_device_candidate"]].fillna(False).any(axis=1)
    ranked = rows.assign(longest=longest, feeds=feeds).sort_values(
        ["feeds", "longest"], ascending=[True, False], kind="stable"
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        hosts = list(dict.fromkeys(ranked["host"]))
        host = hosts[0]
        if len(hosts) > 1:
            host = st.selectbox(
                "Host", hosts, key="tf_host", bind="query-params", width=280,
                help="Sorted by the longest call",
            )  # fmt: skip
        here = ranked[ranked["host"] == host]
        row = here.iloc[0]
        if len(here) > 1:
            names = dict(zip(map(_pipeline_name, here.to_dict("records")), range(len(here)), strict=True))
            chosen = st.selectbox(
                "Pipeline", list(names), key="pipeline", bind="query-params", width=260,
                help="Sorted by the longest call; pipelines that only feed a device come last",
            )  # fmt: skip
            row = here.iloc[names[chosen]]
        executions = int(
            max(row[f"executions_kept_{role}"] for role in SUFFIXES if pd.notna(row[f"executions_kept_{role}"]))
        )
        rank = 0
        if executions > 1:
            rank = st.number_input(
                "Execution", 0, executions - 1, 0, key="rank", bind="query-params", width=180,
                help=f"0 is the slowest, {executions - 1} the fastest that was stored",
            )  # fmt: skip
    return Choice(row.drop(["longest", "feeds"]), int(rank))


def _pipeline_name(row: dict[str, object]) -> str:
    if row["status"] != "matched":
        return f"{row['pipeline']}, {'candidate' if row['status'] == 'added' else 'baseline'} only"
    if row["pipeline"] == row["pipeline_candidate"]:
        return str(row["pipeline"])
    return f"{row['pipeline']}, candidate's {row['pipeline_candidate']}"


def chosen_analyses(pair: Pair, choice: Choice) -> Sides:
    """The five steps of the analysis of both runs for the chosen execution; None if a run lacks the pipeline."""
    hosts = _own_hosts(pair)
    ours, theirs = (
        _analysis_of(pair, role, host=own[str(choice.row["host"])], pipeline=choice.pipeline(role), rank=choice.rank)
        if choice.pipeline(role)
        else None
        for role, own in enumerate(hosts)
    )
    return ours, theirs


def _own_hosts(pair: Pair) -> tuple[dict[str, str], dict[str, str]]:
    """For both sides, a mapping from each host name in the diff to the run's own name for it."""
    ours, theirs = pair.tables("tf_data_pipelines")
    as_ours = with_hosts_of(ours, theirs)["host"]
    return {str(host): str(host) for host in ours["host"]}, dict(zip(as_ours, theirs["host"], strict=True))


def node_rows(pair: Pair, choice: Choice, sides: Sides) -> pd.DataFrame:
    """The diff of the chosen execution by iterator, with one column `iterator` and `long_name` for both sides."""
    execution = (str(choice.row["host"]), choice.pipeline(0), choice.pipeline(1), choice.rank)
    return cached(pair, ("nodes", *execution), lambda: _node_rows(pair, choice, sides))


def _node_rows(pair: Pair, choice: Choice, sides: Sides) -> pd.DataFrame:
    ours, theirs = (schema.TF_DATA.empty() if side is None else side.iterators for side in sides)
    host = str(choice.row["host"])
    counterparts = {(host, choice.pipeline(1)): choice.pipeline(0)} if all(map(choice.pipeline, (0, 1))) else {}
    rows = diff_table(
        schema.TF_DATA,
        pair.candidate.id,
        Side(ours.assign(host=host), 1),
        Side(theirs.assign(host=host), 1, counterparts),
        per="run",
        identical=pair.is_identical,
    )
    either = {
        name: rows[f"{name}_baseline"].where(rows["status"] != "added", rows[f"{name}_candidate"])
        for name in ("iterator", "long_name")
    }
    return rows.assign(**either | {"iterator": _distinct(either["iterator"], rows)})


def _distinct(iterator: pd.Series, rows: pd.DataFrame) -> pd.Series:
    """Labels for iterators of the same name, as `TFRecord (FlatMap[1])` or `TFRecord (FlatMap[1] → FlatMap[0])`."""
    sides = (rows[f"long_name_{role}"].fillna("") for role in SUFFIXES)
    ours, theirs = (names.map(whereabouts(names.unique())) for names in sides)
    arrow = pd.Series(" → ", index=rows.index).where((ours != "") & (theirs != ""), "")
    where = ours.where(ours == theirs, ours + arrow + theirs)
    return iterator.where(where == "", iterator + " (" + where + ")")


def _node_columns(pair: Pair, rows: pd.DataFrame, shown: tuple[Choice, Sides], every: bool) -> list[str]:
    del pair, rows, shown
    names = ["iterator", *(f"self_time_us_{role}" for role in ("baseline", "candidate", "delta", "ratio")), "status"]
    names += [f"{name}_{role}" for name in ("total_duration_us", "calls") for role in SUFFIXES]
    if not every:
        return names
    more = "on_critical_path is_bottleneck start_us parallelism buffer_limit buffered_elements element_size_bytes"
    names += [f"{name}_{role}" for name in more.split() for role in SUFFIXES]
    names += ["match", "verdict", "long_name", "iterator_id", "iterator_id_candidate"]
    return names + [
        f"{name}_{role}" for name in ["autotune", "shapes", "types", "dataset", "settings"] for role in SUFFIXES
    ]


ITERATORS = TablePage(
    table=schema.TF_DATA,
    title=lambda _shown: "Iterators of the execution",
    rows=lambda pair, shown: node_rows(pair, *shown),
    columns=_node_columns,
    nothing=lambda _shown: "This execution was not recorded.",
)
"""The table of a choice and its analyses."""
