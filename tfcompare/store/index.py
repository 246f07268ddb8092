"""The index of a store: one row per run, with everything that a list of runs shows, in one file.

The records of the runs are what counts; the index saves reading each of them. With each row it has the version of the
record that the row was made from, so that a record that was written since is read itself.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tfcompare.store.contents import Damaged, sealed, unsealed
from tfcompare.store.file_names import INDEX
from tfcompare.store.files import StoredFile, StoreFiles
from tfcompare.store.records import Row, check_run, record_name
from tfcompare.units import format_bytes

_MOST_EXPANDED = 256 << 20
"""The size limit of all rows: some 200,000 runs."""
_LEVEL = 6


@dataclass(frozen=True)
class Entry:
    """A row, and the size and version of the record that it was made from."""

    size_bytes: int
    version: str
    row: Row

    def is_of(self, file: StoredFile) -> bool:
        """Whether the record is still that one."""
        return bool(file.version) and (self.size_bytes, self.version) == (file.size_bytes, file.version)


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


def read_index(files: StoreFiles) -> dict[str, Entry]:
    """The entries by the names of the runs' records; none where there is no index. Raises `Damaged`."""
    file = files.info(INDEX)
    return {} if file is None else _read(files, file)


def write_index(files: StoreFiles, entries: dict[str, Entry]) -> None:
    """Replace the index."""
    files.write(INDEX, to_bytes(list(entries.values())))


def to_bytes(entries: list[Entry]) -> bytes:
    """The entries as the bytes of the file."""
    hosts: dict[tuple[str, ...], int] = {}
    which = tuple(hosts.setdefault(entry.row.host_names, len(hosts)) for entry in entries)
    versions = {entry.row.reader: entry.row.versions for entry in entries}
    without = tuple(_with(entry, (), {}) for entry in entries)
    return gzip.compress(sealed(_Content(tuple(hosts), which, without, versions)), _LEVEL, mtime=0)


def from_bytes(data: bytes) -> list[Entry]:
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
def _read(files: StoreFiles, file: StoredFile) -> dict[str, Entry]:
    """The index in that version of its file."""
    try:
        return {record_name(entry.row.run): entry for entry in from_bytes(files.read(file.name))}
    except FileNotFoundError:
        raise Damaged("is not there any more") from None
