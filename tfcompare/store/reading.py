"""The host files of a run read, several at once: from what was kept of an earlier time, where it still holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, Semaphore

from tfcompare import settings
from tfcompare.errors import (
    NoOtherSteps,
    NoSuchMarker,
    NoSuchPlace,
    NoSuchSteps,
    NotAProfile,
    NotFetched,
    TfcompareError,
)
from tfcompare.frames import HostFrames, build
from tfcompare.sources.logdir import FoundRun, HostFile, remote_cache
from tfcompare.sources.remote.fetching import Copy
from tfcompare.sources.step_choice import StepChoice
from tfcompare.store.cached_frames import KeptFrames, kept_frames, pack_name, stamp_of
from tfcompare.store.stored_frames import stored_frames
from tfcompare.text import text_of
from tfcompare.xspace import read

_READERS = 4
_FETCHERS = 8

Progress = Callable[[int, int], None]
"""Called with (host files read, host files in all) or, of remote ones, with (bytes fetched, bytes in all)."""


def read_hosts(
    found: FoundRun, reader: HostReader, progress: Progress | None
) -> tuple[list[HostFrames], list[TfcompareError]]:
    """(what the readable host files give, sorted by host; why the others cannot be read).

    Raises `NotFetched` where one cannot be had this time, `NoOtherSteps` where one cannot be had with these steps.
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
                if isinstance(error, (NotFetched, NoOtherSteps)):  # no verdict on the file itself
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
    """Nobody waits for the file any more."""


class HostReader:
    """Reads host files on several threads; remote ones are fetched before, and held while they are read.

    `remarks`, each once: what came up that is of this machine and not of the profiles; `choice`: which steps count.
    """

    def __init__(self, found: FoundRun, choice: StepChoice, fetching: Progress | None, kept: KeptFrames | None) -> None:
        self.choice = choice
        self._fetching = fetching
        self._kept = kept
        self._at_once = Semaphore(_READERS)
        self._lock = Lock()
        self._here = {file.path: file.bytes_at_hand for file in found.files}
        self._total = found.size_bytes
        self._is_all_here = found.bytes_at_hand == self._total
        self._is_stopped = False
        self.remarks: dict[str, None] = {}

    def read(self, file: HostFile) -> HostFrames:
        """The frames of a host file, kept or made now, and then kept."""
        if self._is_stopped:
            raise _Stopped
        if file.stored is None:
            return self._kept_or_made(file)
        if self.choice.is_default:
            return stored_frames(file, self._kept, self.remarks, self._made)
        return self._with_other_steps(file, file.stored.name)

    def stop(self) -> None:
        """Let go of what is being fetched; what has arrived is kept."""
        self._is_stopped = True

    def _with_other_steps(self, file: HostFile, pack: str) -> HostFrames:
        """Those of a stored run: a store has the steps that the profiles themselves mark."""
        try:
            frames = self._kept_or_made(file)
        except NoSuchPlace as error:
            raise NoOtherSteps(
                f"{error}; steps by a marker or range of one's own are made from the profile itself"
            ) from None
        if pack_name(file.host, frames.digest) != pack:
            told = "is another profile than the one in the store; run `tfcompare ingest` again"
            raise NoOtherSteps(f"{text_of(str(file.where))}: {told}")
        return frames

    def _kept_or_made(self, file: HostFile) -> HostFrames:
        if self._kept is None:
            return self._made(file)
        before = stamp_of(file)
        frames = self._kept.find(file, self.choice, before)
        if frames is None:
            frames = self._made(file)
            self._kept.keep(file, self.choice, frames, before)
        return frames

    def _made(self, file: HostFile) -> HostFrames:
        """The frames of a host file. A copy from an earlier time that turns out to be damaged is fetched anew."""
        if file.source is None:
            return self._frames(file, file.path)
        cache, was_here = remote_cache(), file.bytes_at_hand == file.size_bytes
        try:
            with cache.held(file.source, lambda here: self._told(file, here)) as copy:
                return self._frames_of(file, copy)
        except NotAProfile:
            if not was_here:
                raise
        with cache.held_anew(file.source, lambda here: self._told(file, here)) as copy:
            return self._frames_of(file, copy)

    def _frames_of(self, file: HostFile, copy: Copy) -> HostFrames:
        if copy.remark:
            self.remarks[copy.remark] = None
        return self._frames(file, copy.path)

    def _frames(self, file: HostFile, path: Path) -> HostFrames:
        try:
            with self._at_once:
                profile = read(path)
                return build(profile.space, file.host, profile.digest, self.choice)
        except (NotAProfile, NoSuchMarker, NoSuchSteps) as error:  # the former also of a damaged XLA program within
            raise error.at(file.where) from None

    def _told(self, file: HostFile, here: int) -> None:
        if self._is_stopped:
            raise _Stopped
        with self._lock:
            self._here[file.path] = here
            if self._fetching is not None and not self._is_all_here:
                self._fetching(sum(self._here.values()), self._total)


def kept_here() -> KeptFrames | None:
    """The frames that are kept on this machine, as the environment says; None where none are to be."""
    folder = settings.store_folder(os.environ)
    return kept_frames(folder, settings.store_bytes(os.environ)) if folder is not None else None
