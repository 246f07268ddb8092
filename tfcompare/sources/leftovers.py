"""What a process leaves behind when it is killed: folders that are named after it, and are removed once it is gone."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

ARRIVING, LEAVING = ".arriving-", ".leaving-"
"""What uploads and captures are put together in, and moved to when they are deleted."""

_SESSION = "session-"


def this_process() -> str:
    """This machine and process, in the names of folders that go with it."""
    host = hashlib.blake2b(socket.gethostname().encode(), digest_size=6).hexdigest()
    return f"{host}-{os.getpid()}"


def session_owner(session: str) -> str:
    """The owner of what one browser session uploads to this process."""
    return f"{_SESSION}{this_process()}-{re.sub(r'[^a-z0-9]', '', session.lower())[:64]}"


def clean(data: Path) -> None:
    """Remove unfinished uploads below a data folder, and those of browser sessions, whose process is gone."""
    for owner in _entries(data / "uploads"):
        remove_left(owner)
    remove_left(data / "uploads", _SESSION)
    remove_left(data / "captures")


def remove_left(folder: Path, *prefixes: str) -> None:
    """Remove what a process that is gone has left in `folder`, by the prefixes of its names.

    Without prefixes, what it put together there or was about to delete.
    """
    for entry in _entries(folder):
        if any(_is_left(entry.name, prefix) for prefix in prefixes or (ARRIVING, LEAVING)):
            shutil.rmtree(entry, ignore_errors=True)


def delete(path: Path, folder: Path) -> None:
    """Remove what lies at `path`, somewhere in `folder`: as a whole, even where this process is killed meanwhile.

    Nothing happens where it is gone already. Raises OSError where it cannot be moved.
    """
    leaving = Path(mkdtemp(prefix=f"{LEAVING}{this_process()}-", dir=folder))
    try:
        with suppress(FileNotFoundError):
            path.rename(leaving / path.name)
    finally:
        shutil.rmtree(leaving, ignore_errors=True)


def _entries(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from [Path(entry.path) for entry in os.scandir(folder)]


def _is_left(name: str, prefix: str) -> bool:
    """Whether a folder is named after a process that is gone; of another machine's processes nothing is known."""
    if not name.startswith(prefix):
        return False
    host, process, *_ = [*name.removeprefix(prefix).split("-"), "", ""]
    if host != this_process().partition("-")[0] or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
