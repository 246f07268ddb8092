"""The folders at and below a place: walked on this machine, or taken from the listing of a remote place.

Of remote files none is read, so only empty ones are detected as invalid.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from tfcompare.sources.logdir import explain
from tfcompare.sources.logdir.check import check_outline, check_status, start_of
from tfcompare.sources.logdir.files import cannot_be_opened, is_profile, no_status, open_untouched
from tfcompare.sources.logdir.found_run import Folder, HostFile
from tfcompare.sources.remote.fetching import remote_cache
from tfcompare.sources.remote.files import Listing, RemoteFile, is_looked_into

Identity = tuple[int, int]
"""Device and inode, which identify a folder independently of its path."""

_CAN_LIST_DESCRIPTORS = os.scandir in os.supports_fd


@dataclass(frozen=True)
class LocalFolder(Folder):
    """A folder on this machine; `identity` is None if it could not be listed."""

    identity: Identity | None = None

    def key(self, name: str) -> Hashable:
        """See `Folder`."""
        return self.identity, name

    def host_file(self, name: str, host: str) -> HostFile | str:
        """See `Folder`."""
        path = Path(self.path) / name
        try:
            status = path.stat()
        except OSError as error:
            return no_status(path, error)
        problem = check_status(path, status) or check_outline(path)
        return problem or HostFile(host, path, status.st_size, status.st_mtime_ns)

    def start_of(self, name: str) -> bytes:
        """See `Folder`."""
        return start_of(Path(self.path) / name)

    def newest_ns(self, names: Iterable[str]) -> int:
        """See `Folder`."""
        times_ns = []
        for path in [Path(self.path) / name for name in names] or [Path(self.path)]:
            try:
                times_ns.append(path.lstat().st_mtime_ns)
            except OSError:  # listed among the run's problems
                continue
        return max(times_ns, default=0)


@dataclass(frozen=True)
class ListedFolder(Folder):
    """A folder on another machine, with the server's metadata about the files in it."""

    listed: Mapping[str, RemoteFile] = field(default_factory=dict)

    def key(self, name: str) -> Hashable:
        """See `Folder`."""
        return self.listed[name].path

    def host_file(self, name: str, host: str) -> HostFile | str:
        """See `Folder`."""
        file = self.listed[name]
        if file.size_bytes == 0:
            beside = (self.listed.get(trace) for trace in explain.traces_beside(name))
            return explain.empty(file.path, has_trace=any(trace is not None and trace.size_bytes for trace in beside))
        return HostFile(host, remote_cache().path_of(file), file.size_bytes or 0, file.modified_ns, file)

    def start_of(self, name: str) -> bytes:  # noqa: ARG002
        """See `Folder`."""
        return b""

    def newest_ns(self, names: Iterable[str]) -> int:
        """See `Folder`."""
        return max((self.listed[name].modified_ns for name in names), default=0)


def listed_folders(listing: Listing) -> Iterator[ListedFolder]:
    """Each folder on the path of any file, from the place downwards."""
    start = listing.place if listing.is_folder else listing.place.parent
    folders: dict[PurePath, dict[str, RemoteFile]] = {start: {}}
    parents = set[PurePath]()
    for file in listing.files:
        folder: PurePath = file.path.parent
        folders.setdefault(folder, {})[file.path.name] = file
        while folder != start and (folder := folder.parent) not in parents:
            parents.add(folder)
            folders.setdefault(folder, {})
    for path, files in sorted(folders.items()):
        yield ListedFolder(path, tuple(sorted(files)), path in parents, listed=files)


@dataclass(frozen=True)
class _Entries:
    identity: Identity
    files: list[str]
    folders: list[str]
    links: list[str]
    lost: list[tuple[str, str]]


def walk(root: Path, seen: set[Identity]) -> Iterator[LocalFolder]:
    """`root` and each folder below it that is not in `seen`; adds them to `seen`.

    Links to folders are followed last, so that a folder is listed under its own path rather than that of a link. Links
    to parents of `root` are not followed.
    """
    above = {identity_of(parent) for parent in root.resolve().parents}
    folders, links = [root], list[Path]()
    while folders or links:
        path = folders.pop() if folders else heapq.heappop(links)
        try:
            entries = _list(path, seen)
        except OSError as error:
            if (identity := _target(path)) not in seen:
                seen.update([identity] if identity else [])
                yield LocalFolder(path, problem=cannot_be_opened(path, error))
            continue
        if entries is None:
            continue
        seen.add(entries.identity)
        folders += [path / name for name in sorted(entries.folders, reverse=True)]
        for link in (path / name for name in entries.links):
            if _target(link) not in above:
                heapq.heappush(links, link)
        for name, problem in entries.lost:
            yield LocalFolder(path / name, problem=problem)
        has_folders = bool(entries.folders or entries.links)
        yield LocalFolder(path, tuple(sorted(entries.files)), has_folders, identity=entries.identity)


def identity_of(path: Path) -> Identity:
    """The identity of `path`, independent of its spelling."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _target(link: Path) -> Identity | None:
    try:
        return identity_of(link)
    except OSError:  # removed since it was listed: following the link reports it
        return None


def _list(path: Path, seen: set[Identity]) -> _Entries | None:
    """None for a folder in `seen`. Lists by a descriptor, to keep the folder's access time unchanged."""
    if not _CAN_LIST_DESCRIPTORS:
        identity = identity_of(path)
        return None if identity in seen else _sort_entries(path, path, identity)
    descriptor = open_untouched(path, os.O_DIRECTORY)
    try:
        status = os.fstat(descriptor)
        identity = (status.st_dev, status.st_ino)
        return None if identity in seen else _sort_entries(path, descriptor, identity)
    finally:
        os.close(descriptor)


def _sort_entries(path: Path, listed: Path | int, identity: Identity) -> _Entries:
    entries = _Entries(identity, [], [], [], [])
    with os.scandir(listed) as found:
        for entry in found:
            name, is_link = entry.name, entry.is_symlink()
            if _is_folder(entry):
                if is_profile(name):
                    entries.files.append(name)
                if is_looked_into((name,)):
                    (entries.links if is_link else entries.folders).append(name)
            elif is_link and _may_lead_to_runs(path, name) and (problem := _why_lost(path / name)):
                entries.lost.append((name, problem))
            else:
                entries.files.append(name)
    return entries


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link, or one into a folder without access
        return False


def _may_lead_to_runs(path: Path, name: str) -> bool:
    """Whether to report a broken link: not if it is hidden, or named like a file."""
    if name.startswith(".") or is_profile(name):
        return False
    return path.name == "profile" or not Path(name).suffix[1:].isalpha()


def _why_lost(link: Path) -> str:
    try:
        link.stat()
    except OSError as error:
        return no_status(link, error)
    return ""
