"""Folders of files that can be made again: the least recently used make room for others.

Other processes may add and remove files meanwhile. Links are not followed, and files of other names stay.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tfcompare.sources.abandoned_folders import ARRIVING

DISK_IS_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""The `errno` of an OSError for a full disk, or a quota that is used up."""
_ABANDONED_AFTER_S = 3600
"""A file that has been incomplete for this long was left by a process that has ended: no transfer takes longer."""


def make_room(
    folders: Iterable[Path], max_bytes: int, is_ours: Callable[[Path], object], written: Path | None = None
) -> int:
    """Remove incomplete files that ended processes left in the folders, and the least recently used of ours above
    `max_bytes`, but not the one that was just `written`; returns the bytes that ours take now."""
    remove_abandoned(folders)
    files = sorted((about.st_mtime_ns, path, about.st_size) for path, about in _files(folders) if is_ours(path))
    total = sum(size_bytes for _, _, size_bytes in files)
    for _, path, size_bytes in files:
        if total <= max_bytes:
            break
        if path != written:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                total -= size_bytes
    return total


def remove_abandoned(folders: Iterable[Path], older_than_s: float = _ABANDONED_AFTER_S) -> None:
    """Remove incomplete files in the folders to which nothing was added for so long."""
    for path, about in _files(folders):
        if path.name.startswith(ARRIVING) and time.time() - about.st_mtime > older_than_s:
            with suppress(OSError):
                path.unlink()


def _files(folders: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for folder in folders:
        with suppress(OSError):
            for entry in os.scandir(folder):
                with suppress(OSError):
                    if not entry.is_dir(follow_symlinks=False):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)
