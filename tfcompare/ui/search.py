"""The runs there are: below the places given at the start and those typed into the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from tfcompare.errors import NoRuns, NoSuchPlace
from tfcompare.logdir import FoundRun, find_runs
from tfcompare.logdir.places import open_places
from tfcompare.settings import Settings, sample_runs

_FRESH_FOR_S = 30


@dataclass(frozen=True)
class Search:
    """Where was looked, what was found, and what stood in the way, one sentence each."""

    places: tuple[Path, ...]
    found: tuple[FoundRun, ...]
    problems: tuple[str, ...]
    are_samples: bool = False


def search(settings: Settings, typed: Sequence[str]) -> Search:
    """Look below all places; answers from memory for half a minute. Without any place, the sample runs."""
    places = (*settings.places, *(Path(p) for p in typed))
    if places:
        return _remembered(places)
    samples = _remembered((sample_runs(),))
    return Search(samples.places, samples.found, samples.problems, are_samples=True)


def look_again() -> None:
    """Forget what was found, so that runs recorded since then show up."""
    _remembered.clear()


def look(places: Sequence[Path]) -> Search:
    """The runs below those places that can be opened; a place that cannot be is told among the problems."""
    open_ones, problems = [], []
    for place in places:
        try:
            open_places([place])
            open_ones.append(place)
        except NoSuchPlace as error:
            problems.append(str(error))
    try:
        found = find_runs(*open_ones) if open_ones else []
    except NoRuns as error:
        found = []
        problems.append(str(error))
    return Search(tuple(places), tuple(found), tuple(problems))


@st.cache_data(ttl=_FRESH_FOR_S, max_entries=16, show_spinner="Looking for runs…")
def _remembered(places: tuple[Path, ...]) -> Search:
    return look(places)
