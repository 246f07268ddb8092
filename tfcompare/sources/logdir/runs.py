"""The runs below some places, on this machine and on others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfcompare.errors import NoRuns, NoSuchPlace, SeveralRuns
from tfcompare.sources.logdir.distant import distant_finds
from tfcompare.sources.logdir.files import text_of
from tfcompare.sources.logdir.finds import Find, Taken, find_at
from tfcompare.sources.logdir.found import FoundRun
from tfcompare.sources.logdir.local import local_finds, newest_of
from tfcompare.sources.logdir.naming import display_names
from tfcompare.sources.logdir.places import Place, lies_in, open_places
from tfcompare.sources.remote.files import Listing
from tfcompare.sources.remote.listing import look
from tfcompare.sources.remote.places import RemotePlace, shown

_MOST_NAMED = 10

Look = Callable[[RemotePlace], Listing]
"""Lists a remote place, as `remote.listing.look` does."""


@dataclass(frozen=True)
class Survey:
    """The runs below some places, in the order in which they were recorded; why places cannot be looked into.

    `why_none` says what was found instead, where there are no runs. `finds` holds what the names of runs are made from.
    """

    runs: tuple[FoundRun, ...]
    lost: tuple[NoSuchPlace, ...] = ()
    why_none: str = ""
    finds: tuple[Find, ...] = ()


def find_runs(*places: str | Path) -> list[FoundRun]:
    """The runs at and below `places`, in the order in which they were recorded.

    A place is a profile file, a run folder, a logdir, or any parent, as a path or as a URL that fsspec has a driver for
    (`s3://bucket/logs`), whose files are listed, not downloaded. A run that cannot be read is listed with its problems;
    so is a place without any run, beside places that have some. Of a run that lies in several places, the first of
    them has it.

    Raises `NoSuchPlace` for a place that is missing or cannot be opened, `NoRuns` where no place has a run.
    """
    if not places:
        raise NoRuns("no place was given: name a profile file, a run folder or a logdir")
    found = survey(open_places(places))
    for error in found.lost:
        raise error
    if not found.runs:
        raise NoRuns(found.why_none)
    return list(found.runs)


def survey(places: Sequence[Place], look: Look = look, more: Sequence[Find] = ()) -> Survey:
    """The runs below those places that can be looked into, as `find_runs` gives them, among `more`."""
    taken = Taken()
    finds: list[Find] = []
    barren: list[tuple[Place, str]] = []
    lost: list[NoSuchPlace] = []
    for place in places:
        try:
            here, why_none = _finds_at(place, taken, look)
        except NoSuchPlace as error:
            lost.append(error)
            continue
        if why_none and not any(lies_in(find.run.path, place.path) for find in finds):
            barren.append((place, why_none))
        finds += here
    finds += _not_taken(more, finds)
    if not finds:
        return Survey((), tuple(lost), "; ".join(why_none for _, why_none in barren))
    real = tuple(finds)
    finds += [_find_of_barren(place, why_none) for place, why_none in barren]
    finds.sort(key=lambda find: (find.run.recorded, find.run.id))
    names = display_names([find.address for find in finds])
    runs = tuple(find.run.named(name) for find, name in zip(finds, names, strict=True))
    return Survey(runs, tuple(lost), finds=real)


def find_run(place: str | Path) -> FoundRun:
    """The one run at or below `place`.

    Raises `SeveralRuns`, which lists them, where there are more; `NoRuns` where there is none or where the only one
    cannot be read; `NoSuchPlace` for a place that is missing or cannot be opened.
    """
    runs = find_runs(place)
    if len(runs) > 1:
        listed = ", ".join(f"{run.name} ({text_of(str(run.path))})" for run in runs[:_MOST_NAMED])
        more = f", and {len(runs) - _MOST_NAMED:,} more" if len(runs) > _MOST_NAMED else ""
        raise SeveralRuns(f"{shown(place)}: holds {len(runs):,} runs; name one of them: {listed}{more}")
    if not runs[0].is_readable:
        raise NoRuns("; ".join(runs[0].problems))
    return runs[0]


def _not_taken(more: Sequence[Find], finds: Sequence[Find]) -> list[Find]:
    """Those of `more` that are none of `finds`: a run that lies in a place is shown as it is there."""
    taken = {find.run.id for find in finds}
    return [find for find in more if find.run.id not in taken]


def _finds_at(place: Place, taken: Taken, look: Look) -> tuple[list[Find], str]:
    if place.remote is None:
        return local_finds(place, taken)
    return distant_finds(place, look(place.remote), taken)


def _find_of_barren(place: Place, why_none: str) -> Find:
    newest_ns = newest_of([place.path]) if isinstance(place.path, Path) else lambda: 0
    return find_at(place, place.path, (), (why_none,), newest_ns)
