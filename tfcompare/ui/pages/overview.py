"""The first screen of the Overview: the verdict, five figures, why, what to try next and what changed."""

from __future__ import annotations

from functools import partial

import streamlit as st

from tfcompare.charts.attribution import step_waterfall
from tfcompare.charts.pair import Pair, has_steps
from tfcompare.charts.verdicts import colours_of_change
from tfcompare.run import Run
from tfcompare.tools import step_attribution
from tfcompare.tools.advice import Facts, facts_of
from tfcompare.ui.frame import sidebar, state
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.widgets.blocks import show_facts, show_items, show_verdict
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.op_view import open_op
from tfcompare.views import answer
from tfcompare.views.blocks import Block, Cards, Items, Text
from tfcompare.views.blocks import Facts as FactsBlock

CHANGES = "change"
"""The key of the table of changes, and with `_row` the URL key of its selected row."""
_ELSEWHERE = ", or choose the host event that begins each step under “Steps begin with” in the sidebar"
_SELF_TIME = (
    "Self time, summed over all threads and devices: it can be longer than the step. Select a row for the op's steps, "
    "kernels and memory."
)
_MEAN = "Means over the included steps, as the step time is."


def verdict(pair: Pair) -> None:
    """Faster or slower, by how much, and how sure: a badge, a sentence, and what they are based on."""
    found = cached(pair, "verdict", lambda: answer.verdict(pair, _ELSEWHERE))
    show_verdict(found)


def slow_host(pair: Pair) -> None:
    """The host that stands out, if any, with a link to the Hosts page."""
    if not all(map(has_steps, pair.runs)) or not (sentence := attribution(pair).slow_host):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(sentence, width="content")
        sidebar.link("pages/9_Hosts.py", "Hosts", state.chosen(), icon=":material/dns:")


def figures(pair: Pair) -> None:
    """The five key figures, with their changes."""
    blocks = cached(pair, "figures", lambda: list(answer.figures(pair, attribution(pair).parts)))
    for block in blocks:
        if isinstance(block, Cards):
            cards(block.figures)
    if not any(isinstance(block, Cards) for block in blocks):
        st.info("The profile holds no steps and no ops. Capture it again while the program runs.")


def attribution(pair: Pair) -> step_attribution.Attribution:
    """The average steps of both runs by part."""
    return pair.attribution


def why(pair: Pair) -> None:
    """What made the average step longer or shorter, by part; of a run alone, what its step consists of."""
    if not all(map(has_steps, pair.runs)):
        return
    found = attribution(pair)
    if pair.is_single:
        st.subheader("Where the time goes", anchor=False)
        draw(pair, "average_step", partial(answer.average_step, pair))
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


def changes(pair: Pair) -> None:
    """The ops with the largest changes; of a run alone, its longest ops. A selected row opens the op."""
    for block in cached(pair, "changes", lambda: list(answer.changes(pair, answer.TOP))):
        _show(pair, block)


def advice(pair: Pair) -> None:
    """What to try next, the pieces that could save most first."""
    st.subheader("What to try next", anchor=False)
    for block in cached(pair, "advice", lambda: list(answer.advice(pair))):
        _show(pair, block)


def _show(pair: Pair, block: Block) -> None:
    if isinstance(block, Items):
        show_items(block)
    elif isinstance(block, FactsBlock):
        if (chosen := show_facts(block, key=CHANGES, help=_SELF_TIME)) is not None:
            label = next(one.label for one in block.findings if one.id == chosen)
            open_op(pair, label, address=f"{CHANGES}_")
    elif isinstance(block, Text):
        st.markdown(block.text)


def facts_of_sides(pair: Pair) -> list[Facts]:
    """What advice is based on, of baseline and candidate; cached for all pairs with these runs."""
    return [_facts(run.content_id, pair.host_of(run), run) for run in pair.runs]


@st.cache_resource(max_entries=16, show_spinner=False)
def _facts(content_id: str, host: str | None, _run: Run) -> Facts:
    del content_id
    return facts_of(_run, host)
