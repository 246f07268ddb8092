"""The section on all runs: ranked, over time, and op by op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import streamlit as st

from tfcompare.charts import many_runs as charts
from tfcompare.charts import style
from tfcompare.charts.verdicts import text_of
from tfcompare.compare.headline import step_marker_call
from tfcompare.compare.stats.estimates import STEP_TIME
from tfcompare.markdown import as_code, as_markdown
from tfcompare.tools import many_runs
from tfcompare.tools.columns import Shown
from tfcompare.tools.many_runs import BASELINE, By
from tfcompare.ui.pages.home_runs import browser_zone, recorded_text
from tfcompare.ui.widgets import tables
from tfcompare.ui.widgets.downloads import csv_buttons
from tfcompare.ui.widgets.figures import cached, draw

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare import Comparison

GROUPINGS: dict[By, str] = {"op_name": "op", "op_type": "op type"}
REFERENCE = "● baseline"
"""Shown for the baseline in place of a verdict."""
_RATIO = "Of the step times, as is the interval; no interval where it was not tested."
_ASCII_UNITS: dict[str, Literal["s", "ms", "us"]] = {"s": "s", "ms": "ms", "µs": "us"}


def ranking(comparison: Comparison) -> None:
    """The table of all runs, fastest first; nothing is shown if there is only one candidate."""
    if len(comparison.candidates) >= many_runs.FEWEST_CANDIDATES:
        _ranking(comparison, _runs(comparison))


def all_runs(comparison: Comparison) -> None:
    """Step times and the ops that changed, of all runs; nothing is shown if there is only one candidate."""
    if len(comparison.candidates) >= many_runs.FEWEST_CANDIDATES:
        st.subheader("All runs", anchor=False)
        _step_times(comparison, _runs(comparison))
        _changes(comparison, _runs(comparison))


def _runs(comparison: Comparison) -> pd.DataFrame:
    return cached(comparison, "runs", lambda: many_runs.runs_table(comparison))


def _ranking(comparison: Comparison, runs: pd.DataFrame) -> None:
    """The table of runs, fastest first, and its CSV downloads."""
    scale = style.time_scale(runs["step_time_us_mean"])
    step_time = f"step_time_{_ASCII_UNITS[scale.unit]}"
    zone = browser_zone()
    rows = many_runs.fastest_first(runs)
    times = {f"{step_time}_{of}": scale.of(rows[f"step_time_us_{of}"]) for of in ("mean", "median")}
    rows = rows.assign(**times).assign(
        verdict_text=[
            _verdict_text(*row)
            for row in zip(*(rows[name] for name in ("role", "verdict", "evidence", "caveat")), strict=True)
        ],
        recorded=[
            recorded_text(when, zone, is_sure=source == "profile")
            for when, source in zip(rows["start_time"], rows["start_time_source"], strict=True)
        ],
    )
    columns = [column for column in _columns(step_time, scale.unit) if rows[column.name].notna().any()]
    ordered, _ = tables.sortable(rows, columns, key=f"all_runs_{step_time}", address="runs_")
    _caveats(runs[runs["role"] != BASELINE])
    in_files = {"verdict_text": "verdict", "recorded": "start_time"}
    csv_buttons(
        ordered[["run", *(in_files.get(column.name, column.name) for column in columns)]],
        lambda: many_runs.fastest_first(runs),
        name=f"all runs against {comparison.baseline.name}",
        key="all_runs_csv",
    )


def _caveats(candidates: pd.DataFrame) -> None:
    """What the stars in the table mean."""
    for caveat, rows in candidates[candidates["caveat"] != ""].groupby("caveat", sort=False):
        of_all = len(rows) == len(candidates)
        names = "all candidates" if of_all else ", ".join(as_code(name) for name in rows["name"])
        st.caption(f"\\* {names}: {as_markdown(caveat)}.")


def _verdict_text(role: str, verdict: str, evidence: str, caveat: str) -> str:
    """The verdict with its symbol; no text may begin with `=`, which a spreadsheet would execute."""
    if role == BASELINE:
        return REFERENCE
    text = text_of(verdict, evidence).replace("=", "\u2009=")
    return f"{text} *" if caveat else text


def _columns(step_time: str, unit: str) -> list[Shown]:
    change = "Step time, candidate ÷ baseline"
    largest = "The largest peak of any memory within the profile."
    return [
        Shown("name", "", "Run", "The run; a double click shows the whole name.", "text"),
        Shown(
            "verdict_text",
            "",
            "Verdict",
            "Whether the step time differs from the baseline's significantly. * See below.",
            "text",
        ),
        Shown(f"{step_time}_mean", "Step time", f"Mean ({unit})", STEP_TIME, "number", unit),
        Shown(f"{step_time}_median", "Step time", f"Median ({unit})", "Median of the same steps.", "number", unit),
        Shown("ratio", change, "Ratio", _RATIO, "ratio"),
        Shown("interval_low", change, "At least", "Lower end of the 95 % confidence interval of the ratio.", "ratio"),
        Shown("interval_high", change, "At most", "Upper end of the 95 % confidence interval of the ratio.", "ratio"),
        Shown("peak_bytes", "Peak memory (bytes)", "Peak", largest, "number", "bytes"),
        Shown(
            "peak_bytes_delta", "Peak memory (bytes)", "Change", f"{largest} Less the baseline's.", "change", "bytes"
        ),
        Shown("input_share", "Input", "Share", "Share of the step time spent waiting for input.", "share"),
        Shown("recorded", "", "Recorded", "When the profile began. * No time in the profile: its folder's.", "text"),
    ]


def _step_times(comparison: Comparison, runs: pd.DataFrame) -> None:
    """The step time of the runs in chronological order."""
    timed = runs["step_time_us_mean"].notna()
    if not timed.any():
        infos = [run.info for run in (comparison.baseline, *comparison.candidates)]
        st.info(
            "No step times to show: none of these runs marks its steps. "
            f"Record again with each step inside `{step_marker_call(infos)}`, or choose the host event that begins "
            "each under “Steps begin with” in the sidebar."
        )
        return
    draw(comparison, "all_step_times", lambda: charts.step_times(many_runs.in_time_order(runs[timed])))
    if not timed.all():
        st.caption(f"Not drawn, since they mark no steps: {', '.join(map(as_code, runs.loc[~timed, 'name']))}.")


def _changes(comparison: Comparison, runs: pd.DataFrame) -> None:
    """The ops with the largest change in any run, shown for all runs."""
    by = st.segmented_control(
        "Group by", list(GROUPINGS), default="op_name", required=True, format_func=GROUPINGS.__getitem__,
        key="changes_by", bind="query-params",
    )  # fmt: skip
    cells = cached(comparison, ("changes", by), lambda: many_runs.changes_by_run(comparison.table("op_stats"), by))
    if cells.empty:
        st.info("No op's self time differs between the baseline and any of these runs.")
        return
    candidates = many_runs.in_time_order(runs[runs["role"] != BASELINE])
    names = dict(zip(candidates["run"], candidates["name"], strict=True))
    draw(comparison, "change_map", lambda: charts.change_map(cells, names, per=comparison.per), by)
