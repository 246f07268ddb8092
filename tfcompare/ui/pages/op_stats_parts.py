"""The section of the op stats page that attributes the change of one part of the step to its ops."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from tfcompare import schema
from tfcompare.charts.attribution import part_waterfall
from tfcompare.charts.verdicts import colours_of_change
from tfcompare.compare.attribution import OTHER_HOSTS
from tfcompare.tools import step_attribution
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.widgets.figures import draw

HELP = (
    "The mean step, part by part. Where several ops ran at once, each instant is divided equally among them, so that "
    "the ops of a part add up to it."
)


def by_part(pair: Pair) -> None:
    """A choice of the parts of the step, and what changed within the chosen one; nothing where there is no change."""
    if pair.is_single:
        return
    found = _attribution(pair.key, pair)
    if found.moved_most is None:
        return
    moved = found.parts[(found.parts["mean_us_baseline"] > 0) | (found.parts["mean_us_candidate"] > 0)]
    labels = {part: schema.STEPS.column(part).label for part in moved["part"] if part != OTHER_HOSTS}
    st.subheader("By part of the step", help=HELP)
    part = st.selectbox(
        "Part of the step", list(labels), index=list(labels).index(found.moved_most),
        format_func=labels.__getitem__, key="part", bind="query-params", width=320,
    )  # fmt: skip
    inside = _within(pair.key, part, pair)
    st.markdown(inside.sentence)
    if inside.waterfall is not None and not inside.waterfall.is_empty:
        colours = colours_of_change(pair.comparison.verdict[pair.candidate.id])
        narrow = is_narrow()
        draw(
            pair,
            "part_waterfall",
            partial(part_waterfall, inside.waterfall, pair.sides, labels[part], colours, narrow=narrow),
            part,
            narrow,
        )


@st.cache_data(max_entries=16, show_spinner=False)
def _attribution(key: tuple[Any, ...], _pair: Pair) -> step_attribution.Attribution:
    del key
    return step_attribution.attribution(_pair.comparison, _pair.candidate)


@st.cache_data(max_entries=32, show_spinner="Attributing the change to ops…")
def _within(key: tuple[Any, ...], part: str, _pair: Pair) -> step_attribution.Within:
    del key
    return step_attribution.within(_pair.comparison, _pair.candidate, part)
