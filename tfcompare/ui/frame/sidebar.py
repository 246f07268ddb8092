"""The sidebar of every page: links that preserve the selection of runs, and the widgets that change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from tfcompare.compare.pair import Per
from tfcompare.compare.stats.estimates import FEWEST_REPEATS, FEWEST_REPLICATES
from tfcompare.run import Run
from tfcompare.settings import app_folder
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.replicates import suggest
from tfcompare.text import as_markdown, middle_ellipsis, some_of
from tfcompare.ui.frame import state
from tfcompare.ui.frame.selection import PER, Selection, ungrouped, with_replicates

HOME = "app.py"
WIDTH = 300
MOST_NAMED = 6
MOST_AT_ONCE = 3
"""With more compared runs than this, the replicates of only one are shown at a time."""
_FIELD_LENGTH, _CHIP_LENGTH, _INNER_LENGTH = 25, 20, 15
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
_SPELLED = {"tf data": "tf.data"}
"""Page titles that cannot be derived from a file name."""

_BASELINE = "tfcompare.baseline"
_CANDIDATES = "tfcompare.candidates"
_REPEATS = "tfcompare.repeats"
_REPEATED = "tfcompare.repeated"
_SHOWN = "tfcompare.shown"
_GROUP = "tfcompare.group"
_ALIKE = "tfcompare.alike"
_PER = "tfcompare.per"
_HOST = "tfcompare.host"
_EVERY_HOST = ""
_STEP_MARKER = "tfcompare.step_marker"
_STEPS = "tfcompare.steps"
_STEP_KIND = "tfcompare.step_kind"
_EVERY_KIND = ""
_STRAY = "tfcompare.stray"


def page_files() -> list[Path]:
    """The pages other than the home page, ordered by the numbers that their names begin with."""
    return sorted((app_folder() / "pages").glob("[0-9]*_*.py"), key=lambda path: int(path.name.partition("_")[0]))


def page_title(path: Path) -> str:
    """`Op stats` for `2_Op_stats.py`."""
    title = path.stem.partition("_")[2].replace("_", " ")
    return _SPELLED.get(title, title)


def links(slot: DeltaGenerator, selection: Selection, why_not: Mapping[str, str]) -> None:
    """Show a link to each page that preserves the selection; those that have nothing to show are dimmed and say why."""
    with slot.container(gap="xxsmall"):
        link(HOME, "Home", selection, icon=":material/home:")
        for path in page_files():
            title = page_title(path)
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
    full_names = {run.id: run.name for run in found if run.is_readable}
    names, chips = short_names(full_names, _FIELD_LENGTH), short_names(full_names, _CHIP_LENGTH)
    with st.sidebar:
        st.selectbox(
            "Baseline", list(names), index=None, format_func=lambda run_id: names.get(run_id, run_id),
            placeholder="Choose a run", **showing(_BASELINE, selection.baseline, partial(_choose_baseline, found)),
        )  # fmt: skip
        st.multiselect(
            "Candidates", [i for i in names if i != selection.baseline],
            format_func=lambda run_id: chips.get(run_id, run_id), placeholder="Choose runs", select_all=False,
            **showing(_CANDIDATES, list(selection.candidates), partial(_choose_candidates, found)),
        )  # fmt: skip
        _repeats(selection, found, full_names, alike)
        st.button(
            "Swap", icon=":material/swap_vert:", help="Swap baseline and candidate", shortcut="x",
            disabled=selection.swapped() == selection, on_click=_swap, width="stretch",
        )  # fmt: skip
        st.segmented_control(
            "Times and counts per", PER, required=True, width="stretch",
            help="Runs rarely hold the same number of steps, so sums are divided by it. Runs without step markers are "
            "compared per run. Where runs computed on other numbers of devices or hosts, sums are also of each device, "
            "or each host. Op stats and Kernel stats also show times per occurrence.",
            **showing(_PER, selection.per, _choose_per),
        )  # fmt: skip


def showing(name: str, value: object, choose: Callable[[Any], None]) -> dict[str, Any]:
    """The arguments of a widget that shows `value`, and that calls `choose` with the value that a user chooses."""
    key = state.widget_key(name)
    st.session_state[key] = value
    return {"key": key, "on_change": _changed, "args": (key, value, choose)}


def _changed(key: str, shown: object, choose: Callable[[Any], None]) -> None:
    """Streamlit also calls this for what a widget showed, if the run that was to draw it again was interrupted."""
    if (value := st.session_state[key]) != shown:
        choose(value)


def _repeats(
    selection: Selection, found: Sequence[FoundRun], names: dict[str, str], alike: Mapping[str, Sequence[str]]
) -> None:
    """Choose replicates of the compared runs: one by one, or grouped by the runs' names."""
    if not selection.compared:
        return
    count = len(selection.repeats)
    with st.expander(f"Replicates ({count})" if count else "Replicates", key=_REPEATS):
        shown = selection.compared
        if len(shown) > MOST_AT_ONCE:
            shown = (st.selectbox("Of", shown, key=_REPEATED, format_func=lambda run: names.get(run, run)),)
        for run in shown:
            _repeats_of(run, selection, names)
        st.caption(
            f"Verdicts use all captures of a program. From {FEWEST_REPEATS} on, their variation is measured; from "
            f"{FEWEST_REPLICATES} on, verdicts are plain instead of likely."
        )
    if more := ungrouped(selection, suggest(found, selection.baseline, selection.candidates)):
        number = sum(map(len, more.values()))
        st.button(
            f"Add {_called(more, names) if number == 1 else f'{number} replicates'}",
            icon=":material/merge:", key=_GROUP, help=_grouping_help(more, names), on_click=_group, args=(more,),
            width="stretch",
        )  # fmt: skip
        return
    if maybe := {run: runs for run, runs in alike.items() if all(each in names for each in (run, *runs))}:
        number = sum(map(len, maybe.values()))
        st.button(
            f"Add {number} possible replicate{'s' if number > 1 else ''}", icon=":material/merge:", key=_ALIKE,
            help=f"{_SAME_PROGRAM}\n\n{_grouping_help(maybe, names)}", on_click=_group, args=(maybe,), width="stretch",
        )  # fmt: skip


def _called(more: Mapping[str, Sequence[str]], names: dict[str, str]) -> str:
    """`filters_16_8_again as a replicate`: the only one of those runs."""
    ((run,),) = more.values()
    return f"{as_markdown(middle_ellipsis(names[run], _FIELD_LENGTH))} as a replicate"


_SAME_PROGRAM = "Runs with the same ops and shapes on the same device. Add them if nothing else differs between them."


def _grouping_help(more: Mapping[str, Sequence[str]], names: dict[str, str]) -> str:
    groups = []
    for run, runs in more.items():
        listed = some_of([names[repeat] for repeat in runs], MOST_NAMED)
        groups.append(f"{as_markdown(listed)} as replicates of {as_markdown(names[run])}")
    return "\n\n".join(groups)


def _repeats_of(run: str, selection: Selection, names: dict[str, str]) -> None:
    chips, own = short_names(names, _INNER_LENGTH), selection.repeats_of(run)
    elsewhere = set(selection.recordings) - set(own)
    st.multiselect(
        f"More captures of {as_markdown(middle_ellipsis(names[run], _FIELD_LENGTH))}",
        [i for i in names if i not in elsewhere],
        format_func=lambda run_id: chips.get(run_id, run_id), placeholder="Choose runs", select_all=False,
        **showing(f"{_REPEATS}.{run}", list(own), partial(_choose_repeats, run)),
    )  # fmt: skip
    if own:
        every = (run, *own)
        shown = next((one for one in selection.captures if one in every), None)
        st.selectbox(
            "Capture shown", every, index=None, format_func=lambda run_id: chips.get(run_id, run_id),
            placeholder="Nearest to the mean step",
            help="Where captures cannot be pooled: in the timeline, in charts of single steps and of memory over time.",
            **showing(f"{_SHOWN}.{run}", shown, partial(_choose_capture, every)),
        )  # fmt: skip


def short_names(names: dict[str, str], width: int) -> dict[str, str]:
    """Shorten names in the middle to fit into a widget, except names that would become identical."""
    short = {run_id: middle_ellipsis(name, width) for run_id, name in names.items()}
    count = Counter(short.values())
    return {run_id: name if count[name] == 1 else names[run_id] for run_id, name in short.items()}


def host_choice(slot: DeltaGenerator, selection: Selection, baseline: Run, candidates: Sequence[Run]) -> None:
    """The host selector, shown if any of the runs has several hosts."""
    if all(len(run.host_names) < 2 for run in (baseline, *candidates)):
        return
    slot.selectbox(
        "Host", [_EVERY_HOST, *baseline.host_names], format_func=lambda host: host or "all hosts",
        help="The baseline's hosts; a candidate's counterpart is shown beside the one chosen",
        **showing(_HOST, selection.host or _EVERY_HOST, _choose_host),
    )  # fmt: skip


def step_marker_choice(slot: DeltaGenerator, selection: Selection, runs: Sequence[Run]) -> None:
    """The selector of the host event that begins each step, shown if a run marks no steps or an event was chosen."""
    if selection.step_marker is None and all(run.info.has_steps for run in runs):
        return
    slot.selectbox(
        "Steps begin with", step_markers(selection.step_marker, runs), index=None,
        placeholder="Choose a host event", accept_new_options=True,
        help="Where a profile marks no steps: the host event that comes once in each; a step lasts until the next such "
        "event. Those that fill most of the time are listed first; type any other name as it stands in the profile",
        **showing(_STEP_MARKER, selection.step_marker, _choose_step_marker),
    )  # fmt: skip


def step_range_choice(slot: DeltaGenerator, selection: Selection, runs: Sequence[Run]) -> None:
    """The input for the range of steps to include, shown if any run has steps."""
    if selection.step_range is None and not any(run.info.has_steps for run in runs):
        return
    slot.text_input(
        "Steps", placeholder="all, or a range such as 5:25",
        help="Positions counted from 1, as in the charts of steps, both included; 5: or :25 for an open end. All "
        "figures are then of these steps and what ran between them.",
        **showing(_STEPS, selection.step_range or "", _choose_steps),
    )  # fmt: skip


def step_kind_choice(slot: DeltaGenerator, selection: Selection, runs: Sequence[Run]) -> None:
    """The selector of one kind of steps, shown if a run has steps of several."""
    of_each = [run.tables.kinds.counts for run in runs]
    if selection.step_kind is None and all(len(kinds) < 2 for kinds in of_each):
        return
    kinds = dict.fromkeys(kind for kinds in of_each for kind in kinds)
    chosen = selection.step_kind or _EVERY_KIND
    slot.selectbox(
        "Kind of step", dict.fromkeys([_EVERY_KIND, *kinds, chosen]),
        format_func=lambda kind: kind or "all kinds",
        help="The name of the step's marker, where there are several; else the compiled programs that ran in it. All "
        "figures per step are then of steps of this kind alone.",
        **showing(_STEP_KIND, chosen, _choose_step_kind),
    )  # fmt: skip


def stray_choice(slot: DeltaGenerator, selection: Selection, runs: Sequence[Run]) -> None:
    """The switch that counts strays, shown if any run has one."""
    if not selection.counts_stray and not any(run.steps["stray"].any() for run in runs):
        return
    slot.toggle(
        "Count stray steps",
        help="A stray is the one step of a run that is far longer than all others. It is excluded from all figures per "
        "step unless it is counted here.",
        **showing(_STRAY, selection.counts_stray, _choose_stray),
    )  # fmt: skip


def step_markers(chosen: str | None, runs: Sequence[Run]) -> list[str]:
    """The available step events: events that all runs without steps have come first."""
    of_each = [run.likely_markers for run in runs if run.likely_markers]
    found_in = Counter(name for names in of_each for name in names)
    names = sorted(found_in, key=lambda name: -found_in[name])  # stable: ties stay in the order found
    return [*([chosen] if chosen and chosen not in found_in else []), *names]


def _choose_baseline(found: Sequence[FoundRun], baseline: str | None) -> None:
    before = state.chosen()
    state.choose(with_replicates(before.with_baseline(baseline), before, found))


def _choose_candidates(found: Sequence[FoundRun], candidates: Sequence[str]) -> None:
    before = state.chosen()
    state.choose(with_replicates(before.with_candidates(candidates), before, found), by_its_widget=True)


def _choose_repeats(run: str, repeats: Sequence[str]) -> None:
    state.choose(state.chosen().with_repeats(run, repeats), by_its_widget=True)


def _choose_capture(every: Sequence[str], shown: str | None) -> None:
    selection = state.chosen()
    others = tuple(one for one in selection.captures if one not in every)
    state.choose(replace(selection, captures=(*others, *([] if shown is None else [shown]))), by_its_widget=True)


def _group(more: Mapping[str, Sequence[str]]) -> None:
    selection = state.chosen()
    for run, runs in more.items():
        selection = selection.with_repeats(run, (*selection.repeats_of(run), *runs))
    state.choose(selection)


def _swap() -> None:
    state.choose(state.chosen().swapped())


def _choose_per(per: Per) -> None:
    state.choose(replace(state.asked(), per=per), by_its_widget=True)


def _choose_step_marker(name: str | None) -> None:
    state.choose(replace(state.asked(), step_marker=name or None), by_its_widget=True)


def _choose_steps(steps: str) -> None:
    state.choose(replace(state.asked(), step_range=steps.strip() or None), by_its_widget=True)


def _choose_step_kind(kind: str) -> None:
    state.choose(replace(state.asked(), step_kind=kind or None), by_its_widget=True)


def _choose_stray(counts: bool) -> None:
    state.choose(replace(state.asked(), counts_stray=counts), by_its_widget=True)


def _choose_host(host: str) -> None:
    state.choose(replace(state.asked(), host=host or None), by_its_widget=True)
