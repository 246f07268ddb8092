"""Fetches remote files into a size-limited cache on this machine, and locks them while they are read.

    <folder>/<digest>.xplane.pb          a complete file; the digest is that of its URL and version
    <folder>/<digest>.xplane.pb.part     a partial download

A file gets its name only when it is complete, so none is ever read partially, and a changed file gets another name.
Whoever fetches or reads a file holds a lock on it: others wait, and eviction skips it. If a process is killed, its
`.part` remains, and the next one resumes it. If the cache folder cannot take a file, it goes into a temporary folder
that is deleted with the process.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tfcompare.errors import NotFetched
from tfcompare.sources.folder_permissions import NotPrivate, make_private
from tfcompare.sources.remote.downloading import Progress, Useless, download, shown
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.sources.remote.locks import locked_to_read, locked_to_write
from tfcompare.sources.remote.temporary import remove_leftovers, temporary_folder
from tfcompare.text import text_of
from tfcompare.units import format_bytes

PART = ".part"
_OURS = re.compile(r"[0-9a-f]{32}(\.xplane\.pb)?(\.gz)?(\.part)?")
_SUFFIXES = (".xplane.pb.gz", ".xplane.pb", ".gz")
_POLL_S = 0.1
_IS_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_IS_NO_FOLDER = (errno.EEXIST, errno.ENOTDIR)


@dataclass(frozen=True)
class Copy:
    """A complete file on this machine. `remark`: why it is not cached, and what to do about it; else empty."""

    path: Path
    remark: str = ""


@dataclass(frozen=True)
class Cache:
    """The folder of fetched files. The least recently used ones are evicted to stay below `max_bytes`."""

    folder: Path
    max_bytes: int

    def path_of(self, file: RemoteFile) -> Path:
        """The path of the file's copy, whether or not it exists yet."""
        suffix = next((s for s in _SUFFIXES if file.path.name.endswith(s)), "")
        return self.folder / f"{file.digest}{suffix}"

    @contextmanager
    def locked(self, file: RemoteFile, progress: Progress = lambda _: None) -> Iterator[Copy]:
        """The complete file, fetched if necessary, and locked against removal.

        If the folder cannot take it, it goes into a temporary one, with a remark. Raises `NotFetched` if it is not
        available, has changed since it was listed, is larger than the cache limit, or no folder can take it.
        """
        remove_leftovers()
        with ExitStack() as locks:
            try:
                self._wait_for(file, locks, progress)
                copy = Copy(self.path_of(file))
            except OSError as error:
                copy = self._temporary_copy(file, locks, progress, error)
            yield copy

    @contextmanager
    def locked_again(self, file: RemoteFile, progress: Progress = lambda _: None) -> Iterator[Copy]:
        """As `locked`, but fetches again, because the cached copy is damaged."""
        with ExitStack() as locks:
            try:
                self.path_of(file).unlink(missing_ok=True)
            except OSError as error:
                copy = self._temporary_copy(file, locks, progress, error)
            else:
                copy = locks.enter_context(self.locked(file, progress))
            yield copy

    def make_room(self, needed_bytes: int = 0) -> None:
        """Remove the least recently used files above the limit, except those being read or fetched."""
        cached = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                if not _OURS.fullmatch(entry.name):
                    continue
                cached.append((entry.stat().st_mtime_ns, entry.stat().st_size, Path(entry.path)))
        excess = sum(size for _, size, _ in cached) + needed_bytes - self.max_bytes
        for _, size, path in sorted(cached):
            if excess <= 0:
                return
            with suppress(OSError), locked_to_write(path, create=False) as descriptor:
                if descriptor is not None:
                    path.unlink()
                    excess -= size

    def _wait_for(self, file: RemoteFile, locks: ExitStack, progress: Progress) -> None:
        """Wait until the file is complete, and its lock is in `locks`. Raises OSError if the folder cannot take it."""
        while not self._obtain(file, locks, progress):
            progress(bytes_at_hand(self.path_of(file)))  # another process or thread is fetching the same file
            time.sleep(_POLL_S)

    def _temporary_copy(self, file: RemoteFile, locks: ExitStack, progress: Progress, why: OSError) -> Copy:
        """A copy in this process's temporary folder, which has the same size limit."""
        try:
            temporary = Cache(temporary_folder(), self.max_bytes)
            temporary._wait_for(file, locks, progress)
        except OSError as error:
            raise NotFetched(
                f"{shown(file)}: a copy fits neither into {self._refusal(why)} nor into a temporary folder "
                f"({error.strerror or error}); {_remedy(why)}"
            ) from error
        return Copy(
            temporary.path_of(file), f"copies of remote files are not cached in {self._refusal(why)}; {_remedy(why)}"
        )

    def _refusal(self, why: OSError) -> str:
        reason = "which is not a folder" if why.errno in _IS_NO_FOLDER else why.strerror or str(why)
        return f"{text_of(str(self.folder))} ({reason})"

    def _obtain(self, file: RemoteFile, locks: ExitStack, progress: Progress) -> bool:
        """Whether the file is complete, or could be fetched, with its lock in `locks`; False while others fetch it."""
        path = self.path_of(file)
        part = path.with_name(path.name + PART)
        with ExitStack() as acquired:
            make_private(self.folder)
            descriptor = acquired.enter_context(locked_to_read(path))
            if descriptor is None or not _is_whole(descriptor, file):
                descriptor = acquired.enter_context(locked_to_write(part, create=True))
                if descriptor is None or _is_whole_at(path, file):  # since the last check
                    return False
                self._fetch(file, descriptor, part, progress)
            with suppress(OSError):
                os.utime(path)  # records the time of last use
            progress(os.fstat(descriptor).st_size)
            locks.push(acquired.pop_all())
        return True

    def _fetch(self, file: RemoteFile, descriptor: int, part: Path, progress: Progress) -> None:
        """Complete the locked `.part`, and rename it to the final name."""
        try:
            self._check_size(file, file.size_bytes or 0)
            self.make_room((file.size_bytes or 0) - os.fstat(descriptor).st_size)
            download(file, descriptor, partial(self._check_and_report, file, progress))
            os.fsync(descriptor)
        except (Useless, OSError):
            with suppress(OSError):
                part.unlink()
            raise
        part.replace(self.path_of(file))
        self.make_room()

    def _check_and_report(self, file: RemoteFile, progress: Progress, arrived: int) -> None:
        self._check_size(file, arrived)
        progress(arrived)

    def _check_size(self, file: RemoteFile, size: int) -> None:
        if size > self.max_bytes:
            raise Useless(
                f"{shown(file)}: is larger than the {format_bytes(self.max_bytes)} that copies of remote files may "
                "take; allow for more with TFCOMPARE_FETCHED_MB"
            )


def _remedy(why: OSError) -> str:
    """What to do about a cache folder that cannot take a copy."""
    if why.errno in _IS_FULL:
        return "make room there, or name another folder in TFCOMPARE_FETCHED"
    if isinstance(why, NotPrivate):
        return "name a folder of your own in TFCOMPARE_FETCHED"
    return "name a folder that can be written in TFCOMPARE_FETCHED"


def bytes_at_hand(path: Path) -> int:
    """How many bytes have arrived of a file that is fetched to `path`."""
    for where in (path, path.with_name(path.name + PART)):
        with suppress(OSError):
            return where.stat().st_size
    return 0


def _is_whole(descriptor: int, file: RemoteFile) -> bool:
    return file.size_bytes is None or os.fstat(descriptor).st_size == file.size_bytes


def _is_whole_at(path: Path, file: RemoteFile) -> bool:
    with locked_to_read(path) as descriptor:
        return descriptor is not None and _is_whole(descriptor, file)
