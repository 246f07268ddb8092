"""Hostile archives: each is stored as it should be, or refused in one sentence, and nothing else is left on disk.

An archive follows from seed and number alone: a good one, one from the collection of `tests.server.uploads.hostile`,
or one with random members; most have fields of their headers replaced, with checksums put right, or bytes damaged.
"""

from __future__ import annotations

import gzip
import io
import random
import shutil
import struct
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.edits import damaged_bytes
from tests.server.uploads.hostile import HOSTILE, special
from tfcompare.server.uploads import Arrival, BadUpload, Limits, Quotas, Uploads
from tfcompare.sources.logdir.files import is_profile

SECONDS_ALLOWED = 10
LIMITS = Limits(members=300, file_bytes=4_000_000, total_bytes=8_000_000, seconds=5)
LARGE = "bomb", "millions", "too many", "forged size", "many large", "share bytes"
"""Kinds of the collection that take a second to make."""

NAMES = (
    *("a.xplane.pb", "b.xplane.pb.gz", "plugins/profile/run/vm.xplane.pb", "./c.xplane.pb", "notes.txt", "d/", "."),
    *("/", "../e.xplane.pb", "/f.xplane.pb", "g\\..\\..\\h.xplane.pb", "C:\\i.xplane.pb", "é.xplane.pb"),
    *("\udcff.xplane.pb", "j\n.xplane.pb", "k\x1b[31m.xplane.pb", "l" * 300 + ".xplane.pb", "m/" * 40 + "n.xplane.pb"),
    *("o" * 120 + "/p.xplane.pb", "CON.xplane.pb", "__MACOSX/q.xplane.pb", "A.XPLANE.PB", "r.xplane.pb/s.xplane.pb"),
    *("r.xplane.pb", "\u202et.xplane.pb", ""),
)
NUMBERS = (0, 1, 29, 46, 511, 512, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFE, 0xFFFF_FFFF, 1 << 62)
OCTALS = (b"0", b"1", b"777", b"77777777777", b"\x80" + bytes(11), b"\xff" * 12, b"-1", b"8", b"", b" 12 ")
TAR_FIELDS = ((0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 155))
"""Offset and size of name, mode, size, time, type, link name, magic and prefix."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


@dataclass(frozen=True)
class Outcome:
    """What one archive came to; `detail` is the sentence it was refused with, or what went wrong; `seconds` is the
    processor time that it took in this thread: a child process has a limit of its own."""

    number: int
    kind: str
    size: int
    result: str
    detail: str
    seconds: float

    @property
    def is_fine(self) -> bool:
        """Whether it was stored or refused, and that in time."""
        return self.result in ("stored", "refused", "exceeded") and self.seconds < SECONDS_ALLOWED


def made(seed: int, number: int) -> tuple[str, bytes]:
    """(kind, bytes) of an archive."""
    rng = random.Random(f"archive {seed} {number}")
    if rng.random() < 0.1:
        kind = rng.choice([kind for kind in HOSTILE if rng.random() < 0.02 or not any(word in kind for word in LARGE)])
        data = HOSTILE[kind][0]()
        return "collection", damaged_bytes(data, rng) if rng.random() < 0.5 and len(data) < 100_000 else data
    is_good = rng.random() < 0.1
    members = [(f"run-{i}/vm.xplane.pb", rng.randbytes(rng.randrange(2000))) for i in range(rng.randrange(1, 5))]
    if not is_good:
        members += [
            (rng.choice(NAMES), bytes(rng.choice((0, 1, 511, 512, 513, 5000)))) for _ in range(rng.randrange(4))
        ]
        rng.shuffle(members)
    data = _zip(members, rng, is_good) if rng.random() < 0.5 else _tar(members, rng, is_good)
    return "good" if is_good else "generated", data


def _zip(members: list[tuple[str, bytes]], rng: random.Random, is_good: bool) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", rng.choice(METHODS)) as archive:
        warnings.simplefilter("ignore")  # of doubled names
        for name, content in members:
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            info.compress_type = rng.choice(METHODS)
            if not is_good and rng.random() < 0.2:
                info.external_attr = rng.choice((0o120777, 0o060644, 0o010644, 0o040755, 0o100644)) << 16
            if not is_good and rng.random() < 0.1:
                info.extra = rng.randbytes(rng.randrange(40))
            archive.writestr(info, content)
    data = bytearray(out.getvalue())
    for _ in range(0 if is_good else rng.choice((0, 0, 1, 2, 4))):
        _edit_zip(data, rng)
    return bytes(data) if is_good or rng.random() < 0.7 else damaged_bytes(bytes(data), rng)


def _edit_zip(data: bytearray, rng: random.Random) -> None:
    """Replace a field of one of the records of a zip, or add a zip64 record."""
    signature, fields = rng.choice(
        (
            (b"PK\3\4", ((6, "<H"), (8, "<H"), (18, "<I"), (22, "<I"), (26, "<H"), (28, "<H"))),
            (
                b"PK\1\2",
                ((8, "<H"), (10, "<H"), (20, "<I"), (24, "<I"), (28, "<H"), (30, "<H"), (32, "<H"), (42, "<I")),
            ),
            (b"PK\5\6", ((8, "<H"), (10, "<H"), (12, "<I"), (16, "<I"), (20, "<H"))),
            (b"PK\5\6", ()),
        )
    )
    places = [at for at in range(len(data)) if data[at : at + 4] == signature]
    if not places:
        return
    at = rng.choice(places)
    if not fields:
        values = [rng.choice((*NUMBERS, rng.randrange(len(data)))) for _ in range(4)]
        record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, *values)
        data[at:at] = record + struct.pack("<4sIQI", b"PK\6\7", 0, rng.choice((at, 0, 1 << 60)), 1)
        return
    offset, form = rng.choice(fields)
    size = struct.calcsize(form)
    if at + offset + size <= len(data):
        value = rng.choice((*NUMBERS, rng.randrange(len(data)))) & ((1 << 8 * size) - 1)
        data[at + offset : at + offset + size] = struct.pack(form, value)


def _tar(members: list[tuple[str, bytes]], rng: random.Random, is_good: bool) -> bytes:
    out = io.BytesIO()
    form = rng.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name or "empty")
            info.size = len(content)
            if not is_good and rng.random() < 0.2:
                kinds = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"Z"
                info = special(name or "empty", rng.choice(kinds), target="../..")
            if not is_good and form == tarfile.PAX_FORMAT and rng.random() < 0.3:
                keys = "comment", "path", "size", "GNU.sparse.map", "GNU.sparse.major", "hdrcharset", "mtime"
                info.pax_headers = {
                    rng.choice(keys): rng.choice(("1", "-1", "é", "9" * 40, "BINARY", "n" * 3000, "../x"))
                }
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    data = out.getvalue()
    if not is_good:
        data = _edited_tar(data, rng)
        if rng.random() < 0.3:
            data = damaged_bytes(data, rng)
    if rng.random() < 0.6:
        data = gzip.compress(data, compresslevel=1, mtime=0)
        if not is_good and rng.random() < 0.1:
            data = damaged_bytes(data, rng)
    return data


def _edited_tar(data: bytes, rng: random.Random) -> bytes:
    """Replace fields of headers, putting their checksums right, and put extension headers in front of some."""
    blocks = [bytearray(data[at : at + 512]) for at in range(0, len(data), 512)]
    out = bytearray()
    for block in blocks:
        if block[257:262] != b"ustar":
            out += block
            continue
        while rng.random() < 0.2:
            out += _extension(rng)
        if rng.random() < 0.15:
            offset, size = rng.choice(TAR_FIELDS)
            value = rng.choice(
                (rng.choice(OCTALS), rng.choice(NAMES).encode("utf-8", "surrogateescape"), rng.randbytes(size))
            )
            block[offset : offset + size] = value[:size].ljust(size, b"\0")
            block[148:156] = b"%06o\0 " % (sum(block[:148]) + 8 * 32 + sum(block[156:512]))
        out += block
    return bytes(out)


def _extension(rng: random.Random) -> bytes:
    kind = rng.choice((b"x", b"g", b"X", b"L", b"K"))
    content = rng.choice(
        (
            *(b"", b"path", b"13 comment=a\n", b"12 path=../a\n", b"999 path=a\n"),
            *(b"9" * rng.choice((10, 3000, 70_000)), b"20 size=99999999999\n", b"22 GNU.sparse.major=1\n", b"n" * 5000),
            rng.randbytes(600),
        )
    )
    info = special("extension", kind)
    info.size = len(content)
    return info.tobuf(format=tarfile.GNU_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def attempt(seed: int, number: int, data_folder: Path) -> Outcome:
    """Upload an archive to an empty folder, and check what comes of it."""
    kind, data = made(seed, number)
    name = f"{number}.zip" if data.startswith(b"PK") else f"{number}.tgz"
    uploads = Uploads(data_folder, "local", LIMITS, Quotas(20_000_000, 20_000_000))
    began, detail = time.thread_time(), ""
    try:
        upload = uploads.receive([Arrival(name, io.BytesIO(data), len(data))])
        result = "stored"
        if problem := _problem(upload.place, data_folder, upload.profiles):
            result, detail = "wrong", problem
    except BadUpload as refused:
        result, detail = ("exceeded" if "examining the archive" in str(refused) else "refused"), str(refused)
        if not detail.startswith(f"{name}: ") or not detail.isprintable() or kind == "good":
            result = "wrong"
        if any(path.is_file() for path in data_folder.rglob("*")):
            result, detail = "wrong", f"left files behind: {detail}"
    except Exception:
        result, detail = "exception", traceback.format_exc()
    seconds = time.thread_time() - began
    shutil.rmtree(data_folder)
    data_folder.mkdir()
    return Outcome(number, kind, len(data), result, detail, seconds)


def _problem(place: Path, data_folder: Path, profiles: int) -> str:
    """What is wrong with a stored upload; empty if nothing is."""
    files = [path for path in data_folder.rglob("*") if not path.is_dir()]
    stored = [path for path in files if path.is_relative_to(place)]
    others = [path.relative_to(data_folder).as_posix() for path in files if path not in stored]
    if others != [f"uploads/local/{place.parent.name}/about.json"]:
        return f"there are other files: {others}"
    if any(path.is_symlink() or not path.is_file() or not is_profile(path.name) for path in stored):
        return f"not all are profiles: {stored}"
    if len(stored) != profiles or sum(path.stat().st_size for path in stored) > LIMITS.total_bytes:
        return f"{len(stored)} files in place of {profiles}, or too large"
    return ""


def run(seed: int, numbers: range) -> list[Outcome]:
    """What the archives with these numbers came to."""
    with tempfile.TemporaryDirectory() as folder:
        data_folder = Path(folder) / "data"
        data_folder.mkdir()
        outcomes = [attempt(seed, number, data_folder) for number in numbers]
        if list(Path(folder).iterdir()) != [data_folder]:
            raise AssertionError("files were written outside the data folder")
    return outcomes


def main(seed: int, count: int) -> int:
    """Try archives 0 to `count`, and print a summary; returns an exit status."""
    outcomes = run(seed, range(count))
    bad = [outcome for outcome in outcomes if not outcome.is_fine]
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    every = Counter(outcome.result for outcome in outcomes)
    sys.stdout.write("".join(f"{outcome}\n" for outcome in bad))
    sys.stdout.write(f"{len(outcomes):,} archives: {dict(every)}; slowest: {slowest}\n")
    return 1 if bad else 0
