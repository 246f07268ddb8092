"""Remote files brought to this machine, into a cache of bounded size, and held there while they are read.

    <folder>/<digest>.xplane.pb          a whole file; the digest is that of its URL and version
    <folder>/<digest>.xplane.pb.part     what has arrived of one

A file has its name only once it is whole, so none is ever half-read, and a changed one has another name. Whoever
fetches or reads a file holds a lock on it: others wait, and what makes room passes it over. A process that is killed
leaves a `.part`, where the next one goes on.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tfcompare.errors import NotFetched
from tfcompare.remote.failures import is_final, sentence
from tfcompare.remote.files import RemoteFile
from tfcompare.remote.locks import locked_to_read, locked_to_write
from tfcompare.remote.places import RemotePlace
from tfcompare.remote.stores import Changed, StartAgain, connect, forget_connections
from tfcompare.text import text_of
from tfcompare.units import format_bytes

PART = ".part"
_OURS = re.compile(r"[0-9a-f]{32}(\.xplane\.pb)?(\.gz)?(\.part)?")
_SUFFIXES = (".xplane.pb.gz", ".xplane.pb", ".gz")
_TRIES = 3
_PAUSE_S = 0.5
_POLL_S = 0.1

Progress = Callable[[int], None]
"""Called with the bytes of a file that are here."""


@dataclass(frozen=True)
class Cache:
    """The folder for what was fetched. What was not used for longest makes room where `max_bytes` would be exceeded."""

    folder: Path
    max_bytes: int

    def path_of(self, file: RemoteFile) -> Path:
        """Where the file lies, or will lie."""
        suffix = next((s for s in _SUFFIXES if file.path.name.endswith(s)), "")
        return self.folder / f"{file.digest}{suffix}"

    @contextmanager
    def held(self, file: RemoteFile, progress: Progress = lambda _: None) -> Iterator[Path]:
        """The path of the whole file, fetched if need be; nobody removes it meanwhile.

        Raises `NotFetched` where it cannot be had, has changed since it was listed, is larger than the whole cache, or
        cannot be kept.
        """
        with ExitStack() as held:
            while not self._is_had(file, held, progress):
                progress(bytes_at_hand(self.path_of(file)))  # of another process, or thread, that fetches the same
                time.sleep(_POLL_S)
            yield self.path_of(file)

    def discard(self, file: RemoteFile) -> None:
        """Remove what is kept of a file: it turned out to be damaged."""
        with suppress(OSError):
            self.path_of(file).unlink()

    def make_room(self, needed_bytes: int = 0) -> None:
        """Remove what was not used for longest, as much as is too much; what is held, or being fetched, stays."""
        kept = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                if not _OURS.fullmatch(entry.name):
                    continue
                kept.append((entry.stat().st_mtime_ns, entry.stat().st_size, Path(entry.path)))
        excess = sum(size for _, size, _ in kept) + needed_bytes - self.max_bytes
        for _, size, path in sorted(kept):
            if excess <= 0:
                return
            with suppress(OSError), locked_to_write(path, create=False) as descriptor:
                if descriptor is not None:
                    path.unlink()
                    excess -= size

    def _is_had(self, file: RemoteFile, held: ExitStack, progress: Progress) -> bool:
        """Whether the file is here, or could be fetched, with its lock given to `held`; False while others fetch it."""
        path = self.path_of(file)
        part = path.with_name(path.name + PART)
        with ExitStack() as locks:
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                descriptor = locks.enter_context(locked_to_read(path))
                if descriptor is None or not _is_whole(descriptor, file):
                    descriptor = locks.enter_context(locked_to_write(part, create=True))
                    if descriptor is None or _is_whole_at(path, file):  # since it was looked for
                        return False
                    self._fetch(file, descriptor, part, progress)
            except OSError as error:
                raise self._not_kept(file, error) from error
            with suppress(OSError):
                os.utime(path)  # the time of last use
            progress(os.fstat(descriptor).st_size)
            held.push(locks.pop_all())
        return True

    def _fetch(self, file: RemoteFile, descriptor: int, part: Path, progress: Progress) -> None:
        """Fills the `.part`, which is locked, and gives it the name of a whole file."""
        try:
            self._check_size(file, file.size_bytes or 0)
            self.make_room((file.size_bytes or 0) - os.fstat(descriptor).st_size)
            _download(file, descriptor, partial(self._check_and_tell, file, progress))
            os.fsync(descriptor)
        except (_Useless, OSError):
            with suppress(OSError):
                part.unlink()
            raise
        part.replace(self.path_of(file))
        self.make_room()

    def _check_and_tell(self, file: RemoteFile, progress: Progress, arrived: int) -> None:
        self._check_size(file, arrived)
        progress(arrived)

    def _check_size(self, file: RemoteFile, size: int) -> None:
        if size > self.max_bytes:
            raise _Useless(
                f"{_shown(file)}: is larger than the {format_bytes(self.max_bytes)} that copies of remote files may "
                "take; allow for more with TFCOMPARE_FETCHED_MB"
            )

    def _not_kept(self, file: RemoteFile, error: OSError) -> NotFetched:
        return NotFetched(
            f"{_shown(file)}: cannot be kept in {text_of(str(self.folder))} ({error.strerror or error}); make room "
            "there, or name another folder in TFCOMPARE_FETCHED"
        )


class _Useless(NotFetched):
    """What has arrived is of no use for another try."""


def bytes_at_hand(path: Path) -> int:
    """How much of a file that is fetched to `path` is here."""
    for where in (path, path.with_name(path.name + PART)):
        with suppress(OSError):
            return where.stat().st_size
    return 0


def _is_whole(descriptor: int, file: RemoteFile) -> bool:
    return file.size_bytes is None or os.fstat(descriptor).st_size == file.size_bytes


def _is_whole_at(path: Path, file: RemoteFile) -> bool:
    with locked_to_read(path) as descriptor:
        return descriptor is not None and _is_whole(descriptor, file)


def _download(file: RemoteFile, descriptor: int, progress: Progress) -> None:
    """Writes what is missing; where the connection breaks, goes on from there, a few times.

    Raises `NotFetched`, and OSError where the disk does not take it.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            _write_rest(file, descriptor, progress)
        except Changed:
            raise _Useless(f"{_shown(file)}: has changed since it was listed; look again") from None
        except StartAgain:
            os.ftruncate(descriptor, 0)
        except _DiskError as error:
            raise error.reason from None
        except _Useless:
            raise
        except Exception as error:  # drivers raise what they like
            forget_connections()
            if is_final(error):
                raise _Useless(sentence(file.path, error)) from error
            if not tries_left:
                raise _broken_off(file, os.fstat(descriptor).st_size, error) from error
            time.sleep(_PAUSE_S)
        else:
            return
    raise _Useless(f"{_shown(file)}: the server does not send it as a whole; try again, or copy the logdir here")


def _write_rest(file: RemoteFile, descriptor: int, progress: Progress) -> None:
    place = RemotePlace(file.path, file.address)
    arrived = os.lseek(descriptor, 0, os.SEEK_END)
    if file.size_bytes is not None and arrived >= file.size_bytes:  # nobody knows how: whole files have another name
        raise StartAgain
    for piece in connect(place).pieces(file, arrived):
        _write(descriptor, piece)
        arrived += len(piece)
        progress(arrived)
    if file.size_bytes is not None and arrived < file.size_bytes:
        raise ConnectionError
    if file.size_bytes is not None and arrived > file.size_bytes:
        raise Changed


class _DiskError(Exception):
    def __init__(self, reason: OSError) -> None:
        self.reason = reason


def _write(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise _DiskError(error) from None


def _broken_off(file: RemoteFile, arrived: int, error: Exception) -> NotFetched:
    if not arrived:
        return NotFetched(sentence(file.path, error))
    of = f" of {format_bytes(file.size_bytes)}" if file.size_bytes is not None else ""
    return NotFetched(
        f"{_shown(file)}: broke off after {format_bytes(arrived)}{of}; what has arrived is kept: try again to go on "
        "from there"
    )


def _shown(file: RemoteFile) -> str:
    return text_of(str(file.path))
