"""Checks and opens the members of zip archives."""

from __future__ import annotations

import io
import stat
import zipfile
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from tfcompare.sources.uploads.limits import BadUpload, Limits, safe_path
from tfcompare.sources.uploads.members import Member, Members

SIGNATURES = (b"PK\3\4", b"PK\5\6")
"""The first bytes of a zip, and of one without members."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_ENCRYPTED = 0x1
_LOCAL_HEADER_BYTES = 30


def zip_members(upload: str, file: BinaryIO, limits: Limits) -> Members:
    """The files of a zip. Raises `BadUpload` at the first member that is refused."""
    packed = file.seek(0, io.SEEK_END)
    expanded = 0
    with zipfile.ZipFile(_LimitedReads(upload, file, limits)) as archive:
        entries = archive.infolist()
        limits.check_count(upload, len(entries))
        _check_offsets(upload, entries, packed)
        for entry in entries:
            if (member := _member(upload, entry)) is not None:
                limits.check_file(upload, member.name, member.size_bytes)
                expanded += member.size_bytes
                limits.check_expanded(upload, expanded, packed)
                yield member, partial(_open_member, archive, entry)


def _open_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, _: Path) -> IO[bytes]:
    return archive.open(entry)


def _member(upload: str, entry: zipfile.ZipInfo) -> Member | None:
    """None for a folder."""
    name = entry.orig_filename
    path = safe_path(upload, name) if name.strip("/\\") else None
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        what = "a link" if kind == stat.S_IFLNK else "a device or pipe"
        raise BadUpload(f"{upload}: {name!r} is {what}; nothing was unpacked: pack plain files only")
    if entry.is_dir() or kind == stat.S_IFDIR or path is None:
        return None
    if entry.flag_bits & _ENCRYPTED:
        raise BadUpload(f"{upload}: {name!r} is encrypted; pack it without a password")
    if entry.compress_type not in _METHODS:
        raise BadUpload(f"{upload}: {name!r} is packed by method {entry.compress_type}; pack it as a plain zip")
    return Member(name, path, entry.file_size)


def _check_offsets(upload: str, entries: list[zipfile.ZipInfo], packed: int) -> None:
    """Raises `BadUpload` for members that share bytes, as in zip bombs, or that extend beyond the end."""
    end, name = 0, ""
    for entry in sorted(entries, key=lambda e: (e.header_offset, e.compress_size)):
        if entry.header_offset < end:
            raise BadUpload(f"{upload}: {entry.filename!r} and {name!r} share bytes, as no packer writes them")
        name_bytes = len(entry.orig_filename.encode("utf-8", "surrogateescape"))
        end, name = entry.header_offset + _LOCAL_HEADER_BYTES + name_bytes + entry.compress_size, entry.filename
    if end > packed:
        raise BadUpload(f"{upload}: {name!r} lies beyond the end of the archive; upload it anew")


class _LimitedReads(io.RawIOBase):
    """The file, without large reads: `zipfile` reads the archive's directory at once, whatever size it claims to have.

    The size may be forged in two places, the end record and that of zip64; a limit on what is read covers both.
    """

    def __init__(self, upload: str, file: BinaryIO, limits: Limits) -> None:
        self._upload, self._file, self._limits = upload, file, limits

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes. Raises `BadUpload` if that is more than the headers of an archive may have."""
        self._limits.check_headers(self._upload, size)
        chunk = self._file.read(size if size >= 0 else self._limits.header_bytes + 1)
        self._limits.check_headers(self._upload, len(chunk))
        return chunk
