"""The lower part of the Overview: every step of all runs, the largest idle gap, and the top changes."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from tfcompare.charts import slow_steps, steps
from tfcompare.charts.pair import Pair, has_steps, may_draw, sides, steps_of
from tfcompare.charts.step_parts import parts_of_steps
from tfcompare.charts.style import letter
from tfcompare.compare.slow_step_words import sentences
from tfcompare.run import Run
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.tools import step_attribution
from tfcompare.tools.advice.facts import Gap
from tfcompare.tools.caveats import runs_of
from tfcompare.tools.overview import gap_sentence
from tfcompare.ui.pages.overview import facts_of_sides
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.views import links
from tfcompare.views.links import Moment

VIEWS = ("step time", "by part", "distribution")

MOST_ON_ONE_SCALE = 4.0
AXIS_ROOM = 1.05
DRAWN = 4
"""The number of candidates that can be distinguished in one chart."""

SLOW = (
    "Slow: more than 1.5 times the median of the run's steps, and 5 robust standard deviations above it. Slow steps "
    "count in full. A stray, which is the only step far beyond all others, is excluded unless strays are counted."
)


def step_times(pair: Pair) -> None:
    """Every step of all runs on one axis, and which are slow."""
    runs = runs_of(pair.comparison)
    if not may_draw(run.steps for run in runs if has_steps(run)):
        return
    view = st.segmented_control(
        "Steps", VIEWS, default=VIEWS[0], required=True, key="steps_view", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    frames = cached(pair, "steps", lambda: [_drawn(pair, run, position) for position, run in enumerate(runs)])
    series = list(zip(sides(pair.comparison), frames, strict=True))
    if view == "by part":
        _by_part(pair)
    elif view == "distribution":
        draw(pair, "step_distribution", lambda: steps.step_distribution(series))
    else:
        draw(pair, "step_times", lambda: steps.step_times(series))
    if len(runs) > DRAWN + 1 and view != "by part":
        st.caption(f"The baseline, the first {DRAWN} candidates and the one shown in detail are drawn.")
    _slow_steps(pair)


def _by_part(pair: Pair) -> None:
    """Every step of each run by its parts; on one scale unless that would flatten the shorter steps."""
    frames = step_attribution.attributed_steps(pair.comparison, pair.candidate)
    shown = [(side, frame) for (side, run), frame in zip(pair.shown, frames, strict=False) if has_steps(run)]
    ends = [slow_steps.axis_end([frame], "duration_us") or float(frame["duration_us"].max()) for _, frame in shown]
    is_one_scale = len(shown) > 1 and max(ends) <= MOST_ON_ONE_SCALE * min(ends)
    for place, (side, frame) in zip(side_by_side(len(shown)), shown, strict=True):
        with place:
            top_us = AXIS_ROOM * max(ends) if is_one_scale else None
            draw(pair, f"step_parts_{side.position > 0}", partial(parts_of_steps, side, frame, top_us))
    if len(shown) > 1 and not is_one_scale:
        st.caption("Each run has its own scale.")


def _drawn(pair: Pair, run: Run, position: int) -> pd.DataFrame:
    """The steps of a run to draw; none if it is not drawn, so that the others keep their colours."""
    frame = steps_of(pair.comparison, run)
    is_drawn = position <= DRAWN or run is pair.candidate
    return frame if is_drawn and has_steps(run) else frame.iloc[:0]


def _slow_steps(pair: Pair) -> None:
    """Links to the longest step of each run that has slow steps or a stray, which the verdict tells of."""
    found = cached(pair, "slow_steps", lambda: _found_slow_steps(pair))
    if not found:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Slow steps", help=SLOW, width="content")
        for label, moment, host in found:
            show_link(pair, links.to_moment(pair, moment, host, label))


def _found_slow_steps(pair: Pair) -> list[tuple[str, Moment, str]]:
    """For each run with slow steps or a stray: the label of a link to its longest step, when it was, and on which
    host."""
    found = []
    for side, (name, run) in enumerate(_lettered(pair)):
        if sentences(run, pair.host_of(run), name):
            rows = on_slowest_host(run.table("steps", host=pair.host_of(run)))
            longest = rows[rows["included"] | rows["stray"]].sort_values("duration_us").iloc[-1]
            moment = Moment(side, float(longest["start_us"]), float(longest["duration_us"]))
            of_run = "" if pair.is_single else f" of {name}"
            found.append((f"Show step {longest['step']}{of_run} in timeline", moment, str(longest["host"])))
    return found


def _lettered(pair: Pair) -> list[tuple[str, Run]]:
    if pair.is_single:
        return [("the run", pair.baseline)]
    return [(letter(0), pair.baseline), (letter(pair.position), pair.candidate)]


def largest_gap(pair: Pair) -> None:
    """The largest idle gap of each run's steps, and between which ops it is."""
    if not any(map(has_steps, pair.runs)):
        return
    st.subheader("Largest idle gap", anchor=False)
    for side, ((name, run), facts) in enumerate(zip(_lettered(pair), facts_of_sides(pair), strict=False)):
        if not has_steps(run):
            continue
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{'' if pair.is_single else f'**{name}:** '}{gap_sentence(facts)}", width="content")
            if facts.gap is not None:
                _link_to_gap(pair, run, side, facts.gap)


def _link_to_gap(pair: Pair, run: Run, side: int, gap: Gap) -> None:
    """A link to the occurrence of a recurring gap that is nearest to its mean length."""
    every = run.table("idle_gaps", host=pair.host_of(run))
    same = every[(every["op_before"] == gap.op_before) & (every["op_after"] == gap.op_after)]
    if len(same):
        nearest = same.iloc[int((same["duration_us"] - gap.length_us).abs().argmin())]
        moment = Moment(side, float(nearest["start_us"]), float(nearest["duration_us"]))
        show_link(pair, links.to_moment(pair, moment, str(nearest["host"])))
