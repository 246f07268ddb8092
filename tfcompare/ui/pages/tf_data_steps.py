"""The bottleneck of one tf.data execution in both runs, step by step, and what to do about it."""

from __future__ import annotations

import streamlit as st

from tfcompare.compare.tf_data.iterator_tree import display_name
from tfcompare.compare.tf_data.tf_data_change import Analysis
from tfcompare.tools.advice.tf_data_advice import GUIDE, advice
from tfcompare.tools.input_bound import InputWait
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.widgets.side_by_side import CHART_PIXELS
from tfcompare.ui.widgets.text import as_code, as_markdown
from tfcompare.units import format_count, format_time_us

ROLES = ("Baseline", "Candidate")
MOST_NAMED = 10
"""Longer paths are abbreviated in the middle."""

Sides = tuple[Analysis | None, Analysis | None]
"""The analyses of baseline and candidate; None if a run does not have the pipeline."""


Waits = tuple[InputWait, InputWait]
"""The input wait of baseline and candidate."""


def five_steps(pair: Pair, sides: Sides, waits: Waits) -> None:
    """The guide's bottleneck analysis, in words, for both runs."""
    with st.grid(2, min_column_width=CHART_PIXELS):
        for run, side, wait, role in zip(pair.runs, sides, waits, ROLES, strict=True):
            with st.container(border=True, height="stretch"):
                st.markdown(f"**{role}** {as_code(run.name)}")
                st.markdown("This run does not have the pipeline." if side is None else _steps(side, wait))


def _steps(side: Analysis, wait: InputWait) -> str:
    hosts = "the only one with tf.data" if len(side.hosts) == 1 else f"one of {len(side.hosts)} with tf.data"
    steps = [
        f"Host {as_code(side.host)}, {hosts}: its longest call to {as_code(side.pipeline)} took "
        f"{format_time_us(side.longest_us)}."
    ]
    if side.iterators.empty:
        missing = f"There is no execution {side.rank}: {format_count(side.calls)} calls were recorded."
        return "\n".join(f"{n}. {text}" for n, text in enumerate([*steps, missing], 1))
    which = "The slowest execution" if side.rank == 0 else f"Execution {side.rank}, counted from 0 for the slowest,"
    took_part, waited_for = len(side.iterators), len(side.critical_path)
    steps += [
        f"{which} of {format_count(side.calls)} took **{format_time_us(side.latency_us)}**.",
        f"{format_count(took_part)} iterator{'s' if took_part != 1 else ''} took part in it.",
        f"It waited for {'all' if waited_for == took_part else format_count(waited_for)} of them: the critical path, "
        "bold in the graph below.",
    ]
    bottleneck = side.bottleneck
    if bottleneck is None:
        steps.append("No bottleneck: no transformation took any time, or the pipeline only feeds a device.")
    else:
        name = as_markdown(display_name(str(bottleneck["iterator"])))
        calls = f"{format_count(bottleneck['calls'])} call{'s' if bottleneck['calls'] != 1 else ''}"
        slowest = f"bottleneck, is {name}" if wait.is_bound else f"{name}"
        steps.append(
            f"The slowest on it{', the' if wait.is_bound else ' is'} **{slowest}**{_bottleneck_path(side)}: "
            f"{format_time_us(bottleneck['self_time_us'])} of self time in {calls}."
        )
    return "\n".join(f"{n}. {text}" for n, text in enumerate(steps, 1))


def _bottleneck_path(side: Analysis) -> str:
    """` (Root › Batch › Map)`: the path from the root to the bottleneck; the critical path may continue below it."""
    parents = dict(zip(side.iterators["iterator_id"], side.iterators["parent_id"], strict=True))
    names = dict(zip(side.iterators["iterator_id"], side.iterators["iterator"], strict=True))
    path: list[str] = []
    at = "" if side.bottleneck is None else str(side.bottleneck["iterator_id"])
    while at in names and len(path) < len(names):
        path.insert(0, as_markdown(display_name(str(names[at]))))
        at = str(parents[at])
    if len(path) > MOST_NAMED:
        path = [*path[: MOST_NAMED // 2], "…", *path[-MOST_NAMED // 2 :]]
    return f" ({' › '.join(path)})" if len(path) > 1 else ""


def overlapping(sides: Sides) -> None:
    """Explain why times of single steps can exceed the execution."""
    if any(side is not None and side.exceeds_call for side in sides):
        st.caption(
            "Times of single steps exceed the execution here. That is no error: the calls of a step add up, also those "
            "that ran in parallel on other threads, or before the program asked for the element."
        )


def what_to_do(pair: Pair, sides: Sides, waits: Waits) -> None:
    """The guide's advice for the bottleneck of each run."""
    st.subheader("What to do about it")
    advised: dict[str, list[str]] = {}
    for run, side, wait, role in zip(pair.runs, sides, waits, ROLES, strict=True):
        if side is None or side.bottleneck is None:
            continue
        name = as_markdown(display_name(str(side.bottleneck["iterator"])))
        text = f"**{name}**: {advice(side.bottleneck)}"
        if not wait.is_bound:
            text = "nothing to gain here: the run is not input bound."
        advised.setdefault(text, []).append(f"{role} {as_code(run.name)}")
    for text, who in advised.items():
        st.markdown(f"- {' and '.join(who)}, {text}")
    if not advised:
        st.markdown("There is no bottleneck to advise on.")
    st.markdown(f"More in TensorFlow's guide [Analyze tf.data performance]({GUIDE}).")
