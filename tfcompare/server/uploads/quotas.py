"""Limits on what all uploads together may take on disk, and reservations for those that are arriving.

An upload reserves its size in a file in the folder in which it is assembled, so that several which arrive at the same
time do not exceed a limit together. Nothing is deleted to make room, except what ended processes have left.
"""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfcompare.server.uploads.limits import BadUpload
from tfcompare.sources.abandoned_folders import ARRIVING, remove_left, this_process
from tfcompare.units import format_bytes

ABOUT = "about.json"

_RESERVED = ".reserved"
_SESSION = "session-"
_lock = threading.Lock()


@dataclass(frozen=True)
class Quotas:
    """The limits on the stored uploads of one owner, and of all owners."""

    owner_bytes: int = 16 << 30
    all_bytes: int = 32 << 30

    def reserve(self, upload: str, size_bytes: int, folder: Path) -> None:
        """Reserve `size_bytes` for the upload that is assembled in `folder`, in its owner's folder.

        A further call replaces the reservation, which ends with the folder. Raises `BadUpload` if there is no room.
        """
        with _lock:
            try:
                self._check(upload, size_bytes, folder)
            except BadUpload:
                clean(folder.parents[2])
                self._check(upload, size_bytes, folder)
            (folder / _RESERVED).write_text(str(size_bytes))

    def _check(self, upload: str, size_bytes: int, folder: Path) -> None:
        used = {
            owner: sum(_size(arrived) for arrived in _folders(owner) if arrived != folder)
            for owner in _folders(folder.parents[1])
        }
        owner_free = self.owner_bytes - used.get(folder.parent, 0)
        all_free = self.all_bytes - sum(used.values())
        if size_bytes > owner_free:
            raise BadUpload(
                f"{upload}: needs {format_bytes(size_bytes)}, but only {format_bytes(max(owner_free, 0))} of the "
                f"{format_bytes(self.owner_bytes)} for your uploads are free; delete some of them, or ask who runs the "
                f"server to raise TFCOMPARE_USER_UPLOADS_MB"
            )
        if size_bytes > all_free:
            raise BadUpload(
                f"{upload}: needs {format_bytes(size_bytes)}, but only {format_bytes(max(all_free, 0))} of the "
                f"{format_bytes(self.all_bytes)} for the uploads of all users are free; delete uploads that are no "
                f"longer needed, or ask who runs the server to raise TFCOMPARE_UPLOADS_MB"
            )


def session_owner(session: str) -> str:
    """The owner of what one browser session uploads to this process."""
    return f"{_SESSION}{this_process()}-{re.sub(r'[^a-z0-9]', '', session.lower())[:64]}"


def clean(data: Path) -> None:
    """Remove unfinished uploads below a data folder, and those of browser sessions whose process has ended."""
    for owner in _folders(data / "uploads"):
        remove_left(owner)
    remove_left(data / "uploads", _SESSION)


def _size(folder: Path) -> int:
    """What an upload takes, or has reserved while it arrives."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        if folder.name.startswith(ARRIVING):
            return int((folder / _RESERVED).read_text())
        return int(json.loads((folder / ABOUT).read_text(encoding="utf-8"))["size_bytes"])
    return 0


def _folders(folder: Path) -> list[Path]:
    with suppress(OSError):
        return [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    return []
