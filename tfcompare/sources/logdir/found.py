"""What is known of a run before it is read."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePath

from tfcompare.sources.remote.fetching import bytes_at_hand
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.sources.remote.places import RemotePath


@dataclass(frozen=True)
class StoredPack:
    """Where a store (a path or URL) keeps the frames of a host file."""

    store: str
    name: str


@dataclass(frozen=True)
class Told:
    """What is known of a run that was read before, as `listing.COLUMNS` tells it; None without steps."""

    device: str
    device_name: str
    steps: int | None
    step_time_ms_median: float | None
    step_times_ms: tuple[float, ...] | None
    remarks: str


@dataclass(frozen=True)
class HostFile:
    """One host's profile of a run. Of one with a `source`, `path` is where a copy of it lies once it is fetched.

    Of one that is `stored`, the frames are kept, and the profile itself may be gone.
    """

    host: str
    path: Path
    size_bytes: int
    modified_ns: int
    source: RemoteFile | None = None
    stored: StoredPack | None = None

    @property
    def where(self) -> PurePath:
        """Where the profile itself lies: what a message names."""
        return self.path if self.source is None else self.source.path

    @property
    def bytes_at_hand(self) -> int:
        """How many of its bytes are on this machine; of one that is stored all, since none are needed."""
        is_here = self.source is None or self.stored is not None
        return self.size_bytes if is_here else min(bytes_at_hand(self.path), self.size_bytes)


@dataclass(frozen=True)
class Folder(ABC):
    """What a folder directly holds, by its names. `problem` says why it could not be listed."""

    path: PurePath
    files: tuple[str, ...] = ()
    has_folders: bool = False
    problem: str = ""

    @abstractmethod
    def key(self, name: str) -> Hashable:
        """Identifies a file in it, by whatever path it was found."""

    @abstractmethod
    def host_file(self, name: str, host: str) -> HostFile | str:
        """A file in it as that host's, or why it cannot be read, as a sentence."""

    @abstractmethod
    def newest_ns(self, names: Iterable[str]) -> int:
        """When the newest of these files was changed, or without names the folder itself; 0 where that is unknown."""


@dataclass(frozen=True)
class FoundRun:
    """A run as its folder tells it. `files` is empty where nothing can be read: `problems` then says why.

    `path` is a `RemotePath`, which reads as a URL, for what lies on another machine.
    """

    id: str
    name: str
    path: PurePath
    files: tuple[HostFile, ...]
    problems: tuple[str, ...]
    recorded: datetime
    recorded_source: str

    def opened(self) -> FoundRun:
        """The run with its host files, where looking them up was put off."""
        return self

    @property
    def size_bytes(self) -> int:
        """Bytes on disk of the files that can be read."""
        return sum(f.size_bytes for f in self.files)

    @property
    def is_readable(self) -> bool:
        """Whether there is a host file to load."""
        return bool(self.files)

    @property
    def is_remote(self) -> bool:
        """Whether its files have to be fetched before they can be read."""
        return isinstance(self.path, RemotePath)

    @property
    def is_stored(self) -> bool:
        """Whether it comes from a store of runs."""
        return False

    @property
    def told(self) -> Told | None:
        """What is known of it from an earlier time, when it was put into a store."""
        return None

    @property
    def content_id(self) -> str:
        """What `Run.content_id` will be, where that is known before it is read; else empty."""
        return ""

    @property
    def host_names(self) -> tuple[str, ...]:
        """The hosts that can be read."""
        return tuple(file.host for file in self.files)

    def named(self, name: str) -> FoundRun:
        """The run under that name."""
        return replace(self, name=name)

    @property
    def bytes_at_hand(self) -> int:
        """How many bytes of its files are on this machine: of a local run all, and of one that was fetched."""
        return sum(f.bytes_at_hand for f in self.files)

    @property
    def stat_key(self) -> str:
        """A digest of every host file's path, size and time of change: differs when a file was touched.

        The path of a remote file's copy is that of its version.
        """
        digest = hashlib.blake2b(digest_size=16)
        if not self.files:
            digest.update(os.fsencode(self.path) + repr(self.problems).encode())
        for file in self.files:
            digest.update(os.fsencode(file.path))
            digest.update(f"\0{file.size_bytes}\0{file.modified_ns}\0".encode())
        return digest.hexdigest()
