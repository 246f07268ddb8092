"""The files in an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from tfcompare.sources.logdir.files import is_profile


@dataclass(frozen=True)
class Member:
    """A file in an archive. `name` is the name in the archive, `path` the path where it is unpacked."""

    name: str
    path: PurePosixPath
    size_bytes: int

    @property
    def is_profile(self) -> bool:
        """Whether it is a host's profile; other files are listed but not unpacked."""
        return is_profile(self.path.name) and "__MACOSX" not in self.path.parts


Members = Iterator[tuple[Member, Callable[[Path], IO[bytes] | None]]]
"""Each file with a function that opens it, given the folder that it is unpacked to."""
