"""What is known of a run before it is read."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class HostFile:
    """One host's profile of a run."""

    host: str
    path: Path
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True)
class FoundRun:
    """A run as its folder tells it. `files` is empty where nothing can be read: `problems` then says why."""

    id: str
    name: str
    path: Path
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
    def stat_key(self) -> str:
        """A digest of every host file's path, size and time of change: differs when a file was touched."""
        digest = hashlib.blake2b(digest_size=16)
        if not self.files:
            digest.update(os.fsencode(self.path) + repr(self.problems).encode())
        for file in self.files:
            digest.update(os.fsencode(file.path))
            digest.update(f"\0{file.size_bytes}\0{file.modified_ns}\0".encode())
        return digest.hexdigest()
