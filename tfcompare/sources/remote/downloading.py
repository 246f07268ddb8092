"""Downloads a remote file: resumes broken connections, and detects that the file has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from tfcompare.errors import NotFetched
from tfcompare.sources.remote.failures import DOWNLOAD_S, Changed, StartAgain, is_final, sentence
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.sources.remote.stores import connect, forget_connections
from tfcompare.text import text_of
from tfcompare.units import format_bytes

_TRIES = 3
_PAUSE_S = 0.5
PACE_S = 60.0
PACE_BYTES = 1_000_000
"""A server that sends fewer bytes than this within `PACE_S` is given up, since it would block a download for days."""

Progress = Callable[[int], None]
"""Called with the number of bytes that have arrived."""


class Useless(NotFetched):
    """What has arrived cannot be used for another try."""


def download(file: RemoteFile, descriptor: int, progress: Progress) -> None:
    """Write the missing bytes; if the connection breaks, resume it, up to a few times within `DOWNLOAD_S`.

    Raises `NotFetched`, also for a server that is too slow, and OSError if writing to disk fails.
    """
    until = time.monotonic() + DOWNLOAD_S
    for tries_left in reversed(range(_TRIES)):
        try:
            _write_rest(file, descriptor, progress)
        except Changed:
            raise Useless(f"{shown(file)}: has changed since it was listed; look again") from None
        except StartAgain:
            os.ftruncate(descriptor, 0)
        except _DiskError as error:
            raise error.reason from None
        except NotFetched:
            raise
        except Exception as error:  # drivers raise any exception
            forget_connections()
            if is_final(error):
                raise Useless(sentence(file.path, error)) from error
            if not tries_left or time.monotonic() >= until:
                raise _broken_off(file, os.fstat(descriptor).st_size, error) from error
            time.sleep(_PAUSE_S)
        else:
            return
    raise Useless(f"{shown(file)}: the server does not send it as a whole; try again, or copy the logdir here")


def _write_rest(file: RemoteFile, descriptor: int, progress: Progress) -> None:
    place = RemotePlace(file.path, file.address)
    arrived = os.lseek(descriptor, 0, os.SEEK_END)
    if file.size_bytes is not None and arrived >= file.size_bytes:  # unexpected: complete files have another name
        raise StartAgain
    since, arrived_then = time.monotonic(), arrived
    for piece in connect(place).pieces(file, arrived):
        _write(descriptor, piece)
        arrived += len(piece)
        progress(arrived)
        if time.monotonic() - since >= PACE_S and arrived != file.size_bytes:
            _check_pace(file, arrived - arrived_then)
            since, arrived_then = time.monotonic(), arrived
    if file.size_bytes is not None and arrived < file.size_bytes:
        raise ConnectionError
    if file.size_bytes is not None and arrived > file.size_bytes:
        raise Changed


def _check_pace(file: RemoteFile, arrived: int) -> None:
    if arrived < PACE_BYTES:
        raise NotFetched(
            f"{shown(file)}: the server sent {format_bytes(arrived)} within {PACE_S:g} s, where at least "
            f"{format_bytes(PACE_BYTES)} were expected; what has arrived is cached: try again to continue from there"
        )


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
        f"{shown(file)}: broke off after {format_bytes(arrived)}{of}; what has arrived is cached: try again to "
        "continue from there"
    )


def shown(file: RemoteFile) -> str:
    """The file's URL, for a sentence."""
    return text_of(str(file.path))
