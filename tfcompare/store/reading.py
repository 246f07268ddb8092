"""Reads the host files of a run in parallel: from this machine's cache, a store of runs, or the profiles."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath

import pyarrow as pa

from tfcompare import settings
from tfcompare.errors import NoOtherSteps, NoSuchPlace, NotFetched, TfcompareError
from tfcompare.frames import HostTables
from tfcompare.frames.host import LazyTables
from tfcompare.frames.profile_reader import AT_ONCE, OnProgress, ProfileReader
from tfcompare.schema import Group
from tfcompare.sources.allowed_roots import is_inside
from tfcompare.sources.logdir import FoundRun, HostFile, StoredPack
from tfcompare.sources.remote.places import RemotePath, parse, shown
from tfcompare.store.cached_frames import FrameCache, pack_name, stamp_of, verify_pack_name
from tfcompare.store.contents import Damaged, OtherVersion
from tfcompare.store.file_names import late_pack
from tfcompare.store.files import is_frame_cache, store_files
from tfcompare.store.packing import pack, unpack, unpack_checked
from tfcompare.store.version import reader_version
from tfcompare.text import is_url, text_of

_FETCHERS = 8
_OTHER_STEPS = "steps by a marker or range of one's own are made from the profile itself"


def read_hosts(
    found: FoundRun, reader: HostReader, progress: OnProgress | None
) -> tuple[list[HostTables], list[TfcompareError]]:
    """(the frames of the readable host files, sorted by host; why the others cannot be read).

    Raises `NotFetched` if a file is temporarily unavailable, `NoOtherSteps` if one cannot be read with these steps.
    """
    hosts: list[HostTables] = []
    failures: list[TfcompareError] = []
    at_once = _FETCHERS if found.is_remote or found.is_stored else AT_ONCE
    with ThreadPoolExecutor(min(at_once, len(found.files))) as pool:
        waiting = [pool.submit(reader.read, file) for file in found.files]
        for done, future in enumerate(waiting, 1):
            try:
                hosts.append(future.result())
            except TfcompareError as error:
                if isinstance(error, (NotFetched, NoOtherSteps)):  # not a problem of the file itself
                    reader.profiles.stop()
                    raise
                failures.append(error)
            except BaseException:
                reader.profiles.stop()
                raise
            if progress is not None:
                progress(done, len(waiting))
    reader.profiles.finish()
    return sorted(hosts, key=lambda h: h.host), failures


class HostReader:
    """Reads host files from a store or this machine's `cache`, or else with `profiles`, and then caches them.

    `remarks`, without duplicates: problems of this machine rather than the profiles.
    """

    def __init__(self, profiles: ProfileReader, cache: FrameCache | None) -> None:
        self.profiles = profiles
        self._cache = cache
        self.remarks: dict[str, None] = {}

    def read(self, file: HostFile) -> HostTables:
        """The tables of a host file: from the cache, from the store, or built from the profile and then cached."""
        self.profiles.go_on()
        if file.stored is None:
            first = self._cached_or_built(file)
        elif self.profiles.choice_of(file).key is None:
            first = self._stored(file, file.stored)
        else:
            first = self._with_other_steps(file, file.stored)
        return replace(first, late=LazyTables(partial(self._late, file, first.digest)))

    def _late(self, file: HostFile, digest: str, group: Group) -> Mapping[str, pa.Table]:
        """A group of a host file with that digest whose first groups were read before.

        Raises `TfcompareError` if the file has changed since, or is not there any more.
        """
        choice = self.profiles.choice_of(file)
        name = late_pack(pack_name(file.host, digest, choice), group)
        if file.stored is not None and choice.key is None:
            return self._stored(file, file.stored, group).tables
        if self._cache is not None and (cached := self._cache.pack(name, group, choice)) is not None:
            return cached.tables
        built = self.profiles.tables(file, group)
        if built.digest != digest:
            raise TfcompareError(f"{text_of(str(file.where))}: has changed since it was opened; open it again")
        if self._cache is not None:
            self._cache.add_pack(name, built)
        return built.tables

    def may_be_read(self, file: HostFile, stored: StoredPack) -> bool:
        """Whether the profile of a stored file may be read, by the rule of the function `may_be_read`."""
        return may_be_read(file.where, stored.store)

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
            tables = unpack(data, group=group) if is_frame_cache(stored.store) else unpack_checked(data, group)
            verify_pack_name(tables, name, reader=stored.reader)
        except FileNotFoundError:
            return self._rebuilt(file, stored, group, "is not there any more")
        except OtherVersion:
            return self._rebuilt(file, stored, group, "is of another version of tfcompare")
        except Damaged:
            return self._rebuilt(file, stored, group, "is damaged")
        if self._cache is not None and not is_frame_cache(stored.store):
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
            tables = self.profiles.tables(file, group)
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
            raise NoOtherSteps(f"{text_of(str(file.where))}: {REMEDY}; {_OTHER_STEPS}")
        try:
            frames = self._cached_or_built(file)
        except NoSuchPlace as error:
            raise NoOtherSteps(f"{error}; {_OTHER_STEPS}") from None
        if pack_name(file.host, frames.digest, reader=stored.reader) != stored.name:
            problem = "is another profile than the one in the store; run `tfcompare ingest` again"
            raise NoOtherSteps(f"{text_of(str(file.where))}: {problem}")
        return frames

    def _cached_or_built(self, file: HostFile) -> HostTables:
        if self._cache is None:
            return self.profiles.tables(file)
        before = stamp_of(file)
        choice = self.profiles.choice_of(file)
        frames = self._cache.get(file, choice, before)
        if frames is None:
            frames = self.profiles.tables(file)
            self._cache.add(file, choice, frames, before)
        return frames


REMEDY = "is not below any place given here; name its folder in TFCOMPARE_PLACES if you trust it"


def may_be_read(profile: PurePath, store: str) -> bool:
    """Whether the profile at that path, which the store at that address names, may be opened."""
    if is_frame_cache(store):
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
