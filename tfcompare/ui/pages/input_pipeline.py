"""The parts of the input pipeline page: TensorBoard's Input Pipeline Analyzer for both runs, and the changes."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare.charts import input_pipeline as charts
from tfcompare.charts import style
from tfcompare.charts.pair import Pair, may_draw
from tfcompare.charts.style import letter
from tfcompare.charts.verdicts import Judged
from tfcompare.compare.headline import step_marker_call
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.compare.tf_data.call_verdicts import CallVerdict
from tfcompare.markdown import as_code, as_markdown
from tfcompare.run import Run
from tfcompare.tools import input_bound, input_ops
from tfcompare.tools.advice import input_category_advice
from tfcompare.tools.input_bound import InputWait
from tfcompare.tools.input_verdicts import on_waiting
from tfcompare.tools.key_figures import Better, KeyFigure, better_by
from tfcompare.ui.frame import sidebar
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.verdict_line import verdict_lines
from tfcompare.units import format_percent, format_time_us
from tfcompare.views import input_pipeline as view

Waits = tuple[InputWait, InputWait]
"""The input wait of the baseline and of the candidate."""

InputVerdicts = tuple[Verdict, CallVerdict | None]
"""The verdicts on the input wait of the steps, and on the mean call to the slowest pipeline if both runs have one."""

ROLES = ("baseline", "candidate")
TF_DATA_PAGE = "pages/6_tf_data.py"
HOW_TO_RECORD_INPUT = (
    "Record a program that reads through `tf.data`, with "
    "`tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)`."
)


def _steps(pair: Pair, run: Run) -> pd.DataFrame:
    return steps_of_straggler(run.table("steps", host=pair.host_of(run)))


def headline(pair: Pair, waits: Waits) -> bool:
    """Show how long each run waits for input, or what to record to see it; returns whether there is more to show."""
    if not any(wait.is_known for wait in waits) and pair.diff("input_pipeline").empty:
        st.markdown(f"### No input pipeline was recorded{'' if pair.is_single else ' in either run'}")
        st.info(f"Mark each step with `{_step_marker(pair)}` to see how long it waits. {HOW_TO_RECORD_INPUT}")
        return False
    if pair.diff("input_pipeline").empty and all(wait.input_time_us.largest == 0 for wait in waits):
        st.markdown("### No step waits for input, and no input ops were recorded")
        st.info(HOW_TO_RECORD_INPUT)
        return False
    st.markdown(f"### {view.headline(pair, waits)}")
    return True


def _is_identical(pair: Pair) -> bool:
    return pair.is_identical


def _step_marker(pair: Pair) -> str:
    return step_marker_call([run.info for _, run in pair.shown])


def input_verdicts(pair: Pair) -> InputVerdicts:
    """Whether the candidate's steps wait longer, and its calls to tf.data take longer; cached for the next rerun."""
    return cached(pair, "verdicts", partial(_verdicts, pair))


def _verdicts(pair: Pair) -> InputVerdicts:
    return on_waiting(pair.comparison, pair.candidate), pair.comparison.slowest_call_verdict(pair.candidate)


def how_sure(pair: Pair) -> None:
    """The verdicts on the input wait and on the mean call to tf.data."""
    if _is_identical(pair):
        return
    waiting, calls = input_verdicts(pair)
    rows = [Judged("Input wait", waiting)]
    if calls is not None:
        rows.append(Judged(f"Mean tf.data call ({calls.name})", calls.verdict))
    verdict_lines(rows)


def figures(pair: Pair, waits: Waits) -> None:
    """The key figures of the input: wait and its share, step time, host activity, and the mean call to tf.data."""
    per = pair.comparison.per
    ours, theirs = waits
    categories = input_ops.category_times(pair.diff("input_pipeline"))
    on_host = [input_ops.host_input_time_us(categories, role) for role in ROLES]
    waiting, mean_call = input_verdicts(pair)
    every = [
        _figure(
            "Input wait per step", ours.input_time_us.average, theirs.input_time_us.average, better_by(waiting),
            _with_spreads("Time in which a step waits for input or copies it to the device.", pair, waits,
                          "input_time_us"),
        ),
        KeyFigure(
            "Share of the step", "share", ours.share.average, theirs.share.average, "neither",
            _with_spreads("Input wait ÷ step time, of all included steps together.", pair, waits, "share"),
        ),
        _figure(
            "Mean step time", ours.step_time_us.average, theirs.step_time_us.average,
            better_by(pair.comparison.verdict[pair.candidate.id]),
            _with_spreads("Each step as long as on its slowest host.", pair, waits, "step_time_us"),
        ),
        _figure(
            f"Input ops per {per}", on_host[0], on_host[1], "neither",
            f"Self time of all input ops per {per}, summed over all threads and hosts. It includes work ahead of time, "
            "for which no step waits.",
        ),
    ]  # fmt: skip
    every.append(_mean_call(pair) if mean_call is None else _figure(
        "Mean tf.data call", mean_call.baseline_us, mean_call.candidate_us, better_by(mean_call.verdict),
        f"Mean time that the program waits for an element, each run's slowest pipeline: {as_markdown(mean_call.name)}.",
    ))  # fmt: skip
    known = [figure for figure in every if not (math.isnan(figure.baseline) and math.isnan(figure.candidate))]
    cards([figure.alone() for figure in known] if pair.is_single else known)


def _with_spreads(meaning: str, pair: Pair, waits: Waits, field: str) -> str:
    """The meaning of a card, and mean, standard deviation and range of the figure in each run, as a table."""
    text = format_percent if field == "share" else format_time_us
    rows = []
    for (side, _), wait in zip(pair.shown, waits, strict=False):
        if wait.is_known:
            spread: input_bound.Spread = getattr(wait, field)
            numbers = (spread.average, spread.deviation, spread.smallest, spread.largest)
            rows.append(" | ".join(["", side.role, *map(text, numbers), f"{wait.steps:,}", ""]).strip())
    if not rows:
        return meaning
    header = "| | Mean | Std. dev. | Min | Max | Steps |\n|---|--:|--:|--:|--:|--:|"
    return "\n".join([f"{meaning}\n", header, *rows])


def _mean_call(pair: Pair) -> KeyFigure:
    """The mean call if only one run calls tf.data, so that there is no verdict."""
    tables = (run.table("tf_data_pipelines", host=pair.host_of(run)) for run in pair.runs)
    ours, theirs = (input_bound.calls_of(table).mean_us for table in tables)
    meaning = "How long the program waited for an element on average, all pipelines together."
    return _figure("Mean call to tf.data", ours, theirs, "neither", meaning)


def _figure(label: str, baseline: float, candidate: float, better: Better, meaning: str) -> KeyFigure:
    return KeyFigure(label, "µs", baseline, candidate, better, meaning)


def steps(pair: Pair, waits: Waits) -> None:
    """Each step with its input wait: as a time, or on request as a share of the step."""
    if not may_draw(_frames(pair, waits)):
        return
    shown = st.segmented_control(
        "Input wait as", ["time", "share"], default="time", required=True, key="wait_as", bind="query-params",
    )  # fmt: skip
    if shown == "share":
        draw(pair, "input_shares", lambda: charts.input_shares(_series(pair, waits)))
    else:
        draw(pair, "step_times", lambda: charts.step_times(_series(pair, waits)))


def _series(pair: Pair, waits: Waits) -> list[tuple[style.Side, pd.DataFrame]]:
    """The steps to draw of each run, each with its share of input wait."""
    return [
        (side, frame.assign(input_share=input_bound.share_by_step(frame)))
        for side, frame in zip((side for side, _ in pair.shown), _frames(pair, waits), strict=False)
    ]


def _frames(pair: Pair, waits: Waits) -> list[pd.DataFrame]:
    """The steps to draw; none for a run whose input wait is unknown."""
    frames = [_steps(pair, run) for run in pair.runs]
    return [frame if wait.is_known else frame.iloc[:0] for frame, wait in zip(frames, waits, strict=True)]


def on_host(pair: Pair) -> None:
    """What the host does to prepare the input, by category."""
    if not pair.diff("input_pipeline").empty:
        draw(pair, "category_times", partial(view.category_times, pair))


def what_next(pair: Pair, waits: Waits, selection: Selection) -> None:
    """The largest part of the input time of the candidate or of a run alone, with advice, and a link to tf.data."""
    wait, diff = waits[1], pair.diff("input_pipeline")
    role = "baseline" if pair.is_single else "candidate"
    found = input_ops.dominant(input_ops.category_times(diff), role)
    who = "" if pair.is_single else f"{letter(pair.position)}: "
    if found is None:
        st.markdown(f"No input ops were recorded{'' if pair.is_single else f' in {letter(pair.position)}'}. "
                    f"{HOW_TO_RECORD_INPUT}")  # fmt: skip
    elif wait.level != "not":
        category, share = found
        op_name = input_ops.longest_op(diff, role, category)
        with st.expander(f"{who}**{format_percent(share)}** of the input time is {category}: {as_code(op_name)}"):
            st.markdown(
                f"{input_category_advice.advice(category, op_name)} "
                f"[TensorFlow Profiler guide]({input_category_advice.GUIDE})"
            )
    if not diff.empty:
        sidebar.link(TF_DATA_PAGE, "Find the slowest iterator in tf.data", selection, icon=":material/account_tree:")
