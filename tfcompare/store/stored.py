"""A store of runs: its index lists the runs, and each run's record is read when the run is opened."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.remote.places import shown
from tfcompare.store.files import StoreFiles, is_own, store_files
from tfcompare.store.index import Index, Row, add_to_index, merge_index, read_index, row_of
from tfcompare.store.packing import Damaged
from tfcompare.store.records import Record, from_bytes, record_name, to_bytes
from tfcompare.store.stored_run import StoredRun

MARK = "tfcompare-store.json"
_FORMAT = 1
_AT_ONCE = 32
_MOST_FILES = 16
"""An index with more files is merged."""


class _DamagedMark(TfcompareError):
    """The file that marks a folder as a store is damaged."""


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
            is_known = json.loads(self.files.read(MARK))["format"] == _FORMAT
        except FileNotFoundError:
            raise NoRuns(
                f"{self.shown}: is no store of tfcompare; `tfcompare ingest PATH --store {self.shown}` makes one"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise _DamagedMark(f"{self.shown}: its {MARK} is damaged; `tfcompare ingest` writes it anew") from None
        if not is_known:
            raise TfcompareError(f"{self.shown}: was made by a later version of tfcompare; install that version")

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
        except _DamagedMark:
            pass
        else:
            return
        self.files.write(MARK, json.dumps({"format": _FORMAT}).encode())

    def index(self) -> tuple[Index, tuple[str, ...]]:
        """(the current index; messages). Damaged index files are rebuilt from the runs' records."""
        index = read_index(self.files)
        if not index.damaged:
            return index, ()
        rows = self._missing_rows(index)
        messages = [f"{self.shown}/{name}: is damaged; the runs in it were listed anew" for name in index.damaged]
        with suppress(TfcompareError):  # a read-only store
            add_to_index(self.files, rows)
            self.files.remove(list(index.damaged))
        whole = tuple(name for name in index.names if name not in index.damaged)
        return Index(index.rows | {row.run: row for row in rows}, whole, ()), tuple(messages)

    def runs(self) -> tuple[list[StoredRun], tuple[str, ...]]:
        """(all runs in the index, without names; messages about the store)."""
        self.check()
        index, messages = self.index()
        return [StoredRun.of(row, self) for row in index.runs], messages

    def record(self, run: str) -> Record | None:
        """A run's record; None if it does not exist. Raises `Damaged`."""
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
        """Merge the index if it has many files."""
        index, _ = self.index()
        if len(index.names) > _MOST_FILES:
            merge_index(self.files, index)

    def _missing_rows(self, index: Index) -> list[Row]:
        """The rows of runs that are not in any readable file of the index."""
        known = {record_name(run) for run in index.rows}
        names = [file.name for file in self.files.listed("runs") if file.name not in known]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [row for row in pool.map(self._row_in, names) if row is not None]

    def _row_in(self, name: str) -> Row | None:
        try:
            return row_of(from_bytes(self.files.read(name)))
        except (Damaged, FileNotFoundError):
            return None
