"""What is known about a run before it is read."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath
from typing import ClassVar

from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata
from tfcompare.sources.remote.fetching import bytes_at_hand
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.sources.remote.places import RemotePath


@dataclass(frozen=True)
class StoredPack:
    """The location of a host file's frames in a store (a path or URL), and the reader that made them."""

    store: str
    name: str
    reader: str


@dataclass(frozen=True)
class RunSummary:
    """Facts about a run that was read before, as in `listing.COLUMNS`; None for a run without steps.

    `steps_per_s` is the throughput. An interval, `…_low` and `…_high`, is also None if a run has too few steps for it.
    """

    device: str
    device_name: str
    steps: int | None
    step_time_ms_median: float | None
    step_times_ms: tuple[float, ...] | None
    remarks: str
    step_time_ms_mean: float | None = None
    step_time_ms_low: float | None = None
    step_time_ms_high: float | None = None
    steps_per_s: float | None = None
    steps_per_s_low: float | None = None
    steps_per_s_high: float | None = None


@dataclass(frozen=True)
class HostFile:
    """A host's profile. If it has a `source`, `path` is where its copy will be once it is fetched.

    If it is `stored`, its frames are in a store, and the profile itself may no longer exist.
    """

    host: str
    path: Path
    size_bytes: int
    modified_ns: int
    source: RemoteFile | None = None
    stored: StoredPack | None = None

    @property
    def where(self) -> PurePath:
        """The location of the profile itself, for messages."""
        return self.path if self.source is None else self.source.path

    @property
    def bytes_at_hand(self) -> int:
        """How many of its bytes are on this machine; all of them if it is stored, since none are needed."""
        is_here = self.source is None or self.stored is not None
        return self.size_bytes if is_here else min(bytes_at_hand(self.path), self.size_bytes)


@dataclass(frozen=True)
class Folder(ABC):
    """The direct contents of a folder, by name. `problem` is the reason if it could not be listed."""

    path: PurePath
    files: tuple[str, ...] = ()
    has_folders: bool = False
    problem: str = ""

    @abstractmethod
    def key(self, name: str) -> Hashable:
        """Identifies a file in it, independently of the path."""

    @abstractmethod
    def host_file(self, name: str, host: str) -> HostFile | str:
        """A file in it as that host's profile, or a sentence with the reason why it cannot be read."""

    @abstractmethod
    def start_of(self, name: str) -> bytes:
        """The first bytes of a file in it, uncompressed; empty if it is not on this machine or cannot be read."""

    @abstractmethod
    def newest_ns(self, names: Iterable[str]) -> int:
        """When the newest of these files, or without names the folder, was changed; 0 if unknown."""


@dataclass(frozen=True)
class FoundRun:
    """A run as found in its folder. `files` is empty if nothing can be read: `problems` has the reasons.

    `path` is a `RemotePath`, shown as a URL, if it is on another machine.
    """

    id: str
    name: str
    path: PurePath
    files: tuple[HostFile, ...]
    problems: tuple[str, ...]
    recorded: datetime
    recorded_source: str
    metadata: Metadata = field(default=NO_METADATA, kw_only=True)
    summary: RunSummary | None = field(default=None, kw_only=True)
    """Facts from when it was put into a store."""
    content_id: str = field(default="", kw_only=True)
    """The future `Run.content_id` if it is known before reading; else empty."""
    is_stored: ClassVar[bool] = False
    """Whether it is from a store of runs."""

    def opened(self) -> FoundRun:
        """The run with its host files, if finding them was deferred."""
        return self

    @property
    def size_bytes(self) -> int:
        """The size on disk of all readable files."""
        return sum(f.size_bytes for f in self.files)

    @property
    def is_readable(self) -> bool:
        """Whether there is a host file to load."""
        return bool(self.files)

    @property
    def is_remote(self) -> bool:
        """Whether its files have to be fetched before they can be read."""
        return isinstance(self.path, RemotePath)

    def version_of(self, table: str) -> str:  # noqa: ARG002
        """The version of a table that was made when it was put into a store; else empty: it will be made now."""
        return ""

    @property
    def host_names(self) -> tuple[str, ...]:
        """The hosts with readable files."""
        return tuple(file.host for file in self.files)

    def named(self, name: str) -> FoundRun:
        """The run with that name."""
        return replace(self, name=name)

    @property
    def bytes_at_hand(self) -> int:
        """How many bytes of its files are on this machine: all of a local run, or those fetched of a remote one."""
        return sum(f.bytes_at_hand for f in self.files)

    @property
    def stat_key(self) -> str:
        """A digest of each host file's path, size and modification time, which changes whenever a file does.

        A remote file's path is that of its copy, which depends on its version.
        """
        digest = hashlib.blake2b(digest_size=16)
        if not self.files:
            digest.update(os.fsencode(self.path) + repr(self.problems).encode())
        for file in self.files:
            digest.update(os.fsencode(file.path))
            digest.update(f"\0{file.size_bytes}\0{file.modified_ns}\0".encode())
        return digest.hexdigest()
