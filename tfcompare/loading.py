"""From a question to its answer: finds the runs, reads them, accepts replicates and compares.

It knows no surface: commands, pages and the pytest plugin ask, and show what comes back. It prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.frames.profile_reader import FrameBuilder, OnProgress
from tfcompare.run import Run, Stray, load
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.runs import readable, runs_at
from tfcompare.sources.remote.places import shown
from tfcompare.sources.replicates import captures_at
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.frame_builders import READERS, reader_within
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import StoredRun, named, one_of, runs_in

if TYPE_CHECKING:
    from tfcompare.compare.matching.manual import ManualChoice
    from tfcompare.compare.pair import Per
    from tfcompare.comparison import Comparison

Progress = Callable[[FoundRun], OnProgress | None]
"""Called with each run before it is read; returns what is called while it is downloaded."""

Captures = tuple[Run, ...]
"""The captures of one program; the first is the one that is shown."""


@dataclass(frozen=True)
class Question:
    """What is to be compared, and how.

    `places`: the baseline, then candidates, as paths or URLs, or as ids or names of runs in the `store` (a path or
    URL). A place that holds several captures of one program, by their names, stands for all of them. `repeats`: for
    each place, other places of captures of its program, which all count. `join` is that of `find_runs`; `per`, `host`,
    `captures`, `spread` and `is_series` are those of `compare`. `pairs`: the manual choices for each candidate.
    """

    places: tuple[str, ...]
    repeats: tuple[tuple[str, ...], ...] = ()
    store: str | None = None
    join: bool = False
    steps: StepChoice = OWN_STEPS
    per: Per = "step"
    host: str | None = None
    captures: tuple[str, ...] = ()
    spread: float | None = None
    pairs: tuple[tuple[ManualChoice, ...], ...] = ()
    is_series: bool = False


def answer(question: Question, progress: Progress | None = None) -> tuple[Comparison, list[str]]:
    """The comparison, of a place alone with itself, and sentences to read before it. Raises as `sides` and `compare`
    do."""
    found, notes = sides(question, progress)
    comparison, more = compared(question, found)
    return comparison, notes + more


def sides(question: Question, progress: Progress | None = None) -> tuple[list[Captures], list[str]]:
    """The captures of each place, with the replicates given for it, and sentences on what was found and left out.

    All places are located before the first run is read, so that a misspelt one is reported at once, and no run is read
    twice. Raises `TfcompareError` if a place has no run, runs of several programs, or an unreadable one.
    """
    own, others, notes = _find(question)
    notes += _several(question, own)
    needed = {run.id: run for run in chain(*own)}
    read_runs, failures = _read_each(needed.values(), question, progress, chain(*others))
    notes += _remarks(read_runs[run_id] for run_id in needed)
    found: list[Captures] = []
    for number, captures in enumerate(own):
        more, places = (others[number], question.repeats[number]) if number < len(others) else ([], ())
        why = [failures[run.id] for run in more if run.id in failures]
        if places and len(why) == len(more):
            none = f"{', '.join(map(shown, places))}: none of the runs there can be read"
            raise TfcompareError(": ".join([none, *why[:1]]))
        notes += [f"left out: {failure}" for failure in why]
        ids = dict.fromkeys(run.id for run in (*captures, *more) if run.id in read_runs)
        found.append(tuple(read_runs[run_id] for run_id in ids))
    return found, notes + cache_problems()


def compared(question: Question, found: Sequence[Captures]) -> tuple[Comparison, list[str]]:
    """The comparison of what was read, and why captures do not count as replicates. Raises as `compare` does."""
    from tfcompare.compare.repeats import accept_captures  # once files are being read, which takes as long
    from tfcompare.compare.same_ids import with_distinct_ids
    from tfcompare.comparison import compare

    runs = with_distinct_ids([side[0] for side in found], ())
    accepted = accept_captures(found, runs)
    pairs = {run.id: choices for run, choices in zip(runs[1:], question.pairs, strict=False)}
    options = {name: getattr(question, name) for name in ("per", "host", "captures", "spread", "is_series")}
    return compare(*runs, repeats=accepted.repeats, manual_pairs=pairs, **options), list(accepted.refused)


def first_captures(question: Question, progress: Progress | None = None) -> tuple[list[Run], list[str]]:
    """The one run that is shown of each place, and sentences. Raises as `sides` does."""
    own, _, notes = _find(question)
    notes += _several(question, own, first_is_shown=True)
    firsts = [captures[0] for captures in own]
    read_runs, _ = _read_each(firsts, question, progress)
    runs = [read_runs[run.id] for run in firsts]
    return runs, notes + _remarks(runs) + cache_problems()


def runs_below(question: Question, progress: Progress | None = None) -> tuple[list[Run], list[str]]:
    """All runs at and below each place, in order of capture, each once, and sentences.

    Unreadable runs are left out, unless a place has no others.
    """
    notes: list[str] = []
    at: list[Sequence[FoundRun]]
    if question.store is None:
        at = [*runs_at(question.places, join=question.join)]
    else:
        stored, notes = stored_runs(question.store)
        at = [_stored_at(stored, place, Store(question.store)) for place in question.places]
    found: dict[str, FoundRun] = {}
    for runs, place in zip(at, question.places, strict=True):
        some, left_out = readable(runs, place)
        notes += [f"left out: {problems}" for problems in left_out]
        found |= {run.id: run for run in some if run.id not in found}
    loaded = list(_read_each(found.values(), question, progress)[0].values())
    return loaded, notes + _remarks(loaded) + cache_problems()


def read(
    found: FoundRun,
    steps: StepChoice = OWN_STEPS,
    *,
    progress: Progress | None = None,
    build: FrameBuilder | None = None,
) -> Run:
    """The run with these steps, read by `build`, else within the limits that the environment sets. Raises as `load`
    does."""
    fetching = None if progress is None else progress(found)
    stray: Stray = "include" if steps.counts_stray else "exclude"
    build = build or reader_within(settings.from_environment().read_limits)
    marker, kind = steps.marker, steps.kind
    return load(
        found, step_marker=marker, steps=steps.range, stray=stray, step_kind=kind, fetching=fetching, build=build
    )


def stored_runs(store: str, below: Sequence[str] = ()) -> tuple[list[StoredRun], list[str]]:
    """The runs in a store, in order of recording, and sentences on the store; with `below`, only those at or below
    these ids, or of these names. Raises `TfcompareError` if there is no store, or no such run."""
    opened = Store(store)
    runs, problems = runs_in(opened)
    runs = named(runs)
    chosen = {run.id for place in below for run in _stored_at(runs, place, opened)}
    return [run for run in runs if run.id in chosen or not below], list(problems)


def _read_each(
    found: Iterable[FoundRun], question: Question, progress: Progress | None, others: Iterable[FoundRun] = ()
) -> tuple[dict[str, Run], dict[str, str]]:
    """(the runs by id, each read once, as many at the same time as profiles are; why each of the `others` cannot be
    read). Raises why one that was `found` cannot."""
    needed = {run.id: run for run in found}
    failures: dict[str, str] = {}

    def read_one(one: FoundRun) -> Run | None:
        try:
            return read(one, question.steps, progress=progress)
        except TfcompareError as error:
            if one.id in needed:
                raise
            failures[one.id] = str(error)
            return None

    every = needed | {run.id: run for run in others if run.id not in needed}
    with ThreadPoolExecutor(READERS) as pool:
        try:
            runs = pool.map(read_one, every.values())
            return {run_id: run for run_id, run in zip(every, runs, strict=True) if run is not None}, failures
        except BaseException:
            pool.shutdown(cancel_futures=True)  # what nobody waits for any more need not begin
            raise


def cache_problems() -> list[str]:
    """What is wrong with the cache of frames on this machine: nothing else reports it."""
    if (cache := frame_cache()) is None:
        return []
    cache.flush()
    return list(cache.messages)


def _find(question: Question) -> tuple[list[list[FoundRun]], list[list[FoundRun]], list[str]]:
    """(the captures of each place; the runs at the places of its replicates; notes)."""
    beside = list(chain.from_iterable(question.repeats))
    notes: list[str] = []
    at: dict[str, Sequence[FoundRun]]
    own: list[list[FoundRun]] = []
    if question.store is None:
        places = [*question.places, *beside]
        at = dict(zip(places, runs_at(places, join=question.join), strict=True))
        for place in question.places:
            captures, left_out = captures_at(at[place], place, join=question.join)
            own.append(captures)
            notes += [f"left out: {problems}" for problems in left_out]
    else:
        store = Store(question.store)
        stored, notes = stored_runs(question.store)
        own += [[one_of(stored, place, store)] for place in question.places]
        at = {place: _stored_at(stored, place, store) for place in beside}
    others = [list({run.id: run for place in places for run in at[place]}.values()) for places in question.repeats]
    return own, others, notes


def _stored_at(stored: Sequence[StoredRun], place: str, store: Store) -> list[StoredRun]:
    """The runs whose ids are, or begin with, that of a folder; else the run of that name. Raises as `one_of` does."""
    folder = f"{place.rstrip('/')}/"
    return [run for run in stored if f"{run.id}/".startswith(folder)] or [one_of(stored, place, store)]


def _several(question: Question, own: Sequence[Sequence[FoundRun]], *, first_is_shown: bool = False) -> list[str]:
    """Which places stand for several captures, and if the first alone is shown, which that is."""
    return [
        f"{shown(place)}: {len(captures)} captures of one program, by their names"
        + (f"; shown is {captures[0].name}" if first_is_shown else "")
        for place, captures in zip(question.places, own, strict=True)
        if len(captures) > 1
    ]


def _remarks(runs: Iterable[Run]) -> list[str]:
    return [f"{run.name}: {remark}" for run in runs for remark in run.remarks]
