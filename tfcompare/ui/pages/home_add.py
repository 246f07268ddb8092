"""How runs are added on the home page: by path or URL, by upload, or by capture; and the places that are searched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.settings import Settings, sample_runs
from tfcompare.sources.folder_permissions import why_not_private
from tfcompare.sources.remote.places import shown
from tfcompare.text import as_code, as_markdown, is_url, middle_ellipsis
from tfcompare.ui.frame import access, own_captures, remote_links, sidebar, state
from tfcompare.ui.frame.access import checked
from tfcompare.ui.frame.hooks import hooks
from tfcompare.ui.frame.search import look, opened
from tfcompare.ui.frame.selection import SAMPLE_PAIR, Selection
from tfcompare.ui.frame.shell import Page

_PATH = "tfcompare.path"
_PATH_PROBLEM = "tfcompare.path_problem"
_LONGEST_PLACE = 60


def button(view: Page) -> None:
    """The button that opens all ways to add runs."""
    with st.popover("Add runs", icon=":material/add:", width="content", key="tfcompare.add"):
        ways: dict[str, Callable[[], None]] = {"Path or URL": lambda: _typed_place(view)}
        if upload_section := hooks().upload_section:
            ways["Upload"] = lambda: upload_section(view.settings)
        ways["Capture"] = lambda: _capture(view)
        titles = list(ways)
        # the server knows which is open: a filter that appears beside the button makes the browser draw them anew
        tabs = st.tabs(titles, default=titles[not view.may_type_paths], key="tfcompare.add.way", on_change="rerun")
        for tab, way in zip(tabs, ways.values(), strict=True):
            with tab:
                way()


def ways(view: Page) -> None:
    """What this browser may do to see runs, side by side; for a home page that has none."""
    is_private = not why_not_private(view.settings.data_folder)
    samples, _ = access.opened(view.settings, [str(sample_runs())])
    may_record = own_captures.this_browser_may_record(view.settings)
    allowed: dict[str, Callable[[], None]] = {}
    if view.may_type_paths:
        allowed["Open a path or URL"] = lambda: _path(view)
    if is_private and (upload_section := hooks().upload_section):
        allowed["Upload"] = lambda: _upload(view, upload_section)
    if is_private and may_record:
        allowed["Capture"] = lambda: _capture(view)
    if view.may_type_paths and samples:
        allowed["Try the sample runs"] = lambda: _samples(samples[0])
    if not allowed:
        st.info("This browser may not add runs. Ask the person who started the server.")
    ways = list(allowed.items())
    for row in range(0, len(ways), 2):
        for column, (title, way) in zip(st.columns(2), ways[row : row + 2], strict=False):
            with column, st.container(border=True, height="stretch"):
                st.markdown(f"**{title}**")
                way()


def _path(view: Page) -> None:
    st.markdown("Name a logdir, or a folder that contains some.")
    _typed_place(view, "stretch")


def _upload(view: Page, section: Callable[[Settings], None]) -> None:
    st.markdown("Send a logdir, an archive or profiles from your machine to this page.")
    with st.popover("Upload", icon=":material/upload:"):
        section(view.settings)


def _samples(place: str) -> None:
    def open_samples() -> None:
        before, after = SAMPLE_PAIR
        selection = state.current()
        state.choose(replace(selection, places=(*selection.places, place), baseline=before, candidates=(after,)))

    st.markdown("Look at recorded runs that come with tfcompare.")
    st.button("Open the samples", icon=":material/folder_open:", on_click=open_samples)


def _typed_place(view: Page, width: int | Literal["stretch"] = 330) -> None:
    if not view.may_type_paths:
        st.caption("Paths can be typed only in a browser on the machine that serves this page.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        meaning = "A logdir, a folder that contains some, a run folder, or a profile."
        look: dict[str, Any] = {"placeholder": "/path/to/logs or s3://bucket/logs", "width": width, "help": meaning}
        adds: dict[str, Any] = {"key": _PATH, "on_change": _add, "args": (view.search.are_samples,)}
        st.text_input("Path on this machine, or URL", **adds, **look)
        st.button("Add", icon=":material/add:")  # leaving the field adds its content
    if problem := st.session_state.pop(_PATH_PROBLEM, None):
        st.error(as_markdown(problem))


def _capture(view: Page) -> None:
    if not own_captures.this_browser_may_record(view.settings):
        st.caption("Only a browser on the machine that serves this page can capture runs.")
        return
    st.markdown("Profile a program while it runs.")
    sidebar.link("pages/11_Capture.py", "Open Capture", view.selection, icon=":material/radio_button_checked:")


def without_samples(view: Page) -> Selection:
    """The selection; without its runs if these are the samples that are shown to users who have added no run."""
    selection = view.selection
    is_default = not view.settings.places and not selection.places
    selected = [run for run in view.found if run.id in selection.recordings]
    if is_default and all(isinstance(run.path, Path) and run.path.is_relative_to(sample_runs()) for run in selected):
        return replace(selection, baseline=None, candidates=(), repeats=())
    return selection


def places(view: Page) -> None:
    """The places that are searched for runs, in one line; those that were typed can be removed."""
    given = [shown(place) for place in view.settings.places]
    if view.settings.store_url is not None:
        given.append(f"store {shown(view.settings.store_url)}")
    if not given and not view.selection.places:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"Searched: {', '.join(map(as_code, given))}" if given else "Searched:", width="content")
        for number, place in enumerate(view.selection.places):
            name = as_code(middle_ellipsis(shown(place), _LONGEST_PLACE))
            look: dict[str, Any] = {"icon": ":material/close:", "icon_position": "right", "help": "Remove this place"}
            key = f"tfcompare.remove.{number}"
            st.button(name, key=key, type="tertiary", on_click=_remove, args=(place,), **look)


def _add(is_first: bool) -> None:
    """Add the typed place, and say so; the first one replaces the samples, along with their selection."""
    typed = st.session_state[_PATH].strip()
    if not typed:
        return
    try:
        place = opened(checked(settings.current(), typed))
    except TfcompareError as error:
        st.session_state[_PATH_PROBLEM] = str(error)
        return
    if problem := _why_no_profile(place):
        st.session_state[_PATH_PROBLEM] = problem
        return
    st.session_state[_PATH] = ""
    remote_links.confirm(place)
    selection = state.current()
    given = [str(one.expanduser().absolute() if isinstance(one, Path) else one) for one in settings.current().places]
    name = as_code(middle_ellipsis(shown(place), _LONGEST_PLACE))
    if place in (*given, *selection.places):
        st.toast(f"{name} is searched already.", icon=":material/check:")
        return
    st.toast(f"{name} was added.", icon=":material/check:")
    if is_first:
        selection = replace(selection, baseline=None, candidates=(), repeats=())
    state.choose(replace(selection, places=tuple(dict.fromkeys((*selection.places, place)))))


def _why_no_profile(place: str) -> str:
    """Why a local file cannot be read as a profile; empty if it can, and for folders and URLs."""
    if is_url(place) or not Path(place).is_file():
        return ""
    return "; ".join(problem for run in look([place]).found for problem in run.problems if not run.is_readable)


def _remove(place: str) -> None:
    selection = state.current()
    state.choose(replace(selection, places=tuple(p for p in selection.places if p != place)))
