"""A store of runs: the runs in it by its index, and each run's record when it is opened."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Any

from tfcompare.errors import NoRuns, NotFetched, TfcompareError
from tfcompare.sources.logdir import FoundRun, HostFile, Told
from tfcompare.sources.logdir.grouping import UnnamedRun
from tfcompare.sources.logdir.naming import Address, display_names
from tfcompare.sources.logdir.places import open_places
from tfcompare.sources.logdir.runs import survey
from tfcompare.sources.remote.places import parse, shown
from tfcompare.store.files import StoreFiles, is_own, store_files
from tfcompare.store.index import Index, Row, add_to_index, merge_index, read_index, row_of
from tfcompare.store.ingest_command import ingest_again
from tfcompare.store.packing import Damaged
from tfcompare.store.records import Record, from_bytes, record_name, to_bytes, unread
from tfcompare.store.version import reader_version
from tfcompare.text import is_url

MARK = "tfcompare-store.json"
_FORMAT = 1
_AT_ONCE = 32
_MOST_FILES = 16
"""More files of an index than this are merged."""
_NEAREST = 5


@dataclass(frozen=True)
class Store:
    """A store at a path or URL."""

    address: str

    @cached_property
    def files(self) -> StoreFiles:
        """Its files."""
        return store_files(self.address)

    @property
    def shown(self) -> str:
        """Its address, as it may be shown."""
        return shown(self.address)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.address,)

    def check(self) -> None:
        """Raises `NoRuns` where there is no store, `TfcompareError` where it is one of a later version."""
        try:
            told = json.loads(self.files.read(MARK))
            is_known = told["format"] == _FORMAT
        except FileNotFoundError:
            raise NoRuns(
                f"{self.shown}: is no store of tfcompare; `tfcompare ingest PATH --store {self.shown}` makes one"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise TfcompareError(f"{self.shown}: its {MARK} is damaged; `tfcompare ingest` writes it anew") from None
        if not is_known:
            raise TfcompareError(f"{self.shown}: was made by a later version of tfcompare; install that version")

    def _was_begun(self) -> bool:
        """Whether it is a store by now: another may begin it at the same time."""
        try:
            self.check()
        except NoRuns:
            return False
        return True

    def begin(self) -> None:
        """Make it a store, unless it is one. Raises `TfcompareError` where other files lie there."""
        try:
            self.check()
        except NoRuns:
            if not is_own(self.address) and self.files.holds_others() and not self._was_begun():
                raise TfcompareError(
                    f"{self.shown}: holds other files and is no store of tfcompare; name an empty folder for it"
                ) from None
        except NotFetched:
            raise
        except TfcompareError as error:
            if "damaged" not in str(error):
                raise
        else:
            return
        self.files.write(MARK, json.dumps({"format": _FORMAT}).encode())

    def index(self) -> tuple[Index, tuple[str, ...]]:
        """(the index as it is now; what to tell of it). Damaged files of it are made anew from the runs' records."""
        index = read_index(self.files, self.address)
        if not index.damaged:
            return index, ()
        rows = self._missing_rows(index)
        said = [f"{self.shown}/{name}: is damaged; the runs in it were listed anew" for name in index.damaged]
        with suppress(TfcompareError):  # one that only lets itself be read
            add_to_index(self.files, rows)
            self.files.remove(list(index.damaged))
        kept = tuple(name for name in index.names if name not in index.damaged)
        return Index(index.rows | {row.run: row for row in rows}, kept, ()), tuple(said)

    def runs(self) -> tuple[list[StoredRun], tuple[str, ...]]:
        """(all runs, as the index tells them, without names; what to tell of the store)."""
        self.check()
        index, said = self.index()
        return [StoredRun(row, self) for row in index.runs], said

    def record(self, run: str) -> Record | None:
        """A run's record; None where there is none. Raises `Damaged`."""
        try:
            return from_bytes(self.files.read(record_name(run)))
        except FileNotFoundError:
            return None

    def put(self, record: Record) -> Row:
        """Write a run's record; the row is for `note`."""
        record = replace(record, ingested_ns=time.time_ns())
        self.files.write(record_name(record.run), to_bytes(record))
        return row_of(record)

    def note(self, rows: Sequence[Row]) -> None:
        """Add rows to the index."""
        if rows:
            add_to_index(self.files, rows)

    def tidy(self) -> None:
        """Merge the index where it has become many files."""
        index, _ = self.index()
        if len(index.names) > _MOST_FILES:
            merge_index(self.files, index)

    def _missing_rows(self, index: Index) -> list[Row]:
        """Those of runs that no readable file of the index has."""
        known = {record_name(run) for run in index.rows}
        names = [kept.name for kept in self.files.listed("runs") if kept.name not in known]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [row for row in pool.map(self._row_in, names) if row is not None]

    def _row_in(self, name: str) -> Row | None:
        try:
            return row_of(from_bytes(self.files.read(name)))
        except (Damaged, FileNotFoundError):
            return None


class StoredRun(FoundRun):
    """A run in a store, as the index tells it. Its host files are looked up when they are asked for."""

    def __init__(self, row: Row, store: Store, name: str = "", record: Record | None = None) -> None:
        is_current = row.reader == reader_version()
        problems = row.problems if is_current else (_of_other_reader(row, store),)
        self.__dict__.update(
            id=row.run,
            name=name or row.run,
            path=_path(row.place),
            problems=problems,
            recorded=row.recorded,
            recorded_source=row.recorded_source,
            row=row,
            store=store,
            is_current=is_current,
        )
        if record is not None:
            self.__dict__["files"] = record.files(store.address)

    row: Row
    store: Store
    is_current: bool

    @cached_property
    def files(self) -> tuple[HostFile, ...]:
        """See `FoundRun`; raises `TfcompareError` where the store does not tell."""
        if not self.is_readable:
            return ()
        where = f"{self.store.shown}/{record_name(self.id)}"
        try:
            record = self.store.record(self.id)
        except Damaged:
            return self._from_profiles(f"{where}: the record of {self.id} is damaged")
        if record is None or record.reader != reader_version():
            why = "is not there any more" if record is None else "was made by another version of tfcompare meanwhile"
            raise TfcompareError(f"{where}: the record of {self.id} {why}; look for runs again")
        return record.files(self.store.address)

    @property
    def size_bytes(self) -> int:
        """See `FoundRun`."""
        return self.row.size_bytes

    @property
    def is_readable(self) -> bool:
        """See `FoundRun`."""
        return self.is_current and bool(self.row.host_names)

    @property
    def is_remote(self) -> bool:
        """See `FoundRun`."""
        return False

    @property
    def is_stored(self) -> bool:
        """See `FoundRun`."""
        return True

    @property
    def told(self) -> Told | None:
        """See `FoundRun`."""
        return self.row.told if self.is_current else None

    @property
    def content_id(self) -> str:
        """See `FoundRun`."""
        return self.row.content_id

    @property
    def host_names(self) -> tuple[str, ...]:
        """See `FoundRun`."""
        return self.row.host_names

    @property
    def bytes_at_hand(self) -> int:
        """See `FoundRun`."""
        return self.size_bytes

    @property
    def stat_key(self) -> str:
        """See `FoundRun`."""
        told = (self.store.address, self.id, self.row.reader, self.row.content_id, self.row.ingested_ns)
        return blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def _from_profiles(self, what: str) -> tuple[HostFile, ...]:
        """The host files themselves, where none has changed. The record goes, so that an ingest writes it anew."""
        with suppress(TfcompareError):
            self.store.files.remove([record_name(self.id)])
        again = "run `tfcompare ingest` again, which writes it anew"
        with suppress(TfcompareError):
            for find in survey(open_places([str(self.path)])).unnamed:
                if unread(find).stamps == self.row.stamps != "":
                    self.__dict__["problems"] = (*self.problems, f"{what}; the profiles were read instead; {again}")
                    return find.run.files
        raise TfcompareError(f"{what}, and the profiles are not there, or have changed; {again}")

    def named(self, name: str) -> StoredRun:
        """See `FoundRun`."""
        return StoredRun(self.row, self.store, name)

    def find(self) -> UnnamedRun:
        """The run, and what its name is made from."""
        return UnnamedRun(self, Address(self.id, self.row.parts, self.row.own, self.row.in_run_folder))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredRun) and (self.stat_key, self.name) == (other.stat_key, other.name)

    def __hash__(self) -> int:
        return hash((self.stat_key, self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredRun, (self.row, self.store, self.name)


def named(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs under names that tell them apart, in the order in which they were recorded."""
    ordered = sorted(runs, key=lambda run: (run.recorded, run.id))
    names = display_names([run.find().address for run in ordered])
    return [run.named(name) for run, name in zip(ordered, names, strict=True)]


def one_of(runs: Sequence[StoredRun], wanted: str, store: Store) -> StoredRun:
    """The run with that id, or else that name or the end of an id that no other has.

    Raises `TfcompareError`, which names the nearest, where there is none, several, or it cannot be read.
    """
    found = [run for run in runs if run.id == wanted] or [run for run in runs if run.name == wanted]
    found = found or [run for run in runs if run.id.endswith(f"/{wanted}")]
    if len(found) > 1:
        listed = ", ".join(run.id for run in found[:_NEAREST]) + (" …" if len(found) > _NEAREST else "")
        raise TfcompareError(f"{store.shown}: {len(found):,} runs go by {wanted!r}; name one of them: {listed}")
    if not found:
        raise nearest(runs, wanted, store)
    if not found[0].is_readable:
        raise NoRuns("; ".join(found[0].problems))
    return found[0]


def nearest(runs: Sequence[StoredRun], wanted: str, store: Store) -> TfcompareError:
    """The error that no run goes by that, which names those whose ids or names are most like it."""
    scores = sorted(runs, key=lambda run: -max(_likeness(wanted, run.id), _likeness(wanted, run.name)))
    near = ", ".join(run.id for run in scores[:_NEAREST]) or "none"
    return TfcompareError(f"{store.shown}: has no run {wanted!r}; the nearest of its {len(runs):,}: {near}")


def _likeness(wanted: str, name: str) -> float:
    return difflib.SequenceMatcher(None, wanted, name).quick_ratio()


def _of_other_reader(row: Row, store: Store) -> str:
    return (
        f"{row.run}: was ingested by another version of tfcompare, whose tables this one does not read; to read its "
        f"profiles again, run `{ingest_again(row, store.address)}` where they are"
    )


def _path(place: str) -> PurePath:
    return parse(place).path if is_url(place) else Path(place)
