"""A store of runs: their records, and the index of all.

The records of the runs are what counts; the index saves reading each of them. With each row it has the version of the
record that the row was made from, so that a record that was written since is read itself.
"""

from __future__ import annotations

import gzip
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.remote.places import shown
from tfcompare.store.contents import Damaged, from_json, sealed, to_json, unsealed
from tfcompare.store.file_names import INDEX, MARK
from tfcompare.store.files import StoredFile, StoreFiles, is_frame_cache, store_files
from tfcompare.store.records import Record, Row, check_run, from_bytes, record_name, row_of
from tfcompare.units import format_bytes

_FORMAT = 2
_AT_ONCE = 32
_UNUSABLE = "is damaged, or of another version of tfcompare"
_AGAIN = "`tfcompare ingest` again"
_MOST_EXPANDED = 256 << 20
"""The size limit of all rows: some 200,000 runs."""
_LEVEL = 6


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
            advice = f"`tfcompare ingest PATH --store {self.shown}` makes one"
            raise NoRuns(f"{self.shown}: is no store of tfcompare; {advice}") from None
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
            if not is_frame_cache(self.address) and self.files.holds_others() and not self._was_begun():
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
            self.files.write(INDEX, index_bytes(list(entries.values())))

    def record(self, run: str) -> Record | None:
        """A run's record; None if it does not exist. Raises `Damaged`."""
        try:
            return _record_in(self.files, record_name(run))
        except FileNotFoundError:
            return None

    def put(self, record: Record) -> None:
        """Write a run's record."""
        self.files.write(record_name(record.run), sealed(replace(record, ingested_ns=time.time_ns())))

    def _entries(self) -> tuple[dict[str, Entry], tuple[str, ...], bool]:
        """(the entries of the index as it should be, by the names of the records; messages about what is damaged;
        whether the index is that)."""
        messages = []
        try:
            index = self.files.info(INDEX)
            known = {} if index is None else _entries_of(self.files, index)
        except Damaged:
            known = {}
            listed = "the runs were listed from their records; `tfcompare ingest` repairs it"
            messages.append(f"{self.shown}/{INDEX}: {_UNUSABLE}; {listed}")
        files = self.files.listed("runs")
        entries = {}
        for file in files:  # whose record is still the one that its entry was made from
            entry = known.get(file.name)
            if entry and file.version and (entry.size_bytes, entry.version) == (file.size_bytes, file.version):
                entries[file.name] = entry
        others = [file for file in files if file.name not in entries]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(partial(_row_in, self.files), others))
        entries |= {f.name: Entry(f.size_bytes, f.version, row) for f, row in zip(others, found, strict=True) if row}
        if damaged := [file.name for file in others if file.name not in entries]:
            more = f", as are {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
            listed = f"and its run is not listed; {_AGAIN} lists it"
            messages.append(f"{self.shown}/{damaged[0]}: {_UNUSABLE}{more}, {listed}")
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


@dataclass(frozen=True)
class Entry:
    """A row, and the size and version of the record that it was made from."""

    size_bytes: int
    version: str
    row: Row


@dataclass(frozen=True)
class _Content:
    """The file: distinct lists of host names, which of them each run has, the versions of tables by reader, and the
    runs without them.

    Runs of one program have the same hosts, which may be hundreds.
    """

    hosts: tuple[tuple[str, ...], ...]
    which: tuple[int, ...]
    entries: tuple[Entry, ...]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)


def index_bytes(entries: list[Entry]) -> bytes:
    """The entries as the bytes of the file."""
    hosts: dict[tuple[str, ...], int] = {}
    which = tuple(hosts.setdefault(entry.row.host_names, len(hosts)) for entry in entries)
    versions = {entry.row.reader: entry.row.versions for entry in entries}
    without = tuple(_with(entry, (), {}) for entry in entries)
    return gzip.compress(sealed(_Content(tuple(hosts), which, without, versions)), _LEVEL, mtime=0)


def entries_in(data: bytes) -> list[Entry]:
    """The entries in the bytes of the file; raises `Damaged`."""
    expander = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # of gzip's format
    try:
        text = expander.decompress(data, _MOST_EXPANDED)
    except zlib.error as error:
        raise Damaged(str(error)) from None
    if expander.unconsumed_tail:
        raise Damaged(f"takes more than {format_bytes(_MOST_EXPANDED)}")
    if not expander.eof:
        raise Damaged("is cut off")
    content = unsealed(text, _Content)
    if len(content.which) != len(content.entries) or not all(0 <= at < len(content.hosts) for at in content.which):
        raise Damaged("its runs are not of the hosts in it")
    entries = [
        _with(entry, content.hosts[at], content.versions.get(entry.row.reader, {}))
        for entry, at in zip(content.entries, content.which, strict=True)
    ]
    for entry in entries:
        check_run(entry.row)
    return entries


def _with(entry: Entry, hosts: tuple[str, ...], versions: dict[str, str]) -> Entry:
    return replace(entry, row=replace(entry.row, host_names=hosts, versions=versions))


@lru_cache(maxsize=8)
def _entries_of(files: StoreFiles, file: StoredFile) -> dict[str, Entry]:
    """The entries in that version of the index, by the names of the runs' records. Raises `Damaged`."""
    try:
        return {record_name(entry.row.run): entry for entry in entries_in(files.read(file.name))}
    except FileNotFoundError:
        raise Damaged("is not there any more") from None
