"""Lists zip and tar archives, and unpacks the profiles in them.

An archive is refused entirely if any member would not occur in a normal archive of profiles: an absolute path, `..`, a
link, a device, a duplicate or overlong name, members that share bytes, or more data than profiles expand to. Listing
and unpacking check the members in the same way, so the limits hold for both.

A server calls these functions in child processes only: see `examine`.
"""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from tfcompare.sources.logdir.files import text_of
from tfcompare.sources.uploads.limits import BadUpload, Limits, check_distinct
from tfcompare.sources.uploads.members import Member, Members
from tfcompare.sources.uploads.tars import tar_members
from tfcompare.sources.uploads.zips import SIGNATURES, zip_members

Progress = Callable[[int], None]
"""Called with the number of bytes written since the last call."""

_CHUNK = 1 << 20

_DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile, OSError, ValueError,
    NotImplementedError, RuntimeError, OverflowError, IndexError,
)  # fmt: skip
"""What the standard library raises for damaged or forged archives."""


def is_archive(name: str, head: bytes) -> bool:
    """Whether a file is a zip or tar archive, by its name and first bytes."""
    if head.startswith(SIGNATURES):
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
    is_zip = file.read(4) in SIGNATURES
    return (zip_members if is_zip else tar_members)(upload, file, limits)
