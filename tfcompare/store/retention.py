"""Reports the size of a store and shrinks it, removing the least recently used runs first.

Only files with names that a store uses are counted and removed; all others remain.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from tfcompare.store.contents import Damaged
from tfcompare.store.file_names import FOLDERS, INDEX, MARK, first_pack, is_pack
from tfcompare.store.files import StoredFile
from tfcompare.store.records import Record, record_name
from tfcompare.store.run_store import Store

_AT_ONCE = 32
_BEING_INGESTED_NS = 24 * 3600 * 10**9
"""A newer pack without a run may belong to a run that is being ingested."""


@dataclass(frozen=True)
class Holdings:
    """The contents of a store: runs, host files, and the size of all its files."""

    runs: int
    packs: int
    bytes: int


def holdings(store: Store) -> tuple[Holdings, tuple[str, ...]]:
    """(the contents; messages about the store)."""
    files = _files(store)
    rows, messages = store.rows()
    packs = sum(is_pack(file.name) for file in files)
    return Holdings(len(rows), packs, _bytes(files)), messages


def clear(store: Store) -> int:
    """Remove everything in the store; returns the bytes removed. The file that marks it as a store is removed last."""
    files = _files(store)
    names = [file.name for file in files]
    store.files.remove([name for name in names if name != MARK])
    store.files.remove([name for name in names if name == MARK])
    store.files.remove_folders()
    return _bytes(files)


def shrink(store: Store, max_bytes: int) -> tuple[int, int]:
    """Shrink the store to at most `max_bytes`; returns (runs removed, bytes removed).

    First removes packs that belong to no run, then the least recently used runs (behind a URL: the oldest).
    """
    files = _files(store)
    excess = _bytes(files) - max_bytes
    if excess <= 0:
        return 0, 0
    packs = {file.name: file for file in files if file.name.startswith("packs/")}
    records = _records(store)
    owners = Counter(name for record in records for name in _names(record))
    freed = 0
    for pack in sorted((p for p in packs.values() if not owners[first_pack(p.name)]), key=lambda p: p.used_ns):
        if excess > freed and (store.files.is_folder or time.time_ns() - pack.used_ns > _BEING_INGESTED_NS):
            store.files.remove([pack.name])
            freed += pack.size_bytes
    removed = []

    def used_ns(record: Record) -> int:
        return max((packs[name].used_ns for name in _names(record) if name in packs), default=0)

    for record in sorted(records, key=used_ns):
        if excess <= freed:
            break
        removed.append(record)
        owners -= Counter(_names(record))
        gone = {name for name in _names(record) if not owners[name]}
        freed += sum(pack.size_bytes for name, pack in packs.items() if first_pack(name) in gone)
    names = {name for record in removed for name in _names(record) if not owners[name]}
    store.files.remove([record_name(record.run) for record in removed])  # first: no run is listed without its packs
    store.files.remove([name for name in packs if first_pack(name) in names])
    store.write_index()
    return len(removed), freed


def _names(record: Record) -> set[str]:
    return {host.pack for host in record.readable}


def _records(store: Store) -> list[Record]:
    """The records of all runs in the index, except damaged ones, whose packs count as belonging to no run."""

    def read(run: str) -> Record | None:
        with suppress(Damaged):
            return store.record(run)
        return None

    rows, _ = store.rows()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [record for record in pool.map(read, [row.run for row in rows]) if record is not None]


def _files(store: Store) -> list[StoredFile]:
    found = [file for folder in FOLDERS for file in store.files.listed(folder)]
    return found + [file for file in map(store.files.info, (INDEX, MARK)) if file is not None]


def _bytes(files: list[StoredFile]) -> int:
    return sum(file.size_bytes for file in files)
