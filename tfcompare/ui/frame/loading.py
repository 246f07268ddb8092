"""Loads runs for a page: in the background, once for all sessions, with progress if it takes long."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from uuid import uuid4

import streamlit as st

from tfcompare import loading
from tfcompare import settings as settings_module
from tfcompare.comparison import Comparison
from tfcompare.errors import NoOtherSteps, TfcompareError
from tfcompare.frames import load_loops
from tfcompare.frames.profile_reader import FrameBuilder
from tfcompare.run import Run
from tfcompare.settings import ReadLimits, Settings
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.store.frame_builders import READERS, BoundedBuilder, reader_within
from tfcompare.ui.frame import annotated
from tfcompare.ui.frame.run_cache import Comparisons, RunCache, outcome
from tfcompare.ui.frame.selection import Selection
from tfcompare.units import format_bytes
from tfcompare.xspace.reader import EXPECTED_SECONDS, needs_compilation

QUIET_S = 0.4
"""Shorter waits show no progress, which would only flicker."""


def run_cache(settings: Settings) -> RunCache:
    """The server's cache of runs."""
    return _run_cache(settings.cache_bytes, settings_module.from_environment().read_limits)


@st.cache_resource(show_spinner=False)
def _run_cache(max_bytes: int, limits: ReadLimits | None) -> RunCache:
    return RunCache(max_bytes, partial(_loaded, reader_within(limits)), session)


def session() -> str:
    """A name of this browser session; sessions take turns at reading."""
    name: str = st.session_state.setdefault("session", uuid4().hex)
    return name


def for_client(build: FrameBuilder, client: Hashable) -> FrameBuilder:
    """The builder, which takes turns for this client."""
    return replace(build, client=client) if isinstance(build, BoundedBuilder) else build


def start_reader() -> None:
    """Start the processes that read profiles, before they are needed; if this one reads them, load the reader."""
    build = reader_within(settings_module.from_environment().read_limits)
    if isinstance(build, BoundedBuilder):
        with ThreadPoolExecutor(READERS) as pool:
            for _ in range(READERS):
                pool.submit(build.processes.start)
    else:
        load_loops()


def _loaded(build: FrameBuilder, found: FoundRun, steps: StepChoice, client: Hashable) -> Run:
    """The run; with all of its own steps if the chosen ones are not available."""
    build = for_client(build, client)
    try:
        run = loading.read(found, steps, build=build)
    except NoOtherSteps:
        run = loading.read(found, StepChoice(counts_stray=steps.counts_stray), build=build)
    annotated.note(run)
    return run


def fetch(
    found: Sequence[FoundRun], settings: Settings, steps: StepChoice = OWN_STEPS
) -> dict[str, Run | TfcompareError]:
    """Each run by its id, or the error from reading it. Waits for all of them, and shows progress.

    Runs for which these steps are not available are returned with all of their own steps.
    """
    cache = run_cache(settings)
    sentence = compiling_sentence()
    requests = cache.request_together(found, steps)
    wait(requests.values(), timeout=QUIET_S)
    slot = st.empty()
    while pending := [run for run, request in requests.items() if not request.done()]:
        text = sentence or reading_sentence(cache.first_read(pending), len(requests) - len(pending), len(requests))
        slot.progress(1 - len(pending) / len(requests), text=text)
        wait([requests[run] for run in pending], timeout=QUIET_S, return_when=FIRST_COMPLETED)
    slot.empty()
    return {run.id: outcome(request) for run, request in requests.items()}


def compiling_sentence() -> str:
    """The message shown while the profile reader is compiled for the first profile; empty if it is compiled."""
    return f"Compiling the reader, once: about {EXPECTED_SECONDS} seconds" if needs_compilation() else ""


def reading_sentence(run: FoundRun, done: int, total: int) -> str:
    """That this run is being fetched or read, and how many runs are done."""
    number = done + 1
    size, here = format_bytes(run.size_bytes), run.bytes_at_hand
    if here < run.size_bytes:
        return f"Fetching run {number} of {total}: {run.name} ({format_bytes(here)} of {size})"
    return f"Reading run {number} of {total}: {run.name} ({size})"


def compared(selection: Selection, loaded: Mapping[str, Run]) -> tuple[Comparison, list[str]]:
    """The comparison of the runs of the selection that are loaded, and why captures do not count as their replicates;
    cached for the next rerun. Raises as `compare` does."""
    selection = replace(selection, candidates=tuple(run for run in selection.candidates if run in loaded))
    sides = [
        tuple(loaded[one] for one in (run, *selection.repeats_of(run)) if one in loaded) for run in selection.compared
    ]
    runs = [run for side in sides for run in side]
    return _comparisons(settings_module.current().cache_bytes).of(
        runs,
        (selection.question, tuple(map(len, sides))),
        lambda: loading.compared(selection.question, sides),
    )


@st.cache_resource(show_spinner=False)
def _comparisons(max_bytes: int) -> Comparisons[tuple[Comparison, list[str]]]:
    return Comparisons(max_bytes, lambda made: made[0].memory_bytes)
