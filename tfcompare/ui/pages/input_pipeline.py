"""The parts of the input pipeline page: TensorBoard's Input Pipeline Analyzer for both runs, and the changes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare.charts import input_pipeline as charts
from tfcompare.charts import style
from tfcompare.charts.verdicts import Judged
from tfcompare.compare.headline import step_marker_call
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.compare.tf_data.call_verdicts import CallVerdict
from tfcompare.run import Run
from tfcompare.tools import input_bound, input_ops
from tfcompare.tools.advice import input_category_advice
from tfcompare.tools.input_bound import InputWait
from tfcompare.tools.input_verdicts import on_waiting
from tfcompare.tools.key_figures import Better, KeyFigure, better_by
from tfcompare.ui.frame import sidebar
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.pages import input_pipeline_ops
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.changes import verdicts
from tfcompare.ui.widgets.figures import draw
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.text import as_code
from tfcompare.units import format_percent, format_time_us

Waits = tuple[InputWait, InputWait]
"""The input wait of the baseline and of the candidate."""

InputVerdicts = tuple[Verdict, CallVerdict | None]
"""The verdicts on the input wait of the steps, and on the mean call to the slowest pipeline if both runs have one."""

ROLES = ("baseline", "candidate")
TF_DATA_PAGE = "pages/6_tf_data.py"
HOW_TO_RECORD_INPUT = (
    "Input ops are seen where the program reads through `tf.data` and the profiler traces the host: record again with "
    "`tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)`."
)


def waits_of(pair: Pair) -> Waits:
    """How long each run waits for input, on the host that is shown or on the slowest host of each step."""
    ours, theirs = (input_bound.wait_of(run, pair.host_of(run)) for run in pair.runs)
    return ours, theirs


def _steps(pair: Pair, run: Run) -> pd.DataFrame:
    return steps_of_straggler(run.table("steps", host=pair.host_of(run)))


def headline(pair: Pair, waits: Waits) -> None:
    """Show how long each run waits for input, and whether it is input-bound."""
    identical = pair.baseline.content_id == pair.candidate.content_id
    st.markdown(f"### {input_bound.headline(*waits, identical=identical)}")
    if (in_time := input_bound.in_time(*waits)) and not identical:
        st.markdown(in_time)
    lines = []
    for side, run, wait in zip(pair.sides, pair.runs, waits, strict=True):
        lines.append(f"- {side.role} {as_code(run.name)} {input_bound.words(wait)}")
    st.markdown("\n".join(lines))


def input_verdicts(pair: Pair) -> InputVerdicts:
    """Whether the candidate's steps wait longer, and its calls to tf.data take longer; cached for the next rerun."""
    return _verdicts(pair.key, pair)


@st.cache_data(max_entries=16, show_spinner=False)
def _verdicts(key: tuple[Any, ...], _pair: Pair) -> InputVerdicts:
    del key
    return on_waiting(_pair.comparison, _pair.candidate), _pair.comparison.slowest_call_verdict(_pair.candidate)


def how_sure(pair: Pair) -> None:
    """The confidence intervals of the change in input wait and in the mean call to tf.data, and their basis."""
    if pair.baseline.content_id == pair.candidate.content_id:
        return
    waiting, calls = input_verdicts(pair)
    rows = [Judged("Waiting for input per step", waiting)]
    if calls is not None:
        rows.append(Judged(f"Mean call to tf.data ({calls.name})", calls.verdict, style.CANDIDATE_SYMBOLS[1]))
    verdicts(pair, rows, "Confidence intervals of the input", "Time, candidate ÷ baseline", key="input_verdicts")


def figures(pair: Pair, waits: Waits) -> None:
    """The key figures of the input: wait and its share, step time, host activity, and the mean call to tf.data."""
    per = pair.comparison.per
    ours, theirs = waits
    categories = input_ops.category_times(pair.diff("input_pipeline"))
    on_host = [input_ops.host_input_time_us(categories, role) for role in ROLES]
    waiting, mean_call = input_verdicts(pair)
    every = [
        _figure(
            "Waiting for input per step", ours.input_time_us.average, theirs.input_time_us.average, better_by(waiting),
            "Mean over the included steps: time in which a step waits for input or copies it to the device.",
        ),
        KeyFigure(
            "Share of the step time", "share", ours.share.average, theirs.share.average, "neither",
            "Waiting for input as a share of the time of all included steps together.",
        ),
        _figure(
            "Step time (mean)", ours.step_time_us.average, theirs.step_time_us.average,
            better_by(pair.comparison.verdict[pair.candidate.id]),
            "Mean over the included steps, each as long as on its slowest host.",
        ),
        _figure(
            f"Host input time per {per}", on_host[0], on_host[1], "neither",
            f"Self time of all input ops on all threads and hosts added up, per {per}. What is made ahead of time "
            "counts, though no step waits for it.",
        ),
    ]  # fmt: skip
    every.append(_mean_call(pair) if mean_call is None else _figure(
        "Mean call to tf.data", mean_call.baseline_us, mean_call.candidate_us, better_by(mean_call.verdict),
        f"How long the program waited for an element on average, each run's slowest pipeline: {mean_call.name}.",
    ))  # fmt: skip
    cards([figure for figure in every if not (math.isnan(figure.baseline) and math.isnan(figure.candidate))])


def _mean_call(pair: Pair) -> KeyFigure:
    """The mean call if only one run calls tf.data, so that there is no verdict."""
    tables = (run.table("tf_data_pipelines", host=pair.host_of(run)) for run in pair.runs)
    ours, theirs = (input_bound.calls_of(table).mean_us for table in tables)
    meaning = "How long the program waited for an element on average, all pipelines together."
    return _figure("Mean call to tf.data", ours, theirs, "neither", meaning)


def _figure(label: str, baseline: float, candidate: float, better: Better, meaning: str) -> KeyFigure:
    return KeyFigure(label, "µs", baseline, candidate, better, meaning)


def on_device(pair: Pair, waits: Waits) -> None:
    """Each step with its input wait, and the distribution of both."""
    st.subheader("What the steps wait for")
    if not any(wait.is_known for wait in waits):
        infos = [run.info for run in pair.runs]
        st.info(
            "No step of either run tells how long it waits for input. "
            f"Record again with each step inside `{step_marker_call(infos)}`."
        )
        return
    draw(pair, "step_times", lambda: charts.step_times(_series(pair, waits)))
    left, right = side_by_side(2)
    with left:
        draw(pair, "input_shares", lambda: charts.input_shares(_series(pair, waits)))
    with right:
        _show_spreads(waits)


def _series(pair: Pair, waits: Waits) -> list[tuple[style.Side, pd.DataFrame]]:
    """The steps to draw for both sides, each with its share of input wait."""
    return [
        (side, frame.assign(input_share=input_bound.share_by_step(frame)))
        for side, frame in zip(pair.sides, _frames(pair, waits), strict=True)
    ]


def _show_spreads(waits: Waits) -> None:
    right = st.column_config.TextColumn(alignment="right")
    columns = dict.fromkeys(("Average", "Deviation", "Smallest", "Largest"), right)
    st.dataframe(_spreads(waits), hide_index=True, height="content", column_config=columns, key="spreads")
    counts = [f"{wait.steps:,} of the {role}" for role, wait in zip(ROLES, waits, strict=True) if wait.is_known]
    st.caption(
        f"Over the steps that count: {' and '.join(counts)}. Deviation: standard deviation from step to step. "
        "The average share is that of all their time together."
    )


def _frames(pair: Pair, waits: Waits) -> list[pd.DataFrame]:
    """The steps to draw; none for a run whose input wait is unknown."""
    frames = [_steps(pair, run) for run in pair.runs]
    return [frame if wait.is_known else frame.iloc[:0] for frame, wait in zip(frames, waits, strict=True)]


def _spreads(waits: Waits) -> pd.DataFrame:
    """Average, deviation and range of step time and input wait, one row per run."""
    rows = []
    for label, field, text in (
        ("Step time", "step_time_us", format_time_us),
        ("Waiting for input", "input_time_us", format_time_us),
        ("Share of the step", "share", format_percent),
    ):
        for role, wait in zip(ROLES, waits, strict=True):
            spread: input_bound.Spread = getattr(wait, field)
            rows.append(
                {
                    "": label,
                    "Run": role.capitalize(),
                    "Average": text(spread.average),
                    "Deviation": text(spread.deviation),
                    "Smallest": text(spread.smallest),
                    "Largest": text(spread.largest),
                }
            )
    return pd.DataFrame(rows)


def on_host(pair: Pair) -> None:
    """What the host does to prepare the input, by category."""
    st.subheader("What the host does")
    diff = pair.diff("input_pipeline")
    if diff.empty:
        st.info(f"Neither run holds ops of an input pipeline. {HOW_TO_RECORD_INPUT}")
        return
    categories = input_ops.category_times(diff)
    for role, run in zip(ROLES, pair.runs, strict=True):
        if math.isnan(input_ops.host_input_time_us(categories, role)):
            st.info(f"{as_code(run.name)} holds no ops of an input pipeline. {HOW_TO_RECORD_INPUT}")
    bars = partial(charts.category_times, categories, pair.sides, per=pair.comparison.per)
    draw(pair, "category_times", bars)
    st.caption(
        "Times of all threads are added up, and what is read or prepared ahead of time counts though no step waits for "
        "it: this can be much longer than the waiting, and even longer than the step."
    )


def every_op(pair: Pair) -> None:
    """The largest changes among the input ops, and the table of all of them."""
    if not pair.diff("input_pipeline").empty:
        st.subheader("What changed in the input ops")
        input_pipeline_ops.TABLE.show(pair)


def what_next(pair: Pair, waits: Waits, selection: Selection) -> None:
    """The guide's advice for the largest part of the candidate's input time, and a link to the tf.data page."""
    st.subheader("What to look at next")
    candidate = waits[1]
    diff = pair.diff("input_pipeline")
    categories = input_ops.category_times(diff)
    found = input_ops.dominant(categories, "candidate")
    if candidate.level == "not":
        st.markdown(
            "The candidate hardly waits for its input: what else its steps do is what to work on, see the op stats."
        )
    elif found is None:
        st.markdown("The candidate holds no input ops, so what its input spends its time on cannot be told.")
    else:
        category, share = found
        op_name = input_ops.longest_op(diff, "candidate", category)
        condition = "" if candidate.is_bound else "If input is what holds the candidate up: "
        st.markdown(
            f"{format_percent(share)} of the candidate's input time on the host is **{category}**, most of it in "
            f"{as_code(op_name)}. {condition}{input_category_advice.advice(category, op_name)} "
            f"The [TensorFlow Profiler guide]({input_category_advice.GUIDE}) tells more."
        )
    sidebar.link(
        TF_DATA_PAGE, "tf.data: which step of the pipeline is the slow one", selection, icon=":material/account_tree:"
    )
