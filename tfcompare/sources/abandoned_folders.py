"""Removes what killed processes leave behind: folders that are named after their process."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

ARRIVING, LEAVING = ".arriving-", ".leaving-"
"""Prefixes of folders in which uploads and captures are assembled, and to which they are moved for deletion."""


def this_process() -> str:
    """Identifies this machine and process in the names of folders that belong to them."""
    host = hashlib.blake2b(socket.gethostname().encode(), digest_size=6).hexdigest()
    return f"{host}-{os.getpid()}"


def remove_left(folder: Path, *prefixes: str) -> None:
    """Remove what ended processes left in `folder`, by the prefixes of its names.

    The default prefixes are those of unfinished and partly deleted folders.
    """
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if any(_is_left(entry.name, prefix) for prefix in prefixes or (ARRIVING, LEAVING)):
                shutil.rmtree(entry.path, ignore_errors=True)


def delete(path: Path, folder: Path) -> None:
    """Remove `path`, which is in `folder`, completely, even if this process is killed meanwhile.

    Nothing happens if it does not exist. Raises OSError if it cannot be moved.
    """
    leaving = Path(mkdtemp(prefix=f"{LEAVING}{this_process()}-", dir=folder))
    try:
        with suppress(FileNotFoundError):
            path.rename(leaving / path.name)
    finally:
        shutil.rmtree(leaving, ignore_errors=True)


def _is_left(name: str, prefix: str) -> bool:
    """Whether a folder is named after an ended process; processes of other machines count as running."""
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
