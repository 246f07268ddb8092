"""Files of a store in a folder of this machine, of bounded size."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

_ARRIVING = ".arriving-"
_LEFT_AFTER_S = 3600
"""What has been arriving for so long was left by a process that is gone."""
_USED_AGAIN_NS = 600 * 10**9
"""A time of last use that is no older is good enough."""
_LOOK_AGAIN_S = 300
_MAKING_ROOM = ("packs", "seen")
"""What can be made again; what tells of runs is small."""


@dataclass
class LocalFiles:
    """A folder. What was not used for longest makes room where `max_bytes` (None: no bound) would be exceeded.

    A file is written aside and renamed, so that none is ever half there, and several processes can use the folder.
    """

    folder: Path
    max_bytes: int | None = None
    _bytes: int = field(default=0, init=False)
    _looked: float = field(default=float("-inf"), init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def __str__(self) -> str:
        return str(self.folder)

    def read(self, name: str) -> bytes:
        """The file's bytes; raises FileNotFoundError, or another OSError."""
        path = self.folder / name
        data = path.read_bytes()
        with suppress(OSError):
            if time.time_ns() - path.stat().st_mtime_ns > _USED_AGAIN_NS:
                os.utime(path)
        return data

    def has(self, name: str) -> bool:
        """Whether there is such a file, as far as can be told."""
        return os.path.isfile(self.folder / name)  # noqa: PTH113  it raises nothing

    def write(self, name: str, data: bytes) -> None:
        """Put the file there, in place of one of that name. Raises OSError."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, aside = tempfile.mkstemp(prefix=_ARRIVING, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            Path(aside).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(aside).unlink()
            raise
        self._make_room(len(data))

    def remove(self, name: str) -> None:
        """Remove the file, if it is there."""
        with suppress(OSError):
            (self.folder / name).unlink()

    def names(self, folder: str) -> list[str]:
        """The files in that folder and below it, in no order; raises OSError where it cannot be looked into."""
        return [name for name, _, _ in self.told(folder)]

    def told(self, folder: str) -> list[tuple[str, int, int]]:
        """(name, bytes, time of last use in ns) of the files in that folder and below it, in no order."""
        return [
            (path.relative_to(self.folder).as_posix(), status.st_size, status.st_mtime_ns)
            for path, status in _files(self.folder / folder)
        ]

    def _make_room(self, written: int) -> None:
        """Remove what was not used for longest where there is too much; looked up seldom, counted in between."""
        if self.max_bytes is None:
            return
        with self._lock:
            self._bytes += written
            if self._bytes <= self.max_bytes and time.monotonic() - self._looked < _LOOK_AGAIN_S:
                return
            self._looked = time.monotonic()
            kept = sorted(
                (status.st_mtime_ns, status.st_size, path)
                for folder in _MAKING_ROOM
                for path, status in _files(self.folder / folder)
            )
            self._bytes = sum(size for _, size, _ in kept)
            for _, size, path in kept[:-1]:  # the newest is what was written just now
                if self._bytes <= self.max_bytes:
                    break
                with suppress(OSError):
                    path.unlink()
                    self._bytes -= size


def is_whole(path: Path) -> bool:
    """Whether a file has its own name, and is none that is just being written."""
    return not path.name.startswith(_ARRIVING)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files below a folder; what a killed process left half-written is removed."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # gone since
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(Path(entry.path))
                elif is_whole(Path(entry.path)):
                    yield Path(entry.path), entry.stat()
                elif time.time() - entry.stat().st_mtime > _LEFT_AFTER_S:
                    Path(entry.path).unlink()
