"""Archives that no honest packer writes, each with a part of the sentence that it is refused with."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from tfcompare.server.uploads.receiving import Arrival

Entry = tuple[str, bytes]


def zipped(*entries: Entry | tuple[zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these members, the same whenever it is made; a `ZipInfo` stands for itself."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in entries:
            if isinstance(name, zipfile.ZipInfo):
                archive.writestr(name, data)
            else:
                archive.writestr(zipfile.ZipInfo(name), data, compress_type=method)  # dated 1980, not now
    return out.getvalue()


def tarred(*entries: tuple[str, bytes] | tarfile.TarInfo, gzipped: bool = True) -> bytes:
    """A tar.gz of these members; a `TarInfo` stands for itself, without data."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                archive.addfile(info, io.BytesIO(entry[1]))
    return gzip.compress(out.getvalue(), mtime=0) if gzipped else out.getvalue()


def with_headers(kind: bytes, *contents: bytes, gzipped: bool = True) -> bytes:
    """A tar whose one file has extension headers with these contents."""
    headers = b"".join(header(kind, content) for content in contents)
    data = headers + tarred(PROFILE, gzipped=False)
    return gzip.compress(data, mtime=0) if gzipped else data


def header(kind: bytes, content: bytes) -> bytes:
    """An extension header of a tar."""
    info = special("header", kind)
    info.size = len(content)
    return info.tobuf(format=tarfile.GNU_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def endless_member() -> bytes:
    """A tar.gz of a file without a name and of 10^39 bytes, beyond which `tarfile` would look for the next file."""
    size = header(tarfile.XHDTYPE, b"49 size=%040d\n" % 10**39)
    name = header(tarfile.GNUTYPE_LONGNAME, b"")
    return gzip.compress(name + size + tarred(PROFILE, gzipped=False), mtime=0)


def forged_zip64() -> bytes:
    """A zip whose end record is right, with a zip64 record that claims a directory of nearly all of 20 MB before it."""
    data = zipped(PROFILE)
    end = data.index(b"PK\5\6")
    claimed = 20_000_000
    padding = bytes(claimed)
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, claimed, end)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end + claimed, 1)
    return data[:end] + padding + record + locator + data[end:]


def large_dictionary() -> bytes:
    """A zip whose member needs a dictionary of 4 GB to be unpacked, as it claims."""
    data = bytearray(zipped(("a.xplane.pb", bytes(1000)), method=zipfile.ZIP_LZMA))
    at = 30 + len("a.xplane.pb") + 4 + 1  # the local header, the version, the size of the properties, the first of them
    data[at : at + 4] = b"\xff\xff\xff\xff"
    return bytes(data)


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """A tar member that is no file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def with_mode(name: str, kind: int) -> zipfile.ZipInfo:
    """A zip member that is said to be a link, a device or a pipe."""
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (kind | 0o644) << 16
    return info


def encrypted() -> bytes:
    """A zip whose one member is flagged as encrypted."""
    data = bytearray(zipped(("a.xplane.pb", b"secret")))
    for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = data.index(signature) + at
        data[place] |= 1
    return bytes(data)


def of_method(method: int) -> bytes:
    """A zip whose one member is said to be packed by that method."""
    data = bytearray(zipped(("a.xplane.pb", b"data")))
    for signature, at in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        place = data.index(signature) + at
        data[place : place + 2] = struct.pack("<H", method)
    return bytes(data)


def overlapping() -> bytes:
    """A zip whose directory names the same bytes many times."""
    data = zipped(("a.xplane.pb", b"\0" * 100_000))
    directory = data.index(b"PK\1\2")
    end = data.index(b"PK\5\6")
    entry = data[directory:end]
    copies = [entry.replace(b"a.xplane.pb", f"{i:x}.xplane.pb".encode()) for i in range(10)]
    tail = bytearray(data[end:])
    tail[8:12] = struct.pack("<HH", len(copies), len(copies))
    tail[12:16] = struct.pack("<I", sum(map(len, copies)))
    return data[:directory] + b"".join(copies) + bytes(tail)


def huge_directory() -> bytes:
    """A zip whose end record tells of a directory of 60 MB, which lies before it."""
    data = zipped(("a.xplane.pb", b"data"))
    directory, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    entries = data[directory:end] * 1_000_000
    tail = bytearray(data[end:])
    tail[12:16] = struct.pack("<I", len(entries))
    return data[:directory] + entries + bytes(tail)


def lying_size(field: int) -> bytes:
    """A zip whose member is said to be longer than it is: field 20 for its packed size, 24 for its expanded one."""
    data = bytearray(zipped(("a.xplane.pb", b"short"), method=zipfile.ZIP_STORED))
    place = data.index(b"PK\1\2") + field
    data[place : place + 4] = struct.pack("<I", 500)
    return bytes(data)


def sparse_tar() -> bytes:
    """A tar.gz with a member of 8 GB that is all hole."""
    header = special("a.xplane.pb", tarfile.GNUTYPE_SPARSE).tobuf(format=tarfile.GNU_FORMAT)
    changed = bytearray(header)
    changed[483:495] = b"77777777777\0"
    checksum = sum(changed[:148]) + 8 * 32 + sum(changed[156:512])
    changed[148:156] = b"%06o\0 " % checksum
    return gzip.compress(bytes(changed) + bytes(1024), mtime=0)


TOO_MUCH = "examining the archive takes more"
"""How the sentence on an archive begins that takes too much memory or time. Either may come: where no memory is left,
CPython 3.11 may handle one `MemoryError` after another until time is out."""

LONG = "n" * 300
PROFILE = ("host.xplane.pb", b"")


def arrival(name: str, data: bytes) -> Arrival:
    return Arrival(name, io.BytesIO(data), len(data))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip, absolute path": (lambda: zipped(PROFILE, ("/etc/cron.d/a.xplane.pb", b"x")), "absolute path"),
    "zip, drive letter": (lambda: zipped(PROFILE, ("C:/a.xplane.pb", b"x")), "absolute path"),
    "zip, parent folder": (lambda: zipped(PROFILE, ("../a.xplane.pb", b"x")), "leads out of its folder"),
    "zip, parent folder within": (lambda: zipped(PROFILE, ("b/../../a.xplane.pb", b"x")), "leads out of its folder"),
    "zip, backslashes": (lambda: zipped(PROFILE, ("b\\..\\..\\a.xplane.pb", b"x")), "leads out of its folder"),
    "zip, backslash at the root": (lambda: zipped(PROFILE, ("\\a.xplane.pb", b"x")), "absolute path"),
    "zip, link": (lambda: zipped(PROFILE, (with_mode("a.xplane.pb", stat.S_IFLNK), b"/etc/passwd")), "is a link"),
    "zip, device": (lambda: zipped(PROFILE, (with_mode("a.xplane.pb", stat.S_IFBLK), b"")), "device or pipe"),
    "zip, pipe": (lambda: zipped(PROFILE, (with_mode("a.xplane.pb", stat.S_IFIFO), b"")), "device or pipe"),
    "zip, one name twice": (lambda: zipped(("a.xplane.pb", b"1"), ("./a.xplane.pb", b"2")), "is there twice"),
    "zip, letter case only": (lambda: zipped(("a.xplane.pb", b"1"), ("A.xplane.pb", b"2")), "is there twice"),
    "zip, file within one of two lines": (lambda: zipped(("a\nb", b"1"), ("a\nb/c", b"2")), r"lies in 'a\nb', which"),
    "zip, file within a file": (lambda: zipped(("a", b"1"), ("a/b.xplane.pb", b"2")), "which is a file"),
    "zip, long name": (lambda: zipped((f"{LONG}.xplane.pb", b"1")), "too long"),
    "zip, long path": (lambda: zipped(("d/" * 600 + "a.xplane.pb", b"1")), "too long"),
    "zip, null character": (
        lambda: zipped(("aQ.xplane.pb", b"1")).replace(b"aQ.xplane", b"a\0.xplane"),
        "null character",
    ),
    "zip, only dots": (lambda: zipped((".", b"1")), "has no name"),
    "zip, bomb": (lambda: zipped(("a.xplane.pb", bytes(80 << 20))), "that expand to more than"),
    "zip, many small bombs": (
        lambda: zipped(*((f"{i}.xplane.pb", bytes(10 << 20)) for i in range(8))),
        "that expand to more than",
    ),
    "zip, members that share bytes": (overlapping, "share bytes"),
    "zip, too many members": (lambda: zipped(*((str(i), b"") for i in range(10_001))), "more than the 10,000 allowed"),
    "zip, directory of millions": (huge_directory, TOO_MUCH),
    "zip, directory of a forged size": (forged_zip64, "not an archive that can be read"),
    "zip, deep folders": (lambda: zipped(("d/" * 40 + "a.xplane.pb", b"1")), "more than 32 folders deep"),
    "zip, encrypted": (encrypted, "is encrypted"),
    "zip, unknown method": (lambda: of_method(77), "method 77"),
    "zip, longer than it is": (lambda: lying_size(20), "beyond the end"),
    "zip, cut off": (lambda: zipped(("a.xplane.pb", b"data" * 99))[:-30], "not an archive that can be read"),
    "zip, garbage after the signature": (lambda: b"PK\3\4" + b"garbage" * 50, "not an archive that can be read"),
    "tar, absolute path": (lambda: tarred(("/a.xplane.pb", b"x")), "absolute path"),
    "tar, parent folder": (lambda: tarred(("../a.xplane.pb", b"x")), "leads out of its folder"),
    "tar, symbolic link": (lambda: tarred(special("a.xplane.pb", tarfile.SYMTYPE, "/etc/passwd")), "is a link"),
    "tar, hard link": (lambda: tarred(("b", b"x"), special("a.xplane.pb", tarfile.LNKTYPE, "b")), "is a link"),
    "tar, link named like a folder": (
        lambda: tarred(special("d", tarfile.SYMTYPE, ".."), ("d/a.xplane.pb", b"")),
        "is a link",
    ),
    "tar, character device": (lambda: tarred(special("a.xplane.pb", tarfile.CHRTYPE)), "device or pipe"),
    "tar, block device": (lambda: tarred(special("a.xplane.pb", tarfile.BLKTYPE)), "device or pipe"),
    "tar, pipe": (lambda: tarred(special("a.xplane.pb", tarfile.FIFOTYPE)), "device or pipe"),
    "tar, holes": (sparse_tar, "packed with holes"),
    "tar, one name twice": (lambda: tarred(("a.xplane.pb", b"1"), ("a.xplane.pb", b"2")), "is there twice"),
    "tar, long name": (lambda: tarred((f"{LONG}.xplane.pb", b"1")), "too long"),
    "tar, bomb": (lambda: tarred(("a.xplane.pb", bytes(90 << 20))), "that expand to more than"),
    "tar, header of digits": (lambda: with_headers(tarfile.XHDTYPE, b"1" * 200_000), TOO_MUCH),
    "tar, long name in a header": (
        lambda: with_headers(tarfile.GNUTYPE_LONGNAME, b"n" * 100_000),
        "has a name that is too long",
    ),
    "tar, many headers for one file": (
        lambda: with_headers(tarfile.XHDTYPE, *[b"13 comment=a\n"] * 1000),
        "not an archive that can be read",
    ),
    "tar, endless member": (endless_member, "has no name"),
    "tar, bomb in a header": (
        lambda: tarred(special("p", tarfile.XHDTYPE), ("a.xplane.pb", bytes(90 << 20))),
        "expand to more than",
    ),
    "tar, too many members": (lambda: tarred(*((str(i), b"") for i in range(10_001))), "more than the 10,000 allowed"),
    "tar, cut off": (lambda: tarred(("a.xplane.pb", bytes(range(256)) * 99))[:-40], "not an archive that can be read"),
    "tar, no tar within": (lambda: gzip.compress(b"no tar at all" * 99, mtime=0), "not an archive that can be read"),
    "tar, gzip of gzip": (lambda: gzip.compress(tarred(PROFILE), mtime=0), "not an archive that can be read"),
}
