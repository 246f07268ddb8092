"""Fetches remote files into a size-limited cache on this machine.

    <folder>/<digest>.xplane.pb     a complete file; the digest is that of its URL and version
    <folder>/.arriving-<random>     a download under way

A file gets its name only when it is complete, so none is ever read partially, and a changed file gets another name. Two
processes that fetch one file at once do not meet: each renames its own copy, and the copies are equal.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tfcompare.errors import NotFetched, TfcompareError
from tfcompare.settings import from_environment
from tfcompare.sources.abandoned_folders import ARRIVING
from tfcompare.sources.bounded_folder import DISK_IS_FULL, make_room
from tfcompare.sources.folder_permissions import NotPrivate, make_private
from tfcompare.sources.remote.failures import DOWNLOAD_S, Changed, is_final, sentence
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.sources.remote.stores import connect, forget_connections
from tfcompare.text import text_of
from tfcompare.units import format_bytes

_TRIES = 2
"""A connection that broke is tried once more, from the beginning; drivers also try again by themselves."""
_OURS = re.compile(r"[0-9a-f]{32}(\.xplane\.pb)?(\.gz)?")
_SUFFIXES = (".xplane.pb.gz", ".xplane.pb", ".gz")

OnBytes = Callable[[int], None]
"""Called with the number of bytes that have arrived; what it raises ends the download."""


@dataclass(frozen=True)
class Cache:
    """The folder of fetched files. The least recently used ones are evicted to stay below `max_bytes`."""

    folder: Path
    max_bytes: int

    def path_of(self, file: RemoteFile) -> Path:
        """The path of the file's copy, whether or not it exists yet."""
        suffix = next((s for s in _SUFFIXES if file.path.name.endswith(s)), "")
        return self.folder / f"{file.digest}{suffix}"

    def fetched(self, file: RemoteFile, progress: OnBytes = lambda _: None, *, again: bool = False) -> Path:
        """The complete file, fetched if necessary, or `again`, because the copy is damaged.

        Another process may evict it at any time. Raises `NotFetched` if it is not available, has changed since it was
        listed, is larger than the cache limit, or the folder cannot take it.
        """
        path = self.path_of(file)
        try:
            make_private(self.folder)
            is_whole = path.is_file() and file.size_bytes in (None, path.stat().st_size)
            if again or not is_whole:
                self._fetch(file, path, progress)
            with suppress(FileNotFoundError):  # evicted meanwhile
                os.utime(path)  # records the time of last use
        except OSError as error:
            raise NotFetched(f"{_shown_url(file)}: {self._refusal(error)}") from error
        progress(bytes_at_hand(path))
        return path

    def _make_room(self, needed_bytes: int = 0) -> None:
        make_room([self.folder], self.max_bytes - needed_bytes, lambda path: _OURS.fullmatch(path.name))

    def _fetch(self, file: RemoteFile, path: Path, progress: OnBytes) -> None:
        self._check_size(file, file.size_bytes or 0)
        self._make_room(file.size_bytes or 0)
        descriptor, part = tempfile.mkstemp(prefix=ARRIVING, dir=self.folder)
        try:
            with os.fdopen(descriptor, "wb") as copy:
                self._download(file, copy, progress)
            Path(part).replace(path)
        finally:
            Path(part).unlink(missing_ok=True)
        if file.size_bytes is None:
            self._make_room()

    def _download(self, file: RemoteFile, copy: BinaryIO, progress: OnBytes) -> None:
        until = time.monotonic() + DOWNLOAD_S
        for tries_left in reversed(range(_TRIES)):
            copy.seek(0)
            copy.truncate()
            try:
                for piece in _pieces(file, until):
                    copy.write(piece)
                    self._check_size(file, copy.tell())
                    progress(copy.tell())
                return
            except Changed:
                raise NotFetched(f"{_shown_url(file)}: has changed since it was listed; look again") from None
            except _BrokenOff as broken:
                forget_connections()
                reason, arrived = broken.reason, copy.tell()
                if tries_left and not is_final(reason) and time.monotonic() < until:
                    continue
                if not arrived or is_final(reason):
                    raise NotFetched(sentence(file.path, reason)) from reason
                of = f" of {format_bytes(file.size_bytes)}" if file.size_bytes is not None else ""
                how = f"broke off after {format_bytes(arrived)}{of}; try again, or copy the logdir here"
                raise NotFetched(f"{_shown_url(file)}: {how}") from reason

    def _check_size(self, file: RemoteFile, size: int) -> None:
        if size > self.max_bytes:
            raise NotFetched(
                f"{_shown_url(file)}: is larger than the {format_bytes(self.max_bytes)} that copies of remote files "
                "may take; allow for more with TFCOMPARE_FETCHED_MB"
            )

    def _refusal(self, error: OSError) -> str:
        """Why the cache folder cannot take a copy, and what to do about it."""
        remedy = "name a folder that can be written in TFCOMPARE_FETCHED"
        if error.errno in DISK_IS_FULL:
            remedy = "make room there, or name another folder in TFCOMPARE_FETCHED"
        elif isinstance(error, NotPrivate):
            remedy = "name a folder of your own in TFCOMPARE_FETCHED"
        is_no_folder = error.errno in (errno.EEXIST, errno.ENOTDIR)
        reason = "it is not a folder" if is_no_folder else error.strerror or str(error)
        return f"a copy does not fit into {text_of(str(self.folder))} ({reason}); {remedy}"


def remote_cache() -> Cache:
    """The cache for copies of remote files on this machine, as set in the environment."""
    given = from_environment()
    return Cache(given.fetched_folder, given.fetched_bytes)


class _BrokenOff(Exception):
    """Wraps an error of the server or its driver, as opposed to one of this machine's disk."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def _pieces(file: RemoteFile, until: float) -> Iterator[bytes]:
    """The bytes of the file. Raises `Changed`, and `_BrokenOff` for what a driver raises, or if bytes are missing."""
    arrived = 0
    try:
        for piece in connect(RemotePlace(file.path, file.address)).pieces(file):
            arrived += len(piece)
            yield piece
            if time.monotonic() >= until:
                raise TimeoutError
        if file.size_bytes is not None and arrived != file.size_bytes:
            raise ConnectionError
    except Changed:
        raise
    except TfcompareError as error:
        raise NotFetched(str(error)) from error
    except Exception as error:
        raise _BrokenOff(error) from error


def _shown_url(file: RemoteFile) -> str:
    """The file's URL, for a sentence."""
    return text_of(str(file.path))


def bytes_at_hand(path: Path) -> int:
    """The size of the copy at `path`; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
