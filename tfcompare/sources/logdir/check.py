"""Checks a file's outermost structure, to detect empty, truncated and other invalid files without reading them."""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path

from tfcompare.errors import NotAProfile
from tfcompare.sources.logdir import explain
from tfcompare.sources.logdir.files import cannot_be_opened, no_status, open_untouched, text_of
from tfcompare.sources.logdir.other_formats import START_BYTES, recognize

_MOST_FIELDS = 64
_LONGEST_HEADER = 20  # a tag and a length, as varints of at most ten bytes each
_XSPACE_FIELDS = (1, 2, 3, 4)  # planes, errors, warnings, hostnames: all length-delimited
VARINT = 0
LENGTH_DELIMITED = 2
_FIXED_BYTES = {1: 8, 5: 4}
_GZIP = b"\x1f\x8b"


def check_file(path: str | Path) -> str | None:
    """Why the file at `path` cannot be a complete profile, as one sentence; None if no problem was found.

    Reads at most 64 headers of some bytes each, so None is no guarantee: gzip files are not decompressed, and the
    contents of planes are not checked.
    """
    path = Path(path)
    try:
        status = path.stat()
    except OSError as error:
        return no_status(path, error)
    return check_status(path, status) or check_outline(path)


def check_status(path: Path, status: os.stat_result) -> str | None:
    """The problem with a file's size or type; None if there is none."""
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device"
        return f"{text_of(str(path))}: is {kind} where a profile file was expected; copy the profile into a plain file"
    if status.st_size == 0:
        beside = map(path.with_name, explain.traces_beside(path.name))
        return explain.empty(path, has_trace=any(map(_has_content, beside)))
    return None


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def check_outline(path: Path) -> str | None:
    """The problem with the outermost fields of a file; None if there is none."""
    try:
        descriptor = open_untouched(path)
    except OSError as error:
        return cannot_be_opened(path, error)
    try:
        try:
            _walk_fields(Path(text_of(str(path))), descriptor, os.fstat(descriptor).st_size)
        except NotAProfile as error:
            os.lseek(descriptor, 0, os.SEEK_SET)
            known = recognize(path.name, os.read(descriptor, START_BYTES))
            return explain.other_format(path, known) if known else str(error)
    except OSError as error:
        return cannot_be_opened(path, error)
    finally:
        os.close(descriptor)
    return None


def start_of(path: Path) -> bytes:
    """The first bytes of a file, uncompressed; empty for what is no plain file or cannot be read."""
    try:
        if not path.is_file():
            return b""
        with os.fdopen(open_untouched(path), "rb") as file:
            start = file.read(START_BYTES)
        is_gzipped = start.startswith(_GZIP)
        return zlib.decompressobj(wbits=31).decompress(start, START_BYTES) if is_gzipped else start
    except (OSError, zlib.error):
        return b""


def _walk_fields(path: Path, descriptor: int, size: int) -> None:
    """Raises `NotAProfile` if the outermost fields of the file do not follow one another to its end."""
    offset = 0
    for _ in range(_MOST_FIELDS):
        if offset >= size:
            return
        os.lseek(descriptor, offset, os.SEEK_SET)
        header = os.read(descriptor, _LONGEST_HEADER)
        if offset == 0:
            if header.startswith(_GZIP):
                return
            if path.suffix == ".gz":
                raise NotAProfile(path, 0, "gzip data (1f 8b)", header[:2].hex(" "))
        try:
            offset = _end_of_field(path, offset, header, size)
        except ValueError:
            raise NotAProfile(path, offset, "a field's tag and length", f"bytes {header.hex(' ')}") from None


def _end_of_field(path: Path, offset: int, header: bytes, size: int) -> int:
    start = f"bytes {header[:4].hex(' ')}"
    tag, _ = varint(header, 0)
    wire_type, is_known = tag & 7, tag >> 3 in _XSPACE_FIELDS
    if (is_known and wire_type != LENGTH_DELIMITED) or (not is_known and offset == 0):
        raise NotAProfile(path, offset, "a plane, error, warning or host name", start)
    if wire_type not in (VARINT, LENGTH_DELIMITED, *_FIXED_BYTES):
        raise NotAProfile(path, offset, "the next field of a profile", start)
    _, length, at = field_head(header, 0)
    end = offset + at + length
    if end > size:
        found = f"{max(0, size - offset - at):,}: the file breaks off at byte {size:,}"
        raise NotAProfile(path, offset, f"a field of {length:,} bytes", found)
    return end


def field_head(data: bytes, at: int) -> tuple[int, int, int]:
    """(number of the field that begins here, length of its value, where the value begins). Raises ValueError for a kind
    of field that no profile has, and as `varint` does."""
    tag, at = varint(data, at)
    wire_type = tag & 7
    if wire_type == LENGTH_DELIMITED:
        length, at = varint(data, at)
        return tag >> 3, length, at
    if wire_type == VARINT:
        return tag >> 3, varint(data, at)[1] - at, at
    if wire_type in _FIXED_BYTES:
        return tag >> 3, _FIXED_BYTES[wire_type], at
    raise ValueError("a kind of field that no profile has")


def varint(header: bytes, at: int) -> tuple[int, int]:
    """(the number, the position after it); raises ValueError for a number without an end."""
    value = 0
    for shift, byte in enumerate(header[at : at + 10]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number without an end")
