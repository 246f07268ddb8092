"""The parts of the overview page, from the top to the bottom."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tfcompare.charts import ops, steps
from tfcompare.compare import Comparison
from tfcompare.compare.headline import step_marker_call
from tfcompare.compare.movers import largest_changes, metric_in
from tfcompare.environment import environment
from tfcompare.key_figures import key_figures
from tfcompare.run import Run
from tfcompare.tf_stats import main_side, op_table, own_side_shares
from tfcompare.ui.cards import cards
from tfcompare.ui.pair import Pair, has_steps, show, sides, steps_of, two_charts
from tfcompare.ui.text import as_code

DRAWN = 4
"""Candidates that one chart can tell apart."""

FEWEST_STEPS = 3
"""Fewer have no distribution."""


def headlines(comparison: Comparison) -> None:
    """A sentence on each candidate."""
    for run in comparison.candidates:
        st.markdown(f"## {comparison.headline(run.id)}")


def figures(pair: Pair) -> None:
    """The key figures of the pair, with what changed."""
    numbers = key_figures(pair.baseline.info, pair.candidate.info, pair.diff())
    if not numbers:
        st.info("Neither run has steps or ops: the profiles hold nothing to compare. Record them again.")
        return
    cards(numbers)


def step_times(pair: Pair) -> None:
    """The step time of every step of all runs, and how they are distributed."""
    st.subheader("Step times")
    runs = (pair.baseline, *pair.comparison.candidates)
    if not any(has_steps(run) for run in runs):
        st.info(
            "No step times to show: none of these runs marks its steps. "
            f"Record again with each step inside `{step_marker_call([pair.baseline.info])}`."
        )
        return
    frames = [_drawn(pair, run, position) for position, run in enumerate(runs)]
    series = list(zip(sides(pair.comparison), frames, strict=True))
    with two_charts():
        show(steps.step_times(series), "step_times")
        if max(int(frame["included"].sum()) for frame in frames) >= FEWEST_STEPS:
            show(steps.step_distribution(series), "step_distribution")
        else:
            st.info(f"Fewer than {FEWEST_STEPS} steps have no distribution. Profile more steps to see one.")
    if len(runs) > DRAWN + 1:
        st.caption(f"Drawn are the baseline, the first {DRAWN} candidates and the one shown in detail.")


def _drawn(pair: Pair, run: Run, position: int) -> pd.DataFrame:
    """The steps of a run that is drawn; none of one that is not, so that the others keep their colours."""
    frame = steps_of(pair.comparison, run)
    is_drawn = position <= DRAWN or run is pair.candidate
    return frame if is_drawn and has_steps(run) else frame.iloc[:0]


def top_ops(pair: Pair) -> None:
    """The ten ops with the largest share of each run, side by side."""
    st.subheader("Where the time goes")
    with two_charts():
        for side, run in zip(pair.sides, pair.runs, strict=True):
            stats = run.table("op_stats", host=pair.host_of(run))
            place = main_side(stats)
            ranked = own_side_shares(op_table(stats, idle=False))
            ranked = ranked[ranked["host_or_device"] == place]
            if ranked.empty:
                st.info(f"{as_code(run.name)} holds no ops: the profiler recorded no op events.")
                continue
            show(ops.top_ops(side, ranked, place.lower()), f"top_ops_{side.position > 0}")


def movers(pair: Pair) -> None:
    """The ten ops that changed the most."""
    st.subheader("What changed the most")
    changes = largest_changes(pair.diff(), n=ops.TOP)
    if changes.empty:
        st.info("No op's self time differs between these runs.")
        return
    show(ops.movers(changes, metric_in(changes, "self_time_us"), per=pair.comparison.per), "movers")


def environments(comparison: Comparison) -> None:
    """What the runs were recorded on and how, side by side."""
    st.subheader("How they were recorded")
    runs = (comparison.baseline, *comparison.candidates)
    facts = environment([run.info for run in runs], st.context.timezone)
    columns = {"": [fact.label for fact in facts]}
    for side in sides(comparison):
        columns[f"{side.role}: {side.name}"] = [fact.values[side.position] for fact in facts]
    columns["Differs"] = ["≠ differs" if fact.differs else "" for fact in facts]
    st.dataframe(pd.DataFrame(columns), hide_index=True, height="content", key="environments")
