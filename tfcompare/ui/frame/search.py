"""Searches for runs below the places given at startup and those entered in the page, local or remote."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from tfcompare.errors import NoSuchPlace, TfcompareError
from tfcompare.settings import Settings, sample_runs
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.grouping import UnnamedRun
from tfcompare.sources.logdir.hosts import joinable
from tfcompare.sources.logdir.places import open_places
from tfcompare.sources.logdir.runs import ListRemote, survey
from tfcompare.sources.remote import stores
from tfcompare.sources.remote.files import Listing
from tfcompare.sources.remote.places import RemotePlace, parse, shown
from tfcompare.store.annotations import Annotation, renamed
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import runs_in
from tfcompare.text import is_url
from tfcompare.ui.frame import annotated
from tfcompare.ui.frame.access import linkable, without_ways_out

_FRESH_FOR_S = 30
_FRESH_ELSEWHERE_FOR_S = 300
"""Listing a bucket takes time and is billed to its owner."""


@dataclass(frozen=True)
class Search:
    """The places searched, the runs found, and the problems, one sentence each.

    `annotations`: what the user said of runs, by run id; their names are the runs' names already. `apart`: groups of
    runs that were captured at the same time on different hosts and may be joined.
    """

    places: tuple[str | Path, ...]
    found: tuple[FoundRun, ...]
    problems: tuple[str, ...]
    are_samples: bool = False
    annotations: Mapping[str, Annotation] = field(default_factory=dict)
    apart: tuple[tuple[FoundRun, ...], ...] = ()

    def without_hidden(self, selected: Sequence[str] = ()) -> tuple[FoundRun, ...]:
        """The runs that are not hidden, and those with the ids in `selected`."""
        return tuple(run for run in self.found if run.id in selected or not self.is_hidden(run.id))

    def tags(self, run: FoundRun) -> tuple[str, ...]:
        """The user's tags of the run, then its metadata, such as `commit=abc123`."""
        own = self.annotations[run.id].tags if run.id in self.annotations else ()
        return tuple(dict.fromkeys((*own, *run.metadata.texts)))

    def is_hidden(self, run_id: str) -> bool:
        """Whether the user has hidden this run."""
        return run_id in self.annotations and self.annotations[run_id].is_hidden


def search(
    settings: Settings, typed: Sequence[str], stored_here: Sequence[Path] = (), *, joins_hosts: bool = False
) -> Search:
    """Search all places, and uploads and captures in `stored_here`; results are cached for 30 seconds.

    Listings of remote places are cached for five minutes. Without places and store, returns the sample runs.
    Runs have the names that the user gave them.
    """
    places = (*settings.places, *(p if is_url(p) else Path(p) for p in typed))
    are_samples = not places and settings.store_url is None
    places = (sample_runs(),) if are_samples else places
    result = _cached_search((*places, *stored_here), settings.store_url, joins_hosts)
    found, problems = without_ways_out(settings, typed, result.found), result.problems
    try:
        annotations = annotated.by_run(settings, found)
    except TfcompareError as error:
        annotations, problems = {}, (*problems, str(error))
    apart = tuple(group for group in result.apart if set(group) <= set(found))
    return Search(places, renamed(found, annotations), problems, are_samples and not stored_here, annotations, apart)


def rescan() -> None:
    """Clear the cached results, so that new runs show up."""
    _cached_search.clear()
    _list_places.clear()


def opened(typed: str) -> str:
    """The normalized name of a place; raises `NoSuchPlace` if it does not exist, cannot be opened now, or
    is not UTF-8."""
    (place,) = open_places([typed])
    if place.remote is not None:
        _list_places.clear(place.address)
        _cached_listing(place.remote)
    return linkable(place.address)


def look(
    places: Sequence[str | Path], look: ListRemote = stores.look, store: str | None = None, *, joins_hosts: bool = False
) -> Search:
    """The runs below those places and in the store; places that cannot be opened are among the problems."""
    open_ones, problems = [], []
    for place in places:
        try:
            open_places([place])
            open_ones.append(place)
        except NoSuchPlace as error:
            problems.append(str(error))
    stored, notes = _stored_runs(store)
    found = survey(open_places(open_ones), look, stored, join=joins_hosts)
    problems += [*map(str, found.lost), *filter(None, [found.why_none]), *notes]
    paths = {run.id: str(run.path) for run in found.runs}
    if hidden := [find.run.id for find in stored if paths[find.run.id] != str(find.run.path)]:
        why = f"since others here go by their ids, such as {hidden[0]}"
        problems.append(f"{len(hidden):,} runs of the store are not shown, {why}")
    return Search(tuple(places), found.runs, tuple(problems), apart=tuple(joinable(found.runs)))


def _stored_runs(address: str | None) -> tuple[list[UnnamedRun], tuple[str, ...]]:
    """The runs in a store, if there is one, and messages about it."""
    if address is None:
        return [], ()
    try:
        runs, notes = runs_in(Store(address))
    except TfcompareError as error:
        return [], (str(error),)
    return [run.find() for run in runs], notes if runs else (*notes, f"{shown(address)}: there is no run in this store")


# A path's bytes: as text, Streamlit could not hash a name that is not UTF-8.
@st.cache_resource(
    ttl=_FRESH_FOR_S, max_entries=16, show_spinner="Looking for runs…", hash_funcs={type(Path()): os.fsencode}
)
def _cached_search(places: tuple[str | Path, ...], store: str | None, joins_hosts: bool) -> Search:
    return look(places, _cached_listing, store, joins_hosts=joins_hosts)


def _cached_listing(place: RemotePlace) -> Listing:
    found = _list_places(place.address)
    if isinstance(found, Listing):
        return found
    raise NoSuchPlace(found)


@st.cache_data(ttl=_FRESH_ELSEWHERE_FOR_S, max_entries=16, show_spinner=False)
def _list_places(address: str) -> Listing | str:
    """The listing of a remote place, or why there is none; an unreachable server is not retried each click."""
    try:
        return stores.look(parse(address))
    except NoSuchPlace as error:
        return str(error)
