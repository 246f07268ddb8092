"""Reads the host files of a run in parallel: from this machine's cache, a store of runs, or the profiles."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock, Semaphore

from tfcompare.errors import (
    NoOtherSteps,
    NoSuchMarker,
    NoSuchPlace,
    NoSuchSteps,
    NotAProfile,
    NotFetched,
    TfcompareError,
    TooLarge,
)
from tfcompare.frames import HostFrames
from tfcompare.sources.logdir import FoundRun, HostFile, StoredPack, remote_cache
from tfcompare.sources.remote.fetching import Copy
from tfcompare.sources.remote.places import shown
from tfcompare.sources.step_choice import StepChoice
from tfcompare.store.building import FrameBuilder, build_here
from tfcompare.store.cached_frames import FrameCache, pack_name, stamp_of
from tfcompare.store.files import is_own, store_files
from tfcompare.store.names import NotOfAStore
from tfcompare.store.packing import pack, unpack, unpack_checked
from tfcompare.store.trusted import REMEDY, may_be_read
from tfcompare.store.typed import Damaged
from tfcompare.text import text_of

_READERS = 4
_FETCHERS = 8

Progress = Callable[[int, int], None]
"""Called with (host files read, all host files) or, for remote files, with (bytes fetched, all bytes)."""


def read_hosts(
    found: FoundRun, reader: HostReader, progress: Progress | None
) -> tuple[list[HostFrames], list[TfcompareError]]:
    """(the frames of the readable host files, sorted by host; why the others cannot be read).

    Raises `NotFetched` if a file is temporarily unavailable, `NoOtherSteps` if one cannot be read with these steps.
    """
    hosts: list[HostFrames] = []
    failures: list[TfcompareError] = []
    with ThreadPoolExecutor(
        min(_FETCHERS if found.is_remote or found.is_stored else _READERS, len(found.files))
    ) as pool:
        waiting = [pool.submit(reader.read, file) for file in found.files]
        for done, future in enumerate(waiting, 1):
            try:
                hosts.append(future.result())
            except TfcompareError as error:
                if isinstance(error, (NotFetched, NoOtherSteps)):  # not a problem of the file itself
                    reader.stop()
                    raise
                failures.append(error)
            except BaseException:
                reader.stop()
                raise
            if progress is not None:
                progress(done, len(waiting))
    return sorted(hosts, key=lambda h: h.host), failures


class _Stopped(BaseException):
    """Nobody is waiting for the file any more."""


class HostReader:
    """Reads host files on several threads; remote ones are fetched first, and locked while they are read.

    `choice`: which steps to include; `build` reads a profile and builds its frames; `remarks`, without duplicates:
    problems of this machine rather than the profiles.
    """

    def __init__(
        self,
        found: FoundRun,
        choice: StepChoice,
        fetching: Progress | None,
        cache: FrameCache | None,
        build: FrameBuilder = build_here,
    ) -> None:
        self.choice = choice
        self._build = build
        self._fetching = fetching
        self._cache = cache
        self._at_once = Semaphore(_READERS)
        self._lock = Lock()
        self._here = {file.path: file.bytes_at_hand for file in found.files}
        self._total = found.size_bytes
        self._is_all_here = found.bytes_at_hand == self._total
        self._is_stopped = False
        self.remarks: dict[str, None] = {}

    def read(self, file: HostFile) -> HostFrames:
        """The frames of a host file: from the cache, from the store, or built from the profile and then cached."""
        if self._is_stopped:
            raise _Stopped
        if file.stored is None:
            return self._cached_or_built(file)
        if self.choice.key is None:
            return self._stored(file, file.stored)
        return self._with_other_steps(file, file.stored)

    def may_be_read(self, file: HostFile, stored: StoredPack) -> bool:
        """Whether the profile of a stored file may be read; see `trusted`."""
        return may_be_read(file.where, stored.store)

    def stop(self) -> None:
        """Abort fetching; what has arrived remains."""
        self._is_stopped = True

    def _stored(self, file: HostFile, stored: StoredPack) -> HostFrames:
        """The frames in the file's pack; if it is damaged or missing, those of the profile if it has the same content.

        Raises `NotFetched` if the store cannot be read, and `TfcompareError` if there is neither a usable pack nor the
        profile that it was made from.
        """
        if self._cache is not None and (frames := _cached_pack(self._cache, stored.name)) is not None:
            return frames
        try:
            data = store_files(stored.store).read(stored.name)
            frames = _named(unpack(data) if is_own(stored.store) else unpack_checked(data), stored.name)
        except FileNotFoundError:
            return self._rebuilt(file, stored, "is not there any more")
        except Damaged:
            return self._rebuilt(file, stored, "is damaged")
        if self._cache is not None and not is_own(stored.store):
            self._cache.add_pack(stored.name, data)
        return frames

    def _rebuilt(self, file: HostFile, stored: StoredPack, what: str) -> HostFrames:
        """Frames built from the profile and put into the store, if they are the same as before."""
        problem = f"{shown(stored.store)}/{stored.name}: what the store held of {text_of(str(file.where))} {what}"
        if not self.may_be_read(file, stored):
            raise TfcompareError(f"{problem}, and the profile {REMEDY}, or run `tfcompare ingest` again where it is")
        frames = None
        with suppress(TfcompareError):
            frames = self._built(file)
        if frames is None or pack_name(file.host, frames.digest) != stored.name:
            why = "cannot be read here" if frames is None else "is another one now"
            raise TfcompareError(f"{problem}, and the profile {why}; run `tfcompare ingest` again where it is")
        with suppress(TfcompareError):  # a read-only store
            store_files(stored.store).write(stored.name, pack(frames))
        self.remarks[f"{problem}; it was made anew from the profile"] = None
        return frames

    def _with_other_steps(self, file: HostFile, stored: StoredPack) -> HostFrames:
        """The frames of a stored run's profile: a store only has the steps that the profiles themselves mark."""
        if not self.may_be_read(file, stored):
            raise NoOtherSteps(
                f"{text_of(str(file.where))}: {REMEDY}; steps by a marker or range of one's own are made from the "
                "profile itself"
            )
        try:
            frames = self._cached_or_built(file)
        except NoSuchPlace as error:
            raise NoOtherSteps(
                f"{error}; steps by a marker or range of one's own are made from the profile itself"
            ) from None
        if pack_name(file.host, frames.digest) != stored.name:
            problem = "is another profile than the one in the store; run `tfcompare ingest` again"
            raise NoOtherSteps(f"{text_of(str(file.where))}: {problem}")
        return frames

    def _cached_or_built(self, file: HostFile) -> HostFrames:
        if self._cache is None:
            return self._built(file)
        before = stamp_of(file)
        frames = self._cache.get(file, self.choice, before)
        if frames is None:
            frames = self._built(file)
            self._cache.add(file, self.choice, frames, before)
        return frames

    def _built(self, file: HostFile) -> HostFrames:
        """The frames of a profile. If a fetched copy is damaged, it is fetched again."""
        if file.source is None:
            return self._frames(file, file.path)
        cache, was_here = remote_cache(), file.bytes_at_hand == file.size_bytes
        try:
            with cache.locked(file.source, lambda here: self._fetched(file, here)) as copy:
                return self._frames_of(file, copy)
        except NotAProfile:
            if not was_here:
                raise
        with cache.locked_again(file.source, lambda here: self._fetched(file, here)) as copy:
            return self._frames_of(file, copy)

    def _frames_of(self, file: HostFile, copy: Copy) -> HostFrames:
        if copy.remark:
            self.remarks[copy.remark] = None
        return self._frames(file, copy.path)

    def _frames(self, file: HostFile, path: Path) -> HostFrames:
        try:
            with self._at_once:
                return self._build(path, file.host, self.choice)
        except (NotAProfile, NoSuchMarker, NoSuchSteps, TooLarge) as error:
            raise error.at(file.where) from None

    def _fetched(self, file: HostFile, here: int) -> None:
        if self._is_stopped:
            raise _Stopped
        with self._lock:
            self._here[file.path] = here
            if self._fetching is not None and not self._is_all_here:
                self._fetching(sum(self._here.values()), self._total)


def _cached_pack(cache: FrameCache, name: str) -> HostFrames | None:
    """The cached frames of a pack of another store; None if they are not cached, or damaged."""
    try:
        return _named(unpack(cache.files.read(name), text_of(str(cache.files.folder / name))), name)
    except Damaged:
        cache.files.remove(name)
    except (OSError, NotOfAStore):
        pass
    return None


def _named(frames: HostFrames, name: str) -> HostFrames:
    """The frames; raises `Damaged` if they belong to another pack than that of this name."""
    if pack_name(frames.host, frames.digest) != name:
        raise Damaged("it is another pack")
    return frames
