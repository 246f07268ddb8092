"""The parts of the home page: the headline of the selected runs, the runs, and the places they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from time import monotonic

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.remote.places import shown
from tfcompare.ui.frame import remote_links, state
from tfcompare.ui.frame.access import checked
from tfcompare.ui.frame.loading import QUIET_S, compared, compiling_sentence, reading_sentence, run_cache, wait_a_moment
from tfcompare.ui.frame.run_cache import outcome
from tfcompare.ui.frame.search import opened, rescan
from tfcompare.ui.frame.shell import View, choose_steps, chosen_steps, usable_repeats
from tfcompare.ui.pages import home_runs, home_uploads
from tfcompare.ui.widgets.text import as_code, as_markdown
from tfcompare.units import format_bytes

_REDRAW_S = 1.0
_PATH = "tfcompare.path"
_PATH_PROBLEM = "tfcompare.path_problem"

Requests = Mapping[FoundRun, Future[Run]]
_Outcome = Run | TfcompareError | None
Outcomes = Mapping[str, Run | TfcompareError]


def show(view: View) -> None:
    """Show the page below its title. It shows what is loaded, and redraws as more runs have been read."""
    st.markdown("Choose a baseline and what to hold against it: what changed, by how much, and where.")
    headline_slot = st.container()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Runs", width="content")
        counted = st.empty()
        st.button("Look again", icon=":material/refresh:", type="tertiary", on_click=rescan,
                  help="Look for runs that were recorded since")  # fmt: skip
        page = home_runs.controls(view.found)
    counted.caption(_count(page, view), width="content")
    for problem in view.search.problems:
        st.error(as_markdown(problem))
    progress_slot = st.empty()
    table_slot = st.container()
    places(view)
    home_uploads.section(view.settings)
    requests = _request(view, page)
    with_steps = _request_with_steps(view, requests)
    outcomes, drawn = _done(requests), _done(with_steps)
    requested_again = {run.id for run in with_steps}
    with headline_slot:
        headline(view, {run_id: one for run_id, one in outcomes.items() if run_id not in requested_again} | dict(drawn))
    with table_slot:
        if page.runs:
            home_runs.show(page.runs, outcomes, view.selection)
            not_fetched = [run for run in page.runs if run.bytes_at_hand < run.size_bytes and run not in requests]
            _explain_remote_runs(not_fetched)
        elif view.found:
            st.info("No run matches what the filter says. Clear it to see all of them.")
    keep_reading(requests, outcomes, progress_slot)
    keep_reading(with_steps, drawn, progress_slot)


def _done(requests: Requests) -> Outcomes:
    return {run.id: outcome(request) for run, request in requests.items() if request.done()}


def _explain_remote_runs(runs: Sequence[FoundRun]) -> None:
    if runs:
        which = "This run lies" if len(runs) == 1 else f"{len(runs)} of these runs lie"
        size = format_bytes(sum(run.size_bytes for run in runs))
        st.caption(f"{which} on another machine ({size}), and will be fetched when chosen.")


def _count(page: home_runs.Page, view: View) -> str:
    if not view.found:
        return "none were found"
    of_all = f"{page.matching:,} of " if page.matching < len(view.found) else ""
    what = "sample runs that come with tfcompare; name your own below" if view.search.are_samples else "found"
    return f"{of_all}{len(view.found):,} {what}"


def _request(view: View, page: home_runs.Page) -> Requests:
    """Request the selected runs first, then those in view, and wait briefly for those that are quick to read.

    Unselected remote runs are only read if they were fetched before, and unselected runs in a store are not read.
    """
    cache = run_cache(view.settings)
    chosen = [run for run_id in view.selection.recordings for run in view.found if run.id == run_id]
    here = [run for run in page.runs if run.summary is None and run.bytes_at_hand == run.size_bytes]
    runs = [run for run in dict.fromkeys((*chosen, *here)) if run.is_readable]
    requests = {run: cache.request(run) for run in runs}
    wait(requests.values(), timeout=QUIET_S)
    return requests


def _request_with_steps(view: View, requests: Requests) -> Requests:
    """The selected runs, requested with the selected steps; none if these are the default."""
    steps = view.selection.steps
    if steps.is_default:
        return {}
    cache = run_cache(view.settings)
    with_steps = {run: cache.request(run, steps) for run in requests if run.id in view.selection.recordings}
    wait(with_steps.values(), timeout=QUIET_S)
    return with_steps


def keep_reading(requests: Requests, drawn: Outcomes, slot: DeltaGenerator) -> None:
    """Show the progress of reading, and redraw the page when there is more to show."""
    pending = [run for run in requests if run.id not in drawn]  # some may have been read while the page was being drawn
    if not pending:
        return
    sentence = compiling_sentence() or reading_sentence(pending, len(requests))
    slot.progress(1 - len(pending) / len(requests), text=sentence)
    until = monotonic() + _REDRAW_S
    while monotonic() < until and any(not request.done() for request in requests.values()):
        wait_a_moment({run.id: request for run, request in requests.items()}, until - monotonic())
    st.rerun()


def headline(view: View, outcomes: Outcomes) -> None:
    """A sentence about each candidate of the selected runs, and links to more."""
    selection = view.selection
    if not view.found:
        return
    if selection.baseline is None or not selection.candidates:
        st.info("Choose a baseline and at least one run to compare: in the table, or in the sidebar.")
        return
    baseline, candidates = outcomes.get(selection.baseline), [outcomes.get(c) for c in selection.candidates]
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        _what_changed(view, baseline, candidates, outcomes)
        if st.button("See what changed", icon=":material/arrow_forward:", icon_position="right", type="primary"):
            st.switch_page("pages/1_Overview.py", query_params=selection.as_query())


def _what_changed(view: View, baseline: _Outcome, candidates: Sequence[_Outcome], outcomes: Outcomes) -> None:
    with st.container():
        for bad in (o for o in (baseline, *candidates) if isinstance(o, TfcompareError)):
            st.error(as_markdown(bad))
        runs = [run for run in candidates if isinstance(run, Run)]
        choose_steps(view, [run for run in (baseline, *runs) if isinstance(run, Run)])
        if isinstance(baseline, Run) and runs:
            _sentences(view, baseline, runs, outcomes)
        if None in (baseline, *candidates, *(outcomes.get(repeat) for _, repeat in view.selection.repeats)):
            st.caption("Reading the chosen runs …")


def _sentences(view: View, baseline: Run, candidates: list[Run], outcomes: Outcomes) -> None:
    loaded = {run_id: outcome for run_id, outcome in outcomes.items() if isinstance(outcome, Run)}
    repeats = usable_repeats(view.selection, [baseline, *candidates], loaded).repeats
    try:
        comparison = compared(baseline, candidates, view.selection.per, None, repeats)
    except TfcompareError as error:
        st.error(as_markdown(error))
        return
    for candidate in comparison.candidates:
        st.markdown(f"#### {comparison.headline(candidate.id)}")
        if doubt := comparison.doubt(candidate.id):
            st.markdown(doubt)
    if steps := chosen_steps((baseline, *candidates)):
        st.caption(f"Per {comparison.per}{steps}.")


def places(view: View) -> None:
    """The places that are searched for runs and, for a browser on this machine, a field to add another one."""
    st.subheader("Places")
    for given in view.settings.places:
        st.markdown(as_code(shown(given)))
    if view.settings.store is not None:
        st.markdown(f"The store {as_code(shown(view.settings.store))}")
    for number, place in enumerate(view.selection.places):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(as_code(shown(place)), width="content")
            st.button("Remove", key=f"tfcompare.remove.{number}", icon=":material/close:", type="tertiary",
                      on_click=_remove, args=(place,))  # fmt: skip
    if not view.may_type_paths:
        st.caption("Paths can be named here only in a browser on the machine that serves this page. Upload runs below.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Name a logdir, a folder above it, a run folder or a profile file: a path on this machine, or a URL",
            key=_PATH, placeholder="/path/to/logs or s3://bucket/logs", on_change=_add,
            args=(view.search.are_samples,),
        )  # fmt: skip
        st.button("Add", icon=":material/add:")  # leaving the field adds its content
    if problem := st.session_state.pop(_PATH_PROBLEM, None):
        st.error(as_markdown(problem))


def _add(is_first: bool) -> None:
    """Add the typed place; the first one replaces the samples, along with their selection."""
    typed = st.session_state[_PATH].strip()
    if not typed:
        return
    try:
        place = opened(checked(settings.current(), typed))
    except TfcompareError as error:
        st.session_state[_PATH_PROBLEM] = str(error)
        return
    st.session_state[_PATH] = ""
    remote_links.confirm(place)
    selection = state.chosen()
    if is_first:
        selection = replace(selection, baseline=None, candidates=(), repeats=())
    state.choose(replace(selection, places=tuple(dict.fromkeys((*selection.places, place)))))


def _remove(place: str) -> None:
    selection = state.chosen()
    state.choose(replace(selection, places=tuple(p for p in selection.places if p != place)))
