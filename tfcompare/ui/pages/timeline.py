"""What acts on the timeline page: the drawing, what it was asked for, and which step of each run it compares; and the
typical step of the Overview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

import pandas as pd
import streamlit as st

from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.text import as_code, as_markdown, middle_ellipsis
from tfcompare.ui.frame import sidebar
from tfcompare.ui.frame import state as selection
from tfcompare.ui.pages import timeline_panels
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.timeline import State, address_of, show_timeline, state_of
from tfcompare.units import format_time_us
from tfcompare.views import links
from tfcompare.views.links import BESIDE, HOST, Moment, host_text
from tfcompare.views.timeline import words as sentences
from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.details import details, ranged
from tfcompare.views.timeline.drawing import axes
from tfcompare.views.timeline.hosts import ShownHosts, first_hosts, shown_by_default, shown_hosts
from tfcompare.views.timeline.selection import (
    drawn_selection,
    most_changed_kernel,
    most_changed_of,
    range_table,
)
from tfcompare.views.timeline.view import (
    OF_HOSTS,
    STEPS,
    Compared,
    Options,
    aligned_at,
    compare_steps,
    hosts_of,
    key_of,
    opened,
    step_choices,
)
from tfcompare.xspace.space import PS_PER_US

KEY, SMALL = "timeline", "timeline_small"
LEAST_MARKED_US = 0.1
LEAST_SHOWN_US = 20.0
"""The least that a link from another page shows on either side of what it points to."""
SMALL_ROWS, LINK_LETTERS = 2, 120
_WIDE = "<style>.stMainBlockContainer { padding-inline: 1.5rem; }</style>"
"""The timeline has the width of the window."""
_STYLE = """<style>
.stMain :is([class*=st-key-timeline], [class*=st-key-perfetto])[data-stale=true] { opacity: 1 !important; }
</style>"""
"""What is drawn does not look out of date while a click is answered."""
_LAST = "timeline_last"
"""In the session: the runs that were drawn last, with the parameters of the page's address that are of these runs."""


def arrive(pair: Pair) -> None:
    """Remove steps, spans and times of the runs that were drawn before from the page's address, and open the timelines.

    Values from a link to this pair stay as they are.
    """
    last_ids, last = st.session_state.get(_LAST, (None, {}))
    if last_ids not in (None, _ids(pair)):
        for name, value in last.items():
            if st.query_params.get(name) == value:
                st.query_params.pop(name)
    name = st.query_params.get(HOST)  # older links name a host of the baseline without its letter
    if name in pair.baseline.host_names and name not in first_hosts(pair):
        st.session_state[HOST] = st.query_params[HOST] = host_text(pair, pair.baseline, name)
    st.html(_WIDE)
    with st.spinner("Laying out the timeline …"):
        opened(shown_hosts(pair, st.query_params.get(HOST, ""), st.query_params.get(BESIDE, "")))


@st.fragment
def show(pair: Pair, options: Options) -> None:
    """The drawing with links to where the candidate loses most, and what it was asked for.

    A fragment, so that moving the window runs only this.
    """
    st.html(_STYLE)
    compared = compare_steps(pair, options)
    shown, aligned = compared.shown, compared.aligned
    key, token = _key_of(KEY, shown), f"{key_of(shown)} {aligned.steps} {options.align}"
    state = state_of(key, token)
    state = replace(state, look=replace(state.look, stretch=options.stretch, find=options.find))
    state = _follow_link(aligned, options, state)
    address = st.query_params.to_dict() | address_of(state)
    st.session_state[_LAST] = _ids(pair), {name: address[name] for name in (*OF_HOSTS, *STEPS) if name in address}
    labels = compared.canvas_labels(timeline_panels.in_words(aligned, state, shown.names))
    jumps = sentences.jumps(aligned, state.look, compared.places, shown.names)
    panel, ran = _panel(compared, state)
    show_timeline(aligned, state, labels, jumps, panel, key=key, token=token)
    timeline_panels.traces(shown, aligned, state)
    if ran is not None:
        timeline_panels.show_range(compared, ran)


def _panel(compared: Compared, state: State) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """(what the panel beside the lanes shows, the ops that ran in the measured range)."""
    shown, aligned = compared.shown, compared.aligned
    panel = {"details": details(shown, aligned, state.selected)}
    if state.range_us is None:
        return panel, None
    rows, coverage = range_table(aligned, state.look, state.range_us)
    return panel | {"ranged": ranged(shown, aligned, state.range_us, coverage)}, rows


@st.fragment
def small(pair: Pair) -> None:
    """The typical step of both runs, in small, and where the candidate loses or gains most; for the Overview."""
    shown = shown_by_default(pair)
    try:
        timelines = opened(shown)
    except TfcompareError as error:
        st.caption(f"No timeline: {as_markdown(error)}")
        return
    if not timelines.all_have_steps:
        return
    st.html(_STYLE)
    compared = aligned_at(shown)
    aligned = compared.aligned
    key, token = _key_of(SMALL, shown), str(key_of(shown))
    state = state_of(key, token, from_address=False)
    state = replace(state, look=replace(state.look, rows=SMALL_ROWS))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Typical step", anchor=False, width="content", help="The step nearest to the median of each run")
        show_link(pair, replace(links.to_timeline(), parameters=address_of(state)))
    jumps = sentences.jumps(aligned, state.look, compared.places, shown.names)
    panel, _ = _panel(compared, state)
    show_timeline(aligned, state, compared.canvas_labels(), jumps, panel, key=key, token=token, compact=True)


def _ids(pair: Pair) -> list[str]:
    return [run.id for run in pair.runs]


def _key_of(drawing: str, shown: ShownHosts) -> str:
    """The key of a drawing of these hosts; a span of other hosts is another span."""
    return f"{drawing}_{crc32(repr((_ids(shown.pair), shown.host)).encode())}"


def _follow_link(aligned: Aligned, options: Options, state: State) -> State:
    """The state with what a link from another page points to: the op, kernel or moment that its address names.

    What the user did since then takes precedence.
    """
    if any(key in st.query_params for key in STEPS):
        return state
    ends: list[tuple[float, float]] = []
    moment = Moment.from_text(options.at)
    if moment and moment.side < len(aligned.timelines.sides):
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


def choose_steps(pair: Pair, options: Options) -> None:
    """The widgets that choose a step of each side, or a common one of two hosts; nothing without steps."""
    shown = hosts_of(pair, options)
    sides = zip(STEPS, shown.marks, opened(shown).sides, strict=False)
    offered = [(*of, steps) for number, of in enumerate(sides) if (steps := step_choices(pair, options, number))]
    every = {key: side.steps[side.steps["step"].astype(str).isin(list(steps))] for key, _, side, steps in offered}
    compared = {key: str(getattr(options, key)) for key in every}
    for key, mark, *_ in offered:
        columns = (every[key][name].tolist() for name in ("step", "position", "duration_ps"))
        labels = {str(n): f"{at} · {format_time_us(ps / PS_PER_US)}" for n, at, ps in zip(*columns, strict=True)}
        st.session_state[key] = shown_step = compared[key]
        meaning = f"By position in the run; the program calls it {shown_step}. By default the typical step: the one "
        args = (key, shown_step, lambda step, key=key: _choose({key: step}))
        changes: dict[str, Any] = {"key": key, "on_change": sidebar.changed, "args": args}
        changes |= {"help": f"{meaning}nearest to the mean", "format_func": labels.__getitem__}
        st.selectbox(f"Step of {mark}" if len(offered) > 1 else "Step", list(labels), width=130, **changes)
    if offered:
        with st.container(horizontal=True, wrap=False, width="content", gap="xsmall"):
            for side, which, by in (("left", "Previous", -1), ("right", "Next", 1)):
                icon = f":material/chevron_{side}:"
                st.button("", icon=icon, help=f"{which} step", on_click=_move, args=(every, compared, by))
            st.button("Longest", help="The longest step of each run", on_click=_longest, args=(every,))


def _choose(steps: Mapping[str, str]) -> None:
    """Choose steps, and show them whole."""
    st.query_params.update(steps)
    st.query_params.pop("window", None)


def _move(every: Mapping[str, pd.DataFrame], compared: Mapping[str, str], by: int) -> None:
    """Choose the next or previous step of each side, as long as both have one."""
    found = {}
    for key, steps in every.items():
        numbers = steps["step"].astype(str).tolist()
        linked = st.query_params.get(key, "")  # a click before this one may not be drawn yet
        at = numbers.index(linked if linked in numbers else compared[key]) + by
        if not 0 <= at < len(numbers):
            return
        found[key] = numbers[at]
    _choose(found)


def _longest(every: Mapping[str, pd.DataFrame]) -> None:
    longest = {}
    for key, steps in every.items():
        counted = steps if selection.wish().step_kind is None else steps[steps["included"].astype(bool)]
        longest[key] = str(counted["step"].iloc[int(counted["duration_ps"].argmax())])
    _choose(longest)
