"""The runs at a place on this machine: which folders and files are one, and what is wrong with those that are bad."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from tfcompare.sources.logdir import explain
from tfcompare.sources.logdir.check import check_outline, check_status
from tfcompare.sources.logdir.files import host_of, is_event_file, is_profile, no_status
from tfcompare.sources.logdir.finds import Find, Taken, find_at
from tfcompare.sources.logdir.found import HostFile
from tfcompare.sources.logdir.places import Place
from tfcompare.sources.logdir.walk import Folder, identity_of, walk


def local_finds(place: Place, taken: Taken) -> tuple[list[Find], str]:
    """The runs at a place that no earlier one has; and in words, where there are none, what is there instead."""
    if not place.is_folder:
        return _finds_in_file(place, taken)
    finds, folders = [], []
    for folder in walk(Path(place.path), taken.folders):
        folders.append(folder)
        if find := _find_in_folder(place, folder, taken):
            finds.append(find)
    return finds, "" if finds or not folders else explain.no_runs(place.path, folders)


def newest_of(paths: Iterable[Path]) -> Callable[[], int]:
    """What tells the newest time of change of those files that tell theirs, in ns."""
    return partial(_newest_ns, list(paths))


def _finds_in_file(place: Place, taken: Taken) -> tuple[list[Find], str]:
    path = Path(place.path)
    if is_event_file(path.name):
        return [], explain.event_file(path)
    real = path.resolve()
    key = (identity_of(real.parent), real.name)
    if key in taken.files:
        return [], ""
    taken.files.add(key)
    if problem := explain.other_file(path):
        return [find_at(place, path, (), (problem,), newest_of([path]))], ""
    files, problems = _host_files(path.parent, [path.name])
    return [find_at(place, path, files, problems, newest_of([path]))], ""


def _find_in_folder(place: Place, folder: Folder, taken: Taken) -> Find | None:
    path = Path(folder.path)
    if folder.identity is None:
        return find_at(place, path, (), (folder.problem,), newest_of([path]))
    profiles = [name for name in folder.files if is_profile(name)]
    if not profiles:
        problem = explain.run_folder_without_profile(folder)
        inside = [path / name for name in folder.files]
        return find_at(place, path, (), (problem,), newest_of(inside or [path])) if problem else None
    keys = {(folder.identity, name) for name in profiles}
    if keys <= taken.files:
        return None
    taken.files.update(keys)
    files, problems = _host_files(path, profiles)
    return find_at(place, path, files, problems, newest_of(path / name for name in profiles))


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


def _newest_ns(paths: Sequence[Path]) -> int:
    times_ns = []
    for path in paths:
        try:
            times_ns.append(path.lstat().st_mtime_ns)
        except OSError:  # what is wrong with it stands among the run's problems
            continue
    return max(times_ns, default=0)
