"""The Series page: a metric of many runs in order, when it changed, and which ops explain that."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic

import pandas as pd
import streamlit as st

from tfcompare import settings as settings_module
from tfcompare.export.csv import spreadsheet_csv
from tfcompare.markdown import as_markdown
from tfcompare.run import Run, load
from tfcompare.sources.logdir import FoundRun
from tfcompare.store.frame_builders import reader_within
from tfcompare.text import some_of
from tfcompare.tools.runs import series as tool
from tfcompare.tools.runs import series_changes
from tfcompare.tools.runs.series import Metric
from tfcompare.ui.frame.loading import QUIET_S, for_client, session
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.shell import Page
from tfcompare.ui.frame.sidebar import link
from tfcompare.ui.pages.series_choice import KINDS, SeriesChoice
from tfcompare.ui.widgets import figures
from tfcompare.units import format_delta, format_percent_change
from tfcompare.views.series import charts

_MOVES = 30
_LABELS = {"host_or_device": "Where", "op_type": "Op type", "op_name": "Op", "label": "First run after"}
_NUMBERS = {
    "before_us": ("Before (µs/step)", "%.2f"),
    "after_us": ("After (µs/step)", "%.2f"),
    "delta_us": ("Change (µs/step)", "%+.2f"),
    "ratio": ("Ratio", "%.3f×"),
    "ratio_low": ("95 % CI, low", "%.3f×"),
    "ratio_high": ("95 % CI, high", "%.3f×"),
    "p": ("p", "%.2g"),
}


def opener() -> Callable[[FoundRun], Run]:
    """Reads a run within the server's limits, for this session; raises `TfcompareError`."""
    return partial(load, build=for_client(reader_within(settings_module.read_limits(os.environ)), session()))


def show(view: Page, choice: SeriesChoice) -> None:
    """The answer, the chart, the changes, and what explains the chosen one."""
    answer = st.empty()
    rows, choice = _on_one_device(_rows(choice), choice)
    found = series_changes.changes(rows)
    answer.markdown(f"### {series_changes.sentence(rows, found, choice.metric)}")
    if not rows["value"].notna().any():
        st.info(f"No run has a value: {as_markdown(rows['problem'].iloc[0])}.")
        return
    name = KINDS[choice.metric.kind] + (f" {choice.metric.pattern}" if choice.metric.pattern else "")
    ticks = charts.NARROW_TICKS if is_narrow() else charts.TICKS
    figures.show_at_once(charts.over_runs(rows, found, choice.metric, name, ticks), "series")
    _notes(rows)
    st.download_button(
        f"CSV of these {len(rows):,} runs", lambda: spreadsheet_csv(rows), file_name="series.csv", mime="text/csv",
        icon=":material/download:", on_click="ignore", key="series_csv", help="With intervals, in full precision",
    )  # fmt: skip
    if len(found):
        _changes(found, choice)
        at = _chosen_change(found)
        moves = _explain(view, found, choice, at)
        if at == len(found) - 1 and choice.metric.is_in_index:
            answer.markdown(f"### {series_changes.sentence(rows, found, choice.metric, moves)}")
    _every_op(choice)


def _rows(choice: SeriesChoice) -> pd.DataFrame:
    """The series; shows the progress of reading, and how long it will still take, if that takes long."""
    slot, started = st.empty(), monotonic()

    def progress(done: int, total: int) -> None:
        if (passed := monotonic() - started) > QUIET_S and done:
            left = f"about {passed / done * (total - done):.0f} s left"
            slot.progress(done / total, text=f"Reading run {min(done + 1, total):,} of {total:,}, {left}")

    rows = tool.series(choice.runs, choice.metric, choice.by, progress, opener())
    slot.empty()
    return rows


def _on_one_device(rows: pd.DataFrame, choice: SeriesChoice) -> tuple[pd.DataFrame, SeriesChoice]:
    """The series without runs on other devices than the last: those of profiles are known once they are read."""
    kept = tool.on_last_device(rows)
    if len(kept) == len(rows):
        return rows, choice
    st.caption(f"Only runs on {kept['device'].max()}: {len(rows) - len(kept):,} on other devices are left out.")
    ids = set(kept["run"])
    return kept, replace(choice, runs=tuple(run for run in choice.runs if run.id in ids))


def _notes(rows: pd.DataFrame) -> None:
    without = rows[rows["value"].isna()]
    for problem, names in without.groupby("problem")["name"]:
        st.caption(f"Without a value: {as_markdown(some_of(names, 3))}: {as_markdown(str(problem))}.")
    if remark := series_changes.version_remark(rows):
        st.caption(remark)


def _changes(found: pd.DataFrame, choice: SeriesChoice) -> None:
    st.subheader("Changes", anchor=False)
    metric = choice.metric
    table = pd.DataFrame(
        {
            "First run after": found["label"],
            "Recorded": found["recorded"].dt.strftime("%Y-%m-%d %H:%M"),
            "Change": found["ratio"].map(format_percent_change),
            "95 % confidence interval": [
                f"{format_percent_change(low)} to {format_percent_change(high)}"
                for low, high in zip(found["ratio_low"], found["ratio_high"], strict=True)
            ],
            "Before": [series_changes.format_value(metric, value) for value in found["before"]],
            "After": [series_changes.format_value(metric, value) for value in found["after"]],
            "Runs before": found["runs_before"],
            "Runs after": found["runs_after"],
        }
    )
    st.dataframe(table.iloc[::-1], hide_index=True, height="content", alt="Changes")


def _chosen_change(found: pd.DataFrame) -> int:
    """The position of the change to explain: the last one, unless another is chosen."""
    labels = [
        f"{label} ({format_percent_change(ratio)})" for label, ratio in zip(found["label"], found["ratio"], strict=True)
    ]
    if len(labels) == 1:
        return 0
    shown = labels[::-1]
    return labels.index(st.selectbox("Change to explain", shown, key="change", bind="query-params", width=320))


def _explain(view: Page, found: pd.DataFrame, choice: SeriesChoice, at: int) -> pd.DataFrame:
    """The ops that explain a change, and a link to the comparison of the runs next to it."""
    change = found.iloc[at]
    ids = [run.id for run in choice.runs]
    edges = [0, *(ids.index(run) for run in found["run"]), len(ids)]
    with st.spinner("Opening the runs next to the change…"):
        moves = _moves(choice.runs, edges[at + 1], edges[at], edges[at + 2], choice.metric)
    after, before = change["run"], change["run_before"]
    selection = replace(view.selection, baseline=before, candidates=(after,), repeats=(), host=None)
    link("pages/1_Overview.py", f"Compare the runs before and after {as_markdown(change['label'])}", selection,
         icon=":material/compare_arrows:")  # fmt: skip
    if moves.empty:
        st.caption("The runs next to this change cannot be opened, or have no steps, so no ops can explain it.")
        return moves
    total = moves["delta_us"].sum()
    gaps = " and the time between steps" if series_changes.BETWEEN in set(moves["op_name"]) else ""
    st.caption(
        f"Mean wall time per step of at most {series_changes.NEAREST} runs on either side of the change. "
        f"The rows add up to the change of the mean step{gaps}, {format_delta(total, 'µs')}."
    )
    _show_ops(moves.head(_MOVES), "Ops that explain the change")
    st.download_button("CSV of all ops", lambda: spreadsheet_csv(moves), file_name="series_ops.csv", mime="text/csv",
                       icon=":material/download:", on_click="ignore", key="moves_csv")  # fmt: skip
    return moves


@st.cache_data(
    max_entries=64, show_spinner=False,
    hash_funcs={tuple: lambda runs: [run.stat_key for run in runs], Metric: str},
)  # fmt: skip
def _moves(runs: tuple[FoundRun, ...], at: int, first: int, end: int, metric: Metric) -> pd.DataFrame:
    return series_changes.op_moves(runs, at, first, end, opener(), metric)


def _every_op(choice: SeriesChoice) -> None:
    """Changes in any op, tested together; on request, since it opens the runs."""
    count = min(len(choice.runs), series_changes.FAMILY_RUNS)
    if not st.toggle(
        f"Look for changes in every op of the last {count:,} runs", key="every_op", bind="query-params",
        help="All ops are tested together, so that of those claimed at most one in twenty is claimed wrongly",
    ):  # fmt: skip
        return
    slot = st.empty()
    found, tested = series_changes.op_changes(
        choice.runs,
        lambda done, total: slot.progress(done / max(total, 1), text=f"{done:,} of {total:,} runs"),
        opener(),
    )
    slot.empty()
    if found.empty:
        st.info(f"None of {tested:,} ops changed.")
        return
    st.caption(f"{found['op_name'].nunique():,} of {tested:,} tested ops changed.")
    _show_ops(found, "Changes in every op")


def _show_ops(ops: pd.DataFrame, alt: str) -> None:
    numbers = {
        name: st.column_config.NumberColumn(label, format=number_format)
        for name, (label, number_format) in _NUMBERS.items()
    }
    times = {name: ops[name].round(2) + 0.0 for name in ops.columns if name.endswith("_us")}  # no "-0.00"
    shown = ops.assign(**times).drop(columns="run", errors="ignore")
    st.dataframe(shown, hide_index=True, alt=alt, column_config={**_LABELS, **numbers})
