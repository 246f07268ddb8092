"""What is known of remote files before they are fetched."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tfcompare.sources.remote.places import RemotePath

_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "Digest")
_TIMES = ("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "created", "modificationTime")

_IGNORED = ("node_modules", "__pycache__")
"""Folders that are not looked into, like all whose name begins with a dot."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as its server describes it. `version` differs when its content does; `size_bytes` is None where unknown.

    Where the server reports nothing that `version` could be, it differs with every listing, and `is_versioned` is
    False. `address` is what the driver is asked for.
    """

    path: RemotePath
    address: str = field(repr=False)
    size_bytes: int | None
    version: str
    modified_ns: int
    is_versioned: bool = True

    @property
    def digest(self) -> str:
        """Names just this version of the file."""
        key = f"{self.address}\0{self.size_bytes}\0{self.version}"
        return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def is_still(self, now: RemoteFile) -> bool:
        """Whether the server reports the same of the file now, as far as it reports anything."""
        return self.size_bytes == now.size_bytes and now.version in (self.version, "")


@dataclass(frozen=True)
class Listing:
    """What lies at and below a place: itself, where it is a file; else all files below it but those in hidden folders.

    Of files that are no profiles, size and version may be unknown. `lost`: what could not be looked at, and why.
    """

    place: RemotePath
    is_folder: bool
    files: tuple[RemoteFile, ...]
    lost: tuple[tuple[RemotePath, str], ...] = ()


def remote_file(path: RemotePath, address: str, info: Mapping[str, Any], size_bytes: int | None) -> RemoteFile:
    """A file by what a driver, or the headers of an answer, report of it."""
    modified = next((when for key in _TIMES if (when := _time(info.get(key)))), None)
    tag = next((str(info[key]) for key in _TAGS if info.get(key)), "").removeprefix("W/").strip('"')
    version = tag or (
        modified.isoformat(timespec="seconds" if modified.microsecond == 0 else "auto") if modified else ""
    )
    modified_ns = int(modified.timestamp()) * 10**9 if modified else 0
    return RemoteFile(path, address, size_bytes, version, modified_ns)


def as_listed(file: RemoteFile) -> RemoteFile:
    """The file with a version, if need be one that no other listing gives it."""
    if file.version:
        return file
    return replace(file, version=f"listed {time.time_ns()}", is_versioned=False)


def _time(value: object) -> datetime | None:
    """A time as one of the drivers gives it: a datetime, seconds, or text of HTTP or ISO 8601."""
    try:
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str) and value:
            return datetime.fromisoformat(value) if value[0].isdigit() else parsedate_to_datetime(value)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def is_looked_into(folders: tuple[str, ...]) -> bool:
    """Whether files in such folders, the outermost first, may be runs."""
    return not any(name.startswith(".") or name in _IGNORED for name in folders)
