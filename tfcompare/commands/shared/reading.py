"""Loads the runs of a command, with progress and notes for the user."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from tfcompare import settings
from tfcompare.commands.shared.output import note
from tfcompare.errors import NoRuns
from tfcompare.sources.remote.places import shown
from tfcompare.sources.step_choice import StepChoice, step_choice
from tfcompare.text import text_of
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    from tfcompare.run import Run
    from tfcompare.sources.logdir import FoundRun
    from tfcompare.store.stored_run import StoredRun


@dataclass(frozen=True)
class Reading:
    """Where runs are found and how they are read: the `store` (a path or URL; None for files), the steps that count
    (None for the runs' own), and whether hosts captured together into folders of their own are joined to one run."""

    store: str | None = None
    steps: StepChoice | None = None
    join: bool = False


def add_store(parser: argparse.ArgumentParser) -> None:
    """Declare `--store` and `--join`."""
    parser.add_argument(
        settings.STORE_OPTION,
        metavar="URL",
        help="read runs from this store, by the ids or names that `tfcompare runs --store URL` lists",
    )
    parser.add_argument(
        "--join",
        action="store_true",
        help="take runs beside each other for hosts of one run if they were captured at the same time on different "
        "hosts and their folders' stamps differ by seconds",
    )


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Declare `--steps`, `--step-marker`, `--step-kind` and `--stray`."""
    parser.add_argument(
        "--steps",
        metavar="FIRST:LAST",
        help="only the steps at these positions, from 1 and inclusive, such as 5:25, 5: or :25 (default: all steps; if "
        "there are more than five, the first and the last are excluded from figures)",
    )
    parser.add_argument(
        "--step-marker",
        metavar="NAME",
        help="the host event that begins each step, for profiles without step markers; a step ends where the "
        "next begins",
    )
    parser.add_argument(
        "--step-kind",
        metavar="KIND",
        help="only the steps of this kind in figures per step, where a loop has several: the name of their marker, "
        "such as train, or of their compiled program (default: all)",
    )
    parser.add_argument(
        "--stray",
        choices=("exclude", "include"),
        default="exclude",
        help="the one step of a run that is far longer than all others: excluded from figures, or counted like the "
        "others (default: %(default)s)",
    )


def reading(arguments: argparse.Namespace) -> Reading:
    """What `--store`, `--join` and the options of `add_steps` say. Raises `TfcompareError` for a malformed
    range."""
    return Reading(arguments.store, chosen_steps(arguments), arguments.join)


def load_runs(places: Sequence[str], how: Reading = Reading()) -> list[Run]:
    """The run at each place, or the run with that id or name in a store if one is given.

    Raises `TfcompareError` if a place has no run, several runs, or an unreadable one. All places are located before the
    first is read, so that a misspelt one is reported at once.
    """
    from tfcompare.sources.logdir.runs import only, runs_at

    if how.store is None:
        found = zip(runs_at(places, join=how.join), places, strict=True)
        return _load([only(runs, place, join=how.join) for runs, place in found], how)
    from tfcompare.store.run_store import Store
    from tfcompare.store.stored_run import one_of

    stored = stored_runs(how.store)
    return _load([one_of(stored, place, Store(how.store)) for place in places], how)


def load_replicates(places: Sequence[str], how: Reading = Reading()) -> list[tuple[Run, ...]]:
    """Like `load_runs`, but loads all captures of a place that contains several captures of one program (by their
    names)."""
    if how.store is not None:
        return [(run,) for run in load_runs(places, how)]
    from tfcompare.sources.logdir.runs import runs_at

    found = zip(runs_at(places, join=how.join), places, strict=True)
    groups = [_captures_at(runs, place, how) for runs, place in found]
    loaded = iter(_load([run for group in groups for run in group], how))
    return [tuple(next(loaded) for _ in group) for group in groups]


def _captures_at(found: Sequence[FoundRun], place: str, how: Reading) -> list[FoundRun]:
    """The run found at a place, or all captures of one program. Raises as `find_run` does."""
    from tfcompare.sources.logdir.runs import only
    from tfcompare.sources.replicates import is_one_program

    if len(found) < 2 or not is_one_program(found):
        return [only(found, place, join=how.join)]
    captures = _readable(found, place)
    note(f"note: {shown(place)}: {len(captures)} captures of one program, by their names")
    return captures


def load_runs_below(places: Sequence[str], how: Reading = Reading()) -> list[Run]:
    """Like `load_runs`, but all runs at and below each place, in order of recording.

    With a store, a place that is not a run's id or name stands for the runs whose ids are below it. Runs found twice
    are loaded once. Unreadable runs are noted and skipped, unless a place has no others.
    """
    from tfcompare.sources.logdir import find_runs

    store = how.store
    stored = None if store is None else stored_runs(store)
    found: dict[PurePath | str, FoundRun] = {}
    for place in places:
        if stored is None or store is None:
            runs: Sequence[FoundRun] = find_runs(place, join=how.join)
        else:
            runs = _stored_below(stored, place, store)
        for run in _readable(runs, place):
            found.setdefault(run.path if stored is None else run.id, run)
    return _load(list(found.values()), how)


def _stored_below(stored: Sequence[StoredRun], place: str, store: str) -> Sequence[FoundRun]:
    from tfcompare.store.run_store import Store
    from tfcompare.store.stored_run import one_of

    below = [run for run in stored if is_at_or_below(run.id, place)]
    is_run = any(place in (run.id, run.name) for run in stored)
    return [one_of(stored, place, Store(store))] if is_run or not below else below


def _readable(runs: Sequence[FoundRun], place: str) -> list[FoundRun]:
    readable = [run for run in runs if run.is_readable]
    why = ["; ".join(run.problems) for run in runs if not run.is_readable]
    if not readable:
        raise NoRuns(
            why[0] if len(why) == 1 else f"{shown(place)}: none of its {len(why):,} runs can be read: {why[0]}"
        )
    for problems in why:
        note(f"note: left out: {problems}")
    return readable


def _load(found: Sequence[FoundRun], how: Reading) -> list[Run]:
    if how.store is None:
        note_if_compiling()
    runs = _with_unique_ids([load_with(run, how.steps) for run in found])
    for run in runs:
        for remark in run.remarks:
            note(f"note: {run.name}: {remark}")
    report_cache_problems()
    return runs


def load_with(found: FoundRun, choice: StepChoice | None) -> Run:
    """The run with the chosen steps; shows progress on the terminal while it is downloaded."""
    from tfcompare.run import Stray, load
    from tfcompare.store.frame_builders import reader_within

    fetching, build = fetch_progress(found.name), reader_within(settings.read_limits(os.environ))
    if choice is None:
        return load(found, fetching=fetching, build=build)
    stray: Stray = "include" if choice.counts_stray else "exclude"
    return load(
        found, step_marker=choice.marker, steps=choice.range, stray=stray, step_kind=choice.kind,
        fetching=fetching, build=build,
    )  # fmt: skip


def chosen_steps(arguments: argparse.Namespace) -> StepChoice:
    """The steps chosen by the options of `add_steps`. Raises `TfcompareError` for a malformed range."""

    return step_choice(
        arguments.step_marker, arguments.steps, counts_stray=arguments.stray == "include", kind=arguments.step_kind
    )


def stored_runs(store: str, below: Sequence[str] = ()) -> list[StoredRun]:
    """The runs in a store, in order of recording; only those at or below these ids if any are given.

    Raises `TfcompareError` if there is no store, or no run below one of the ids.
    """
    from tfcompare.store.run_store import Store
    from tfcompare.store.stored_run import named, nearest, runs_in

    runs, problems = runs_in(Store(store))
    for sentence in problems:
        note(f"note: {sentence}")
    runs = named(runs)
    for place in below:
        if not any(is_at_or_below(run.id, place) for run in runs):
            raise nearest(runs, place, Store(store))
    return [run for run in runs if not below or any(is_at_or_below(run.id, place) for place in below)]


def is_at_or_below(run: str, place: str) -> bool:
    """Whether a run's id is `place`, or is in that folder."""
    return f"{run}/".startswith(f"{place.rstrip('/')}/")


def report_cache_problems() -> None:
    """Print what is wrong with the cache of frames on this machine: nothing else reports it."""
    from tfcompare.store.cached_frames import frame_cache

    if (cache := frame_cache()) is not None:
        cache.flush()
        for message in cache.messages:
            note(f"note: {message}")


def _with_unique_ids(runs: Sequence[Run]) -> list[Run]:
    """The runs with unique ids: a run whose id is already used by another gets its path as id."""
    paths: dict[str, PurePath] = {}
    return [
        run if paths.setdefault(run.id, run.path) == run.path else replace(run, id=text_of(str(run.path)))
        for run in runs
    ]


def fetch_progress(name: str) -> Callable[[int, int], None]:
    """A callback that shows the progress of downloading a run on the terminal."""

    def update(here: int, total: int) -> None:
        is_done = here >= total
        progress("" if is_done else f"fetching {name}: {format_bytes(here)} of {format_bytes(total)}")

    return update


def progress(message: str) -> None:
    """Replace the progress line on the terminal, if stderr is one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text_of(message)}", end="", file=sys.stderr, flush=True)


def note_if_compiling() -> None:
    """Note that reading the first profile will take longer because the reader must be compiled."""
    from tfcompare.xspace import compilation, reader

    if why := compilation.why_uncached():
        note(f"note: {why}; name a folder of your own in NUMBA_CACHE_DIR")
    if reader.needs_compilation():
        note(f"compiling the reader, once: about {reader.EXPECTED_SECONDS} seconds")
