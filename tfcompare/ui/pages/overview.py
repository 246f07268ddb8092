"""The parts of the overview page, from top to bottom."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import ops, steps
from tfcompare.charts.attribution import part_waterfall, step_waterfall
from tfcompare.charts.step_parts import average_steps, parts_of_steps
from tfcompare.charts.style import Side
from tfcompare.charts.verdicts import colours_of_change, step_time_intervals, word_of
from tfcompare.compare import Comparison
from tfcompare.compare.aggregate import largest_changes
from tfcompare.compare.headline import step_marker_call
from tfcompare.compare.stats.estimates import TYPICAL_STEP as TYPICAL
from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.export.csv import for_spreadsheet
from tfcompare.run import Run
from tfcompare.tools import step_attribution
from tfcompare.tools.advice import Change, Evidence, Facts, advise_on, facts_of, with_repeats
from tfcompare.tools.environment import environment
from tfcompare.tools.key_figures import STEP_TIME, KeyFigure, better_by, key_figures
from tfcompare.tools.op_stats import main_side, op_table, own_side_shares
from tfcompare.tools.outliers import average_in_words, in_words, outlying
from tfcompare.tools.part_times import eager_share
from tfcompare.tools.step_series import sixteen_bit_share
from tfcompare.tools.throughput import between_steps_sentence, dispatch_sentence, window_figures
from tfcompare.ui.frame.pair import Pair, has_steps, sides, steps_of
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.changes import largest
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.text import as_code, as_markdown

DRAWN = 4
"""The number of candidates that can be distinguished in one chart."""

UNFOLDED = 2
"""The number of pieces of advice that are expanded at first: those that could save most come first."""

MOST_HEADLINES = 2
"""If there are more candidates, they are ranked in a table instead."""

OUTLYING = (
    "More than 2.5 robust standard deviations from the median of the run's steps. For the verdict they were moved to "
    "the edge of the usual, so that a stray step does not decide; charts show them as they are."
)

FEWEST_STEPS = 3
"""With fewer steps, no distribution is drawn."""


def headlines(comparison: Comparison) -> None:
    """A sentence about each candidate, followed by what to know before trusting it."""
    sentences = [first_sentence(comparison.headline(run.id)) for run in comparison.candidates]
    doubts = [comparison.doubt(run.id) for run in comparison.candidates]
    meaning = None if math.isnan(comparison.typical_step_us(comparison.baseline)) else TYPICAL
    if len(sentences) > MOST_HEADLINES:
        with st.expander("Each candidate in a sentence"):
            lines = [f"- {head} {rest} {more}".rstrip() for (head, rest), more in zip(sentences, doubts, strict=True)]
            st.markdown("\n".join(lines))
        return
    for (head, rest), run in zip(sentences, comparison.candidates, strict=True):
        st.markdown(f"## {head}", help=meaning)
        for sentence in filter(None, [rest, *step_sentences(comparison, run)]):
            st.markdown(sentence)


def step_sentences(comparison: Comparison, candidate: Run) -> list[str]:
    """What the step time excludes: time between steps, and dispatch if the host does not wait for the device."""
    make = (between_steps_sentence, dispatch_sentence)
    return cached(comparison, ("step_sentences", candidate.id), lambda: [of(comparison, candidate) for of in make])


def first_sentence(text: str) -> tuple[str, str]:
    """(the first sentence of some Markdown, the rest); a full stop within backticks does not end a sentence."""
    found = re.match(r"((?:`[^`]*`|[^`])*?\.)(?:\s+|$)(.*)", text, re.DOTALL)
    return (found[1], found[2]) if found else (text, "")


def verdicts(comparison: Comparison) -> Callable[[], None]:
    """Show the verdict on each candidate's step time, its confidence interval and its basis.

    Returns a function that draws the intervals at their place at the top. Call it after everything that should be
    readable first: the browser freezes for a second or two while it loads the chart library.
    """
    found = list(zip(sides(comparison)[1:], comparison.verdict.values(), strict=True))
    if len(found) > MOST_HEADLINES:
        return lambda: None
    place = st.container()
    for side, verdict in found:
        name = f"{as_code(side.name)}: " if len(found) > 1 else ""
        caveat = f" **But {as_markdown(verdict.caveat)}.**" if verdict.caveat else ""
        st.markdown(
            f"{name}**{word_of(verdict)}** – {as_markdown(verdict.reason)}.{caveat}",
            help=None if verdict.sensitivity is None else verdict.sensitivity.details(),
        )
    _outlying(comparison)

    def draw_intervals() -> None:
        if any(verdict.has_interval for _, verdict in found):
            with place:
                draw(comparison, "verdicts", lambda: step_time_intervals(found))

    return draw_intervals


def _outlying(comparison: Comparison) -> None:
    """Show which steps are outliers, and why they were long."""
    runs = (comparison.baseline, *comparison.candidates)
    timed = [(side, run) for side, run in zip(sides(comparison), runs, strict=True) if has_steps(run)]
    sentences = cached(comparison, "outlying", lambda: [
        in_words(outlying(run, comparison.host_of(run)), f"{_role(side)}, {as_code(side.name)},") for side, run in timed
    ])  # fmt: skip
    for sentence in filter(None, sentences):
        st.caption(sentence, help=OUTLYING)


def _role(side: Side) -> str:
    role = side.role.lower()
    return role if role[-1].isdigit() else f"the {role}"


def attribution(pair: Pair) -> None:
    """What made the average step longer or shorter: its parts, and the changes within one of them."""
    st.subheader("What made the difference")
    found = _attribution(pair.key, pair)
    st.markdown(" ".join(filter(None, [found.host_sentence, found.sentence])))
    if found.waterfall is None:
        return
    colours = colours_of_change(pair.comparison.verdict[pair.candidate.id])
    with st.container():
        if not found.waterfall.is_empty:
            draw(pair, "step_waterfall", partial(step_waterfall, found.waterfall, pair.sides, colours))
        draw(pair, "average_steps", lambda: average_steps(found.parts, pair.sides))
    roles = ("baseline", "candidate")
    of_hosts = list(zip(pair.runs, found.hosts, strict=True))
    steps_of_sides = cached(pair, "attributed_outliers", lambda: [outlying(run, host) for run, host in of_hosts])
    outliers = average_in_words(list(zip(roles, steps_of_sides, strict=True)))
    if found.host_sentence:
        hosts = " and ".join(dict.fromkeys(map(as_code, found.hosts)))
        outliers = f"Parts and ops are those of host {hosts}. {outliers}"
    if outliers:
        st.caption(outliers)
    if found.moved_most is None:
        return
    moved = found.parts[(found.parts["mean_us_baseline"] > 0) | (found.parts["mean_us_candidate"] > 0)]
    labels = {part: schema.STEPS.column(part).label for part in moved["part"]}
    part = st.selectbox(
        "Part of the step to look into", list(labels), index=list(labels).index(found.moved_most),
        format_func=labels.__getitem__, key="part", bind="query-params", width=320,
    )  # fmt: skip
    inside = _within(pair.key, part, pair)
    st.markdown(inside.sentence)
    if inside.waterfall is not None and not inside.waterfall.is_empty:
        make = partial(part_waterfall, inside.waterfall, pair.sides, labels[part], colours)
        draw(pair, "part_waterfall", make, part)


def advice(pair: Pair) -> None:
    """What to try next in the candidate, and what improved, regressed or stayed the same since the baseline."""
    facts = (_facts(run.content_id, pair.host_of(run), run) for run in pair.runs)
    recorded = map(pair.comparison.captures, pair.runs)
    found = cached(pair, "advice", lambda: advise_on(*map(with_repeats, facts, recorded)))
    st.subheader("What to try next")
    if found.caveat:
        st.info(found.caveat)
    elif not found.advice:
        st.info("No rule found anything to improve that the profiles give evidence for.")
    for place, one in enumerate(found.advice):
        with st.expander(one.title, expanded=place < UNFOLDED):
            st.markdown(f"{one.text} [More in the guide]({one.link})")
            _evidence(one.evidence)
    with st.container():
        _changes("Got better since the baseline", found.improvements)
        _changes("Got worse since the baseline", found.regressions)
    if found.unchanged:
        st.markdown("**Unchanged**\n" + "\n".join(f"- {one.text}" for one in found.unchanged))


def _evidence(evidence: tuple[Evidence, ...]) -> None:
    rows = [
        {
            "": f"{one.label}: {one.subject}" if one.subject else one.label,
            "Baseline": one.baseline_text,
            "Candidate": one.candidate_text,
        }
        for one in evidence
    ]
    st.table(pd.DataFrame(rows).map(as_markdown).set_index(""), width="content")


def _changes(title: str, changes: tuple[Change, ...]) -> None:
    with st.container():
        st.markdown(f"**{title}**")
        st.markdown("\n".join(f"- {one.text}" for one in changes) or "No significant change.")


@st.cache_resource(max_entries=16, show_spinner=False)
def _facts(content_id: str, host: str | None, _run: Run) -> Facts:
    del content_id
    return facts_of(_run, host)


@st.cache_data(max_entries=16, show_spinner=False)
def _attribution(key: tuple[Any, ...], _pair: Pair) -> step_attribution.Attribution:
    del key
    return step_attribution.attribution(_pair.comparison, _pair.candidate)


@st.cache_data(max_entries=32, show_spinner="Looking into the ops…")
def _within(key: tuple[Any, ...], part: str, _pair: Pair) -> step_attribution.Within:
    del key
    return step_attribution.within(_pair.comparison, _pair.candidate, part)


def figures(pair: Pair) -> None:
    """The key figures of the pair, with their changes."""
    numbers = cached(pair, "key_figures", lambda: _key_figures(pair))
    if not numbers:
        st.info("Neither run has steps or ops: the profiles hold nothing to compare. Record them again.")
        return
    cards(numbers)


def _key_figures(pair: Pair) -> list[KeyFigure]:
    step_us, sixteen_bit, eager = (
        (of(pair.baseline), of(pair.candidate))
        for of in (pair.comparison.typical_step_us, partial(_sixteen_bit, pair), partial(_eager, pair))
    )
    verdict = pair.comparison.verdict[pair.candidate.id]
    figures = key_figures(pair.diff(), step_us, sixteen_bit, eager, better_by(verdict))
    place = sum(figure.label == STEP_TIME for figure in figures)
    return [*figures[:place], *window_figures(pair.comparison, pair.candidate), *figures[place:]]


def _sixteen_bit(pair: Pair, run: Run) -> float:
    steps = steps_of_straggler(run.table("steps", host=pair.host_of(run)))
    return sixteen_bit_share(steps[steps["included"].astype(bool)])


def _eager(pair: Pair, run: Run) -> float:
    return eager_share(run, pair.host_of(run))


def step_times(pair: Pair) -> None:
    """The time of every step of all runs, and the distribution of step times."""
    st.subheader("Step times")
    runs = (pair.baseline, *pair.comparison.candidates)
    if not any(has_steps(run) for run in runs):
        st.info(
            "No step times to show: none of these runs marks its steps. "
            f"Record again with each step inside `{step_marker_call([pair.baseline.info])}`, or choose the "
            "host event that begins each under “Steps begin with” in the sidebar."
        )
        return
    frames = cached(pair, "steps", lambda: [_drawn(pair, run, position) for position, run in enumerate(runs)])
    series = list(zip(sides(pair.comparison), frames, strict=True))
    with st.container():
        draw(pair, "step_times", lambda: steps.step_times(series))
        if max(int(frame["included"].sum()) for frame in frames) >= FEWEST_STEPS:
            draw(pair, "step_distribution", lambda: steps.step_distribution(series))
        else:
            st.info(f"Fewer than {FEWEST_STEPS} steps have no distribution. Profile more steps to see one.")
    with st.container():
        for side, run in zip(pair.sides, pair.runs, strict=True):
            if has_steps(run):
                draw(pair, f"step_parts_{side.position > 0}", partial(_parts_of_steps, pair, side))
    if len(runs) > DRAWN + 1:
        st.caption(f"Drawn are the baseline, the first {DRAWN} candidates and the one shown in detail.")


def _parts_of_steps(pair: Pair, side: Side) -> Any:
    return parts_of_steps(side, step_attribution.attributed_steps(pair.comparison, pair.candidate)[side.position > 0])


def _drawn(pair: Pair, run: Run, position: int) -> pd.DataFrame:
    """The steps of a run to draw; none if it is not drawn, so that the others keep their colours."""
    frame = steps_of(pair.comparison, run)
    is_drawn = position <= DRAWN or run is pair.candidate
    return frame if is_drawn and has_steps(run) else frame.iloc[:0]


def top_ops(pair: Pair) -> None:
    """The ten ops with the largest share of each run, side by side."""
    st.subheader("Where the time goes")
    with st.container():
        for side, run in zip(pair.sides, pair.runs, strict=True):
            place, ranked = cached(pair, ("ranked", side.position > 0), partial(_ranked, pair, run))
            if ranked.empty:
                st.info(f"{as_code(run.name)} holds no ops: the profiler recorded no op events.")
                continue
            draw(pair, f"top_ops_{side.position > 0}", partial(ops.top_ops, side, ranked, place.lower()))


def _ranked(pair: Pair, run: Run) -> tuple[str, pd.DataFrame]:
    """Where the run spends most of its time (host or device), and its ops there with their shares."""
    stats = run.table("op_stats", host=pair.host_of(run))
    place = main_side(stats)
    ranked = own_side_shares(op_table(stats, idle=False))
    return place, ranked[ranked["host_or_device"] == place]


def movers(pair: Pair) -> None:
    """The ten ops with the largest changes."""
    st.subheader("What changed the most")
    changes = cached(pair, "movers", lambda: largest_changes(pair.diff(), n=ops.TOP))
    if changes.empty:
        st.info("No op's self time differs between these runs.")
        return
    largest(pair, changes, "self_time_us")


def environments(comparison: Comparison) -> None:
    """The environment and settings of each capture, side by side."""
    st.subheader("How they were recorded")
    runs = (comparison.baseline, *comparison.candidates)
    facts = environment([run.info for run in runs], st.context.timezone)
    columns = {"": [fact.label for fact in facts]}
    for side in sides(comparison):
        columns[f"{side.role}: {side.name}"] = [fact.values[side.position] for fact in facts]
    columns["Differs"] = ["≠ differs" if fact.differs else "" for fact in facts]
    st.dataframe(for_spreadsheet(pd.DataFrame(columns)), hide_index=True, height="content", key="environments")
