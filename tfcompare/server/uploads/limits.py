"""The limits on the contents of an upload, and on the names in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from tfcompare.errors import TfcompareError
from tfcompare.units import format_bytes

MOST_NAME_BYTES = 255
"""The longest file name that file systems support, in bytes."""

MOST_PATH_BYTES = 1024

MOST_FOLDERS_IN_A_PATH = 32
"""How deep a file may lie; each level of each of its files may be a folder to make."""

_FREE_GROWTH_BYTES = 64 << 20


class BadUpload(TfcompareError):
    """An upload that was refused; none of it was stored."""


@dataclass(frozen=True)
class Limits:
    """The limits for one upload. Profiles in an archive expand by a factor of three to twenty.

    Listing and unpacking an archive may each take `seconds`, more by its expanded size, and `memory_bytes`.
    """

    members: int = 10_000
    file_bytes: int = 2 << 30
    total_bytes: int = 8 << 30
    growth: int = 100
    seconds: float = 20
    memory_bytes: int = 256_000_000

    def most_expanded_bytes(self, packed_bytes: int) -> int:
        """The limit on the expanded size of an archive of that size."""
        return min(self.total_bytes, _FREE_GROWTH_BYTES + self.growth * packed_bytes)

    def check_count(self, upload: str, count: int) -> None:
        """Raises `BadUpload` if there are more members than allowed."""
        if count > self.members:
            raise BadUpload(
                f"{upload}: holds {count:,} files, more than the {self.members:,} allowed; pack the profiles alone"
            )

    def check_file(self, upload: str, name: str, size_bytes: int) -> None:
        """Raises `BadUpload` if a file is larger than allowed."""
        if size_bytes > self.file_bytes:
            raise BadUpload(
                f"{upload}: {name!r} has {format_bytes(size_bytes)}, more than the {format_bytes(self.file_bytes)} "
                "allowed for a file; profile fewer steps, or raise the limit"
            )

    def check_total(self, upload: str, size_bytes: int) -> None:
        """Raises `BadUpload` if all files together are larger than allowed."""
        if size_bytes > self.total_bytes:
            raise BadUpload(
                f"{upload}: {format_bytes(size_bytes)} of profiles, more than the {format_bytes(self.total_bytes)} "
                "allowed for one upload; upload fewer runs at a time"
            )

    def check_expanded(self, upload: str, expanded_bytes: int, packed_bytes: int) -> None:
        """Raises `BadUpload` if an archive of `packed_bytes` expands more than profiles do."""
        if expanded_bytes > self.most_expanded_bytes(packed_bytes):
            raise BadUpload(
                f"{upload}: {format_bytes(packed_bytes)} that expand to more than "
                f"{format_bytes(self.most_expanded_bytes(packed_bytes))}, as no packed profiles do; it was not unpacked"
            )


def safe_path(upload: str, name: str) -> PurePosixPath:
    """The relative path of a member, below the folder it is unpacked to. `/` and `\\` are both separators.

    Raises `BadUpload` for a path that is absolute, leaves that folder, or contains an invalid file name.
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
    if len(parts) > MOST_FOLDERS_IN_A_PATH:
        raise _refused(upload, shown, f"lies more than {MOST_FOLDERS_IN_A_PATH} folders deep")
    return PurePosixPath(*parts)


def check_distinct(upload: str, paths: list[PurePosixPath]) -> None:
    """Raises `BadUpload` if two paths are equal, or one is inside the other; case is ignored."""
    seen: dict[tuple[str, ...], PurePosixPath] = {}
    for path in paths:
        key = tuple(part.casefold() for part in path.parts)
        if key in seen:
            raise _refused(upload, str(path), "is there twice")
        seen[key] = path
    for key, path in seen.items():
        for end in range(1, len(key)):
            if key[:end] in seen:
                raise _refused(upload, str(path), f"lies in {str(seen[key[:end]])!r}, which is a file")


def _refused(upload: str, name: str, why: str) -> BadUpload:
    return BadUpload(f"{upload}: {name!r} {why}; nothing was unpacked: pack the profiles anew with plain names")
