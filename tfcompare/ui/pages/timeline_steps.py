"""Which step of each run the timeline compares: widgets, and the parameters of the page's address behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from tfcompare.tools.timeline.run_pair import SideTimeline, Timelines
from tfcompare.ui.frame import state
from tfcompare.units import format_time_us
from tfcompare.views.links import Moment
from tfcompare.xspace.space import PS_PER_US

STEP_KEYS = ("step_a", "step_b")


def choose_steps(timelines: Timelines, labels: Sequence[str]) -> tuple[int, ...] | None:
    """The widgets that choose a step of each side, with these names; None if a side marks no steps."""
    if not timelines.all_have_steps:
        return None
    return _choose_steps(timelines.sides, [f"Step of {label}" for label in labels] if len(labels) > 1 else ["Step"])


def choose_common_step(timelines: Timelines, common: dict[int, int]) -> tuple[int, ...] | None:
    """The widgets that choose one step of two hosts; None if they have none in common.

    `common` maps the numbers of the first host's steps to those of the second.
    """
    first = timelines.sides[0]
    steps = first.steps[first.steps["step"].isin(list(common))].reset_index(drop=True)
    if steps.empty:
        return None
    (number,) = _choose_steps([replace(first, steps=steps)], ["Step"])
    return number, common[number]


def _choose_steps(sides: Sequence[SideTimeline], labels: Sequence[str]) -> tuple[int, ...]:
    chosen = [_step(side, label, key) for side, label, key in zip(sides, labels, STEP_KEYS, strict=False)]
    with st.container(horizontal=True, wrap=False, width="content", gap="xsmall"):
        st.button("", icon=":material/chevron_left:", help="Previous step", on_click=_move, args=(sides, -1))
        st.button("", icon=":material/chevron_right:", help="Next step", on_click=_move, args=(sides, 1))
        st.button("Longest", help="The longest step of each run", on_click=_longest, args=(sides,))
    return tuple(chosen)


def _step(side: SideTimeline, label: str, key: str) -> int:
    """The widget that chooses a step of one side; by default its typical step."""
    times = side.steps["duration_ps"] / PS_PER_US
    names = {
        str(number): f"{position} · {format_time_us(us)}"
        for number, position, us in zip(side.steps["step"], side.steps["position"], times, strict=True)
    }
    st.session_state[key] = shown = _chosen_step(side, key)
    number = st.selectbox(
        label, list(names), key=key, width=130, format_func=lambda one: names[one], on_change=_step_changed,
        args=(key, shown),
        help=f"By position in the run; the program calls it {shown}. By default the typical step: the one nearest to "
        "the mean",
    )  # fmt: skip
    return int(number)


def _chosen_step(side: SideTimeline, key: str) -> str:
    """The step in the page's address, or else the typical one."""
    numbers = side.steps["step"].astype(str)
    chosen = st.query_params.get(key)
    if chosen and chosen in numbers.to_numpy():
        return chosen
    moment = Moment.from_text(st.query_params.get("at", ""))
    if moment and moment.side == STEP_KEYS.index(key):
        before = side.steps["start_ps"] <= moment.start_us * PS_PER_US
        return str(numbers[before].iloc[-1] if before.any() else numbers.iloc[0])
    return str(side.typical)


def _choose(steps: dict[str, str]) -> None:
    """Choose steps, and show them whole."""
    st.query_params.update(steps)
    show_whole()


def show_whole() -> None:
    """Forget the window in the page's address."""
    st.query_params.pop("window", None)


def _step_changed(key: str, shown: str) -> None:
    """Streamlit also calls this for the step shown, if the page was interrupted before the widget was drawn."""
    if (step := st.session_state[key]) != shown:
        _choose({key: step})


def _move(sides: Sequence[SideTimeline], by: int) -> None:
    """Choose the next or previous step of each side, as long as both have one."""
    found = []
    for key, side in zip(STEP_KEYS, sides, strict=False):
        numbers = side.steps["step"].astype(str).tolist()
        at = numbers.index(_chosen_step(side, key)) + by
        if not 0 <= at < len(numbers):
            return
        found.append(numbers[at])
    _choose(dict(zip(STEP_KEYS, found, strict=False)))


def _longest(sides: Sequence[SideTimeline]) -> None:
    longest = []
    for side in sides:
        steps = side.steps if state.asked().step_kind is None else side.steps[side.steps["included"].astype(bool)]
        longest.append(str(steps["step"].iloc[int(steps["duration_ps"].argmax())]))
    _choose(dict(zip(STEP_KEYS, longest, strict=False)))
