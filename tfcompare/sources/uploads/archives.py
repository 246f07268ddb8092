"""Lists zip and tar archives, and unpacks the profiles in them.

An archive is refused entirely if any member would not occur in a normal archive of profiles: an absolute path, `..`, a
link, a device, a duplicate or overlong name, members that share bytes, or more data than profiles expand to. Listing
and unpacking check the members in the same way, so the limits hold for both.
"""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from tfcompare.sources.logdir.files import is_profile, text_of
from tfcompare.sources.uploads.limits import MOST_PATH_BYTES, BadUpload, Limits, check_distinct, safe_path

Progress = Callable[[int], None]
"""Called with the number of bytes written since the last call."""

_CHUNK = 1 << 20
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_ENCRYPTED = 0x1
_END_OF_ZIP, _END_OF_ZIP_BYTES, _MOST_COMMENT_BYTES = b"PK\5\6", 22, 65_535
_LEAST_BYTES_PER_MEMBER = 46

_DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile, OSError, ValueError,
    NotImplementedError, RuntimeError, OverflowError, MemoryError, IndexError,
)  # fmt: skip
"""What the standard library raises for damaged or forged archives."""


@dataclass(frozen=True)
class Member:
    """A file in an archive. `name` is the name in the archive, `path` the path where it is unpacked."""

    name: str
    path: PurePosixPath
    size_bytes: int

    @property
    def is_profile(self) -> bool:
        """Whether it is a host's profile; other files are listed but not unpacked."""
        return is_profile(self.path.name) and "__MACOSX" not in self.path.parts


_Members = Iterator[tuple[Member, Callable[[Path], IO[bytes] | None]]]
"""Each file with a function that opens it, given the folder that it is unpacked to."""


def is_archive(name: str, head: bytes) -> bool:
    """Whether a file is a zip or tar archive, by its name and first bytes."""
    if head.startswith((b"PK\3\4", _END_OF_ZIP)):
        return True
    is_tar_name = name.lower().endswith((".tar", ".tar.gz", ".tgz"))
    return is_tar_name or head[257:262] == b"ustar"


def list_archive(upload: str, file: BinaryIO, limits: Limits) -> list[Member]:
    """The files in a fully checked archive; nothing is written.

    Raises `BadUpload`, naming the member, for a refused archive, and for one that cannot be read.
    """
    with _report_damage(upload):
        members = [member for member, _ in _members(upload, file, limits)]
    check_distinct(upload, [member.path for member in members])
    return members


def unpack(upload: str, file: BinaryIO, limits: Limits, folder: Path, progress: Progress) -> None:
    """Write the profiles of an archive that `list_archive` accepted below `folder`, which must exist.

    Raises `BadUpload` if the archive is damaged, `OSError` if writing to disk fails.
    """
    with _report_damage(upload):
        for member, open_in in _members(upload, file, limits):
            if member.is_profile and (source := open_in(folder)) is not None:
                with source:
                    write(upload, source, member, folder, progress)


def write(upload: str, source: IO[bytes], member: Member, folder: Path, progress: Progress) -> None:
    """Copy one member, up to its declared size; raises `BadUpload` if it is shorter."""
    target_path = folder.joinpath(*member.path.parts)
    left = member.size_bytes
    target_path.parent.mkdir(parents=True, exist_ok=True)
    with target_path.open("xb") as target:
        while left and (chunk := source.read(min(_CHUNK, left))):
            target.write(chunk)
            left -= len(chunk)
            progress(len(chunk))
    if left:
        raise BadUpload(f"{upload}: {member.name!r} breaks off {left:,} bytes before its end; upload the archive anew")


@contextmanager
def _report_damage(upload: str) -> Iterator[None]:
    try:
        yield
    except BadUpload:
        raise
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # a disk error, not a damaged archive
        what = text_of(str(error)) or type(error).__name__
        raise BadUpload(
            f"{upload}: not an archive that can be read ({what}); upload a zip or tar.gz, or pack it anew"
        ) from error


def _members(upload: str, file: BinaryIO, limits: Limits) -> _Members:
    file.seek(0)
    is_zip = file.read(4) in (b"PK\3\4", _END_OF_ZIP)
    return (_zip_members if is_zip else _tar_members)(upload, file, limits)


def _zip_members(upload: str, file: BinaryIO, limits: Limits) -> _Members:
    packed = file.seek(0, io.SEEK_END)
    limits.check_count(upload, _least_zip_count(file, packed))
    expanded = 0
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        limits.check_count(upload, len(entries))
        _check_zip_offsets(upload, entries, packed)
        for entry in entries:
            if (member := _zip_member(upload, entry)) is not None:
                limits.check_file(upload, member.name, member.size_bytes)
                expanded += member.size_bytes
                limits.check_expanded(upload, expanded, packed)
                yield member, partial(_open_zip_member, archive, entry)


def _open_zip_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, _: Path) -> IO[bytes]:
    return archive.open(entry)


def _least_zip_count(file: BinaryIO, packed: int) -> int:
    """The minimum number of members in the archive's directory, assuming names of at most the allowed length.

    Reading a directory of millions of entries would take gigabytes, but its size is in the end record.
    """
    file.seek(max(packed - _MOST_COMMENT_BYTES - _END_OF_ZIP_BYTES, 0))
    tail = file.read()
    at = tail.rfind(_END_OF_ZIP)
    if at < 0 or len(tail) < at + _END_OF_ZIP_BYTES:
        return 0  # not a zip: `zipfile` raises
    directory_bytes = int.from_bytes(tail[at + 12 : at + 16], "little")
    if directory_bytes == 0xFFFF_FFFF:  # the size is in the zip64 record
        directory_bytes = packed
    return min(directory_bytes, packed) // (_LEAST_BYTES_PER_MEMBER + MOST_PATH_BYTES)


def _zip_member(upload: str, entry: zipfile.ZipInfo) -> Member | None:
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
    if entry.compress_type not in _ZIP_METHODS:
        raise BadUpload(f"{upload}: {name!r} is packed by method {entry.compress_type}; pack it as a plain zip")
    return Member(name, path, entry.file_size)


def _check_zip_offsets(upload: str, entries: list[zipfile.ZipInfo], packed: int) -> None:
    """Raises `BadUpload` for members that share bytes, as in zip bombs, or that extend beyond the end."""
    end, name = 0, ""
    for entry in sorted(entries, key=lambda e: (e.header_offset, e.compress_size)):
        if entry.header_offset < end:
            raise BadUpload(f"{upload}: {entry.filename!r} and {name!r} share bytes, as no packer writes them")
        end, name = entry.header_offset + 30 + len(entry.orig_filename.encode()) + entry.compress_size, entry.filename
    if end > packed:
        raise BadUpload(f"{upload}: {name!r} lies beyond the end of the archive; upload it anew")


def _tar_members(upload: str, file: BinaryIO, limits: Limits) -> _Members:
    packed = file.seek(0, io.SEEK_END)
    file.seek(0)
    is_gzipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    stream = _Bounded(
        gzip.GzipFile(fileobj=file) if is_gzipped else file,
        lambda expanded: limits.check_expanded(upload, expanded, packed),
    )
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as archive:
        for count, info in enumerate(archive, 1):
            limits.check_count(upload, count)
            if (member := _tar_member(upload, info)) is not None:
                limits.check_file(upload, member.name, member.size_bytes)
                yield member, partial(_open_tar_member, archive, info)


def _open_tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo, folder: Path) -> IO[bytes] | None:
    return archive.extractfile(tarfile.data_filter(info, str(folder)))


def _tar_member(upload: str, info: tarfile.TarInfo) -> Member | None:
    """None for a folder."""
    path = safe_path(upload, info.name) if info.name.strip("/\\.") else None
    if info.isdir() or path is None:
        return None
    if info.issym() or info.islnk():
        raise BadUpload(f"{upload}: {info.name!r} is a link; nothing was unpacked: pack the files themselves")
    if info.issparse():
        raise BadUpload(f"{upload}: {info.name!r} is packed with holes; pack it without `--sparse`")
    if not info.isreg():
        raise BadUpload(f"{upload}: {info.name!r} is a device or pipe; nothing was unpacked: pack plain files only")
    return Member(info.name, path, info.size)


class _Bounded(io.RawIOBase):
    """A stream that calls `check` with the number of bytes read so far, including headers and skipped files."""

    def __init__(self, source: BinaryIO | gzip.GzipFile, check: Callable[[int], None]) -> None:
        self._source, self._check, self._expanded = source, check, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes. Raises what `check` raises."""
        chunk = self._source.read(size)
        self._expanded += len(chunk)
        self._check(self._expanded)
        return chunk
