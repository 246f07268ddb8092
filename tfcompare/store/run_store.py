"""A store of runs: its index lists the runs, and each run's record is read when the run is opened."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.remote.places import shown
from tfcompare.store.contents import Damaged, from_json, to_json
from tfcompare.store.file_names import INDEX, MARK
from tfcompare.store.files import StoredFile, StoreFiles, is_own, store_files
from tfcompare.store.index import Entry, read_index, write_index
from tfcompare.store.records import Record, Row, from_bytes, record_name, row_of, to_bytes

_FORMAT = 2
_AT_ONCE = 32
_UNUSABLE = "is damaged, or of another version of tfcompare"
_AGAIN = "`tfcompare ingest` again"


@dataclass(frozen=True)
class _Mark:
    """The content of the file that marks a folder as a store."""

    format: int


class Outdated(TfcompareError):
    """The file that marks a folder as a store is damaged, or that of an earlier version."""


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
        """Its address without secrets."""
        return shown(self.address)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.address,)

    def check(self) -> None:
        """Raises `NoRuns` if there is no store, `TfcompareError` if its version is newer."""
        try:
            made_by = from_json(self.files.read(MARK), _Mark).format
        except FileNotFoundError:
            raise NoRuns(
                f"{self.shown}: is no store of tfcompare; `tfcompare ingest PATH --store {self.shown}` makes one"
            ) from None
        except Damaged:
            raise Outdated(f"{self.shown}: its {MARK} is damaged; `tfcompare ingest` writes it anew") from None
        if made_by > _FORMAT:
            raise TfcompareError(f"{self.shown}: was made by a later version of tfcompare; install that version")
        if made_by < _FORMAT:
            raise Outdated(f"{self.shown}: was made by an earlier version of tfcompare; `tfcompare ingest` again")

    def _was_begun(self) -> bool:
        """Whether it is a store now: another process may create it at the same time."""
        try:
            self.check()
        except NoRuns:
            return False
        return True

    def begin(self) -> None:
        """Make it a store unless it is one. Raises `TfcompareError` if it contains other files."""
        try:
            self.check()
        except NoRuns:
            if not is_own(self.address) and self.files.holds_others() and not self._was_begun():
                raise TfcompareError(
                    f"{self.shown}: holds other files and is no store of tfcompare; name an empty folder for it"
                ) from None
        except Outdated:
            pass
        else:
            return
        self.files.write(MARK, to_json(_Mark(_FORMAT)))

    def rows(self) -> tuple[list[Row], tuple[str, ...]]:
        """(the rows of all runs in the store; messages). Changes nothing in it: `write_index` does."""
        entries, messages, _ = self._entries()
        return [entry.row for entry in entries.values()], messages

    def write_index(self) -> None:
        """Write the index anew if it is not that of the records."""
        entries, _, is_current = self._entries()
        if not is_current:
            write_index(self.files, entries)

    def record(self, run: str) -> Record | None:
        """A run's record; None if it does not exist. Raises `Damaged`."""
        try:
            return _record_in(self.files, record_name(run))
        except FileNotFoundError:
            return None

    def put(self, record: Record) -> None:
        """Write a run's record."""
        self.files.write(record_name(record.run), to_bytes(replace(record, ingested_ns=time.time_ns())))

    def _entries(self) -> tuple[dict[str, Entry], tuple[str, ...], bool]:
        """(the entries of the index as it should be, by the names of the records; messages about what is damaged;
        whether the index is that)."""
        messages = []
        try:
            known = read_index(self.files)
        except Damaged:
            known = {}
            again = "the runs were listed from their records; `tfcompare ingest` repairs it"
            messages.append(f"{self.shown}/{INDEX}: {_UNUSABLE}; {again}")
        files = self.files.listed("runs")
        entries = {file.name: known[file.name] for file in files if file.name in known and known[file.name].is_of(file)}
        others = [file for file in files if file.name not in entries]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(partial(_row_in, self.files), others))
        entries |= {f.name: Entry(f.size_bytes, f.version, row) for f, row in zip(others, found, strict=True) if row}
        damaged = [file.name for file in others if file.name not in entries]
        if damaged:
            more = f", as are {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
            messages.append(
                f"{self.shown}/{damaged[0]}: {_UNUSABLE}{more}, and its run is not listed; {_AGAIN} lists it"
            )
        return entries, tuple(messages), not messages and entries == known


def _record_in(files: StoreFiles, name: str) -> Record:
    record = from_bytes(files.read(name))
    if record_name(record.run) != name:
        raise Damaged("it is the record of another run")
    return record


@lru_cache(maxsize=16_384)
def _row_in(files: StoreFiles, file: StoredFile) -> Row | None:
    """The row of the record in that version of its file; None if it is damaged, or not there any more."""
    try:
        return row_of(_record_in(files, file.name))
    except (Damaged, FileNotFoundError):
        return None
