"""A store of runs: its index lists the runs, and each run's record is read when the run is opened."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.remote.places import shown
from tfcompare.store.files import FolderFiles, StoreFiles, is_own, store_files
from tfcompare.store.index import Index, Row, add_to_index, merge_index, read_index, row_of
from tfcompare.store.names import MARK
from tfcompare.store.records import Record, from_bytes, record_name, to_bytes
from tfcompare.store.typed import Damaged, from_json, json_in

_FORMAT = 1
_AT_ONCE = 32
_MOST_FILES = 16
"""An index with more files is merged."""
_UNUSABLE = "is damaged, or of another version of tfcompare"


@dataclass(frozen=True)
class _Mark:
    """The content of the file that marks a folder as a store."""

    format: int


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
            is_known = from_json(json_in(self.files.read(MARK)), _Mark).format == _FORMAT
        except FileNotFoundError:
            raise NoRuns(
                f"{self.shown}: is no store of tfcompare; `tfcompare ingest PATH --store {self.shown}` makes one"
            ) from None
        except Damaged:
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
        """(the current index; messages). Runs that are missing in it are listed from their records.

        Changes nothing in the store: `repair_index` does.
        """
        return self._completed(read_index(self.files))

    def _completed(self, index: Index) -> tuple[Index, tuple[str, ...]]:
        """(the index with the runs that are missing in it, from their records; messages)."""
        is_folder = isinstance(self.files, FolderFiles)  # elsewhere a listing of the records takes seconds
        if index.names and not index.damaged and not is_folder:
            return index, ()
        rows, messages = self._missing_rows(index)
        messages += [f"{self.shown}/{name}: {_UNUSABLE}; the runs in it were listed anew" for name in index.damaged]
        if rows and not index.damaged:
            messages.append(f"{self.shown}: its index lacks {len(rows):,} runs, which were listed from their records")
        if messages:
            messages[-1] += "; `tfcompare ingest` repairs it"
        return replace(index, rows=index.rows | {row.run: row for row in rows}), tuple(messages)

    def repair_index(self) -> tuple[Index, tuple[str, ...]]:
        """As `index`, and adds what is missing in its files, and removes damaged ones."""
        before = read_index(self.files)
        index, messages = self._completed(before)
        self.note([row for run, row in index.rows.items() if run not in before.rows])
        self.files.remove(list(index.damaged))
        whole = tuple(name for name in index.names if name not in index.damaged)
        return replace(index, names=whole, damaged=()), messages

    def record(self, run: str) -> Record | None:
        """A run's record; None if it does not exist. Raises `Damaged`."""
        try:
            return self._record_in(record_name(run))
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
        """Merge the index if it has many files, and remove what killed processes left."""
        index = read_index(self.files)
        if len(index.names) > _MOST_FILES and not index.damaged:
            merge_index(self.files, index)
        if isinstance(self.files, FolderFiles):
            self.files.files.remove_abandoned()

    def _missing_rows(self, index: Index) -> tuple[list[Row], list[str]]:
        """(the rows of runs that are not in any readable file of the index; messages about damaged records)."""
        known = {record_name(run) for run in index.rows}
        names = [file.name for file in self.files.listed("runs") if file.name not in known]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(self._row_in, names))
        damaged = [name for name, row in zip(names, found, strict=True) if isinstance(row, Damaged)]
        messages = []
        if damaged:
            others = f", as are {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
            messages.append(f"{self.shown}/{damaged[0]}: {_UNUSABLE}{others}, and its run is not listed")
        return [row for row in found if isinstance(row, Row)], messages

    def _row_in(self, name: str) -> Row | Damaged | None:
        try:
            return row_of(self._record_in(name))
        except Damaged as error:
            return error
        except FileNotFoundError:
            return None

    def _record_in(self, name: str) -> Record:
        record = from_bytes(self.files.read(name))
        if record_name(record.run) != name:
            raise Damaged("it is the record of another run")
        return record
