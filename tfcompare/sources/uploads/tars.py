"""Checks and opens the members of tar archives, gzipped or not."""

from __future__ import annotations

import gzip
import io
import tarfile
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from tfcompare.sources.uploads.limits import BadUpload, Limits, safe_path
from tfcompare.sources.uploads.members import Member, Members
from tfcompare.units import format_bytes

MOST_HEADER_BYTES = 64_000
"""The limit on one extension header, such as a long name or PAX attributes; packers write some hundred bytes."""

MOST_HEADERS_IN_A_ROW = 8
"""How many extension headers a member may have; packers write at most three."""

_BUFFER_BYTES = 1 << 20
_EXTENSIONS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip


def tar_members(upload: str, file: BinaryIO, limits: Limits) -> Members:
    """The files of a tar. Raises `BadUpload` at the first member that is refused."""
    packed = file.seek(0, io.SEEK_END)
    file.seek(0)
    is_gzipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    source = gzip.GzipFile(fileobj=file) if is_gzipped else file
    with tarfile.open(fileobj=_Checked(upload, source, packed, limits), mode="r|", bufsize=_BUFFER_BYTES) as archive:
        for count, info in enumerate(archive, 1):
            limits.check_count(upload, count)
            if (member := _member(upload, info)) is not None:
                limits.check_file(upload, member.name, member.size_bytes)
                yield member, partial(_open_member, archive, info)


def _open_member(archive: tarfile.TarFile, info: tarfile.TarInfo, folder: Path) -> IO[bytes] | None:
    return archive.extractfile(tarfile.data_filter(info, str(folder)))


def _member(upload: str, info: tarfile.TarInfo) -> Member | None:
    """None for a folder."""
    path = None if info.isdir() and not info.name.strip("/\\.") else safe_path(upload, info.name)
    if info.isdir() or path is None:
        return None
    if info.issym() or info.islnk():
        raise BadUpload(f"{upload}: {info.name!r} is a link; nothing was unpacked: pack the files themselves")
    if info.issparse():
        raise BadUpload(f"{upload}: {info.name!r} is packed with holes; pack it without `--sparse`")
    if not info.isreg():
        raise BadUpload(f"{upload}: {info.name!r} is a device or pipe; nothing was unpacked: pack plain files only")
    return Member(info.name, path, info.size)


class _Checked(io.RawIOBase):
    """The unpacked stream, which refuses to expand too much, and extension headers that would take `tarfile` long.

    `tarfile` reads an extension header into memory, and parses it by a regular expression that takes quadratic time
    (CVE-2024-6232).
    """

    def __init__(self, upload: str, source: BinaryIO | gzip.GzipFile, packed: int, limits: Limits) -> None:
        self._upload, self._source, self._packed, self._limits = upload, source, packed, limits
        self._expanded = self._header_bytes = self._in_a_row = 0
        self._skip = 0
        self._partial = b""
        self._has_ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes. Raises `BadUpload`."""
        chunk = self._source.read(size)
        self._expanded += len(chunk)
        self._limits.check_expanded(self._upload, self._expanded, self._packed)
        self._follow(chunk)
        return chunk

    def _follow(self, chunk: bytes) -> None:
        """Check the headers in the next bytes of the stream, skipping the contents of members."""
        at = 0
        while not self._has_ended:
            skipped = min(self._skip, len(chunk) - at)
            at, self._skip = at + skipped, self._skip - skipped
            if at == len(chunk):
                return
            missing = tarfile.BLOCKSIZE - len(self._partial)
            self._partial += chunk[at : at + missing]
            at += missing
            if at > len(chunk):
                return
            header, self._partial = self._partial, b""
            self._skip = -(-self._content_bytes(header) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE

    def _content_bytes(self, header: bytes) -> int:
        """How many bytes follow a header. Raises `BadUpload` for extension headers that are too large or too many."""
        try:
            info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            self._has_ended = True  # the end of the archive, for `tarfile` as well
            return 0
        size_bytes = max(info.size, 0)
        if info.type not in _EXTENSIONS:
            self._in_a_row = 0
            return size_bytes if info.isreg() else 0
        self._in_a_row += 1
        self._header_bytes += size_bytes + tarfile.BLOCKSIZE
        if size_bytes > MOST_HEADER_BYTES:
            raise BadUpload(
                f"{self._upload}: has a header of {format_bytes(size_bytes)}, more than the "
                f"{format_bytes(MOST_HEADER_BYTES)} allowed; pack the profiles anew with plain tar"
            )
        if self._in_a_row > MOST_HEADERS_IN_A_ROW:
            raise BadUpload(
                f"{self._upload}: has more than {MOST_HEADERS_IN_A_ROW} headers for one file; "
                "pack the profiles anew with plain tar"
            )
        self._limits.check_headers(self._upload, self._header_bytes)
        return size_bytes
