"""The limits on what an upload may hold, and on the names in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from tfcompare.errors import TfcompareError
from tfcompare.units import format_bytes

MOST_NAME_BYTES = 255
"""What a file system takes as one name."""

MOST_PATH_BYTES = 1024

_FREE_GROWTH_BYTES = 64 << 20


class BadUpload(TfcompareError):
    """An upload that is refused as a whole: nothing of it was stored."""


@dataclass(frozen=True)
class Limits:
    """The most that one upload may hold. Profiles in an archive grow by three to twenty times."""

    members: int = 10_000
    file_bytes: int = 2 << 30
    total_bytes: int = 8 << 30
    growth: int = 100

    def most_expanded_bytes(self, packed_bytes: int) -> int:
        """What an archive of that size may expand to."""
        return min(self.total_bytes, _FREE_GROWTH_BYTES + self.growth * packed_bytes)

    def check_count(self, upload: str, count: int) -> None:
        """Raises `BadUpload` for more members than allowed."""
        if count > self.members:
            raise BadUpload(
                f"{upload}: holds {count:,} files, more than the {self.members:,} allowed; pack the profiles alone"
            )

    def check_file(self, upload: str, name: str, size_bytes: int) -> None:
        """Raises `BadUpload` for a file larger than allowed."""
        if size_bytes > self.file_bytes:
            raise BadUpload(
                f"{upload}: {name} has {format_bytes(size_bytes)}, more than the {format_bytes(self.file_bytes)} "
                "allowed for a file; profile fewer steps, or raise the limit"
            )

    def check_total(self, upload: str, size_bytes: int) -> None:
        """Raises `BadUpload` where all files together are larger than allowed."""
        if size_bytes > self.total_bytes:
            raise BadUpload(
                f"{upload}: {format_bytes(size_bytes)} of profiles, more than the {format_bytes(self.total_bytes)} "
                "allowed for one upload; upload fewer runs at a time"
            )

    def check_expanded(self, upload: str, expanded_bytes: int, packed_bytes: int) -> None:
        """Raises `BadUpload` where an archive of `packed_bytes` expands to more than profiles do."""
        if expanded_bytes > self.most_expanded_bytes(packed_bytes):
            raise BadUpload(
                f"{upload}: {format_bytes(packed_bytes)} that expand to more than "
                f"{format_bytes(self.most_expanded_bytes(packed_bytes))}, as no packed profiles do; it was not unpacked"
            )


def safe_path(upload: str, name: str) -> PurePosixPath:
    """The path of a member, below wherever it is put. `/` and `\\` both separate.

    Raises `BadUpload` for a path that leaves that place, is absolute, or is no name that a file can have.
    """
    shown = name if len(name) <= MOST_NAME_BYTES else f"{name[:60]}…{name[-20:]}"
    if "\0" in name:
        raise _refused(upload, shown, "has a null character in its name")
    path = name.replace("\\", "/")
    if path.startswith("/") or path[1:3] == ":/" or path[1:] == ":":
        raise _refused(upload, shown, "has an absolute path")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refused(upload, shown, "leads out of its folder with `..`")
    if not parts:
        raise _refused(upload, shown or "a file", "has no name")
    encoded = [len(part.encode("utf-8", "surrogateescape")) for part in parts]
    if max(encoded) > MOST_NAME_BYTES or sum(encoded) + len(parts) > MOST_PATH_BYTES:
        raise _refused(upload, shown, "has a name that is too long")
    return PurePosixPath(*parts)


def check_distinct(upload: str, paths: list[PurePosixPath]) -> None:
    """Raises `BadUpload` where two files have one path, or one lies within the other; letter case tells none apart."""
    seen: dict[tuple[str, ...], PurePosixPath] = {}
    for path in paths:
        key = tuple(part.casefold() for part in path.parts)
        if key in seen:
            raise _refused(upload, str(path), "is there twice")
        seen[key] = path
    for key, path in seen.items():
        for end in range(1, len(key)):
            if key[:end] in seen:
                raise _refused(upload, str(path), f"lies in {seen[key[:end]]}, which is a file")


def _refused(upload: str, name: str, why: str) -> BadUpload:
    return BadUpload(f"{upload}: {name!r} {why}; nothing was unpacked: pack the profiles anew with plain names")
