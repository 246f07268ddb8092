"""The timeline page: which steps are aligned and how, the drawing, the selected span, and what ran in a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import streamlit as st

from tfcompare.charts.style import side_colour
from tfcompare.charts.timeline.data import Labels
from tfcompare.compare.attribution import attributed_hosts
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_code, as_markdown
from tfcompare.text import middle_ellipsis
from tfcompare.tools.timeline import sentences
from tfcompare.tools.timeline.aligned import Aligned, align
from tfcompare.tools.timeline.drawing import axes, found
from tfcompare.tools.timeline.host_pair import meeting
from tfcompare.tools.timeline.losses import Loss, losses
from tfcompare.tools.timeline.run_pair import Timelines, open_timelines
from tfcompare.tools.timeline.selected import drawn_selection, most_changed_kernel, most_changed_of
from tfcompare.ui.pages import timeline_hosts, timeline_panels, timeline_steps
from tfcompare.ui.pages.timeline_hosts import ShownHosts
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.timeline import State, address_of, show_timeline, state_of
from tfcompare.views import links
from tfcompare.views.links import Moment
from tfcompare.views.pair_words import stand_ins
from tfcompare.xspace.space import PS_PER_US

KEY, SMALL = "timeline", "timeline_small"
START_OF_STEP, END_OF_COLLECTIVE = "start of the step", "end of collective"
LEAST_MARKED_US = 0.1
LEAST_SHOWN_US = 20.0
"""The least that a link from another page shows on either side of what it points to."""
SMALL_ROWS, LINK_LETTERS = 2, 120
MOST_OPS = 300
"""Ops to choose from, the longest."""


@dataclass(frozen=True)
class Chosen:
    """What is compared: the steps (none if a run marks none), and the op at time 0, a row of the diff."""

    steps: tuple[int, ...] | None
    op: int | None
    stretch: bool
    find: str


@st.fragment
def show(pair: Pair) -> None:
    """The whole page. A fragment, so that its widgets run nothing else."""
    _forget_other_pair(pair)
    sides = timeline_hosts.choose(pair)
    try:
        timelines = opened(sides)
    except TfcompareError as error:  # the profile is not there any more, or another one
        st.error(as_markdown(error))
        return
    if not any(len(side.timeline.spans) for side in timelines.sides):
        st.info("The profile holds no events. Capture it again while the program runs.")
        return
    chosen = _controls(sides, timelines)
    try:
        aligned = aligned_at(sides, chosen.steps, chosen.op)
    except TfcompareError as error:
        st.error(f"{as_markdown(error)}.")
        return
    places = losses(aligned)
    headline(sides, aligned, places, chosen.find)
    _drawn(pair, sides, chosen, places)


@st.fragment
def _drawn(pair: Pair, sides: ShownHosts, chosen: Chosen, places: list[Loss]) -> None:
    """The drawing with links to these places, and what it was asked for.

    A fragment of its own, so that moving the window runs only this.
    """
    aligned = aligned_at(sides, chosen.steps, chosen.op)
    key = _key_of(KEY, sides)
    token = f"{_of_pair(sides.pair)} {sides.host} {chosen.steps} {chosen.op}"
    state = state_of(key, token)
    state = replace(state, look=replace(state.look, stretch=chosen.stretch, find=chosen.find))
    state = _arrived(aligned, state)
    address = st.query_params.to_dict() | address_of(state)
    st.session_state[_LAST] = _ids(pair), {name: address[name] for name in _OF_RUNS if name in address}
    said = timeline_panels.in_words(aligned, state, sides.names)
    show_timeline(
        aligned, state, Labels(sides.names, sides.marks, _colours(sides.pair), said), key=key, token=token,
        jumps=sentences.jumps(aligned, state.look, places),
    )  # fmt: skip
    timeline_panels.show_selected(sides, aligned, state)
    timeline_panels.show_range(sides, aligned, state)
    timeline_panels.traces(sides.pair, aligned, state)


@st.fragment
def small(pair: Pair) -> None:
    """The typical step of both runs, in small, and where the candidate loses or gains most; for the Overview."""
    sides = timeline_hosts.of_runs(pair, attributed_hosts(pair)[0])
    try:
        timelines = opened(sides)
    except TfcompareError as error:
        st.caption(f"No timeline: {as_markdown(error)}")
        return
    if not timelines.all_have_steps:
        return
    aligned = aligned_at(sides, None, None)
    places = losses(aligned)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Typical step", anchor=False, width="content", help="The step nearest to the median of each run")
        show_link(pair, links.to_timeline())
    if not pair.is_single:
        where = sentences.where(aligned, places, sides.labels)
        is_one_of_several = len(pair.baseline.host_names) > 1
        st.markdown(f"On {as_code(sides.host)}, {where}" if is_one_of_several else where, help=sentences.OVERLAP)
    key, token = _key_of(SMALL, sides), f"{_of_pair(pair)} {sides.host}"
    state = state_of(key, token, from_address=False)
    state = replace(state, look=replace(state.look, rows=SMALL_ROWS))
    show_timeline(
        aligned, state, Labels(sides.names, sides.marks, _colours(pair)), key=key, token=token,
        compact=True, jumps=sentences.jumps(aligned, state.look, places),
    )  # fmt: skip


_LAST = "timeline_last"
"""In the session: the runs that were drawn last, with the parameters of the page's address that are of these runs."""
_OF_RUNS = ("at", *timeline_steps.STEP_KEYS, "window", "range", "shift", "span")


def _forget_other_pair(pair: Pair) -> None:
    """Remove steps, spans and times of the runs that were drawn before from the page's address.

    Values from a link to this pair stay as they are.
    """
    last_ids, last = st.session_state.get(_LAST, (None, {}))
    if last_ids in (None, _ids(pair)):
        return
    for name, value in last.items():
        if st.query_params.get(name) == value:
            st.query_params.pop(name)


def _ids(pair: Pair) -> list[str]:
    return [run.id for run in pair.runs]


def _of_pair(pair: Pair) -> tuple[Any, ...]:
    """What tells this pair, as it is compared, from all others."""
    runs = tuple((side.run.id, *(run.content_id for run in side.runs)) for side in pair.sides)
    return (*runs, pair.per, pair.host, pair.manual_pairs)


def _key_of(drawing: str, sides: ShownHosts) -> str:
    """The key of a drawing of these hosts; a span of other hosts is another span."""
    return f"{drawing}_{crc32(repr((_ids(sides.pair), sides.host)).encode())}"


def _colours(pair: Pair) -> list[str]:
    return [side_colour(side) for side, _ in pair.shown]


def opened(sides: ShownHosts) -> Timelines:
    """The timelines; cached for the next rerun."""
    return _opened(_of_pair(sides.pair), sides.host, sides.pair)


@st.cache_resource(max_entries=2, show_spinner="Laying out the timeline …")
def _opened(key: tuple[Any, ...], host: str, _pair: Pair) -> Timelines:
    del key
    return open_timelines(_pair, host)


def aligned_at(sides: ShownHosts, steps: tuple[int, ...] | None, op: int | None) -> Aligned:
    """The timelines with their spans in pairs; cached for the next rerun. Raises the errors of `align`."""
    return _aligned(_of_pair(sides.pair), sides.host, steps, op, sides)


@st.cache_resource(max_entries=4, show_spinner=False)
def _aligned(
    key: tuple[Any, ...], host: str, steps: tuple[int, ...] | None, op: int | None, _sides: ShownHosts
) -> Aligned:
    del key, host
    timelines = opened(_sides)
    return align(timelines, steps, op, meeting(_sides.hosts, timelines, steps) if _sides.hosts and steps else None)


def _arrived(aligned: Aligned, state: State) -> State:
    """The state with what a link from another page points to: the op, kernel or moment that its address names.

    What the user did since then takes precedence.
    """
    if any(key in st.query_params for key in timeline_steps.STEP_KEYS):
        return state
    ends: list[tuple[float, float]] = []
    if moment := _moment(aligned.timelines):
        begin_us = axes(aligned, state.look)[moment.side].us(moment.start_us * PS_PER_US)
        ends = [(begin_us, begin_us + max(moment.length_us, LEAST_MARKED_US))]
        state = state if state.has_measured else replace(state, range_us=ends[0])
    elif not state.has_selected and (selected := _named(aligned)):
        state = replace(state, selected=selected)
        places = drawn_selection(aligned, state.look, *selected)
        ends = [(one["start"], one["start"] + one["duration"]) for one in places]
    if not ends or state.look.window_us is not None:
        return state
    begin_us, end_us = min(begin for begin, _ in ends), max(end for _, end in ends)
    margin_us = max(end_us - begin_us, LEAST_SHOWN_US)
    return replace(state, look=replace(state.look, window_us=(begin_us - margin_us, end_us + margin_us)))


def _named(aligned: Aligned) -> tuple[int, int] | None:
    """The span of the op or kernel that the page's address names; says so if it does not run in the compared step."""
    for parameter, find_span in (("op", most_changed_of), ("kernel", most_changed_kernel)):
        if name := st.query_params.get(parameter):
            if (selected := find_span(aligned, name)) is None:
                st.info(f"{as_code(middle_ellipsis(name, LINK_LETTERS))} does not start in the compared step.")
            return selected
    return None


def _moment(timelines: Timelines) -> Moment | None:
    """The moment that the page's address names, if any."""
    moment = Moment.from_text(st.query_params.get("at", ""))
    return moment if moment and moment.side < len(timelines.sides) else None


def _controls(sides: ShownHosts, timelines: Timelines) -> Chosen:
    """Which steps, what is at time 0, whether both steps are drawn equally long, and the text to find."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        common = sides.hosts.steps if sides.hosts else None
        if common is not None:
            steps = timeline_steps.choose_common_step(timelines, common)
        else:
            steps = timeline_steps.choose_steps(timelines, sides.marks)
        op = _op(timelines, END_OF_COLLECTIVE if common else START_OF_STEP)
        find = st.text_input(
            "Find", key="find", bind="query-params", placeholder="words", width=165,
            icon=":material/search:", help="Marks the spans that have all of these words in their name, op or op type",
        )  # fmt: skip
        stretch = False
        if not sides.pair.is_single and steps is not None and common is None:
            stretch = st.toggle(
                "Stretch", key="stretch", bind="query-params",
                help="Draw both steps equally long, to compare their order instead of their times",
            )  # fmt: skip
    return Chosen(steps, op, stretch, find or "")


def _op(timelines: Timelines, usual: str) -> int | None:
    """The widget that chooses what is at time 0; the row of an op in the diff, None for the `usual` place."""
    rows = timelines.ops_by_time.drop_duplicates("op_name").head(MOST_OPS)
    names = dict(zip(rows["op_name"], rows.index, strict=True))
    first = usual if timelines.all_have_steps else "longest op" if len(timelines.sides) > 1 else "start"
    name = st.selectbox(
        "Time 0", [first, *names], key="align", bind="query-params", width=150, on_change=timeline_steps.show_whole,
        help=f"The {usual}, or the first time that an op runs in it. Without steps, by default the "
        "op that takes longest of those that both runs have",
    )  # fmt: skip
    return names.get(name)


def headline(sides: ShownHosts, aligned: Aligned, places: Sequence[Loss], find: str) -> None:
    """How long the compared steps are, where the candidate loses or gains most, and how often a text was found.

    Of a run alone, how long the step is and what takes longest in it; of two hosts of one run, which of them reaches
    the collective last and why.
    """
    labels = sides.labels
    if sides.pair.is_single:
        st.markdown(sentences.alone(aligned), help=timeline_panels.WALL_TIME)
    elif sides.hosts and sides.hosts.steps is not None:
        st.markdown(sentences.arrivals(aligned, places, labels), help=sentences.OVERLAP if places else None)
    else:
        lengths, where = sentences.lengths(aligned, labels), sentences.where(aligned, places, labels)
        st.markdown(f"{lengths} {where}", help=sentences.OVERLAP)
    if sides.hosts:
        of_run = sides.hosts.steps is not None
        st.caption(f"1: {labels[0]}, 2: {labels[1]}. {sentences.aligned_how(aligned, labels[1]) if of_run else ''}")
    elif said := stand_ins(sides.pair):
        st.caption(said)
    if find:
        st.caption(sentences.hits(find, found(aligned, find), labels))
