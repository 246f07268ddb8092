"""Frames of host files that were read before, kept in the user's cache folder for the next time.

    seen/<key>.json    what a file with this path, size, times and inode held: the name of a pack, and a digest
    packs/<name>.pack  its frames; the name follows from content, host name, steps and the reader's version

A file that was touched in any way has another key, so frames of another content are never taken for its own. Times are
told in steps of some milliseconds: of a file that was written just before it was read, the content is compared as well.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock

from tfcompare.frames import HostFrames
from tfcompare.sources.logdir import HostFile, open_untouched
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.store.local_files import LocalFiles
from tfcompare.store.packing import Damaged, pack, unpack
from tfcompare.store.version import reader_version
from tfcompare.text import text_of

_SETTLED_NS = 2 * 10**9
"""File systems tell times at least this well: what changed longer ago will have another time once it changes again."""
_MOST_SAID = 20
_TELLING_S = 600
"""For so long a sentence is told: who looks later has nothing to do about it."""


def pack_name(host: str, digest: str, choice: StepChoice = OWN_STEPS) -> str:
    """Where the frames lie that this version of the reader makes of such a file."""
    told = json.dumps([host, digest, choice.key, reader_version()])
    name = blake2b(told.encode(), digest_size=16).hexdigest()
    return f"packs/{name[:2]}/{name}.pack"


@dataclass(frozen=True)
class Stamp:
    """A file as its folder or server tells it. `is_settled`: a change from then on would give it another stamp."""

    told: tuple[object, ...]
    is_settled: bool

    @property
    def digest(self) -> str:
        """The stamp in few characters."""
        return _digest_of(self.told)


def stamp_of(file: HostFile) -> Stamp | None:
    """What tells the file as it is now; None where it cannot be told from a later one."""
    if file.source is not None:
        return Stamp((file.source.digest,), True) if file.source.is_versioned else None
    try:
        status = file.path.stat()
    except OSError:
        return None
    times = status.st_mtime_ns, status.st_ctime_ns
    told = (os.path.abspath(file.path), status.st_size, *times, status.st_dev, status.st_ino)  # noqa: PTH100
    return Stamp(told, time.time_ns() - max(times) > _SETTLED_NS)


@dataclass
class KeptFrames:
    """Frames by the files they were made from. Whatever goes wrong here is told in `said` and costs time only."""

    files: LocalFiles
    _said: dict[str, float] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _writer: ThreadPoolExecutor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="tfcompare-keep")

    @property
    def said(self) -> tuple[str, ...]:
        """What there is to tell of the last minutes, one sentence each, without repetition."""
        with self._lock:
            return tuple(sentence for sentence, when in self._said.items() if time.monotonic() - when < _TELLING_S)

    def find(self, file: HostFile, choice: StepChoice, stamp: Stamp | None) -> HostFrames | None:
        """The frames of the file with that stamp, its present one, where they are kept."""
        if stamp is None:
            return None
        seen = self._seen(stamp, file, choice)
        try:
            known = json.loads(self.files.read(seen))
            name, digest, is_sure = known["pack"], known["digest"], known["is_sure"]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._say_unreadable(seen, error)
            return None
        if not is_sure and _digest(file.path) != digest:
            return None
        frames = self._unpacked(name, file)
        if frames is not None and not is_sure and stamp.is_settled:
            self._writer.submit(self._note, seen, name, digest, True)
        return frames

    def keep(self, file: HostFile, choice: StepChoice, frames: HostFrames, before: Stamp | None) -> None:
        """Keep frames for the next time, soon; `before`: the file's stamp when reading it began."""
        if before is not None:
            self._writer.submit(self._keep, file, choice, frames, before)

    def put(self, name: str, data: bytes) -> None:
        """Keep a pack that was had from elsewhere, soon."""
        self._writer.submit(self._put, name, data)

    def flush(self) -> None:
        """Wait until what is to be kept is."""
        self._writer.submit(lambda: None).result()

    def _keep(self, file: HostFile, choice: StepChoice, frames: HostFrames, before: Stamp) -> None:
        now, is_sure = stamp_of(file), before.is_settled
        if now is None or now.told != before.told or not (is_sure or _digest(file.path) == frames.digest):
            return  # it changed meanwhile
        name = pack_name(file.host, frames.digest, choice)
        if self.files.has(name) or self._put(name, pack(frames)):
            self._note(self._seen(before, file, choice), name, frames.digest, is_sure)

    def _note(self, seen: str, name: str, digest: str, is_sure: bool) -> None:
        self._put(seen, json.dumps({"pack": name, "digest": digest, "is_sure": is_sure}).encode())

    def _put(self, name: str, data: bytes) -> bool:
        """Whether the file could be written; said where not."""
        try:
            self.files.write(name, data)
        except OSError as error:
            self._say_not_kept(error)
            return False
        return True

    def _unpacked(self, name: str, file: HostFile) -> HostFrames | None:
        try:
            return unpack(self.files.read(name))
        except FileNotFoundError:  # it made room for others
            return None
        except OSError as error:
            self._say_unreadable(name, error)
        except Damaged:
            self.files.remove(name)
            self._say(
                f"{text_of(str(self.files.folder / name))}: what was kept of {text_of(str(file.where))} is damaged; "
                "the profile is read anew, and kept again"
            )
        return None

    def _seen(self, stamp: Stamp, file: HostFile, choice: StepChoice) -> str:
        return f"seen/{_digest_of([stamp.told, file.host, choice.key, reader_version()])}.json"

    def _say_unreadable(self, name: str, error: Exception) -> None:
        what = error.strerror if isinstance(error, OSError) and error.strerror else "its content is not as written"
        self._say(
            f"{text_of(str(self.files.folder / name))}: cannot be read ({what}); profiles are read anew meanwhile: "
            "`tfcompare store --clear` empties the store"
        )

    def _say_not_kept(self, error: OSError) -> None:
        self._say(
            f"{text_of(str(self.files.folder))}: what is read cannot be kept there ({error.strerror or error}), so it "
            "is read anew each time; make room, or name another folder in TFCOMPARE_STORE"
        )

    def _say(self, sentence: str) -> None:
        with self._lock:
            self._said[sentence] = time.monotonic()
            while len(self._said) > _MOST_SAID:
                del self._said[next(iter(self._said))]


@cache
def kept_frames(folder: Path, max_bytes: int) -> KeptFrames:
    """Those in that folder: one object for all who ask, so that what goes wrong is said once."""
    return KeptFrames(LocalFiles(folder, max_bytes))


def _digest_of(told: object) -> str:
    return blake2b(json.dumps(told).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _digest(path: Path) -> str:
    """That of the file's bytes; empty where they cannot be read."""
    digest = blake2b(digest_size=16)
    try:
        with os.fdopen(open_untouched(path), "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()
