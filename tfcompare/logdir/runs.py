"""The runs below a place: which folders and files are one, and what is wrong with those that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tfcompare.errors import NoRuns, SeveralRuns
from tfcompare.logdir import explain
from tfcompare.logdir.check import check_outline, check_status
from tfcompare.logdir.files import host_of, is_event_file, is_profile, no_status, text_of
from tfcompare.logdir.found import FoundRun, HostFile
from tfcompare.logdir.naming import Address, display_names, stamp_time
from tfcompare.logdir.places import Place, open_places
from tfcompare.logdir.walk import Folder, Identity, identity_of, walk

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_NAMED = 10


@dataclass(frozen=True)
class _Find:
    run: FoundRun
    address: Address


@dataclass(frozen=True)
class _Taken:
    """The folders that were looked into and the host files that are some run's."""

    folders: set[Identity]
    files: set[tuple[Identity, str]]


def find_runs(*places: str | Path) -> list[FoundRun]:
    """The runs at and below `places`, in the order in which they were recorded.

    A place is a profile file, a run folder, a logdir, or any parent. A run that cannot be read is listed with its
    problems; so is a place without any run, beside places that have some. Of a run that lies in several places, the
    first of them has it.

    Raises `NoSuchPlace` for a place that is missing or cannot be opened, `NoRuns` where no place has a run.
    """
    if not places:
        raise NoRuns("no place was given: name a profile file, a run folder or a logdir")
    taken = _Taken(set(), set())
    finds: list[_Find] = []
    barren: list[tuple[Place, str]] = []
    for place in open_places(places):
        here, why_none = _finds_at(place, taken)
        if why_none and not _has_any(place, finds):
            barren.append((place, why_none))
        finds += here
    if not finds:
        raise NoRuns("; ".join(why_none for _, why_none in barren))
    finds += [_find(place, place.path, (), (why_none,), [place.path]) for place, why_none in barren]
    finds.sort(key=lambda find: (find.run.recorded, find.run.id))
    return [
        replace(find.run, name=name)
        for find, name in zip(finds, display_names([find.address for find in finds]), strict=True)
    ]


def find_run(place: str | Path) -> FoundRun:
    """The one run at or below `place`.

    Raises `SeveralRuns`, which lists them, where there are more; `NoRuns` where there is none or where the only one
    cannot be read; `NoSuchPlace` for a place that is missing or cannot be opened.
    """
    runs = find_runs(place)
    if len(runs) > 1:
        listed = ", ".join(f"{run.name} ({text_of(str(run.path))})" for run in runs[:_MOST_NAMED])
        more = f", and {len(runs) - _MOST_NAMED:,} more" if len(runs) > _MOST_NAMED else ""
        raise SeveralRuns(f"{text_of(str(place))}: holds {len(runs):,} runs; name one of them: {listed}{more}")
    if not runs[0].is_readable:
        raise NoRuns("; ".join(runs[0].problems))
    return runs[0]


def _has_any(place: Place, finds: list[_Find]) -> bool:
    """Whether runs that an earlier place has lie in `place`."""
    inside = place.path.resolve()
    return any(find.run.path.resolve().is_relative_to(inside) for find in finds)


def _finds_at(place: Place, taken: _Taken) -> tuple[list[_Find], str]:
    """The runs at a place that no earlier one has; and in words, where there are none, what is there instead."""
    if not place.is_folder:
        return _finds_in_file(place, taken)
    finds, folders = [], []
    for folder in walk(place.path, taken.folders):
        folders.append(folder)
        if find := _find_in_folder(place, folder, taken):
            finds.append(find)
    return finds, "" if finds or not folders else explain.no_runs(place.path, folders)


def _finds_in_file(place: Place, taken: _Taken) -> tuple[list[_Find], str]:
    path = place.path
    if is_event_file(path.name):
        return [], explain.event_file(path)
    real = path.resolve()
    key = (identity_of(real.parent), real.name)
    if key in taken.files:
        return [], ""
    taken.files.add(key)
    if problem := explain.other_file(path):
        return [_find(place, path, (), (problem,), [path])], ""
    files, problems = _host_files(path.parent, [path.name])
    return [_find(place, path, files, problems, [path])], ""


def _find_in_folder(place: Place, folder: Folder, taken: _Taken) -> _Find | None:
    if folder.identity is None:
        return _find(place, folder.path, (), (folder.problem,), [folder.path])
    profiles = [name for name in folder.files if is_profile(name)]
    if not profiles:
        problem = explain.run_folder_without_profile(folder)
        inside = [folder.path / name for name in folder.files]
        return _find(place, folder.path, (), (problem,), inside or [folder.path]) if problem else None
    keys = {(folder.identity, name) for name in profiles}
    if keys <= taken.files:
        return None
    taken.files.update(keys)
    files, problems = _host_files(folder.path, profiles)
    return _find(place, folder.path, files, problems, [folder.path / name for name in profiles])


def _host_files(folder: Path, profiles: Sequence[str]) -> tuple[tuple[HostFile, ...], tuple[str, ...]]:
    """The files that look readable, by host, and what is wrong with the others."""
    hosts: dict[str, HostFile] = {}
    problems = []
    for name in sorted(profiles):  # puts `vm.xplane.pb` before `vm.xplane.pb.gz`
        path = folder / name
        try:
            status = path.stat()
        except OSError as error:
            problems.append(no_status(path, error))
            continue
        host = host_of(name)
        if problem := check_status(path, status) or check_outline(path):
            problems.append(problem)
        elif host in hosts:
            problems.append(explain.same_host(path, hosts[host].path))
        else:
            hosts[host] = HostFile(host, path, status.st_size, status.st_mtime_ns)
    return tuple(hosts[host] for host in sorted(hosts)), tuple(problems)


def _find(
    place: Place, path: Path, files: tuple[HostFile, ...], problems: tuple[str, ...], dated_by: Iterable[Path]
) -> _Find:
    """A run at `path` in `place`, of the time that its folder's name tells, else of the newest file in `dated_by`."""
    names = [text_of(name) for name in path.parts]
    below = names[len(place.path.parts) :]
    own_id = "/".join([place.prefix, *below] if place.prefix else below) or "/"
    folder = path if place.is_folder else path.parent
    stamp = stamp_time(folder.name)
    recorded, source = (stamp, "folder name") if stamp else (_newest(dated_by), "file time")
    run = FoundRun(own_id, "", path, files, problems, recorded, source)
    if not place.is_folder:
        names[-1] = host_of(path.name)
    is_part_of_run = not place.is_folder and explain.is_run_folder(folder)
    return _Find(run, Address(own_id, tuple(names[1:]), own_id.count("/") + 1, is_part_of_run))


def _newest(paths: Iterable[Path]) -> datetime:
    """The newest time of change of those files that tell theirs."""
    times_ns = []
    for path in paths:
        try:
            times_ns.append(path.lstat().st_mtime_ns)
        except OSError:  # what is wrong with it stands among the run's problems
            continue
    try:
        return _EPOCH + timedelta(microseconds=max(times_ns, default=0) // 1000)
    except OverflowError:  # a damaged file system may date a file beyond the year 9999
        return _EPOCH
