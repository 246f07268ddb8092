"""The files of a store, in a local folder or any location that fsspec can write to."""

from __future__ import annotations

import errno
import os
import stat
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
from tfcompare.sources.logdir import open_untouched
from tfcompare.sources.remote.places import parse
from tfcompare.store.names import FOLDERS, NotOfAStore, check_size, checked, checked_folder, is_name
from tfcompare.store.remote_files import RemoteFiles, StoredFile
from tfcompare.store.typed import Damaged
from tfcompare.text import is_url, text_of

_T = TypeVar("_T")
_ARRIVING = ".arriving-"
_ABANDONED_AFTER_S = 3600
"""A file that has been incomplete for this long was left by a process that has ended."""
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_USE_NOTED_EVERY_NS = 600 * 10**9
"""The last use is only recorded again if the recorded time is older than this."""
_MEASURE_EVERY_S = 300
_EVICTED = ("packs", "seen")
"""Folders whose files can be created again, such as packs; the files that describe runs are small."""


class StoreFiles(Protocol):
    """Files by name, such as `packs/ab/….pack`. A file exists completely or not at all.

    Methods raise `NotFetched` if reading fails, `TfcompareError` if writing or removing fails, and `NotOfAStore` for
    names that no file of a store has.
    """

    def read(self, name: str) -> bytes:
        """The file's bytes; raises FileNotFoundError, and `Damaged` for a file that is too large for its kind."""

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

    def path_of(self, name: str) -> Path:
        """The path of the file. Raises `NotOfAStore` if a link leads out of the folder, or for other names."""
        return self._inside(self.folder / checked(name))

    def read(self, name: str) -> bytes:
        """The file's bytes; raises `Damaged` for a file that is too large for its kind."""
        path = self.path_of(name)
        with os.fdopen(open_untouched(path, getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # a pipe would wait
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Damaged("is no file")
            check_size(name, status.st_size)
            data = file.read(status.st_size)
        with suppress(OSError):
            if time.time_ns() - status.st_mtime_ns > _USE_NOTED_EVERY_NS:
                os.utime(path)
        return data

    def size(self, name: str) -> int:
        """Its size in bytes."""
        return self.path_of(name).stat().st_size

    def has(self, name: str) -> bool:
        """Whether the file exists; False if that cannot be determined."""
        return os.path.isfile(self.path_of(name))  # noqa: PTH113  does not raise

    def write(self, name: str, data: bytes) -> None:
        """Write the file, replacing an existing one."""
        path = self.folder / checked(name)
        self._inside(path.parent).mkdir(parents=True, exist_ok=True, mode=0o700)
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
        """Remove the file if it exists; of a link, the link."""
        path = self.folder / checked(name)
        self._inside(path.parent)
        with suppress(OSError):
            path.unlink()

    def holds_others(self) -> bool:
        """Whether there are any whole files or folders."""
        return self.folder.exists() and any(_is_whole(path.name) for path in self.folder.iterdir())

    def remove_abandoned(self, older_than_s: float = _ABANDONED_AFTER_S) -> None:
        """Remove incomplete files that killed processes left."""
        for folder in FOLDERS:
            for entry in _entries_below(self._inside(self.folder / folder)):
                with suppress(OSError):
                    if not _is_whole(entry.name) and time.time() - entry.stat().st_mtime > older_than_s:
                        Path(entry.path).unlink()

    def remove_folders(self) -> None:
        """Remove all incomplete files, and empty folders."""
        self.remove_abandoned(older_than_s=float("-inf"))
        for folder in FOLDERS:
            top = self._inside(self.folder / folder)
            for path in (*sorted(top.rglob("*"), reverse=True), top):
                with suppress(OSError):
                    path.rmdir()

    def listed(self, folder: str) -> list[StoredFile]:
        """The files in that folder and below it, in any order."""
        top = self._inside(self.folder / checked_folder(folder))
        found = []
        for entry in _entries_below(top):
            name = f"{folder}/{Path(entry.path).relative_to(top).as_posix()}"
            with suppress(FileNotFoundError):  # removed meanwhile
                if is_name(name):
                    status = entry.stat(follow_symlinks=False)
                    found.append(StoredFile(name, status.st_size, status.st_mtime_ns))
        return found

    def _inside(self, path: Path) -> Path:
        """`path`; raises `NotOfAStore` if it is not in the folder, all links followed."""
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise NotOfAStore(f"{text_of(str(path))}: a link leads out of the store; remove the link")
        return path

    def _evict(self, written: int) -> None:
        """Remove the least recently used files above the limit; the total is measured rarely, otherwise estimated."""
        if self.max_bytes is None:
            return
        with self._lock:
            self._bytes += written
            if self._bytes <= self.max_bytes and time.monotonic() - self._measured < _MEASURE_EVERY_S:
                return
            self._measured = time.monotonic()
            self.remove_abandoned()
            files = sorted((f for folder in _EVICTED for f in self.listed(folder)), key=lambda f: (f.used_ns, f.name))
            self._bytes = sum(file.size_bytes for file in files)
            for file in files[:-1]:  # the newest is the one just written
                if self._bytes <= self.max_bytes:
                    break
                self.remove(file.name)
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
            return self._try(name, lambda: self.files.size(name), "looked at", NotFetched)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """See `StoreFiles`."""
        try:
            self._try(name, lambda: self.files.write(name, data), "written", TfcompareError)
        except FileNotFoundError as error:
            raise TfcompareError(f"{self}: {name} cannot be written ({error.strerror}); is the folder there?") from None

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
        return self._try(
            "", lambda: folder.exists() and any(_is_whole(path.name) for path in folder.iterdir()), "listed", NotFetched
        )

    def _try(self, name: str, work: Callable[[], _T], what: str, kind: type[TfcompareError]) -> _T:
        try:
            return work()
        except FileNotFoundError:
            raise
        except OSError as error:
            where = text_of(str(self.files.folder / name))
            advice = "make room on its disk" if error.errno in _FULL else "check the store's folder"
            raise kind(f"{where}: cannot be {what} ({error.strerror or error}); {advice}") from error


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


def _is_whole(name: str) -> bool:
    """Whether a file is complete, which means that it has its final name."""
    return not name.startswith(_ARRIVING)


def _entries_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """The files and links below a folder; links are not followed."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _entries_below(Path(entry.path))
            else:
                yield entry
