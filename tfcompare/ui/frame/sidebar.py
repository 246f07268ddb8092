"""The sidebar of every page: links that preserve the selection of runs, and the widgets that change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from tfcompare.compare.stats.estimates import FEWEST_REPEATS, FEWEST_REPLICATES
from tfcompare.run import Run
from tfcompare.settings import app_folder
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.replicates import suggest
from tfcompare.text import as_markdown, middle_ellipsis, some_of
from tfcompare.ui.frame import state
from tfcompare.ui.frame.selection import PER, Selection, ungrouped

HOME = "app.py"
WIDTH = 300
MOST_NAMED = 6
MOST_AT_ONCE = 3
"""With more compared runs than this, the replicates of only one are shown at a time."""
_LONGEST_NAME = 100
_CHOICES = "tfcompare-choices"
_WHOLE_NAMES = f"""<style>
.st-key-{_CHOICES} [data-tag] {{ height: auto; max-width: 100% }}
.st-key-{_CHOICES} [data-tag] > span {{ max-width: none; white-space: normal; overflow-wrap: anywhere }}
.st-key-{_CHOICES} .stSelectbox input:not(:focus) {{ direction: rtl; text-align: left; text-overflow: ellipsis }}
</style>"""
"""Names of runs differ at their ends: a chip shows the whole name on several lines, and a field as much of its end as
there is room for, with an ellipsis before it."""
ICONS = {
    "Overview": ":material/speed:",
    "Op stats": ":material/table_chart:",
    "Kernel stats": ":material/memory:",
    "Memory": ":material/stacked_line_chart:",
    "Input pipeline": ":material/input:",
    "tf.data": ":material/account_tree:",
    "Timeline": ":material/view_timeline:",
    "XLA": ":material/deployed_code:",
    "Hosts": ":material/dns:",
    "Capture": ":material/radio_button_checked:",
    "Query": ":material/database_search:",
    "Series": ":material/show_chart:",
}
_MORE = ("Series", "Capture", "Query")
"""The pages in the group *More*, which are the last."""
IN_TENSORBOARD = {
    "Overview": "Overview Page",
    "Op stats": "TensorFlow Stats, Framework Op Stats",
    "Kernel stats": "GPU Kernel Stats",
    "Memory": "Memory Profile, Memory Viewer",
    "Input pipeline": "Input Pipeline Analyzer",
    "tf.data": "tf.data Bottleneck Analysis",
    "Timeline": "Trace Viewer",
    "XLA": "HLO Op Profile, HLO Op Stats, Roofline, Graph Viewer",
    "Hosts": "Pod Viewer",
    "Capture": "Capture Profile",
}
"""What the pages are called in TensorBoard's profiler, for those who look for a tool and find its page dimmed."""
_PER_HELP = (
    "Runs rarely hold the same number of steps, so sums are divided by it. Runs without step markers are compared per "
    "run. Where runs computed on other numbers of devices or hosts, sums are also of each device, or each host. Op "
    "stats and Kernel stats also show times per occurrence."
)
_MARKER_HELP = (
    "Where a profile marks no steps: the host event that comes once in each; a step lasts until the next such event. "
    "Those that fill most of the time are listed first; type any other name as it stands in the profile"
)
_RANGE_HELP = (
    "Positions counted from 1, as in the charts of steps, both included; 5: or :25 for an open end. All figures are "
    "then of these steps and what ran between them."
)
_KIND_HELP = (
    "The name of the step's marker, where there are several; else the compiled programs that ran in it. All figures "
    "per step are then of steps of this kind alone."
)
_STRAY_HELP = (
    "A stray is the one step of a run that is far longer than all others. It is excluded from all figures per step "
    "unless it is counted here."
)
_CAPTURE_HELP = "Where captures cannot be pooled: in the timeline, in charts of single steps and of memory over time."
_SAME_PROGRAM = "Runs with the same ops and shapes on the same device. Add them if nothing else differs between them."


def page_files() -> list[Path]:
    """The pages other than the home page, ordered by the numbers that their names begin with."""
    return sorted((app_folder() / "pages").glob("[0-9]*_*.py"), key=lambda path: int(path.name.partition("_")[0]))


def page_title(path: Path) -> str:
    """`Op stats` for `2_Op_stats.py`."""
    return path.stem.partition("_")[2].replace("_", " ").replace("tf data", "tf.data")


def links(slot: DeltaGenerator, selection: Selection, why_not: Mapping[str, str]) -> None:
    """Show a link to each page that preserves the selection; those that have nothing to show are dimmed and say why.

    What is not a view of the selected runs stands below the others, in a group of its own.
    """
    with slot.container(gap="xxsmall"):
        link(HOME, "Home", selection, icon=":material/home:")
        for path in page_files():
            title = page_title(path)
            if title == _MORE[0]:
                st.caption("More")
            why = why_not.get(title)
            if why is not None and title in IN_TENSORBOARD:
                why = f"{why}\n\nIn TensorBoard: {IN_TENSORBOARD[title]}"
            link(f"pages/{path.name}", title, selection, icon=ICONS.get(title), why_not=why)


def link(
    page: str,
    label: str,
    selection: Selection,
    *,
    icon: str | None = None,
    more: Mapping[str, str] | None = None,
    why_not: str | None = None,
) -> None:
    """Show a link to a page, with the selection in its URL, and `more` parameters of that page.

    With a reason `why_not`, it is dimmed and shows that on hovering; others show nothing, which would cover links.
    """
    query = {name: values for name, values in selection.as_query().items() if values} | dict(more or {})
    try:
        st.page_link(page, label=label, icon=icon, query_params=query, help=why_not, disabled=why_not is not None)
    except StreamlitAPIException:  # a page that is run on its own, as in tests, does not know the others
        st.markdown(label)


def choices(selection: Selection, found: Sequence[FoundRun], alike: Mapping[str, Sequence[str]]) -> None:
    """Show the widgets that choose baseline, candidates, and the unit that sums refer to.

    `alike` are runs of the same program as a compared run, which are offered as replicates.
    """
    names = short_names({run.id: run.name for run in found if run.is_readable}, _LONGEST_NAME)

    def choose_baseline(baseline: str | None) -> None:
        state.choose(state.current().with_baseline(baseline))

    def choose_candidates(candidates: Sequence[str]) -> None:
        state.choose(state.current().with_candidates(candidates), by_its_widget=True)

    with st.sidebar.container(key=_CHOICES):
        st.html(_WHOLE_NAMES)
        shown = showing("baseline", selection.baseline, choose_baseline) | {"placeholder": "Choose a run"}
        st.selectbox("Baseline", list(names), index=None, format_func=lambda run: names.get(run, run), **shown)
        others = [run for run in names if run != selection.baseline]
        shown = showing("candidates", list(selection.candidates), choose_candidates)
        _choose_runs("Candidates", others, names, shown)
        _repeats(selection, found, names, alike)
        look: dict[str, Any] = {"icon": ":material/swap_vert:", "help": "Swap baseline and candidate", "shortcut": "x"}
        look |= {"disabled": selection.swapped() == selection, "width": "stretch"}
        st.button("Swap", on_click=lambda: state.choose(state.current().swapped()), **look)
        shown = showing("per", selection.per, lambda per: _change(per=per))
        st.segmented_control("Times and counts per", PER, required=True, width="stretch", help=_PER_HELP, **shown)


def _choose_runs(label: str, runs: Sequence[str], names: Mapping[str, str], shown: dict[str, Any]) -> None:
    shown |= {"format_func": lambda run: names.get(run, run), "placeholder": "Choose runs"}
    st.multiselect(label, runs, select_all=False, **shown)


def showing(name: str, value: object, choose: Callable[[Any], None]) -> dict[str, Any]:
    """The arguments of a widget that shows `value`, and that calls `choose` with the value that a user chooses."""
    key = state.widget_key(f"tfcompare.{name}")
    st.session_state[key] = value
    return {"key": key, "on_change": changed, "args": (key, value, choose)}


def _change(**fields: Any) -> None:
    """Change parts of the selection that are no runs, as their widgets show already."""
    state.choose(replace(state.wish(), **fields), by_its_widget=True)


def changed(key: str, shown: object, choose: Callable[[Any], None]) -> None:
    """Call `choose` with the value of a widget, unless it is the one shown: Streamlit also calls this for that one, if
    the run that was to draw it again was interrupted."""
    if (value := st.session_state[key]) != shown:
        choose(value)


def _repeats(
    selection: Selection, found: Sequence[FoundRun], names: dict[str, str], alike: Mapping[str, Sequence[str]]
) -> None:
    """Choose replicates of the compared runs: one by one, or grouped by the runs' names."""
    if not selection.compared:
        return
    count = len(selection.repeats)
    with st.expander(f"Replicates ({count})" if count else "Replicates", key="tfcompare.repeats"):
        shown = selection.compared
        if len(shown) > MOST_AT_ONCE:
            shown = (st.selectbox("Of", shown, key="tfcompare.repeated", format_func=lambda run: names.get(run, run)),)
        for run in shown:
            _repeats_of(run, selection, names)
        st.caption(
            f"Verdicts use all captures of a program. From {FEWEST_REPEATS} on, their variation is measured; from "
            f"{FEWEST_REPLICATES} on, verdicts are plain instead of likely."
        )
    if more := ungrouped(selection, suggest(found, selection.baseline, selection.candidates)):
        number, key, help_text = sum(map(len, more.values())), "tfcompare.group", _grouping_help(more, names)
        label = f"Add {number} replicates"
        if number == 1:
            ((run,),) = more.values()
            label = f"Add {as_markdown(names[run])} as a replicate"
    else:
        more = {run: tuple(runs) for run, runs in alike.items() if all(each in names for each in (run, *runs))}
        number, key, help_text = sum(map(len, more.values())), "tfcompare.alike", _grouping_help(more, names)
        label = f"Add {number} possible replicate{'s' if number > 1 else ''}"
        help_text = f"{_SAME_PROGRAM}\n\n{help_text}"
    if more:
        icon = ":material/merge:"
        st.button(label, icon=icon, key=key, help=help_text, on_click=_group, args=(more,), width="stretch")


def _grouping_help(more: Mapping[str, Sequence[str]], names: dict[str, str]) -> str:
    groups = []
    for run, runs in more.items():
        listed = some_of([names[repeat] for repeat in runs], MOST_NAMED)
        groups.append(f"{as_markdown(listed)} as replicates of {as_markdown(names[run])}")
    return "\n\n".join(groups)


def _group(more: Mapping[str, Sequence[str]]) -> None:
    selection = state.current()
    for run, runs in more.items():
        selection = selection.with_repeats(run, (*selection.repeats_of(run), *runs))
    state.choose(selection)


def _repeats_of(run: str, selection: Selection, names: dict[str, str]) -> None:
    def choose_repeats(repeats: Sequence[str]) -> None:
        state.choose(state.current().with_repeats(run, repeats), by_its_widget=True)

    def choose_capture(shown: str | None) -> None:
        selection = state.current()
        others = [one for one in selection.captures if one not in every]
        captures = (*others, *([] if shown is None else [shown]))
        state.choose(replace(selection, captures=captures), by_its_widget=True)

    own = selection.repeats_of(run)
    every, elsewhere = (run, *own), set(selection.recordings) - set(own)
    label = f"More captures of {as_markdown(names[run])}"
    shown = showing(f"repeats.{run}", list(own), choose_repeats)
    _choose_runs(label, [one for one in names if one not in elsewhere], names, shown)
    if own:
        capture = next((one for one in selection.captures if one in every), None)
        shown = showing(f"shown.{run}", capture, choose_capture) | {"placeholder": "Nearest to the mean step"}
        shown |= {"format_func": lambda run_id: names.get(run_id, run_id), "help": _CAPTURE_HELP}
        st.selectbox("Capture shown", every, index=None, **shown)


def short_names(names: dict[str, str], width: int) -> dict[str, str]:
    """Shorten names in the middle, except names that would become identical."""
    short = {run_id: middle_ellipsis(name, width) for run_id, name in names.items()}
    count = Counter(short.values())
    return {run_id: name if count[name] == 1 else names[run_id] for run_id, name in short.items()}


def host_choice(slot: DeltaGenerator, selection: Selection, baseline: Run, candidates: Sequence[Run]) -> None:
    """The host selector, shown if any of the runs has several hosts."""
    if any(len(run.host_names) > 1 for run in (baseline, *candidates)):
        help_text = "The baseline's hosts; a candidate's counterpart is shown beside the one chosen"
        shown = showing("host", selection.host or "", lambda host: _change(host=host or None))
        hosts = ["", *baseline.host_names]
        slot.selectbox("Host", hosts, format_func=lambda host: host or "all hosts", help=help_text, **shown)


def step_choices(slot: DeltaGenerator, selection: Selection, runs: Sequence[Run]) -> None:
    """The widgets that choose steps, each where it makes a difference for a run or was used: what begins a step, which
    positions, which kind, and whether strays count."""
    has_steps = [run.info.has_steps for run in runs]
    if selection.step_marker is not None or not all(has_steps):
        shown = showing("step_marker", selection.step_marker, lambda name: _change(step_marker=name or None))
        shown |= {"placeholder": "Choose a host event", "accept_new_options": True, "help": _MARKER_HELP}
        slot.selectbox("Steps begin with", step_markers(selection.step_marker, runs), index=None, **shown)
    if selection.step_range is not None or any(has_steps):
        shown = showing("steps", selection.step_range or "", lambda steps: _change(step_range=steps.strip() or None))
        slot.text_input("Steps", placeholder="all, or a range such as 5:25", help=_RANGE_HELP, **shown)
    kinds = [run.tables.kinds.counts for run in runs]
    if selection.step_kind is not None or any(len(one) > 1 for one in kinds):
        offered = dict.fromkeys(["", *(kind for one in kinds for kind in one), selection.step_kind or ""])
        shown = showing("step_kind", selection.step_kind or "", lambda kind: _change(step_kind=kind or None))
        shown |= {"format_func": lambda kind: kind or "all kinds", "help": _KIND_HELP}
        slot.selectbox("Kind of step", offered, **shown)
    if selection.counts_stray or any(run.steps["stray"].any() for run in runs):
        shown = showing("stray", selection.counts_stray, lambda counts: _change(counts_stray=counts))
        slot.toggle("Count stray steps", help=_STRAY_HELP, **shown)


def step_markers(chosen: str | None, runs: Sequence[Run]) -> list[str]:
    """The available step events: events that all runs without steps have come first."""
    of_each = [run.likely_markers for run in runs if run.likely_markers]
    found_in = Counter(name for names in of_each for name in names)
    names = sorted(found_in, key=lambda name: -found_in[name])  # stable: ties stay in the order found
    return [*([chosen] if chosen and chosen not in found_in else []), *names]
