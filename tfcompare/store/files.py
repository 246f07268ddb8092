"""The files of a store, in a local folder or any location that fsspec can write to."""

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
"""A file that has been incomplete for this long was left by a process that has ended."""
_USE_NOTED_EVERY_NS = 600 * 10**9
"""The last use is only recorded again if the recorded time is older than this."""
_MEASURE_EVERY_S = 300
_EVICTED = ("packs", "seen")
"""Folders whose files can be created again, such as packs; the files that describe runs are small."""


class StoreFiles(Protocol):
    """Files by name, such as `packs/ab/….pack`. A file exists completely or not at all.

    Methods raise `NotFetched` if reading fails, `TfcompareError` if writing or removing fails.
    """

    def read(self, name: str) -> bytes:
        """The file's bytes; raises FileNotFoundError."""

    def size(self, name: str) -> int | None:
        """Its size in bytes; None if it does not exist."""

    def write(self, name: str, data: bytes) -> None:
        """Write the file, replacing an existing one."""

    def remove(self, names: list[str]) -> None:
        """Remove those of the files that exist."""

    def listed(self, folder: str) -> list[StoredFile]:
        """The files in that folder and below it, in any order."""

    def holds_others(self) -> bool:
        """Whether there are any files."""

    def __hash__(self) -> int:
        """Equal for the files of the same store, to cache the contents of its index."""


@dataclass(eq=False)
class LocalFiles:
    """A local folder from which the least recently used files are removed if it exceeds `max_bytes`.

    A file is written under a temporary name and then renamed, so that it is never incomplete, and several processes can
    use the folder. `max_bytes` None: no limit. Methods raise OSError.
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
        """Whether the file exists; False if that cannot be determined."""
        return os.path.isfile(self.folder / name)  # noqa: PTH113  does not raise

    def write(self, name: str, data: bytes) -> None:
        """Write the file, replacing an existing one."""
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
        """Remove the file if it exists."""
        with suppress(OSError):
            (self.folder / name).unlink()

    def listed(self, folder: str) -> list[StoredFile]:
        """The files in that folder and below it, in any order."""
        return [
            StoredFile(path.relative_to(self.folder).as_posix(), status.st_size, status.st_mtime_ns)
            for path, status in _files_below(self.folder / folder)
        ]

    def _evict(self, written: int) -> None:
        """Remove the least recently used files above the limit; the total is measured rarely, otherwise estimated."""
        if self.max_bytes is None:
            return
        with self._lock:
            self._bytes += written
            if self._bytes <= self.max_bytes and time.monotonic() - self._measured < _MEASURE_EVERY_S:
                return
            self._measured = time.monotonic()
            files = sorted((f for folder in _EVICTED for f in self.listed(folder)), key=lambda f: (f.used_ns, f.name))
            self._bytes = sum(file.size_bytes for file in files)
            for file in files[:-1]:  # the newest is the one just written
                if self._bytes <= self.max_bytes:
                    break
                with suppress(OSError):
                    (self.folder / file.name).unlink()
                    self._bytes -= file.size_bytes


@cache
def local_files(folder: Path, max_bytes: int | None) -> LocalFiles:
    """The files in that folder: one shared object, which counts everything that is written."""
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
    """The address in a form that does not depend on the current folder."""
    return address if is_url(address) else str(Path(address).expanduser().absolute())


def store_files(address: str) -> StoreFiles:
    """The files of the store at a path or URL; does not access the network.

    Raises `NoSuchPlace` for a kind of URL that does not support stores.
    """
    if is_url(address):
        return RemoteFiles(parse(address))
    folder = Path(full_address(address))
    return FolderFiles(local_files(folder, settings.store_bytes(os.environ) if is_own(address) else None))


def is_own(address: str) -> bool:
    """Whether the store there is this machine's cache of frames."""
    own = settings.store_folder(os.environ)
    return own is not None and not is_url(address) and Path(full_address(address)) == own.absolute()


def _is_whole(path: Path) -> bool:
    """Whether a file is complete, which means that it has its final name."""
    return not path.name.startswith(_ARRIVING)


def _files_below(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files below a folder; removes incomplete files left by killed processes."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # removed meanwhile
                if entry.is_dir(follow_symlinks=False):
                    yield from _files_below(Path(entry.path))
                elif _is_whole(Path(entry.path)):
                    yield Path(entry.path), entry.stat()
                elif time.time() - entry.stat().st_mtime > _ABANDONED_AFTER_S:
                    Path(entry.path).unlink()
