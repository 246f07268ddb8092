"""The home page: the headline of the selected runs, the table of runs, and how to add more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from time import monotonic

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tfcompare import settings
from tfcompare.compare.pairs import pairs_of
from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.replicates import names_of
from tfcompare.text import as_code, as_markdown
from tfcompare.ui.frame import state
from tfcompare.ui.frame.header import chosen_steps
from tfcompare.ui.frame.hooks import hooks
from tfcompare.ui.frame.loading import QUIET_S, compared, compiling_sentence, reading_sentence, run_cache
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.run_cache import outcome
from tfcompare.ui.frame.search import rescan
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.shell import Page, choose_steps
from tfcompare.ui.pages import demo, home_add, home_filters, home_runs
from tfcompare.ui.pages.home_programs import MOST_CAPTURES, Program, programs, selected_elsewhere
from tfcompare.units import format_bytes, format_ms
from tfcompare.views import answer
from tfcompare.views.run_listing import device_text
from tfcompare.views.steps.headline import doubt

_REDRAW_S = 1.0
_MOST_NAMED = 5
_HEADLINE_PIXELS, _NARROW_HEADLINE_PIXELS = 120, 210
"""Fixed, so that the table stays where it is when other runs are selected. What does not fit is scrolled."""

Requests = Mapping[FoundRun, Future[Run]]
_Outcome = Run | TfcompareError | None
Outcomes = Mapping[str, Run | TfcompareError]


def show(view: Page) -> None:
    """Show the page below its title. It shows what is loaded, and redraws as more runs have been read."""
    demo.begin(view)
    if added := hooks().newly_uploaded(view.found):
        state.choose_added(_alone(added, view), added)
        st.rerun()
    nothing_slot = st.empty()  # it is cleared at once when there are runs, also while these are being read
    if not view.found:
        with nothing_slot.container():
            _show_problems(view)
            home_add.ways(view)
            with st.container(horizontal=True, vertical_alignment="center"):
                _refresh_button()
                home_add.places(view)
        return
    headline_slot = st.container(border=True, height=_NARROW_HEADLINE_PIXELS if is_narrow() else _HEADLINE_PIXELS)
    with st.container(horizontal=True, vertical_alignment="center"):
        filtered = home_filters.controls(view)
        _refresh_button()
        home_add.button(view)
    _show_problems(view)
    _offer_to_join(view)
    with st.container(horizontal=True, vertical_alignment="center"):
        status_slot = st.empty()
        program_of = names_of([run for run in view.found if run.is_readable])
        page = home_filters.page_of(programs(filtered.runs, program_of))
    elsewhere = selected_elsewhere(view.found, program_of, view.selection, page)
    status_slot.caption(_count(filtered, elsewhere, view), wrap=False)
    table_slot = st.container()
    home_add.places(view)
    runs = [run for program in (*elsewhere, *page) for run in program]
    requests = _request(view, runs)
    with_steps = _request_with_steps(view, requests)
    outcomes, drawn = _done(requests), _done(with_steps)
    requested_again = {run.id for run in with_steps}
    with headline_slot:
        headline(view, {run_id: one for run_id, one in outcomes.items() if run_id not in requested_again} | dict(drawn))
    with table_slot:
        if runs:
            home_runs.show([*elsewhere, *home_runs.newest_first(page, outcomes)], outcomes, view)
            if remote := [run for run in runs if run.bytes_at_hand < run.size_bytes and run not in requests]:
                which = "This run is" if len(remote) == 1 else f"{len(remote)} of these runs are"
                size = format_bytes(sum(run.size_bytes for run in remote))
                st.caption(f"{which} on another machine ({size}) and will be downloaded when selected.")
        if not page:
            st.info("No run matches the filters. Clear them to see all runs.")
    home_runs.show_editor(view, outcomes)
    keep_reading(requests, outcomes, status_slot)
    keep_reading(with_steps, drawn, status_slot)


def _alone(added: Sequence[str], view: Page) -> Selection:
    """The selection of these runs alone: the first program is the baseline, others are candidates."""
    runs = [run for run in view.found if run.id in added]
    sides = [[run.id for run in program] for program in programs(runs, names_of(runs))]
    selection = view.selection.with_candidates(()).with_baseline_side(sides[0])
    for side in sides[1:]:
        selection = selection.with_toggled(side)
    return selection


def _show_problems(view: Page) -> None:
    for problem in view.search.problems:
        st.error(as_markdown(problem))


def _refresh_button() -> None:
    st.button("Refresh", icon=":material/refresh:", type="tertiary", on_click=rescan, help="Search again for new runs")


def _offer_to_join(view: Page) -> None:
    """A button that makes one run of hosts that were captured at the same time, or takes that back."""
    apart = view.search.apart
    if not apart and not view.selection.joins_hosts:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if view.selection.joins_hosts:
            st.caption("Hosts that were captured at the same time are one run.", width="content")
            st.button("Take apart", icon=":material/call_split:", type="tertiary", on_click=_join, args=(False,))
            return
        runs = sum(map(len, apart))
        groups = "one run" if len(apart) == 1 else f"{len(apart):,} runs"
        names = "\n\n".join(", ".join(as_markdown(run.name) for run in group) for group in apart[:_MOST_NAMED])
        st.caption(f"{runs:,} runs seem to be hosts of {groups}: captured at the same time.", width="content")
        st.button("Join them", icon=":material/merge:", type="tertiary", help=names, on_click=_join, args=(True,))


def _join(joins_hosts: bool) -> None:
    state.choose(replace(state.wish(), joins_hosts=joins_hosts))


def _done(requests: Requests) -> Outcomes:
    return {run.id: outcome(request) for run, request in requests.items() if request.done()}


def _count(filtered: home_filters.Filtered, elsewhere: Sequence[Program], view: Page) -> str:
    shown, found = len(filtered.runs), len(view.found)
    of_all = f"{shown:,} of " if shown < found else ""
    runs = f"{of_all}{found:,} {'sample ' if view.search.are_samples else ''}run{'s' if found > 1 else ''}"
    hidden = f", {filtered.hidden_count:,} hidden" if filtered.hidden_count else ""
    kept = f"; the first {sum(map(len, elsewhere)):,} are the selected ones" if elsewhere else ""
    return f"{runs}{' that come with tfcompare' if view.search.are_samples else ''}{hidden}{kept}"


def _request(view: Page, runs: Sequence[FoundRun]) -> Requests:
    """Request the selected runs first, then those in view, and wait briefly for those that are quick to read.

    Unselected remote runs are only read if they were fetched before, and unselected runs in a store are not read.
    """
    cache = run_cache(view.settings)
    chosen = [run for run_id in view.selection.recordings for run in view.found if run.id == run_id]
    here = [run for run in runs[:MOST_CAPTURES] if run.summary is None and run.bytes_at_hand == run.size_bytes]
    requests = {run: cache.request(run) for run in dict.fromkeys((*chosen, *here)) if run.is_readable}
    wait(requests.values(), timeout=QUIET_S)
    return requests


def _request_with_steps(view: Page, requests: Requests) -> Requests:
    """The selected runs, requested with the selected steps; none if these are the default."""
    steps = view.selection.steps
    if steps.is_default:
        return {}
    cache = run_cache(view.settings)
    with_steps = {run: cache.request(run, steps) for run in requests if run.id in view.selection.recordings}
    wait(with_steps.values(), timeout=QUIET_S)
    return with_steps


def keep_reading(requests: Requests, drawn: Outcomes, slot: DeltaGenerator) -> None:
    """Show the progress of reading in place of the number of runs, and redraw the page when there is more to show."""
    pending = [run for run in requests if run.id not in drawn]  # some may have been read while the page was being drawn
    if not pending:
        return
    run = run_cache(settings.current()).first_read(pending)
    sentence = compiling_sentence() or reading_sentence(run, len(requests) - len(pending), len(requests))
    slot.caption(f":material/hourglass_top: {as_markdown(sentence)}", wrap=False)
    until = monotonic() + _REDRAW_S
    while monotonic() < until and (unfinished := [one for one in requests.values() if not one.done()]):
        wait(unfinished, timeout=until - monotonic(), return_when=FIRST_COMPLETED)
    st.rerun()


def headline(view: Page, outcomes: Outcomes) -> None:
    """A sentence about each candidate of the selected runs, or about the only one, and a button to more."""
    selection = view.selection
    if selection.baseline is None:
        st.markdown("**Select a baseline** and the runs to compare with it, in the table or in the sidebar.")
        return
    baseline, candidates = outcomes.get(selection.baseline), [outcomes.get(c) for c in selection.candidates]
    with st.container(horizontal=not is_narrow(), vertical_alignment="top"):
        if is_narrow():  # above the sentences, which may have to be scrolled
            _open_button(selection)
        _what_changed(view, baseline, candidates, outcomes)
        if not is_narrow():
            _open_button(selection)


def _open_button(selection: Selection) -> None:
    label = "See what changed" if selection.candidates else "Open"
    if st.button(label, icon=":material/arrow_forward:", icon_position="right", type="primary"):
        st.switch_page("pages/1_Overview.py", query_params=selection.as_query())


def _what_changed(view: Page, baseline: _Outcome, candidates: Sequence[_Outcome], outcomes: Outcomes) -> None:
    with st.container(gap="xxsmall"):
        for bad in (o for o in (baseline, *candidates) if isinstance(o, TfcompareError)):
            st.error(as_markdown(bad))
        runs = [run for run in candidates if isinstance(run, Run)]
        choose_steps(view, [run for run in (baseline, *runs) if isinstance(run, Run)])
        if isinstance(baseline, Run) and runs:
            _sentences(view, outcomes)
        elif isinstance(baseline, Run) and not candidates:
            _one_run(baseline)
        if None in (baseline, *candidates, *(outcomes.get(repeat) for _, repeat in view.selection.repeats)):
            st.caption("Reading the selected runs…")


def _one_run(run: Run) -> None:
    info = run.info
    device = device_text(info.device_type, info.device_count)
    step = "no steps are marked"
    if info.has_step_times:
        step = f"{format_ms(info.step_time_ms_mean)} per step (mean of {info.steps_included:,})"
    st.markdown(f"#### {as_code(run.name)}: {step}, {as_markdown(device)}.")
    st.caption("Select a run to compare with it, or open it alone.")


def _sentences(view: Page, outcomes: Outcomes) -> None:
    loaded = {run_id: outcome for run_id, outcome in outcomes.items() if isinstance(outcome, Run)}
    try:
        comparison, _ = compared(replace(view.selection, host=None), loaded)
    except TfcompareError as error:
        st.error(as_markdown(error))
        return
    for pair in pairs_of(comparison, by_name=True):
        st.markdown(f"#### {answer.headline(pair, whole=True)}")
        if why := doubt(pair):
            st.markdown(why)
    if steps := chosen_steps(comparison.runs):
        st.caption(f"Per {comparison.per_what}{steps}.")
