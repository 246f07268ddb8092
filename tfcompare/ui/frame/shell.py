"""The start of every page: finds the available runs, and shows the widgets that choose what to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tfcompare import settings as settings_module
from tfcompare.compare.pair import Per
from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.compare.repeats import Program, program_of
from tfcompare.comparison import Comparison
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.run import Run
from tfcompare.settings import Settings
from tfcompare.sources.folder_permissions import why_not_private
from tfcompare.sources.logdir import FoundRun
from tfcompare.store.cached_frames import frame_cache
from tfcompare.text import as_code, as_markdown
from tfcompare.ui.frame import access, header, narrow, on_disk, own_captures, remote_links, sidebar, state
from tfcompare.ui.frame.hooks import hooks
from tfcompare.ui.frame.loading import compared, fetch, run_cache
from tfcompare.ui.frame.search import Search, search
from tfcompare.ui.frame.selection import Selection, default_runs, resolve_selection, with_replicates
from tfcompare.views.registry import views

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<rect x="3" y="3" width="11" height="26" rx="2.5" fill="#DD6B00"/>'
    '<rect x="18" y="15" width="11" height="14" rx="2.5" fill="#2B7BD6"/></svg>'
)
"""Before and after: a tall bar next to a short one."""

LOGO = str(Path(__file__).with_name("logo.svg"))
"""In a grey that is readable on light and dark pages; its letters are paths, as no font is certain to be there."""

_BEFORE_AND_AFTER = 2
"""If this many places are given, the newest run of each is compared, with its replicates."""
_REASONS = "tfcompare.applicable"

Needs = Literal["runs", "pair"]


@dataclass(frozen=True)
class Page:
    """What a page shows. With `needs="pair"`, `comparison` is set: of two or more runs, or of a run alone."""

    settings: Settings
    search: Search
    selection: Selection
    may_type_paths: bool
    comparison: Comparison | None = None
    marker_slot: DeltaGenerator | None = None

    @property
    def found(self) -> tuple[FoundRun, ...]:
        """All runs, readable or not, in the order of their capture."""
        return self.search.found

    @property
    def per(self) -> Per:
        """The unit that sums refer to; a comparison falls back to `run` if a run has no steps."""
        return self.comparison.per if self.comparison else self.selection.per

    @property
    def host(self) -> str | None:
        """The chosen host, None for all."""
        return self.comparison.host if self.comparison else self.selection.host


@contextmanager
def page(title: str, *, needs: Needs) -> Iterator[Page]:
    """As `setup`, for a page that is shown inside a `with` block: it ends with one sentence if memory runs out, or if a
    table that it asks for cannot be read any more."""
    try:
        yield setup(title, needs=needs)
    except TfcompareError as error:
        st.error(as_markdown(error))
    except MemoryError:
        st.error("This page takes more memory than the server has free. Choose fewer runs, or a range of steps.")


def setup(title: str, *, needs: Needs) -> Page:
    """Begin a page: its title, the shared sidebar, and with `needs="pair"` the loaded runs and their comparison.

    The selection comes from the URL, or else from the session, and is written to both. If the page cannot be shown,
    this shows why and what to do, and stops the page.
    """
    st.set_page_config(f"{title} · tfcompare", ICON, layout="wide", initial_sidebar_state=sidebar.WIDTH)
    narrow.watch()
    st.logo(LOGO, icon_image=ICON, size="large")
    top = st.container(horizontal=True, vertical_alignment="center")
    top.title(title, anchor=False, width="content")
    hooks().require_login()
    try:
        view, wish, complaints = _begin()
    except TfcompareError as error:
        st.error(as_markdown(error))
        st.stop()
    link_slot = st.sidebar.empty()
    compared_before, known = st.session_state.get(_REASONS, ((), {}))
    known = known if compared_before == view.selection.compared else {}
    sidebar.links(link_slot, state.wish(), known)  # before the runs are loaded
    shown = view.search.without_hidden(view.selection.recordings)
    if view.found:
        sidebar.choices(view.selection, shown, _of_one_program(view, shown))
    host_slot = st.sidebar.container()
    view = replace(view, marker_slot=st.sidebar.container())
    hooks().show_account()
    cache = frame_cache()
    for message in cache.messages if cache is not None else ():  # everything works without it
        st.sidebar.warning(as_markdown(message), icon=":material/inventory_2:")
    for complaint in complaints:
        st.error(complaint)
    if complaints:
        on_disk.reread_button("tfcompare.on_disk.complaints", wish)
    if needs == "runs":
        return view
    _stop_without_pair(view, wish)
    loaded = _load(view)
    comparison = _compare(view.selection, loaded)
    baseline, candidates = comparison.baseline, [] if comparison.is_single else comparison.candidates
    if comparison.per != view.selection.per:
        host_slot.caption(f"Shown per {comparison.per}, since step times are missing.")
    sidebar.host_choice(host_slot, view.selection, baseline, candidates)
    reasons = comparison.cached("why_not", lambda: why_not(comparison))
    st.session_state[_REASONS] = view.selection.compared, reasons
    if reasons != known:
        sidebar.links(link_slot, state.wish(), reasons)
    with top:
        header.show(comparison)
    # not those of the comparison: it may be one that was made of copies of these files
    on_disk.watch([loaded[run_id].found for run_id in view.selection.compared if run_id in loaded])
    return replace(view, comparison=comparison)


def why_not(comparison: Pairs) -> dict[str, str]:
    """The reason for each page, by its title, that has nothing to show for these runs."""
    reasons = {view.title: [view.why_not(pair) for pair in pairs_of(comparison)] for view in views()}
    return {title: of_pairs[0] for title, of_pairs in reasons.items() if all(of_pairs)}


def _begin() -> tuple[Page, Selection, list[str]]:
    """The view before anything is loaded, the requested selection, and why parts of it are unavailable."""
    settings = settings_module.current()
    may_type = access.may_type(settings, st.context.headers.to_dict())
    wish, complaints = state.requested_selection(), []
    if wish.places and not may_type:
        complaints.append("Paths in a link are opened only for a browser on the machine that serves this page.")
        wish = replace(wish, places=())
    opened, refused = access.opened(settings, wish.places)
    complaints += map(as_markdown, refused)
    remote_links.ask(settings, opened)
    wish = replace(wish, places=opened)
    if why := why_not_private(settings.data_folder):
        complaints.append(f"{as_code(str(settings.data_folder))}: uploads and captures are not shown, since {why}.")
        stored_here: tuple[Path, ...] = ()
    else:
        stored_here = (*hooks().uploads(settings), *own_captures.places(settings))
    result = search(settings, wish.places, stored_here, joins_hosts=wish.joins_hosts)
    try:
        _ = wish.steps
    except TfcompareError as error:
        complaints.append(f"Steps: {as_markdown(error)}.")
        wish = replace(wish, step_range=None)
    resolved = resolve_selection(wish, result.found, lambda: default_runs(result.without_hidden(), result.places))
    is_one_program = not resolved.selection.candidates
    if not wish.compared and (is_one_program or len(result.places) == _BEFORE_AND_AFTER):
        selection = with_replicates(resolved.selection, result.without_hidden())
        resolved = replace(resolved, selection=selection, wish=selection)
    if wish.compared:
        state.choose(resolved.selection, in_url=resolved.wish)
    else:
        state.choose_default(resolved.selection)
    complaints += [as_markdown(problem) for run in resolved.unreadable for problem in run.problems]
    if resolved.unknown:
        there = " Choose another in the sidebar or on the home page." if result.found else ""
        complaints.append(f"There is no run {' or '.join(map(as_code, resolved.unknown))} here.{there}")
    for bad in resolved.misplaced:
        complaints.append(f"{as_code(bad.run)} is not counted as a replicate: {as_markdown(bad.why)}.")
    return Page(settings, result, resolved.selection, may_type), wish, complaints


def _of_one_program(view: Page, found: Sequence[FoundRun]) -> dict[str, tuple[str, ...]]:
    """For the ids of compared runs, those of other runs that were read before and are of the same program.

    If two compared runs are of one program, it is unclear whose replicate a capture is: it is not offered. Nor is what
    seems to be another host of the run.
    """
    beside = {run.id: {host.id for host in hosts} for hosts in view.search.apart for run in hosts}
    cache = run_cache(view.settings)
    read = {run.id: cache.peek(run) for run in found if run.is_readable}
    programs = {run_id: program(run) for run_id, run in read.items() if isinstance(run, Run)}
    alike = {}
    for run_id in view.selection.compared:
        others = [other for other in programs if run_id in programs and programs[run_id].may_be(programs[other])]
        if set(others) & set(view.selection.compared) == {run_id}:
            taken = {*view.selection.recordings, *beside.get(run_id, ())}
            alike[run_id] = tuple(other for other in others if other not in taken)
    return {run_id: others for run_id, others in alike.items() if others}


def program(run: Run) -> Program:
    """The program of a run; cached."""
    return _program(run.content_id, run)


@st.cache_resource(max_entries=512, show_spinner=False)
def _program(content_id: str, _run: Run) -> Program:
    del content_id
    return program_of(_run)


def _stop_without_pair(view: Page, wish: Selection) -> None:
    selection, readable = view.selection, [run for run in view.found if run.is_readable]
    if not readable:
        why = "; ".join(view.search.problems) or "none of the runs that were found can be read"
        stop(f"There is no run to show: {as_markdown(why)}.", "Name a place with runs on the home page.")
    if selection.baseline is None and wish.baseline is not None:  # what is wrong with it has been said
        _stop_with_link()
    if selection.baseline is None:
        stop("No run is chosen.", "Choose a baseline in the sidebar or on the home page.")


def stop(why: str, what_to_do: str) -> NoReturn:
    """Stop a page that has nothing to show, with the reason (Markdown), what to do, and a link to the home page."""
    st.info(f"{why} {what_to_do}")
    _stop_with_link()


def _stop_with_link() -> NoReturn:
    sidebar.link(sidebar.HOME, "Home", state.wish(), icon=":material/home:")
    st.stop()


def _load(view: Page) -> dict[str, Run]:
    """The loaded baseline, candidates and replicates by their ids; unreadable candidates and replicates are reported.

    Without candidates, the baseline is shown alone.
    """
    runs = {run.id: run for run in view.found}
    selection = view.selection
    steps, recordings = selection.steps, [runs[run_id] for run_id in selection.recordings]
    outcomes = fetch(recordings, view.settings, steps)
    loaded: dict[str, Run] = {}
    for run_id, outcome in outcomes.items():
        if isinstance(outcome, TfcompareError):
            st.error(as_markdown(outcome))
        else:
            loaded[run_id] = outcome
    choose_steps(view, list(loaded.values()))
    lacks_kind = steps.kind is not None and any(run.choice != steps for run in loaded.values())
    if lacks_kind:  # steps of one kind beside those of all say nothing
        of_all_kinds = fetch(recordings, view.settings, replace(steps, kind=None))
        loaded = {run_id: run for run_id, run in of_all_kinds.items() if isinstance(run, Run)}
    if selection.baseline not in loaded or (selection.candidates and not loaded.keys() & {*selection.candidates}):
        on_disk.reread_button("tfcompare.on_disk.unreadable")
        stop("Without this run there is nothing to show.", "Choose another in the sidebar.")
    return loaded


def choose_steps(view: Page, runs: Sequence[Run]) -> None:
    """Show the choices of the step range, event and kind, and which runs have no such steps."""
    if view.marker_slot is not None:
        sidebar.step_choices(view.marker_slot, view.selection, runs)
    steps = view.selection.steps
    lacking = [as_code(run.name) for run in runs if run.choice != steps]
    if steps.is_default or not lacking:
        return
    reasons = ["not every host has an event of that name"] if steps.marker is not None else []
    reasons += ["no included step is of that kind"] if steps.kind is not None else []
    reasons += ["no step is in that range"] if steps.has_range else []
    are_mixed = steps.kind is not None and len(lacking) < len(runs)
    st.warning(
        f"{' and '.join(lacking)} cannot be shown with {header.steps_text(steps)}: {' or '.join(reasons)}, or the "
        f"profile is not at hand. Shown with all steps that {'it marks' if len(lacking) == 1 else 'they mark'}, if "
        f"any.{' The others are shown with all kinds of steps.' if are_mixed else ''}",
        icon=":material/warning:",
    )


def _compare(selection: Selection, loaded: Mapping[str, Run]) -> Comparison:
    """The comparison of the chosen host, or of all hosts if that host is not available; says what does not count."""
    try:
        comparison, refused = compared(selection, loaded)
    except TfcompareError as error:
        if isinstance(error, Unknown) and error.name in selection.captures:  # it does not count: a page says why
            others = tuple(one for one in selection.captures if one != error.name)
            return _compare(replace(selection, captures=others), loaded)
        if selection.host is None:
            st.error(as_markdown(error))
            st.stop()
        st.error(f"{as_markdown(error)} All hosts are shown instead.")
        return _compare(replace(selection, host=None), loaded)
    sentences = [as_markdown(sentence) for sentence in refused]
    if len(sentences) == 1:
        st.warning(sentences[0], icon=":material/warning:")
    elif sentences:
        with st.expander(f"{len(sentences)} captures are not counted as replicates", icon=":material/warning:"):
            st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
    return comparison
