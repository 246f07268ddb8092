"""The bottleneck of one tf.data execution, step by step, and what to do about it."""

from __future__ import annotations

import streamlit as st

from tfcompare.charts.pair import Pair
from tfcompare.compare.tf_data.iterator_tree import display_name
from tfcompare.compare.tf_data.tf_data_change import Analysis, Sides
from tfcompare.markdown import as_code, as_markdown
from tfcompare.tools.advice.tf_data_advice import GUIDE, advice
from tfcompare.tools.input_bound import InputWait
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.units import format_count, format_time_us
from tfcompare.views import links
from tfcompare.views.links import Moment

MOST_NAMED = 10
"""Longer paths are abbreviated in the middle."""

Waits = tuple[InputWait, InputWait]
"""The input wait of baseline and candidate."""


def five_steps(pair: Pair, sides: Sides, waits: Waits) -> None:
    """The guide's bottleneck analysis in words: a card for each run."""
    places = side_by_side(len(pair.shown))
    shown = zip(places, pair.shown, sides, waits, pair.letters, strict=False)
    for number, (place, (_, run), side, wait, who) in enumerate(shown):
        with place.container(border=True, height="stretch"):
            if not pair.is_single:
                st.markdown(f"**{who}** {as_code(run.name)}")
            st.markdown("This run does not have the pipeline." if side is None else _steps(side, wait))
            if side is not None and len(side.iterators):
                moment = Moment(number, float(side.iterators["start_us"].min()), side.latency_us)
                show_link(pair, links.to_moment(pair, moment, side.host, "Show this call in timeline"))


def _steps(side: Analysis, wait: InputWait) -> str:
    on_host = f" on host {as_code(side.host)}" if len(side.hosts) > 1 else ""
    if side.iterators.empty:
        return f"{as_code(side.pipeline)}{on_host}: no execution {side.rank}, only {format_count(side.calls)} calls."
    which = "slowest" if side.rank == 0 else f"execution {side.rank}"
    took_part, waited_for = len(side.iterators), len(side.critical_path)
    critical = "all" if waited_for == took_part else format_count(waited_for)
    lines = [
        f"{as_code(side.pipeline)}{on_host}: {which} of {format_count(side.calls)} calls, "
        f"**{format_time_us(side.latency_us)}**",
        f"{_count(took_part, 'iterator')}, {critical} on the critical path",
    ]
    bottleneck = side.bottleneck
    if bottleneck is None:
        lines.append("No bottleneck: no iterator took any time, or the pipeline only feeds a device")
    else:
        name = as_markdown(display_name(str(bottleneck["iterator"])))
        what = "Bottleneck" if wait.is_bound else "Slowest on it"
        lines.append(
            f"{what}: **{name}**{_bottleneck_path(side)}, {format_time_us(bottleneck['self_time_us'])} self time in "
            f"{_count(bottleneck['calls'], 'call')}"
        )
    return "  \n".join(lines)


def _count(number: float, noun: str) -> str:
    return f"{format_count(number)} {noun}{'s' if number != 1 else ''}"


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


def what_to_do(pair: Pair, sides: Sides, waits: Waits) -> None:
    """The guide's advice for the bottleneck of each input-bound run, as one-liners that unfold."""
    advised: dict[tuple[str, str], list[str]] = {}
    for _, side, wait, who in zip(pair.shown, sides, waits, pair.letters, strict=False):
        if side is not None and side.bottleneck is not None and wait.is_bound:
            name = as_markdown(display_name(str(side.bottleneck["iterator"])))
            advised.setdefault((name, advice(side.bottleneck)), []).append(who)
    for (name, text), runs in advised.items():
        where = "" if pair.is_single else f" in {' and '.join(runs)}"
        with st.expander(f"How to speed up **{name}**{where}"):
            st.markdown(f"{text} [Analyze tf.data performance]({GUIDE})")
