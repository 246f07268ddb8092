"""The folders of a remote place, from its listing. No file is read, so only empty files are detected as invalid."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from tfcompare.sources.logdir import explain
from tfcompare.sources.logdir.found_run import Folder, HostFile
from tfcompare.sources.remote.fetching import Cache
from tfcompare.sources.remote.files import Listing, RemoteFile


def remote_cache() -> Cache:
    """The cache for copies of remote files on this machine, as set in the environment."""
    from tfcompare.settings import from_environment

    given = from_environment()
    return Cache(given.fetched_folder, given.fetched_bytes)


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
