"""The files of a store, in a folder of this machine or anywhere that fsspec writes to."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

from tfcompare import settings
from tfcompare.errors import NotFetched, TfcompareError
from tfcompare.sources.remote.places import parse
from tfcompare.store.remote_files import RemoteFiles, StoredFile
from tfcompare.text import is_url, text_of

_T = TypeVar("_T")
_ARRIVING = ".arriving-"
_ABANDONED_AFTER_S = 3600
"""A file that has been arriving for so long was left by a process that is gone."""
_USE_NOTED_EVERY_NS = 600 * 10**9
"""A time of last use that is no older is good enough."""
_MEASURE_EVERY_S = 300
_EVICTED = ("packs", "seen")
"""Folders whose files can be made anew; those that describe runs are small."""


class StoreFiles(Protocol):
    """Files by name, such as `packs/ab/….pack`. A file is there whole or not at all.

    Raises `NotFetched` for what cannot be read, `TfcompareError` for what cannot be written or removed.
    """

    def read(self, name: str) -> bytes:
        """The file's bytes; raises FileNotFoundError."""

    def size(self, name: str) -> int | None:
        """How many bytes it has; None where there is no such file."""

    def write(self, name: str, data: bytes) -> None:
        """Write the file, in place of one of that name."""

    def remove(self, names: list[str]) -> None:
        """Remove the files, those that are there."""

    def listed(self, folder: str) -> list[StoredFile]:
        """The files in that folder and below it, in no order."""

    def holds_others(self) -> bool:
        """Whether any file lies there."""

    def __hash__(self) -> int:
        """Equal for the files of one store: what its index holds is cached by them."""


@dataclass(eq=False)
class LocalFiles:
    """A folder on this machine whose least recently used files are removed where it grows beyond `max_bytes`.

    A file is written beside its place and renamed, so that none is ever half there, and several processes can use the
    folder. `max_bytes` None: no bound. Methods raise OSError.
    """

    folder: Path
    max_bytes: int | None = None
    _bytes: int = field(default=0, init=False)
    _measured: float = field(default=float("-inf"), init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def read(self, name: str) -> bytes:
        """The file's bytes."""
        path = self.folder / name
        data = path.read_bytes()
        with suppress(OSError):
            if time.time_ns() - path.stat().st_mtime_ns > _USE_NOTED_EVERY_NS:
                os.utime(path)
        return data

    def has(self, name: str) -> bool:
        """Whether there is such a file; False where that cannot be known."""
        return os.path.isfile(self.folder / name)  # noqa: PTH113  it raises nothing

    def write(self, name: str, data: bytes) -> None:
        """Write the file, in place of one of that name."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, arriving = tempfile.mkstemp(prefix=_ARRIVING, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            Path(arriving).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(arriving).unlink()
            raise
        self._evict(len(data))

    def remove(self, name: str) -> None:
        """Remove the file, if it is there."""
        with suppress(OSError):
            (self.folder / name).unlink()

    def listed(self, folder: str) -> list[StoredFile]:
        """The files in that folder and below it, in no order."""
        return [
            StoredFile(path.relative_to(self.folder).as_posix(), status.st_size, status.st_mtime_ns)
            for path, status in _files_below(self.folder / folder)
        ]

    def _evict(self, written: int) -> None:
        """Remove the least recently used files where there is too much; measured seldom, counted in between."""
        if self.max_bytes is None:
            return
        with self._lock:
            self._bytes += written
            if self._bytes <= self.max_bytes and time.monotonic() - self._measured < _MEASURE_EVERY_S:
                return
            self._measured = time.monotonic()
            files = sorted((f for folder in _EVICTED for f in self.listed(folder)), key=lambda f: (f.used_ns, f.name))
            self._bytes = sum(file.size_bytes for file in files)
            for file in files[:-1]:  # the newest is what was written just now
                if self._bytes <= self.max_bytes:
                    break
                with suppress(OSError):
                    (self.folder / file.name).unlink()
                    self._bytes -= file.size_bytes


@cache
def local_files(folder: Path, max_bytes: int | None) -> LocalFiles:
    """Those in that folder: one object for all who ask, which counts what all of them write."""
    return LocalFiles(folder, max_bytes)


@dataclass(frozen=True)
class FolderFiles:
    """See `StoreFiles`."""

    files: LocalFiles

    def __str__(self) -> str:
        return text_of(str(self.files.folder))

    def read(self, name: str) -> bytes:
        """See `StoreFiles`."""
        return self._try(name, lambda: self.files.read(name), "read", NotFetched)

    def size(self, name: str) -> int | None:
        """See `StoreFiles`."""
        try:
            return self._try(name, lambda: (self.files.folder / name).stat().st_size, "looked at", NotFetched)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """See `StoreFiles`."""
        self._try(name, lambda: self.files.write(name, data), "written", TfcompareError)

    def remove(self, names: list[str]) -> None:
        """See `StoreFiles`."""
        for name in names:
            self.files.remove(name)

    def listed(self, folder: str) -> list[StoredFile]:
        """See `StoreFiles`."""
        return self._try(folder, lambda: self.files.listed(folder), "listed", NotFetched)

    def holds_others(self) -> bool:
        """See `StoreFiles`."""
        folder = self.files.folder
        return self._try("", lambda: folder.exists() and any(map(_is_whole, folder.iterdir())), "listed", NotFetched)

    def _try(self, name: str, work: Callable[[], _T], what: str, kind: type[TfcompareError]) -> _T:
        try:
            return work()
        except FileNotFoundError:
            raise
        except OSError as error:
            where = text_of(str(self.files.folder / name))
            raise kind(f"{where}: cannot be {what} ({error.strerror or error}); check the store's folder") from error


def full_address(address: str) -> str:
    """The address as it holds in any folder."""
    return address if is_url(address) else str(Path(address).expanduser().absolute())


def store_files(address: str) -> StoreFiles:
    """The files of the store at a path or URL; nothing is asked of the network.

    Raises `NoSuchPlace` for a URL of a kind at which there can be no store.
    """
    if is_url(address):
        return RemoteFiles(parse(address))
    folder = Path(full_address(address))
    return FolderFiles(local_files(folder, settings.store_bytes(os.environ) if is_own(address) else None))


def is_own(address: str) -> bool:
    """Whether the store there is the one that this machine caches frames in."""
    own = settings.store_folder(os.environ)
    return own is not None and not is_url(address) and Path(full_address(address)) == own.absolute()


def _is_whole(path: Path) -> bool:
    """Whether a file has its own name, and is not just being written."""
    return not path.name.startswith(_ARRIVING)


def _files_below(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files below a folder; what a killed process left half-written is removed."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # gone since
                if entry.is_dir(follow_symlinks=False):
                    yield from _files_below(Path(entry.path))
                elif _is_whole(Path(entry.path)):
                    yield Path(entry.path), entry.stat()
                elif time.time() - entry.stat().st_mtime > _ABANDONED_AFTER_S:
                    Path(entry.path).unlink()
