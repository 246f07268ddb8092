"""A cache on this machine of the tables of host files that were read before.

    seen/<key>.json    the content of a file with this path, size, times and inode: its digest
    packs/<name>.pack  its tables, and in packs/<name>.<group> those that were asked for later; the name depends on
                       content, host name, steps, the versions of the tables and the release

A modified file gets another key, so it never gets the frames of its old content. The modification times of file
systems have a resolution of some milliseconds: for a file that was written shortly before it was read, the content
is compared as well.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import blake2b, file_digest
from pathlib import Path
from threading import Lock

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostTables
from tfcompare.schema import Group
from tfcompare.sources.folder_permissions import make_private, why_not_private
from tfcompare.sources.logdir import HostFile
from tfcompare.sources.logdir.files import open_untouched
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.store.contents import Damaged, digest_of, from_json, to_json
from tfcompare.store.file_names import first_pack
from tfcompare.store.files import StoreFiles, store_files
from tfcompare.store.packing import pack, unpack
from tfcompare.store.version import reader_version
from tfcompare.text import text_of

_SETTLED_NS = 2 * 10**9
"""No file system has a coarser resolution: a file unchanged for this long will get another time if it changes."""
_MOST_MESSAGES = 20
_MESSAGE_SHOWN_S = 600
"""After this time, a message is no longer shown."""


def pack_name(host: str, digest: str, choice: StepChoice = OWN_STEPS, reader: str = "") -> str:
    """The file name of the frames that a version of the reader, by default this one, makes from a host file with this
    digest."""
    name = digest_of([host, digest, choice.key, reader or reader_version()])
    return f"packs/{name[:2]}/{name}.pack"


@dataclass(frozen=True)
class Stamp:
    """Identifies a file's content without reading it. `is_settled`: any later change would change the stamp."""

    parts: tuple[object, ...]
    is_settled: bool

    @property
    def digest(self) -> str:
        """A short digest of the stamp."""
        return digest_of(self.parts)


def stamp_of(file: HostFile) -> Stamp | None:
    """The file's current stamp; None if a change could go undetected."""
    if file.source is not None:
        return Stamp((file.source.digest,), True) if file.source.is_versioned else None
    try:
        status = file.path.stat()
    except OSError:
        return None
    times = status.st_mtime_ns, status.st_ctime_ns
    parts = (os.path.abspath(file.path), status.st_size, *times, status.st_dev, status.st_ino)  # noqa: PTH100
    return Stamp(parts, time.time_ns() - max(times) > _SETTLED_NS)


@dataclass(frozen=True)
class _Seen:
    """What was in a file when it was read. `is_sure`: a later change would have changed its stamp."""

    digest: str
    is_sure: bool


@dataclass
class FrameCache:
    """Frames by the files that they were made from. Failures only cost time; they are reported in `messages`.

    `why_unused`: why nothing is read from or written to its folder; empty if it is used.
    """

    files: StoreFiles
    why_unused: str = ""
    _messages: dict[str, float] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _writer: ThreadPoolExecutor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="tfcompare-cache")

    @property
    def messages(self) -> tuple[str, ...]:
        """Failures of the last minutes, one sentence each, without duplicates."""
        now = time.monotonic()
        with self._lock:
            return tuple(message for message, when in self._messages.items() if now - when < _MESSAGE_SHOWN_S)

    def get(self, file: HostFile, choice: StepChoice, stamp: Stamp | None) -> HostTables | None:
        """The cached frames of the file with this stamp; None if there are none."""
        if stamp is None or self.why_unused:
            return None
        seen = _seen_name(stamp, file, choice)
        try:
            known = from_json(self.files.read(seen), _Seen)
        except FileNotFoundError:
            return None
        except TfcompareError as error:
            self._report_unreadable(seen, error)
            return None
        if not known.is_sure and _digest_of_bytes(file.path) != known.digest:
            return None
        frames = self._unpack(pack_name(file.host, known.digest, choice), known.digest, file)
        if frames is not None and not known.is_sure and stamp.is_settled:
            self._writer.submit(self._write, seen, to_json(replace(known, is_sure=True)))
        return frames

    def add(self, file: HostFile, choice: StepChoice, frames: HostTables, before: Stamp | None) -> None:
        """Cache frames, in the background; `before`: the file's stamp when reading it began."""
        if before is not None:
            self._writer.submit(self._add, file, choice, frames, before)

    def add_pack(self, name: str, content: bytes | HostTables) -> None:
        """Cache a pack of another store, or a group of a file whose first groups are cached, in the background."""
        self._writer.submit(self._add_pack, name, content)

    def _add_pack(self, name: str, content: bytes | HostTables) -> None:
        with suppress(TfcompareError):  # too large: it is built each time
            self._write(name, content if isinstance(content, bytes) else pack(content))

    def flush(self) -> None:
        """Wait until everything is written."""
        self._writer.submit(lambda: None).result()

    def _add(self, file: HostFile, choice: StepChoice, frames: HostTables, before: Stamp) -> None:
        now, is_sure = stamp_of(file), before.is_settled
        if now is None or now.parts != before.parts or not (is_sure or _digest_of_bytes(file.path) == frames.digest):
            return  # it has changed meanwhile
        name = pack_name(file.host, frames.digest, choice)
        try:
            if self.files.info(name) is not None or self._write(name, pack(frames)):
                self._write(_seen_name(before, file, choice), to_json(_Seen(frames.digest, is_sure)))
        except TfcompareError as error:
            self._report(f"{text_of(str(file.where))}: is read anew each time: {error}")

    def _write(self, name: str, data: bytes) -> bool:
        """Write a file; returns whether that succeeded, and reports a failure."""
        try:
            if self.why_unused:
                raise TfcompareError(self.why_unused)
            self.files.write(name, data)
        except TfcompareError as error:
            why = getattr(error.__cause__, "strerror", None) or error
            self._report(
                f"{self.files}: tables cannot be cached there ({why}), so profiles are read anew each time; make room, "
                "or name another folder in TFCOMPARE_STORE"
            )
            return False
        return True

    def _unpack(self, name: str, digest: str, file: HostFile) -> HostTables | None:
        try:
            frames = unpack(self.files.read(name), f"{self.files}/{name}")
            if (frames.host, frames.digest) != (file.host, digest):
                raise Damaged
            return frames
        except FileNotFoundError:  # evicted
            return None
        except Damaged:
            self._remove(name)
            self._report(
                f"{self.files}/{name}: the cache of {text_of(str(file.where))} is damaged; "
                "the profile is read anew, and kept again"
            )
        except TfcompareError as error:
            self._report_unreadable(name, error)
        return None

    def pack(self, name: str, group: Group, choice: StepChoice = OWN_STEPS, reader: str = "") -> HostTables | None:
        """The tables in the pack of that name; None if it is not cached, or damaged."""
        if self.why_unused:
            return None
        try:
            tables = unpack(self.files.read(name), f"{self.files}/{name}", group)
            return verify_pack_name(tables, name, choice, reader)
        except Damaged:
            self._remove(name)
        except (FileNotFoundError, TfcompareError):
            pass
        return None

    def _remove(self, name: str) -> None:
        with suppress(TfcompareError):
            self.files.remove([name])

    def _report_unreadable(self, name: str, error: TfcompareError) -> None:
        self._report(
            f"{self.files}/{name}: cannot be read ({error}); profiles are read anew meanwhile: "
            "`tfcompare store --clear` empties the store"
        )

    def _report(self, message: str) -> None:
        with self._lock:
            self._messages[message] = time.monotonic()
            while len(self._messages) > _MOST_MESSAGES:
                del self._messages[next(iter(self._messages))]


def verify_pack_name(tables: HostTables, name: str, choice: StepChoice = OWN_STEPS, reader: str = "") -> HostTables:
    """The tables; raises `Damaged` if they belong to another pack than that of this name, which that reader made."""
    if pack_name(tables.host, tables.digest, choice, reader) != first_pack(name):
        raise Damaged("it is another pack")
    return tables


def frame_cache() -> FrameCache | None:
    """The cache of this machine, as set in the environment; None if it is disabled."""
    folder = settings.from_environment().store_folder
    return _frame_cache_in(folder, store_files(str(folder))) if folder is not None else None


@cache
def _frame_cache_in(folder: Path, files: StoreFiles) -> FrameCache:
    """A single object for all callers, so that each failure is reported once.

    A folder that others can write to is not used: whoever writes to it decides what is shown of a profile.
    """
    with suppress(OSError):  # reported when something is written
        make_private(folder)
    return FrameCache(files, why_not_private(folder))


def _seen_name(stamp: Stamp, file: HostFile, choice: StepChoice) -> str:
    return f"seen/{digest_of([stamp.parts, file.host, choice.key, reader_version()])}.json"


def _digest_of_bytes(path: Path) -> str:
    """The digest of the file's bytes; empty if they cannot be read."""
    with suppress(OSError), os.fdopen(open_untouched(path), "rb") as file:
        return file_digest(file, partial(blake2b, digest_size=16)).hexdigest()
    return ""
