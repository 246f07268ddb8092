"""Groups the files of local and remote folders into runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePath

from tfcompare.sources.logdir import explain
from tfcompare.sources.logdir.files import host_of, is_event_file, is_profile, text_of
from tfcompare.sources.logdir.found_run import Folder, FoundRun, HostFile
from tfcompare.sources.logdir.hosts import captured_together
from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata
from tfcompare.sources.logdir.naming import Address, stamp_time
from tfcompare.sources.logdir.places import Place
from tfcompare.sources.logdir.walk import Identity

MetadataReader = Callable[[PurePath], tuple[Metadata, str]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class UnnamedRun:
    """A run without its name, and what the name is made from: names are assigned once all runs are known."""

    run: FoundRun
    address: Address


@dataclass(frozen=True)
class Taken:
    """The local folders that were searched, and the keys of the host files that belong to a run."""

    folders: set[Identity] = field(default_factory=set)
    files: set[Hashable] = field(default_factory=set)


def runs_in_folders(
    place: Place, folders: Iterable[Folder], taken: Taken, read: MetadataReader
) -> tuple[list[UnnamedRun], str]:
    """The runs in these folders that belong to no earlier place; if there are none, a message about what is there.

    `read` returns the metadata in a folder, and what is wrong with their file, if anything.
    """
    runs, seen = [], []
    for folder in folders:
        seen.append(folder)
        runs += _runs_in_folder(place, folder, taken, read)
    return runs, "" if runs or not seen else explain.no_runs(place.path, seen)


def run_of_file(
    place: Place, folder: Folder, key: Hashable, taken: Taken, read: MetadataReader
) -> tuple[list[UnnamedRun], str]:
    """The run of a single given file, in the same form as the result of `runs_in_folders`."""
    path = place.path
    problem = explain.other_file(path)
    if is_event_file(path.name):
        return [], problem
    if key in taken.files:
        return [], ""
    taken.files.add(key)
    files, problems = ((), (problem,)) if problem else _host_files(folder, [path.name])
    found = unnamed_run(place, path, files, problems, partial(folder.newest_ns, [path.name]))
    return [_with_metadata(found, place, path.parent, read)], ""


def unnamed_run(
    place: Place,
    path: PurePath,
    files: tuple[HostFile, ...],
    problems: tuple[str, ...],
    newest_ns: Callable[[], int],
    *,
    is_file: bool = False,
) -> UnnamedRun:
    """A run at `path` in `place`, a folder unless `is_file`. Its capture time is in its folder's name, or else that of
    its newest file."""
    names = [text_of(name) for name in path.parts]
    below = names[len(place.path.parts) :]
    own_id = "/".join([place.prefix, *below] if place.prefix else below) or "/"
    is_file = is_file or not place.is_folder
    folder = path.parent if is_file else path
    stamp = stamp_time(folder.name)
    recorded, source = (stamp, "folder name") if stamp else (_time(newest_ns()), "file time")
    run = FoundRun(own_id, "", path, files, problems, recorded, source)
    if is_file:
        names[-1] = host_of(path.name)
    is_part_of_run = is_file and explain.is_run_folder(folder)
    return UnnamedRun(run, Address(own_id, tuple(names[1:]), own_id.count("/") + 1, is_part_of_run))


def _runs_in_folder(place: Place, folder: Folder, taken: Taken, read: MetadataReader) -> list[UnnamedRun]:
    """The run in a folder; where profiles lie loosely, outside of a run's folder, one for those captured together."""
    if folder.problem:
        return [unnamed_run(place, folder.path, (), (folder.problem,), partial(folder.newest_ns, ()))]
    profiles = [name for name in folder.files if is_profile(name)]
    if not profiles:
        problem = explain.run_folder_without_profile(folder)
        newest_ns = partial(folder.newest_ns, folder.files)
        return [unnamed_run(place, folder.path, (), (problem,), newest_ns)] if problem else []
    keys = {folder.key(name) for name in profiles}
    if keys <= taken.files:
        return []
    taken.files.update(keys)
    files, problems = _host_files(folder, profiles)
    is_loose = len(files) > 1 and place.remote is None and not explain.is_run_folder(folder.path)
    groups = captured_together(files) if is_loose else [files]
    if len(groups) == 1:
        found = unnamed_run(place, folder.path, files, problems, partial(folder.newest_ns, profiles))
        return [_with_metadata(found, place, folder.path, read)]
    runs = []
    for group in groups:
        path, names = folder.path / group[0].path.name, [file.path.name for file in group]
        of_group = unnamed_run(place, path, group, problems, partial(folder.newest_ns, names), is_file=True)
        runs.append(_with_metadata(of_group, place, folder.path, read))
    return runs


def _with_metadata(found: UnnamedRun, place: Place, folder: PurePath, read: MetadataReader) -> UnnamedRun:
    """The run with the metadata in its logdir and in its folder, of which the latter counts.

    A logdir above the place is not looked into.
    """
    is_in_logdir = folder.parts[-3:-1] == ("plugins", "profile") and len(folder.parts) - 3 >= len(place.path.parts)
    metadata, problems = NO_METADATA, list(found.run.problems)
    for where in (*([folder.parents[2]] if is_in_logdir else []), folder):
        more, problem = read(where)
        metadata = metadata.updated(more)
        problems += [problem] if problem else []
    return replace(found, run=replace(found.run, metadata=metadata, problems=tuple(problems)))


def _host_files(folder: Folder, profiles: Sequence[str]) -> tuple[tuple[HostFile, ...], tuple[str, ...]]:
    """The files that look readable, one per host, and the problems with the others."""
    hosts: dict[str, HostFile] = {}
    problems = []
    for name in sorted(profiles):  # sorts `vm.xplane.pb` before `vm.xplane.pb.gz`
        host = host_of(name)
        found = folder.host_file(name, host)
        if isinstance(found, str):
            problems.append(found)
        elif host in hosts:
            where, read = text_of(str(folder.path / name)), text_of(hosts[host].where.name)
            problems.append(f"{where}: is passed over, since {read} is of the same host; remove one of them")
        else:
            hosts[host] = found
    return tuple(hosts[host] for host in sorted(hosts)), tuple(problems)


def _time(ns: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:  # a corrupt file system may contain dates beyond the year 9999
        return _EPOCH
