"""The runs at a remote place, by its listing: nothing of a file is read, so only an empty one is known to be bad."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from tfcompare import settings
from tfcompare.sources.logdir import explain
from tfcompare.sources.logdir.files import host_of, is_event_file, is_profile
from tfcompare.sources.logdir.finds import Find, Taken, find_at
from tfcompare.sources.logdir.found import HostFile
from tfcompare.sources.logdir.places import Place
from tfcompare.sources.logdir.walk import Folder
from tfcompare.sources.remote.fetching import Cache
from tfcompare.sources.remote.files import Listing, RemoteFile


def remote_cache() -> Cache:
    """Where copies of remote files go on this machine, as the environment says."""
    return Cache(settings.fetched_folder(os.environ), settings.fetched_bytes(os.environ))


def distant_finds(place: Place, listing: Listing, taken: Taken) -> tuple[list[Find], str]:
    """The runs in a listing that no earlier place has; and in words, where there are none, what is there instead."""
    place = replace(place, is_folder=listing.is_folder)
    if not listing.is_folder:
        return _finds_in_file(place, listing.files[0], taken)
    folders = _folders(listing)
    finds = [find for files in folders.values() if (find := _find_in_folder(place, files, taken))]
    finds += [find_at(place, path, (), (problem,), lambda: 0) for path, problem in listing.lost]
    is_anothers = bool(finds) or any(file.path in taken.remote for file in listing.files)
    return finds, "" if is_anothers else explain.no_runs(place.path, [folder for folder, _ in folders.values()])


def _finds_in_file(place: Place, file: RemoteFile, taken: Taken) -> tuple[list[Find], str]:
    if is_event_file(file.path.name):
        return [], explain.event_file(file.path)
    if file.path in taken.remote:
        return [], ""
    taken.remote.add(file.path)
    if problem := explain.other_file(file.path):
        return [find_at(place, file.path, (), (problem,), lambda: file.modified_ns)], ""
    files, problems = _host_files([file])
    return [find_at(place, file.path, files, problems, lambda: file.modified_ns)], ""


def _folders(listing: Listing) -> dict[PurePath, tuple[Folder, list[RemoteFile]]]:
    """Each folder from the place on that is named by some file's path, with its files."""
    files: dict[PurePath, list[RemoteFile]] = {listing.place: []}
    parents = set[PurePath]()
    for file in listing.files:
        folder: PurePath = file.path.parent
        files.setdefault(folder, []).append(file)
        while folder != listing.place and (folder := folder.parent) not in parents:
            parents.add(folder)
            files.setdefault(folder, [])
    return {
        path: (Folder(path, None, tuple(sorted(f.path.name for f in here)), path in parents), here)
        for path, here in sorted(files.items())
    }


def _find_in_folder(place: Place, found: tuple[Folder, list[RemoteFile]], taken: Taken) -> Find | None:
    folder, here = found
    profiles = [file for file in here if is_profile(file.path.name)]
    if not profiles:
        problem = explain.run_folder_without_profile(folder)
        return find_at(place, folder.path, (), (problem,), lambda: _newest_ns(here)) if problem else None
    paths = {file.path for file in profiles}
    if paths <= taken.remote:
        return None
    taken.remote.update(paths)
    files, problems = _host_files(profiles)
    return find_at(place, folder.path, files, problems, lambda: _newest_ns(profiles))


def _host_files(profiles: Sequence[RemoteFile]) -> tuple[tuple[HostFile, ...], tuple[str, ...]]:
    """The files that are not empty, by host, and what is wrong with the others."""
    cache = remote_cache()
    hosts: dict[str, HostFile] = {}
    problems = []
    for file in sorted(profiles, key=lambda file: file.path.name):  # puts `vm.xplane.pb` before `vm.xplane.pb.gz`
        host = host_of(file.path.name)
        if file.size_bytes == 0:
            problems.append(explain.empty(file.path))
        elif host in hosts:
            problems.append(explain.same_host(file.path, hosts[host].where))
        else:
            hosts[host] = HostFile(host, cache.path_of(file), file.size_bytes or 0, file.modified_ns, file)
    return tuple(hosts[host] for host in sorted(hosts)), tuple(problems)


def _newest_ns(files: Sequence[RemoteFile]) -> int:
    return max((file.modified_ns for file in files), default=0)
