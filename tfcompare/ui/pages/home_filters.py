"""The home page's filters, and the runs that they leave in view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import streamlit as st

from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.metadata import COMMIT
from tfcompare.text import text_of
from tfcompare.ui.frame import state
from tfcompare.ui.frame.loading import run_cache
from tfcompare.ui.frame.shell import Page
from tfcompare.ui.pages.home_programs import Program, pages
from tfcompare.views.run_listing import device_text

TEXT, TAG, DEVICE, HOST = (f"tfcompare.filter{of}" for of in ("", ".tag", ".device", ".host"))
SHOW_HIDDEN = "tfcompare.show_hidden"
_PAGE = "tfcompare.page"
_LOOK: dict[str, Any] = {"label_visibility": "collapsed", "persist_state": "session"}

Values = Mapping[str, Sequence[str]]
"""The values that runs have, by run id: tags, devices or hosts."""


@dataclass(frozen=True)
class Filtered:
    """The runs that match the filters, in the order of the table, and how many more match but are hidden."""

    runs: tuple[FoundRun, ...]
    hidden_count: int


def controls(view: Page) -> Filtered:
    """Show the filters and return the runs that match: those just added first, then by time, the latest first."""
    look: dict[str, Any] = {"placeholder": "Filter by name, path, host or tag", "type": "search", "width": 260}
    typed = st.text_input("Filter", key=TEXT, live=True, **look, **_LOOK)
    tags = tags_of(view)
    found = matching(view.found, typed or "", tags)
    hosts = {run.id: run.host_names for run in view.found}
    for label, key, values in (("Tag", TAG, tags), ("Device", DEVICE, _devices(view)), ("Host", HOST, hosts)):
        options = {value for each in values.values() for value in each if not value.startswith(f"{COMMIT}=")}
        wanted = _choice(label, key, options, 1 if key == TAG else 2)
        found = [run for run in found if not wanted or set(wanted) & set(values[run.id])]
    if any(view.search.is_hidden(run.id) for run in view.found):
        st.toggle("Show hidden", key=SHOW_HIDDEN, persist_state="session")
    hidden = {run.id for run in found if view.search.is_hidden(run.id)}
    if st.session_state.get(SHOW_HIDDEN):
        hidden.clear()
    found = [run for run in found if run.id not in hidden]
    latest_first, added = found[::-1], state.added_runs()
    return Filtered(tuple(sorted(latest_first, key=lambda run: run.id not in added)), len(hidden))


def page_of(programs: Sequence[Program]) -> list[Program]:
    """The programs in view; if they do not fit on one page, this shows the page selector."""
    found = pages(programs)
    if st.session_state.get(_PAGE, 1) > len(found):
        st.session_state[_PAGE] = len(found)
    page = st.pagination(len(found), key=_PAGE, persist_state="session") if len(found) > 1 else 1
    return found[page - 1]


def matching(found: Sequence[FoundRun], text: str, tags: Values = MappingProxyType({})) -> list[FoundRun]:
    """The runs whose name, path, hosts or tags contain every word of `text`, ignoring case."""
    words, matches = text.casefold().split(), []
    for run in found:
        texts = (run.id, run.name, text_of(str(run.path)), *run.host_names, *tags.get(run.id, ()))
        searchable = "\n".join(texts).casefold()
        if all(word in searchable for word in words):
            matches.append(run)
    return matches


def _choice(label: str, key: str, values: Iterable[str], fewest: int) -> list[str]:
    """The values chosen in a filter, which is shown if there are at least `fewest`."""
    options = sorted(values)
    if len(options) < fewest:
        return []
    if key in st.session_state:  # a value may be gone
        st.session_state[key] = [value for value in st.session_state[key] if value in options]
    return st.multiselect(label, options, key=key, placeholder=label, select_all=False, width=170, **_LOOK)


def tags_of(view: Page) -> Values:
    """The tags of each run, by run id."""
    return {run.id: view.search.tags(run) for run in view.found}


def _devices(view: Page) -> Values:
    """The devices of the runs that were read."""
    cache = run_cache(view.settings)
    devices = {}
    for run in view.found:
        read = cache.peek(run) if run.summary is None and run.is_readable else None
        known = read.info if isinstance(read, Run) else None
        device = run.summary.device if run.summary else ""
        if known:
            device = device_text(known.device_type, known.device_count)
        devices[run.id] = (device,) if device else ()
    return devices
