"""The sidebar of every page: links that keep the choice of runs, and the choice itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from tfcompare.logdir import FoundRun
from tfcompare.run import Run
from tfcompare.settings import app_folder
from tfcompare.ui import state
from tfcompare.ui.selection import PER, Selection
from tfcompare.units import middle_ellipsis

HOME = "app.py"
WIDTH = 320
_FIELD_LENGTH, _CHIP_LENGTH = 27, 20
_ICONS = {
    "Overview": ":material/speed:",
    "Op stats": ":material/table_chart:",
    "Kernel stats": ":material/memory:",
    "Memory": ":material/stacked_line_chart:",
    "Input pipeline": ":material/input:",
    "tf.data": ":material/account_tree:",
}
_SPELLED = {"tf data": "tf.data"}
"""Titles that a file's name cannot spell."""

_BASELINE = "tfcompare.baseline"
_CANDIDATES = "tfcompare.candidates"
_PER = "tfcompare.per"
_HOST = "tfcompare.host"
_EVERY_HOST = ""


def page_files() -> list[Path]:
    """The pages beside the home page, in the order of the numbers that their names begin with."""
    return sorted((app_folder() / "pages").glob("[0-9]*_*.py"), key=lambda path: int(path.name.partition("_")[0]))


def page_title(path: Path) -> str:
    """`Op stats` for `2_Op_stats.py`."""
    title = path.stem.partition("_")[2].replace("_", " ")
    return _SPELLED.get(title, title)


def links(selection: Selection) -> None:
    """A link to each page that takes the selection along."""
    with st.sidebar.container(gap="xxsmall"):
        link(HOME, "Home", selection, icon=":material/home:")
        for path in page_files():
            title = page_title(path)
            link(f"pages/{path.name}", title, selection, icon=_ICONS.get(title))


def link(page: str, label: str, selection: Selection, *, icon: str | None = None) -> None:
    """A link to a page, with the selection in its address."""
    query = {name: values for name, values in selection.as_query().items() if values}
    try:
        st.page_link(page, label=label, icon=icon, query_params=query)
    except StreamlitAPIException:  # a page that was started by itself, as tests do, knows no other
        st.markdown(label)


def choices(selection: Selection, found: Sequence[FoundRun]) -> None:
    """The widgets that change baseline, candidates, and what sums are given for."""
    full_names = {run.id: run.name for run in found if run.is_readable}
    names, chips = short_names(full_names, _FIELD_LENGTH), short_names(full_names, _CHIP_LENGTH)
    st.session_state[_BASELINE] = selection.baseline
    st.session_state[_CANDIDATES] = list(selection.candidates)
    st.session_state[_PER] = selection.per
    with st.sidebar:
        st.selectbox(
            "Baseline", list(names), index=None, key=_BASELINE, format_func=lambda run_id: names.get(run_id, run_id),
            placeholder="Choose a run", on_change=_baseline_changed,
        )  # fmt: skip
        st.multiselect(
            "Candidates", [i for i in names if i != selection.baseline], key=_CANDIDATES,
            format_func=lambda run_id: chips.get(run_id, run_id), placeholder="Choose runs", select_all=False,
            on_change=_candidates_changed,
        )  # fmt: skip
        st.button(
            "Swap", icon=":material/swap_vert:", help="The baseline becomes the candidate, and the other way round",
            disabled=selection.swapped() == selection, on_click=_swap, width="stretch",
        )  # fmt: skip
        st.segmented_control(
            "Times and counts", PER, key=_PER, required=True, format_func=lambda per: f"per {per}",
            help="Runs rarely hold the same number of steps, so sums are divided by them unless you say otherwise",
            on_change=_per_changed, width="stretch",
        )  # fmt: skip


def short_names(names: dict[str, str], width: int) -> dict[str, str]:
    """The names cut in their middle to fit into a widget, but for those that would then read alike."""
    short = {run_id: middle_ellipsis(name, width) for run_id, name in names.items()}
    count = Counter(short.values())
    return {run_id: name if count[name] == 1 else names[run_id] for run_id, name in short.items()}


def host_choice(slot: DeltaGenerator, selection: Selection, baseline: Run, candidates: Sequence[Run]) -> None:
    """The host selector, where any of the runs has several hosts."""
    if all(len(run.host_names) < 2 for run in (baseline, *candidates)):
        return
    st.session_state[_HOST] = selection.host or _EVERY_HOST
    slot.selectbox(
        "Host", [_EVERY_HOST, *baseline.host_names], key=_HOST, format_func=lambda host: host or "all hosts",
        help="The baseline's hosts; a candidate's counterpart is shown beside the one chosen", on_change=_host_changed,
    )  # fmt: skip


def _baseline_changed() -> None:
    state.choose(state.chosen().with_baseline(st.session_state[_BASELINE]))


def _candidates_changed() -> None:
    state.choose(replace(state.chosen(), candidates=tuple(st.session_state[_CANDIDATES])))


def _swap() -> None:
    state.choose(state.chosen().swapped())


def _per_changed() -> None:
    state.choose(replace(state.chosen(), per=st.session_state[_PER]))


def _host_changed() -> None:
    state.choose(replace(state.chosen(), host=st.session_state[_HOST] or None))
