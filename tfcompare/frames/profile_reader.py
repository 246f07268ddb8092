"""Reads the profiles of a run on several threads: remote ones are fetched first, and locked while they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock, Semaphore
from typing import Protocol

from tfcompare.errors import NoSuchMarker, NoSuchPlace, NoSuchSteps, NotAProfile, TooLarge
from tfcompare.frames.host import HostTables, build
from tfcompare.schema import Group
from tfcompare.sources.logdir import FoundRun, HostFile
from tfcompare.sources.remote.fetching import remote_cache
from tfcompare.sources.step_choice import StepChoice
from tfcompare.text import text_of
from tfcompare.xspace import read

AT_ONCE = 4
"""Profiles that are read at the same time."""

OnProgress = Callable[[int, int], None]
"""Called with (host files read, all host files) or, for remote files, with (bytes fetched, all bytes)."""


class FrameBuilder(Protocol):
    """Reads the profile at `path` and builds its tables: those of a group, `core` with `steps`."""

    def __call__(self, path: Path, host: str, choice: StepChoice, group: Group = "core") -> HostTables:
        """Raises `NotAProfile`, `NoSuchPlace`, `NoSuchMarker`, `NoSuchSteps` and `TooLarge`."""


def build_here(path: Path, host: str, choice: StepChoice, group: Group = "core") -> HostTables:
    """Builds the frames in this process; see `FrameBuilder`."""
    try:
        profile = read(path)
        return build(profile.space, host, profile.digest, choice, group=group)
    except MemoryError:
        raise TooLarge(text_of(str(path)), "takes more memory than there is") from None


class Stopped(BaseException):
    """Nobody is waiting for the file any more."""


class ProfileReader:
    """Reads the profiles of a run.

    `choice`: which steps to include, unless `of_host` has another choice for a host; `build` reads a profile and builds
    its frames; `fetching` is called with the bytes that have arrived, and all bytes.
    """

    def __init__(
        self,
        found: FoundRun,
        choice: StepChoice,
        fetching: OnProgress | None = None,
        build: FrameBuilder = build_here,
        of_host: Mapping[str, StepChoice] | None = None,
    ) -> None:
        self.choice = choice
        self._of_host = of_host or {}
        self._build = build
        self._fetching = fetching
        self._at_once = Semaphore(AT_ONCE)
        self._lock = Lock()
        self._here = {file.path: file.bytes_at_hand for file in found.files}
        self._total = found.size_bytes
        self._is_all_here = found.bytes_at_hand == self._total
        self._is_stopped = False

    def choice_of(self, file: HostFile) -> StepChoice:
        """The steps to include of a host."""
        return self._of_host.get(file.host, self.choice)

    def finish(self) -> None:
        """Report no more progress: what is read later is read for somebody else."""
        self._fetching = None

    def stop(self) -> None:
        """Abort fetching; what has arrived remains."""
        self._is_stopped = True

    def go_on(self) -> None:
        """Raises `Stopped` after `stop`."""
        if self._is_stopped:
            raise Stopped

    def tables(self, file: HostFile, group: Group = "core") -> HostTables:
        """The tables of a profile. If a fetched copy is damaged, it is fetched again."""
        if file.source is None:
            return self._tables(file, file.path, group)
        was_here = file.bytes_at_hand == file.size_bytes
        copy = self._copy(file, again=False)
        try:
            return self._tables(file, copy, group)
        except (NotAProfile, NoSuchPlace):
            if copy.exists() and not was_here:  # neither an old copy, nor one that another process has evicted
                raise
        return self._tables(file, self._copy(file, again=True), group)

    def _copy(self, file: HostFile, *, again: bool) -> Path:
        assert file.source is not None
        return remote_cache().fetched(file.source, lambda here: self._fetched(file, here), again=again)

    def _tables(self, file: HostFile, path: Path, group: Group) -> HostTables:
        try:
            with self._at_once:
                return self._build(path, file.host, self.choice_of(file), group)
        except (NotAProfile, NoSuchMarker, NoSuchSteps, TooLarge) as error:
            raise error.at(file.where) from None

    def _fetched(self, file: HostFile, here: int) -> None:
        self.go_on()
        with self._lock:
            self._here[file.path] = here
            if self._fetching is not None and not self._is_all_here:
                self._fetching(sum(self._here.values()), self._total)
