"""Reads the host files of a run in parallel: from this machine's cache, a store of runs, or the profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from threading import Lock, Semaphore

import pyarrow as pa

from tfcompare import settings
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
from tfcompare.frames import HostTables
from tfcompare.frames.host import Late
from tfcompare.schema import Group
from tfcompare.settings import PLACES_VARIABLE
from tfcompare.sources.allowed_roots import is_inside
from tfcompare.sources.logdir import FoundRun, HostFile, StoredPack, remote_cache
from tfcompare.sources.remote.places import RemotePath, parse, shown
from tfcompare.sources.step_choice import StepChoice
from tfcompare.store.cached_frames import FrameCache, named, pack_name, stamp_of
from tfcompare.store.contents import Damaged, OtherVersion
from tfcompare.store.file_names import late_pack
from tfcompare.store.files import is_own, store_files
from tfcompare.store.frame_builders import FrameBuilder, build_here
from tfcompare.store.packing import pack, unpack, unpack_checked
from tfcompare.store.version import reader_version
from tfcompare.text import is_url, text_of

_READERS = 4
_FETCHERS = 8

OnProgress = Callable[[int, int], None]
"""Called with (host files read, all host files) or, for remote files, with (bytes fetched, all bytes)."""


def read_hosts(
    found: FoundRun, reader: HostReader, progress: OnProgress | None
) -> tuple[list[HostTables], list[TfcompareError]]:
    """(the frames of the readable host files, sorted by host; why the others cannot be read).

    Raises `NotFetched` if a file is temporarily unavailable, `NoOtherSteps` if one cannot be read with these steps.
    """
    hosts: list[HostTables] = []
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
    reader.finish()
    return sorted(hosts, key=lambda h: h.host), failures


class _Stopped(BaseException):
    """Nobody is waiting for the file any more."""


class HostReader:
    """Reads host files on several threads; remote ones are fetched first, and locked while they are read.

    `choice`: which steps to include, unless `of_host` has another choice for a host; `build` reads a profile and builds
    its frames; `remarks`, without duplicates: problems of this machine rather than the profiles.
    """

    def __init__(
        self,
        found: FoundRun,
        choice: StepChoice,
        fetching: OnProgress | None,
        cache: FrameCache | None,
        build: FrameBuilder = build_here,
        of_host: Mapping[str, StepChoice] | None = None,
    ) -> None:
        self.choice = choice
        self._of_host = of_host or {}
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

    def read(self, file: HostFile) -> HostTables:
        """The tables of a host file: from the cache, from the store, or built from the profile and then cached."""
        if self._is_stopped:
            raise _Stopped
        if file.stored is None:
            first = self._cached_or_built(file)
        elif self._choice_of(file).key is None:
            first = self._stored(file, file.stored)
        else:
            first = self._with_other_steps(file, file.stored)
        return replace(first, late=Late(partial(self._late, file, first.digest)))

    def _choice_of(self, file: HostFile) -> StepChoice:
        return self._of_host.get(file.host, self.choice)

    def finish(self) -> None:
        """Report no more progress: what is read later is read for somebody else."""
        self._fetching = None

    def _late(self, file: HostFile, digest: str, group: Group) -> Mapping[str, pa.Table]:
        """A group of a host file with that digest whose first groups were read before.

        Raises `TfcompareError` if the file has changed since, or is not there any more.
        """
        choice = self._choice_of(file)
        name = late_pack(pack_name(file.host, digest, choice), group)
        if file.stored is not None and choice.key is None:
            return self._stored(file, file.stored, group).tables
        if self._cache is not None and (cached := self._cache.pack(name, group, choice)) is not None:
            return cached.tables
        built = self._built(file, group)
        if built.digest != digest:
            raise TfcompareError(f"{text_of(str(file.where))}: has changed since it was opened; open it again")
        if self._cache is not None:
            self._cache.add_late(name, built)
        return built.tables

    def may_be_read(self, file: HostFile, stored: StoredPack) -> bool:
        """Whether the profile of a stored file may be read; see `trusted`."""
        return may_be_read(file.where, stored.store)

    def stop(self) -> None:
        """Abort fetching; what has arrived remains."""
        self._is_stopped = True

    def _stored(self, file: HostFile, stored: StoredPack, group: Group = "core") -> HostTables:
        """The tables in the file's pack; if it is damaged or missing, those of the profile if it has the same content.

        Raises `NotFetched` if the store cannot be read, and `TfcompareError` if there is neither a usable pack nor the
        profile that it was made from.
        """
        name = stored.name if group == "core" else late_pack(stored.name, group)
        if self._cache is not None and (tables := self._cache.pack(name, group, reader=stored.reader)) is not None:
            return tables
        try:
            data = store_files(stored.store).read(name)
            own = is_own(stored.store)
            tables = unpack(data, group=group) if own else unpack_checked(data, group)
            named(tables, name, reader=stored.reader)
        except FileNotFoundError:
            return self._rebuilt(file, stored, group, "is not there any more")
        except OtherVersion:
            return self._rebuilt(file, stored, group, "is of another version of tfcompare")
        except Damaged:
            return self._rebuilt(file, stored, group, "is damaged")
        if self._cache is not None and not is_own(stored.store):
            self._cache.add_pack(name, data)
        return tables

    def _rebuilt(self, file: HostFile, stored: StoredPack, group: Group, what: str) -> HostTables:
        """Tables built from the profile, if it is the same as before, and put into the store if this reader made it."""
        name = stored.name if group == "core" else late_pack(stored.name, group)
        problem = f"{shown(stored.store)}/{name}: what the store held of {text_of(str(file.where))} {what}"
        if not self.may_be_read(file, stored):
            raise TfcompareError(f"{problem}, and the profile {REMEDY}, or run `tfcompare ingest` again where it is")
        tables = None
        with suppress(TfcompareError):
            tables = self._built(file, group)
        if tables is None or pack_name(file.host, tables.digest, reader=stored.reader) != stored.name:
            why = "cannot be read here" if tables is None else "is another one now"
            raise TfcompareError(f"{problem}, and the profile {why}; run `tfcompare ingest` again where it is")
        if stored.reader == reader_version():
            with suppress(TfcompareError):  # a read-only store
                store_files(stored.store).write(name, pack(tables))
        if group == "core":
            self.remarks[f"{problem}; it was made anew from the profile"] = None
        return tables

    def _with_other_steps(self, file: HostFile, stored: StoredPack) -> HostTables:
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
        if pack_name(file.host, frames.digest, reader=stored.reader) != stored.name:
            problem = "is another profile than the one in the store; run `tfcompare ingest` again"
            raise NoOtherSteps(f"{text_of(str(file.where))}: {problem}")
        return frames

    def _cached_or_built(self, file: HostFile) -> HostTables:
        if self._cache is None:
            return self._built(file)
        before = stamp_of(file)
        choice = self._choice_of(file)
        frames = self._cache.get(file, choice, before)
        if frames is None:
            frames = self._built(file)
            self._cache.add(file, choice, frames, before)
        return frames

    def _built(self, file: HostFile, group: Group = "core") -> HostTables:
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
                return self._build(path, file.host, self._choice_of(file), group)
        except (NotAProfile, NoSuchMarker, NoSuchSteps, TooLarge) as error:
            raise error.at(file.where) from None

    def _fetched(self, file: HostFile, here: int) -> None:
        if self._is_stopped:
            raise _Stopped
        with self._lock:
            self._here[file.path] = here
            if self._fetching is not None and not self._is_all_here:
                self._fetching(sum(self._here.values()), self._total)


REMEDY = f"is not below any place given here; name its folder in {PLACES_VARIABLE} if you trust it"


def may_be_read(profile: PurePath, store: str) -> bool:
    """Whether the profile at that path, which the store at that address names, may be opened."""
    if is_own(store):
        return True
    places = settings.given_places()
    if isinstance(profile, RemotePath):
        return any(profile.is_relative_to(path) for path in map(_remote, places) if path is not None)
    return is_inside(Path(profile), [Path(place) for place in places if not is_url(place)])


def _remote(place: str | Path) -> RemotePath | None:
    try:
        return parse(str(place)).path if is_url(place) else None
    except NoSuchPlace:
        return None
