"""Which step of each run the timeline compares: widgets, and the parameters of the page's address behind them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from tfcompare.compare.pair import Pair
from tfcompare.ui.frame import state
from tfcompare.units import format_time_us
from tfcompare.views.timeline.view import STEPS, Options, hosts_of, opened, step_choices
from tfcompare.xspace.space import PS_PER_US


def choose_steps(pair: Pair, options: Options) -> None:
    """The widgets that choose a step of each side, or a common one of two hosts; nothing without steps."""
    shown = hosts_of(pair, options)
    sides = zip(STEPS, shown.marks, opened(shown).sides, strict=False)
    offered = [(*of, steps) for number, of in enumerate(sides) if (steps := step_choices(pair, options, number))]
    every = {key: side.steps[side.steps["step"].astype(str).isin(list(steps))] for key, _, side, steps in offered}
    compared = {key: str(getattr(options, key)) for key in every}
    for key, mark, *_ in offered:
        columns = (every[key][name].tolist() for name in ("step", "position", "duration_ps"))
        labels = {
            str(number): f"{position} · {format_time_us(duration / PS_PER_US)}"
            for number, position, duration in zip(*columns, strict=True)
        }
        st.session_state[key] = compared[key]
        st.selectbox(
            f"Step of {mark}" if len(offered) > 1 else "Step",
            list(labels),
            key=key,
            width=130,
            format_func=labels.__getitem__,
            on_change=_step_changed,
            args=(key, compared[key]),
            help=f"By position in the run; the program calls it {compared[key]}. By default the typical step: the one "
            "nearest to the mean",
        )
    if offered:
        with st.container(horizontal=True, wrap=False, width="content", gap="xsmall"):
            for side, which, by in (("left", "Previous", -1), ("right", "Next", 1)):
                icon, args = f":material/chevron_{side}:", (every, compared, by)
                st.button("", icon=icon, help=f"{which} step", on_click=_move, args=args)
            st.button("Longest", help="The longest step of each run", on_click=_longest, args=(every,))


def _choose(steps: Mapping[str, str]) -> None:
    """Choose steps, and show them whole."""
    st.query_params.update(steps)
    st.query_params.pop("window", None)


def _step_changed(key: str, shown: str) -> None:
    """Streamlit also calls this for the step shown, if the page was interrupted before the widget was drawn."""
    if (step := st.session_state[key]) != shown:
        _choose({key: step})


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
        counted = steps if state.asked().step_kind is None else steps[steps["included"].astype(bool)]
        longest[key] = str(counted["step"].iloc[int(counted["duration_ps"].argmax())])
    _choose(longest)
