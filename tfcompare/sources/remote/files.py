"""What is known about remote files before they are fetched."""

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
"""Folders that are not searched, in addition to hidden ones (with a leading dot)."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as its server describes it. `version` changes with its content; `size_bytes` is None if unknown.

    If the server reports nothing to use as `version`, it differs with every listing, and `is_versioned` is False.
    `address` is what the driver is called with.
    """

    path: RemotePath
    address: str = field(repr=False)
    size_bytes: int | None
    version: str
    modified_ns: int
    is_versioned: bool = True

    @property
    def digest(self) -> str:
        """Identifies this version of the file."""
        key = f"{self.address}\0{self.size_bytes}\0{self.version}"
        return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def is_still(self, now: RemoteFile) -> bool:
        """Whether the server still reports the same metadata for the file, as far as it reports any."""
        return self.size_bytes == now.size_bytes and now.version in (self.version, "")


@dataclass(frozen=True)
class Listing:
    """The contents of a place: the file itself, or all files below a folder, except those in hidden folders.

    Size and version of files that are not profiles may be unknown.
    """

    place: RemotePath
    is_folder: bool
    files: tuple[RemoteFile, ...]


def remote_file(path: RemotePath, address: str, info: Mapping[str, Any], size_bytes: int | None) -> RemoteFile:
    """A file, from the metadata that a driver or response headers report."""
    return RemoteFile(path, address, size_bytes, *version_and_time(info))


def version_and_time(info: Mapping[str, Any]) -> tuple[str, int]:
    """(what changes with a file's content, when that was, in ns and whole seconds), from the metadata that a driver or
    response headers report; empty and 0 where they do not."""
    modified = next((when for key in _TIMES if (when := _time(info.get(key)))), None)
    tag = next((str(info[key]) for key in _TAGS if info.get(key)), "").removeprefix("W/").strip('"')
    if modified is None:
        return tag, 0
    version = tag or modified.isoformat(timespec="seconds" if modified.microsecond == 0 else "auto")
    return version, int(modified.timestamp()) * 10**9


def as_listed(file: RemoteFile) -> RemoteFile:
    """The file with a version; without one from the server, it is unique to this listing."""
    return file if file.version else replace(file, version=f"listed {time.time_ns()}", is_versioned=False)


def _time(value: object) -> datetime | None:
    """A time in any of the drivers' formats: a datetime, seconds, or text in HTTP or ISO 8601 format."""
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
    """Whether files in such folders, outermost first, may be runs."""
    return not any(name.startswith(".") or name in _IGNORED for name in folders)
