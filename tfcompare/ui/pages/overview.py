"""The first screen of the Overview: the verdict, five figures, why, what changed and what to try next."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare.charts.attribution import step_waterfall
from tfcompare.charts.step_parts import step_breakdown
from tfcompare.charts.style import letter, shorten_distinct
from tfcompare.charts.verdicts import SIGNS, colours_of_change, text_of
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.compare.stats.estimates import STEP_TIME
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.markdown import as_code, as_markdown, first_sentence
from tfcompare.run import Run
from tfcompare.tools import step_attribution
from tfcompare.tools.advice import Advice, Evidence, Facts, Findings, advise_on, facts_of, with_repeats
from tfcompare.tools.overview import dashboard
from tfcompare.tools.throughput import between_steps_sentence, dispatch_sentence
from tfcompare.tools.verdict_words import evidence, without_step_times
from tfcompare.ui.frame import sidebar, state
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.pair import Pair, has_steps
from tfcompare.ui.pages.op_stats import row_key
from tfcompare.ui.widgets.cards import FEWEST_IN_A_ROW, cards
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.op_links import op_link
from tfcompare.ui.widgets.verdict_line import BADGES
from tfcompare.units import (
    format_delta,
    format_percent,
    format_ratio,
    format_time_us,
    format_value,
)

TOP = 3
"""The number of changes and pieces of advice on the first screen."""

NAME_LETTERS = 46
NO_BREAK = "\u00a0"
ROLES = ("baseline", "candidate")


def verdict(pair: Pair) -> None:
    """Faster or slower, by how much, and how sure: a badge, a sentence, and what they are based on."""
    if pair.is_single:
        _step_time(pair)
        return
    if not all(map(has_steps, pair.runs)):
        _no_steps(pair)
        return
    found = pair.comparison.verdict[pair.candidate.id]
    headline = pair.comparison.headline(pair.candidate.id, (letter(0), letter(pair.position)))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(_badge(found), color=BADGES.get(found.word, "gray"))
        st.markdown(f"### {first_sentence(headline)}", help=STEP_TIME, width="stretch")
    text = " ".join([evidence(pair.comparison, pair.candidate), *_outside_of_steps(pair)])
    st.caption(text, help=None if found.sensitivity is None else found.sensitivity.details())


def _no_steps(pair: Pair) -> None:
    """Which runs have no steps, and how to get them."""
    shown = {letter(i and pair.position): run for i, (_, run) in enumerate(pair.shown)}
    title, text = without_step_times(
        pair.comparison, pair.candidate, shown,
        ", or choose the host event that begins each step under “Steps begin with” in the sidebar",
    )  # fmt: skip
    st.markdown(f"### {title}")
    st.caption(text)


def _badge(found: Verdict) -> str:
    ratio = f" {format_ratio(found.ratio)}" if found.has_interval else ""
    return f"{text_of(found.word, found.evidence)}{ratio}"


def _step_time(pair: Pair) -> None:
    """The step time of a run that is shown alone."""
    run, time_us = pair.baseline, pair.comparison.step_time_us(pair.baseline)
    if math.isnan(time_us):
        _no_steps(pair)
        return
    st.markdown(f"### {format_time_us(time_us)} per step", help=STEP_TIME)
    counted = f"{run.info.steps_included:,} of {run.info.step_count:,} steps are included."
    st.caption(" ".join([counted, *_outside_of_steps(pair)]))


def _outside_of_steps(pair: Pair) -> list[str]:
    """What the step time excludes: time between steps, and dispatch if the host does not wait for the device."""
    if pair.is_single:
        return []
    make = (between_steps_sentence, dispatch_sentence)
    sentences = cached(pair, "outside_of_steps", lambda: [of(pair.comparison, pair.candidate) for of in make])
    return [sentence for sentence in sentences if sentence]


def slow_host(pair: Pair) -> None:
    """The host that stands out, if any, with a link to the Hosts page."""
    if not all(map(has_steps, pair.runs)) or not (sentence := attribution(pair).slow_host):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(sentence, width="content")
        sidebar.link("pages/9_Hosts.py", "Hosts", state.chosen(), icon=":material/dns:")


def figures(pair: Pair) -> None:
    """The five key figures, with their changes."""
    numbers = cached(pair, "dashboard", lambda: dashboard(pair.comparison, pair.candidate, attribution(pair).parts))
    if not numbers:
        st.info("The profile holds no steps and no ops. Capture it again while the program runs.")
        return
    cards([figure.alone() for figure in numbers] if pair.is_single else numbers, max(len(numbers), FEWEST_IN_A_ROW))


def attribution(pair: Pair) -> step_attribution.Attribution:
    """The average steps of both runs by part; cached for the next rerun."""
    return _attribution(pair.key, pair)


@st.cache_data(max_entries=16, show_spinner=False)
def _attribution(key: tuple[Any, ...], _pair: Pair) -> step_attribution.Attribution:
    del key
    return step_attribution.attribution(_pair.comparison, _pair.candidate)


def why(pair: Pair) -> None:
    """What made the average step longer or shorter, by part; of a run alone, what its step consists of."""
    if not all(map(has_steps, pair.runs)):
        return
    found = attribution(pair)
    if pair.is_single:
        st.subheader("Where the time goes", anchor=False)
        draw(pair, "average_step", lambda: step_breakdown(found.parts, pair.sides[0]))
        return
    st.subheader("Why", anchor=False, help=" ".join(filter(None, [found.host_sentence, _MEAN, _of_one_capture(pair)])))
    st.markdown(found.sentence)
    if found.waterfall is not None and not found.waterfall.is_empty:
        colours = colours_of_change(pair.comparison.verdict[pair.candidate.id])
        narrow = is_narrow()
        draw(
            pair, "step_waterfall", partial(step_waterfall, found.waterfall, pair.sides, colours, narrow=narrow), narrow
        )


def _of_one_capture(pair: Pair) -> str:
    has_replicates = any(pair.comparison.repeats_of(run) for run in pair.runs)
    return "Of the runs themselves, without their replicates." if has_replicates else ""


_SELF_TIME = "Self time, summed over all threads and devices: it can be longer than the step"
_MEAN = "Means over the included steps, as the step time is."


def top_changes(pair: Pair) -> None:
    """The three largest changes of ops as one-liners that unfold; of a run alone, its three longest ops."""
    st.subheader("Top ops" if pair.is_single else "Top changes", anchor=False, help=_SELF_TIME)
    rows = cached(
        pair, "top_changes", lambda: _longest(pair) if pair.is_single else largest_changes(pair.diff(), n=TOP)
    )
    if rows.empty:
        st.markdown("No op changed its self time." if not pair.is_single else "The profile holds no ops.")
    names = shorten_distinct([str(name) for name in rows["op_name"]], NAME_LETTERS)
    for name, (_, row) in zip(names, rows.iterrows(), strict=True):
        with st.expander(_change_title(pair, row, name)):
            _change(pair, row)


def _longest(pair: Pair) -> pd.DataFrame:
    rows = pair.ops(idle=False)
    return rows.sort_values(f"{metric_in(rows, 'self_time_us')}_baseline", ascending=False, kind="stable").head(TOP)


def _change_title(pair: Pair, row: pd.Series, name: str) -> str:
    metric = _self_time(row)
    if pair.is_single:
        return f"**{format_time_us(row[f'{metric}_baseline'])}** {as_markdown(name)}"
    change = format_delta(float(row[f"{metric}_change"]), "µs")
    word = str(row["verdict"]) if isinstance(row["verdict"], str) else ""
    sign = SIGNS.get(word, "") if word != UNTESTED else ""  # its dash would read as a minus
    colour = BADGES.get(word, "gray")
    status = "" if row["status"] == "matched" else f" ({row['status']})"
    return f":{colour}[**{f'{sign} {change}'.strip()}**] {as_markdown(name)}{status}"


def _change(pair: Pair, row: pd.Series) -> None:
    """All about one op: its full name, both times, and the verdict."""
    metric, per = _self_time(row), pair.comparison.per
    st.markdown(
        f"{as_code(str(row['op_name']))} · {as_markdown(row['op_type'])} · {str(row['host_or_device']).lower()}"
    )
    times = [(letter(i), row[f"{metric}_{role}"]) for i, (role, _) in enumerate(zip(ROLES, pair.shown, strict=False))]
    text = ", ".join(f"{name} {format_value(time, 'µs')}" for name, time in times)
    st.markdown(
        f"Self time per {per}: {text if not pair.is_single else format_time_us(times[0][1])}{_interval(pair, row)}"
    )
    op_link(pair, row_key(row.to_frame().T).iloc[0])


def _interval(pair: Pair, row: pd.Series) -> str:
    if pair.is_single or pd.isna(row["verdict"]):
        return ""
    text = f" · {text_of(str(row['verdict']), row['evidence'])}"
    if pd.isna(row["interval_low"]):
        return text
    low, high = map(format_ratio, pair.interval(row))
    return f"{text} {format_ratio(row[f'{_self_time(row)}_ratio'])} (95 % CI {low}–{high})"


def _self_time(row: pd.Series) -> str:
    return metric_in(row.to_frame().T, "self_time_us")


def advice(pair: Pair) -> None:
    """The three pieces of advice that could save most as one-liners that unfold, and the others behind one more."""
    found = findings(pair)
    st.subheader("What to try next", anchor=False)
    if found.caveat:
        st.markdown(found.caveat)
    elif not found.advice:
        st.markdown("No known problem found.")
    for one in found.advice[:TOP]:
        with st.expander(_advice_title(one)):
            _advice(pair, one)
    if others := found.advice[TOP:]:
        with st.popover(f"{len(others)} more", type="tertiary"):
            for one in others:
                st.markdown(f"**{_advice_title(one)}**")
                _advice(pair, one)


def _advice_title(one: Advice) -> str:
    saves = format_percent(one.saves).replace(" ", NO_BREAK)
    return f"{one.title} · saves up to {saves}" if one.saves > 0 else one.title


def _advice(pair: Pair, one: Advice) -> None:
    st.markdown(f"{one.text} [More in the guide]({one.link})")
    _evidence(pair, one.evidence)


def _evidence(pair: Pair, evidence: tuple[Evidence, ...]) -> None:
    rows = {
        as_markdown(f"{one.label}: {one.subject}" if one.subject else one.label): [
            one.baseline_text,
            one.candidate_text,
        ]
        for one in evidence
    }
    columns = [letter(0), letter(max(pair.position, 1))]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    st.table(frame[columns[:1]] if pair.is_single else frame, width="content", hide_header=pair.is_single)


def findings(pair: Pair) -> Findings:
    """The advice on the candidate, or on the run that is shown alone; cached for the next rerun."""
    facts = facts_of_sides(pair)
    recorded = map(pair.comparison.captures, pair.runs)
    return cached(pair, "advice", lambda: advise_on(*map(with_repeats, facts, recorded)))


def facts_of_sides(pair: Pair) -> list[Facts]:
    """What advice is based on, of baseline and candidate; cached for all pairs with these runs."""
    return [_facts(run.content_id, pair.host_of(run), run) for run in pair.runs]


@st.cache_resource(max_entries=16, show_spinner=False)
def _facts(content_id: str, host: str | None, _run: Run) -> Facts:
    del content_id
    return facts_of(_run, host)
