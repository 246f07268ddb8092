"""What is known of a run before it is read."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath

from tfcompare.remote.fetching import bytes_at_hand
from tfcompare.remote.files import RemoteFile
from tfcompare.remote.places import RemotePath


@dataclass(frozen=True)
class HostFile:
    """One host's profile of a run. Of one with a `source`, `path` is where a copy of it lies once it is fetched."""

    host: str
    path: Path
    size_bytes: int
    modified_ns: int
    source: RemoteFile | None = None

    @property
    def where(self) -> PurePath:
        """Where the profile itself lies: what a message names."""
        return self.path if self.source is None else self.source.path

    @property
    def bytes_at_hand(self) -> int:
        """How many of its bytes are on this machine."""
        return self.size_bytes if self.source is None else min(bytes_at_hand(self.path), self.size_bytes)


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
