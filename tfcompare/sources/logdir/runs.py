"""Finds the runs below local and remote places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath

from tfcompare.errors import NoRuns, NoSuchPlace, SeveralRuns
from tfcompare.sources.logdir.explain import is_run_folder
from tfcompare.sources.logdir.files import is_profile, text_of
from tfcompare.sources.logdir.found_run import FoundRun
from tfcompare.sources.logdir.grouping import Taken, UnnamedRun, run_of_file, runs_in_folders, unnamed_run
from tfcompare.sources.logdir.hosts import joinable, joined
from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata, listed_metadata, read_metadata
from tfcompare.sources.logdir.naming import display_names
from tfcompare.sources.logdir.places import Place, lies_in, open_places
from tfcompare.sources.logdir.walk import ListedFolder, LocalFolder, identity_of, listed_folders, walk
from tfcompare.sources.remote.files import Listing
from tfcompare.sources.remote.places import RemotePlace, shown
from tfcompare.sources.remote.stores import look
from tfcompare.text import is_url, some_of

_MOST_NAMED = 10
_HOW_TO_JOIN = "; they were captured at the same time on different hosts: --join makes them one run"
_HOW_TO_NAME = "; to name a run of several hosts, put its files into a folder of their own"

ListRemote = Callable[[RemotePlace], Listing]
"""Lists a remote place, as `remote.stores.look` does."""


@dataclass(frozen=True)
class Survey:
    """The runs below some places, by capture time; and why places cannot be searched.

    If there are no runs, `why_none` says what was found instead. `unnamed` contains what the runs' names are made from.
    """

    runs: tuple[FoundRun, ...]
    lost: tuple[NoSuchPlace, ...] = ()
    why_none: str = ""
    unnamed: tuple[UnnamedRun, ...] = ()


def find_runs(*places: str | Path, join: bool = False) -> list[FoundRun]:
    """The runs at and below `places`, by capture time.

    A place is a profile file, a run folder, a logdir, or any parent, as a path or as a URL that fsspec has a driver
    for (`s3://bucket/logs`); files behind URLs are listed, not downloaded. A run that cannot be read is listed with
    its problems, and so is a place without any run if others have some. A run in several places belongs to the first.

    Profiles that lie loosely in a folder are hosts of one run if their captures overlap in time, or carry none, and
    their devices are of one kind, else runs of their own. With `join`, runs beside each other are one run if they were
    captured at the same time on different hosts, into folders whose stamps differ by seconds.

    Raises `NoSuchPlace` for a place that is missing or cannot be opened, `NoRuns` if no place has a run.
    """
    if not places:
        raise NoRuns("no place was given: name a profile file, a run folder or a logdir")
    searched = list(places)
    if join:  # the folder around that of a run may have those of its other hosts
        searched = [p if is_url(p) or not is_run_folder(Path(p)) else Path(p).parent for p in places]
    found = survey(open_places(searched), join=join)
    for error in found.lost:
        raise error
    if not found.runs:
        raise NoRuns(found.why_none)
    if searched == list(places):
        return list(found.runs)
    asked = [place.path for place in open_places(places)]
    return [run for run in found.runs if any(lies_in(file.where, path) for file in run.files for path in asked)]


def survey(
    places: Sequence[Place], look: ListRemote = look, more: Sequence[UnnamedRun] = (), *, join: bool = False
) -> Survey:
    """The runs below those places that can be searched, as in `find_runs`, together with `more`."""
    taken = Taken()
    found: list[UnnamedRun] = []
    without_runs: list[tuple[Place, str]] = []
    lost: list[NoSuchPlace] = []
    for place in places:
        try:
            here, why_none = _runs_at(place, taken, look)
        except NoSuchPlace as error:
            lost.append(error)
            continue
        if why_none and not any(lies_in(each.run.path, place.path) for each in found):
            without_runs.append((place, why_none))
        found += here
    if join:
        addresses = {each.run.id: each.address for each in found}
        found = [UnnamedRun(run, addresses[run.id]) for run in joined([each.run for each in found])]
    ids = {each.run.id for each in found}
    found += [each for each in more if each.run.id not in ids]  # a run that is also in a place is shown as found there
    if not found:
        return Survey((), tuple(lost), "; ".join(why_none for _, why_none in without_runs))
    real = tuple(found)
    for place, why_none in without_runs:  # an unreadable run, to list it next to those of other places
        folder = LocalFolder(place.path) if place.remote is None else ListedFolder(place.path)
        found.append(unnamed_run(place, place.path, (), (why_none,), partial(folder.newest_ns, ())))
    found.sort(key=lambda each: (each.run.recorded, each.run.id))
    names = display_names([each.address for each in found])
    runs = tuple(each.run.named(name) for each, name in zip(found, names, strict=True))
    return Survey(runs, tuple(lost), unnamed=real)


def runs_at(places: Sequence[str | Path], *, join: bool = False) -> list[list[FoundRun]]:
    """The runs at and below each place, found as by `find_runs` at once, so that all names differ."""
    every = find_runs(*places, join=join)
    paths = [open_places([place])[0].path for place in places]  # a place may be given twice
    where = [(run, [file.where for file in run.files] or [run.path]) for run in every]
    return [[run for run, files in where if any(lies_in(file, path) for file in files)] for path in paths]


def find_run(place: str | Path, *, join: bool = False) -> FoundRun:
    """The one run at or below `place`, found as by `find_runs`.

    Raises `SeveralRuns`, which lists them, if there are several; `NoRuns` if there is none or the only one cannot be
    read; `NoSuchPlace` for a place that is missing or cannot be opened.
    """
    return only(find_runs(place, join=join), place, join=join)


def only(runs: Sequence[FoundRun], place: str | Path, *, join: bool = False) -> FoundRun:
    """The one of the runs that were found at a place. Raises as `find_run` does."""
    if len(runs) > 1:
        listed = some_of([f"{run.name} ({text_of(str(run.path))})" for run in runs], _MOST_NAMED)
        hint = "" if join or not any(len(group) == len(runs) for group in joinable(runs)) else _HOW_TO_JOIN
        if any(len(run.files) > 1 and is_profile(run.path.name) for run in runs):
            hint += _HOW_TO_NAME
        raise SeveralRuns(f"{shown(place)}: holds {len(runs):,} runs; name one of them: {listed}{hint}")
    if not runs[0].is_readable:
        raise NoRuns("; ".join(runs[0].problems))
    return runs[0]


def readable(runs: Sequence[FoundRun], place: str | Path) -> tuple[list[FoundRun], list[str]]:
    """(those of the runs found at a place that can be read; why each of the others cannot). Raises `NoRuns` if none
    can."""
    some = [run for run in runs if run.is_readable]
    why = ["; ".join(run.problems) for run in runs if not run.is_readable]
    if not some:
        several = f"{shown(place)}: none of its {len(why):,} runs can be read: {why[0]}"
        raise NoRuns(why[0] if len(why) == 1 else several)
    return some, why


def _runs_at(place: Place, taken: Taken, look: ListRemote) -> tuple[list[UnnamedRun], str]:
    """The runs at a place that belong to no earlier one, and a sentence about what is there if there are none."""
    if place.remote is not None:
        listing = look(place.remote)
        folders, place = listed_folders(listing), replace(place, is_folder=listing.is_folder)
        metadata = listed_metadata(listing)

        def read(folder: PurePath) -> tuple[Metadata, str]:
            return metadata.get(folder, (NO_METADATA, ""))

        if place.is_folder:
            return runs_in_folders(place, folders, taken, read)
        folder = next(folders)
        return run_of_file(place, folder, folder.key(place.path.name), taken, read)
    path = Path(place.path)
    if place.is_folder:
        return runs_in_folders(place, walk(path, taken.folders), taken, _read_here)
    real = path.resolve()
    key = (identity_of(real.parent), real.name)
    return run_of_file(place, LocalFolder(path.parent, (path.name,)), key, taken, _read_here)


def _read_here(folder: PurePath) -> tuple[Metadata, str]:
    return read_metadata(Path(folder))
