"""The stored uploads: each in its own folder, named by its content, and stored completely or not at all.

    <data>/uploads/<owner>/<digest>/about.json        name, when it arrived, which files were not profiles
                                    <name>/…          the profiles, by their paths in the upload

An upload is assembled in a folder next to these and renamed at the end, so a killed process leaves only that folder,
which the next start removes. `owner` separates the uploads of different users. Archives are written there first, and
examined in a child process.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import BinaryIO

from tfcompare.server.uploads.archives import Member, OnBytes, is_archive, list_in_child, unpack_in_child, write
from tfcompare.server.uploads.limits import BadUpload, Limits, check_distinct, safe_path
from tfcompare.server.uploads.quotas import ABOUT, Quotas
from tfcompare.sources.abandoned_folders import ARRIVING, delete, this_process
from tfcompare.sources.logdir.files import PROFILE_SUFFIXES, is_profile, text_of
from tfcompare.sources.logdir.other_formats import START_BYTES, recognize

MOST_IGNORED = 200
"""How many names of files that are not profiles are stored; further ones are only counted."""

_WHOLE = "upload"
_CHUNK = 1 << 20
_TRIES = 100


@dataclass(frozen=True)
class Arrival:
    """A file sent by the browser. `name` is its path in the chosen folder, or its own name."""

    name: str
    file: BinaryIO
    size_bytes: int


@dataclass(frozen=True)
class Upload:
    """A stored upload. `digest` identifies its profiles; `place` is the folder that contains them."""

    digest: str
    name: str
    arrived: datetime
    profiles: int
    size_bytes: int
    ignored: tuple[str, ...]
    ignored_count: int
    place: Path
    is_known: bool = False
    """Whether the same content had been uploaded before."""


class Uploads:
    """The uploads of one owner below a data folder."""

    def __init__(self, data: Path, owner: str, limits: Limits | None = None, quotas: Quotas | None = None) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,127}", owner):  # no plain name for a folder
            owner = "u-" + hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        self._folder = data / "uploads" / owner
        self._limits = limits or Limits()
        self._quotas = quotas or Quotas()

    def all(self) -> list[Upload]:
        """All uploads in order of arrival; unreadable ones are left out."""
        found = []
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in sorted(os.scandir(self._folder), key=lambda entry: entry.name):
                if not entry.name.startswith("."):
                    with suppress(OSError, ValueError, KeyError, TypeError):
                        found.append(_read(Path(entry.path)))
        return sorted(found, key=lambda upload: (upload.arrived, upload.digest))

    def receive(self, arrivals: Sequence[Arrival], progress: OnBytes = lambda _: None) -> Upload:
        """Store the uploaded files. If an upload with the same content exists, returns that one.

        Several profiles without folders become separate runs. Raises `BadUpload` if a file is refused, none is a
        profile, or there is no room; `OSError` if writing to disk fails. Nothing is stored then. `progress` is called
        several times a second; what it raises ends the upload.
        """
        top = _common_folder(arrivals)
        named = text_of(arrivals[0].name) if len(arrivals) == 1 else f"{len(arrivals):,} files"
        self._limits.check_count(named, len(arrivals))
        with self._arriving() as folder:
            written = [a for a in arrivals if is_profile(safe_path(a.name, a.name).name) or _is_archive(a)]
            self._quotas.reserve(named, sum(arrival.size_bytes for arrival in written), folder)
            listed = [
                _Listed.of(arrival, self._limits, top, folder / f"sent-{number}", progress)
                for number, arrival in enumerate(arrivals)
            ]
            self._check(named, listed)
            self._quotas.reserve(named, sum(one.needed_bytes for one in listed), folder)
            place = folder / _WHOLE / self._name(listed)
            place.mkdir(parents=True)
            for one in listed:
                one.put(place, self._limits, progress)
            return self._publish(folder / _WHOLE, place, listed)

    def delete(self, digest: str) -> None:
        """Remove an upload; nothing happens if it does not exist."""
        folder = self._folder / digest
        if re.fullmatch(r"[0-9a-f]{32}", digest) and folder.is_dir():
            delete(folder, self._folder)

    def delete_all(self) -> None:
        """Remove all uploads of this owner."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _check(self, named: str, listed: Sequence[_Listed]) -> None:
        members = [member for one in listed for member in one.members]
        self._limits.check_count(named, len(members))
        if not any(member.is_profile for member in members):
            what = ", ".join(_with_format(m) for m in members[:3]) or "nothing"
            raise BadUpload(
                f"{named}: holds no profile (a file that ends in {' or '.join(PROFILE_SUFFIXES)}), but {what}"
                f"{' and more' if len(members) > 3 else ''}; upload a logdir, a zip or tar.gz of one, or the profiles"
            )
        self._limits.check_total(named, sum(member.size_bytes for member in members if member.is_profile))
        check_distinct(named, [one.placed(member) for one in listed for member in one.members])

    def _name(self, listed: Sequence[_Listed]) -> str:
        """The name of the upload: that of its archive, folder or file, made unique among all uploads."""
        first = listed[0]
        own = first.top or safe_path(first.arrival.name, first.arrival.name).name
        name = re.sub(r"(\.(zip|tar|tgz|gz|pb|xplane))+$", "", own, flags=re.IGNORECASE)
        name = re.sub(r"[^\w.+ -]", "_", name).strip(". ")[:80] or "upload"
        taken = {upload.name for upload in self.all()}
        return next(n for n in (name, *(f"{name} {i}" for i in range(2, 10_000))) if n not in taken)

    @contextmanager
    def _arriving(self) -> Iterator[Path]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = Path(mkdtemp(prefix=f"{ARRIVING}{this_process()}-", dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _publish(self, folder: Path, place: Path, listed: Sequence[_Listed]) -> Upload:
        """Store the upload by renaming its folder to its digest; returns an existing upload with the same content."""
        digest, size_bytes, profiles = _digest_of_files(place)
        target, now = self._folder / digest, datetime.now(UTC)
        ignored = [text_of(str(one.placed(m))) for one in listed for m in one.members if not m.is_profile]
        some, count = tuple(ignored[:MOST_IGNORED]), len(ignored)
        upload = Upload(digest, place.name, now, profiles, size_bytes, some, count, target / place.name)
        about = {k: v for k, v in asdict(upload).items() if k not in ("digest", "place", "is_known")}
        (folder / ABOUT).write_text(json.dumps(about | {"arrived": upload.arrived.isoformat()}), encoding="utf-8")
        for _ in range(_TRIES):
            with suppress(OSError, ValueError, KeyError, TypeError):
                return replace(_read(target), is_known=True)
            with suppress(OSError):
                folder.rename(target)
                return upload
            shutil.rmtree(target, ignore_errors=True)  # what is there is not a valid upload
        raise OSError(f"{target}: cannot be written")


@dataclass(frozen=True)
class _Listed:
    """An uploaded file with its contents: itself, or the files of an archive, which is on disk at `packed`.

    `top` is the common folder of all uploaded files.
    """

    arrival: Arrival
    members: tuple[Member, ...]
    packed: Path | None
    top: str

    @staticmethod
    def of(arrival: Arrival, limits: Limits, top: str, packed: Path, progress: OnBytes) -> _Listed:
        """The listed file; an archive is written to `packed`."""
        name, path = text_of(arrival.name), safe_path(arrival.name, arrival.name)
        if _is_archive(arrival):
            _copy(arrival.file, packed, progress)
            members = list_in_child(name, packed, limits, lambda: progress(0))
            return _Listed(arrival, tuple(members), packed, top="")
        limits.check_file(name, path.name, arrival.size_bytes)
        return _Listed(arrival, (Member(arrival.name, path, arrival.size_bytes),), packed=None, top=top)

    @property
    def needed_bytes(self) -> int:
        """What it takes on disk while it is stored: its profiles, and the archive that they are in."""
        profiles = sum(member.size_bytes for member in self.members if member.is_profile)
        return profiles + (self.arrival.size_bytes if self.packed else 0)

    def placed(self, member: Member) -> PurePosixPath:
        """The path of a member: a single profile gets a folder, which makes it a separate run."""
        if self.top:
            return PurePosixPath(*member.path.parts[1:])
        if self.packed or len(member.path.parts) > 1:
            return member.path
        return PurePosixPath(re.sub(r"\.xplane\.pb(\.gz)?$", "", member.path.name) or "profile") / member.path

    def put(self, place: Path, limits: Limits, progress: OnBytes) -> None:
        """Write the profiles."""
        name = text_of(self.arrival.name)
        if self.packed:
            counter = self.packed.with_suffix(".count")
            unpack_in_child(name, self.packed, limits, place, counter, progress)
            return
        (member,) = self.members
        if member.is_profile:
            self.arrival.file.seek(0)
            placed = Member(member.name, self.placed(member), member.size_bytes)
            write(name, self.arrival.file, placed, place, progress)


def _with_format(member: Member) -> str:
    name, known = text_of(str(member.path)), recognize(member.path.name)
    return f"{name} ({known.what})" if known else name


def _is_archive(arrival: Arrival) -> bool:
    arrival.file.seek(0)
    return is_archive(arrival.name, arrival.file.read(START_BYTES))


def _copy(source: BinaryIO, path: Path, progress: OnBytes) -> None:
    source.seek(0)
    with path.open("xb") as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)
            progress(0)


def _common_folder(arrivals: Sequence[Arrival]) -> str:
    """The folder that was chosen in the browser, which contains all files; empty if there is none."""
    paths = [safe_path(arrival.name, arrival.name).parts for arrival in arrivals]
    tops = {parts[0] for parts in paths}
    is_folder = len(tops) == 1 and all(len(parts) > 1 for parts in paths)
    return tops.pop() if is_folder and tops != {"plugins"} else ""


def _read(folder: Path) -> Upload:
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    place = folder / PurePosixPath(str(about["name"])).name
    if place.name != about["name"] or not place.is_dir():
        raise FileNotFoundError(place)
    arrived, ignored = datetime.fromisoformat(about["arrived"]), tuple(map(str, about["ignored"]))
    profiles, size_bytes, count = (int(about[name]) for name in ("profiles", "size_bytes", "ignored_count"))
    return Upload(folder.name, place.name, arrived, profiles, size_bytes, ignored, count, place)


def _digest_of_files(place: Path) -> tuple[str, int, int]:
    """(a digest of the profiles' paths and bytes, their total size, their number)."""
    whole, size_bytes = hashlib.blake2b(digest_size=16), 0
    files = sorted(path for path in place.rglob("*") if path.is_file())
    for path in files:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=32)).digest()
            size_bytes += file.tell()
        whole.update(os.fsencode(path.relative_to(place)) + b"\0" + digest)
    return whole.hexdigest(), size_bytes, len(files)
