"""Lists zip and tar archives, and unpacks the profiles in them.

An archive is refused entirely if any member would not occur in a normal archive of profiles: an absolute path, `..`, a
link, a device, a duplicate or overlong name, members that share bytes, or more data than profiles expand to. Listing
and unpacking check the members in the same way, so the limits hold for both.

Archives are examined in child processes only, which end if one takes more memory or time than it may: `list_in_child`,
`unpack_in_child`. So forged headers, which make `zipfile` and `tarfile` slow or large, need no checks here.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from tfcompare.child import Children, Exceeded
from tfcompare.server.uploads.limits import BadUpload, Limits, check_distinct, safe_path
from tfcompare.sources.logdir.files import is_profile, text_of
from tfcompare.sources.logdir.other_formats import TAR, ZIP, ZIP_STARTS, recognize

OnBytes = Callable[[int], None]
"""Called with the number of bytes written since the last call."""

_PROCESSES = Children(2)
"""For all sessions of a server; further archives wait for one of them."""
_BYTES_PER_SECOND = 10_000_000
"""A slow disk and a slow method of packing: an archive may take more time by its expanded size."""
_COUNTER_DIGITS = 20
_CHUNK = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_ENCRYPTED = 0x1
_LOCAL_HEADER_BYTES = 30

_OF_PACKERS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_DAMAGE = (*_OF_PACKERS, EOFError, OSError, ValueError, RuntimeError, OverflowError, IndexError)
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


Members = Iterator[tuple[Member, Callable[[Path], IO[bytes] | None]]]
"""Each file with a function that opens it, given the folder that it is unpacked to."""


def is_archive(name: str, head: bytes) -> bool:
    """Whether a file is a zip or tar archive, by its name and first bytes."""
    return recognize(name, head) in (ZIP, TAR)


def list_archive(upload: str, file: BinaryIO, limits: Limits) -> list[Member]:
    """The files in a fully checked archive; nothing is written.

    Raises `BadUpload`, naming the member, for a refused archive, and for one that cannot be read.
    """
    with _report_damage(upload):
        members = [member for member, _ in _members(upload, file, limits)]
    check_distinct(upload, [member.path for member in members])
    return members


def unpack(upload: str, file: BinaryIO, limits: Limits, folder: Path, progress: OnBytes) -> None:
    """Write the profiles of an archive that `list_archive` accepted below `folder`, which must exist.

    Raises `BadUpload` if the archive is damaged, `OSError` if writing to disk fails.
    """
    with _report_damage(upload):
        for member, open_in in _members(upload, file, limits):
            if member.is_profile and (source := open_in(folder)) is not None:
                with source:
                    write(upload, source, member, folder, progress)


def write(upload: str, source: IO[bytes], member: Member, folder: Path, progress: OnBytes) -> None:
    """Copy one member, up to its declared size; raises `BadUpload` if it is shorter."""
    target_path = folder.joinpath(*member.path.parts)
    left = member.size_bytes
    for parent in reversed(member.path.parents):  # never `folder` itself, which may have been removed meanwhile
        if parent.parts:
            folder.joinpath(*parent.parts).mkdir(exist_ok=True)
    with target_path.open("xb") as target:
        while left and (chunk := source.read(min(_CHUNK, left))):
            target.write(chunk)
            left -= len(chunk)
            progress(len(chunk))
    if left:
        raise BadUpload(f"{upload}: {member.name!r} breaks off {left:,} bytes before its end; upload the archive anew")


def list_in_child(upload: str, path: Path, limits: Limits, meanwhile: Callable[[], object]) -> list[Member]:
    """The files in the archive at `path`, fully checked. `meanwhile` is called several times a second.

    Raises `BadUpload` for an archive that is refused, cannot be read, or takes too much memory or time.
    """
    found: list[Member] = _call(_list, upload, path, limits, meanwhile=meanwhile)
    return found


def unpack_in_child(upload: str, path: Path, limits: Limits, folder: Path, counter: Path, progress: OnBytes) -> None:
    """Write the profiles of an archive below `folder`, which must exist; the child counts their bytes in `counter`.

    Raises as `list_in_child` does, and `OSError` if writing to disk fails.
    """
    done = 0

    def report_new_bytes() -> None:
        nonlocal done
        before, done = done, _count(counter, done)
        progress(done - before)

    _call(_unpack, upload, path, limits, folder, counter, meanwhile=report_new_bytes)
    report_new_bytes()


def _call(
    function: Callable[..., Any], upload: str, path: Path, limits: Limits, *rest: Path, meanwhile: Callable[[], object]
) -> Any:
    try:
        seconds = limits.seconds + limits.most_expanded_bytes(path.stat().st_size) / _BYTES_PER_SECOND
        limited = partial(_PROCESSES.call, memory_bytes=limits.memory_bytes, seconds=seconds, meanwhile=meanwhile)
        return limited(function, upload, path, limits, *rest)
    except Exceeded as exceeded:
        raise BadUpload(
            f"{upload}: examining the archive {exceeded}; it was not stored: pack the profiles anew as a plain zip or "
            "tar.gz, or upload fewer at a time"
        ) from exceeded


def _list(upload: str, path: Path, limits: Limits) -> list[Member]:
    with path.open("rb") as file:
        return list_archive(upload, file, limits)


def _unpack(upload: str, path: Path, limits: Limits, folder: Path, counter: Path) -> None:
    done = 0
    with path.open("rb") as file, counter.open("wb", buffering=0) as out:

        def count(more: int) -> None:
            nonlocal done
            done += more
            out.seek(0)
            out.write(b"%0*d" % (_COUNTER_DIGITS, done))

        unpack(upload, file, limits, folder, count)


def _count(counter: Path, before: int) -> int:
    """The number of bytes in `counter`; `before` if there is none yet."""
    with suppress(OSError, ValueError):
        return int(counter.read_bytes()[:_COUNTER_DIGITS])
    return before


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


def _members(upload: str, file: BinaryIO, limits: Limits) -> Members:
    file.seek(0)
    is_zip = file.read(4) in ZIP_STARTS
    return (_zip_members if is_zip else _tar_members)(upload, file, limits)


def _zip_members(upload: str, file: BinaryIO, limits: Limits) -> Members:
    """The files of a zip. Raises `BadUpload` at the first member that is refused."""
    packed, expanded = file.seek(0, io.SEEK_END), 0
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        limits.check_count(upload, len(entries))
        _check_offsets(upload, entries, packed)
        for entry in entries:
            if (member := _zip_member(upload, entry)) is not None:
                limits.check_file(upload, member.name, member.size_bytes)
                expanded += member.size_bytes
                limits.check_expanded(upload, expanded, packed)
                yield member, partial(_open_zipped, archive, entry)


def _open_zipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, _: Path) -> IO[bytes]:
    return archive.open(entry)


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


def _tar_members(upload: str, file: BinaryIO, limits: Limits) -> Members:
    """The files of a tar. Raises `BadUpload` at the first member that is refused."""
    packed = file.seek(0, io.SEEK_END)
    file.seek(0)
    is_gzipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    source = gzip.GzipFile(fileobj=file) if is_gzipped else file
    with tarfile.open(fileobj=source, mode="r|", bufsize=_CHUNK) as archive:
        for count, info in enumerate(archive, 1):
            limits.check_count(upload, count)
            if (member := _tar_member(upload, info)) is not None:
                limits.check_expanded(upload, info.offset_data + info.size, packed)
                limits.check_file(upload, member.name, member.size_bytes)
                yield member, partial(_open_tarred, archive, info)


def _open_tarred(archive: tarfile.TarFile, info: tarfile.TarInfo, folder: Path) -> IO[bytes] | None:
    return archive.extractfile(tarfile.data_filter(info, str(folder)))


def _tar_member(upload: str, info: tarfile.TarInfo) -> Member | None:
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
