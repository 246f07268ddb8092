"""The index of a store: one row per run, with everything that a list of runs shows, in a few Parquet files.

    index/<time of writing in ns>-<digest of the file>.parquet

Each ingest adds a file with its changes; many files are merged into one. There are no locks: the latest row of a run
counts, a merged file exists before its inputs are removed, and a reader that finds a file missing lists the files
again. The digest in the name shows whether the content is intact.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tfcompare.sources.logdir import RunSummary
from tfcompare.store.files import StoreFiles
from tfcompare.store.packing import Damaged
from tfcompare.store.records import Record
from tfcompare.text import text_of

FOLDER = "index"
_TRIES = 5
_SUFFIX = ".parquet"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_REMOVALS_LISTED_NS = 24 * 3600 * 10**9
"""How long a row marks a removed run, since an older file may still contain it."""
_MOST_BARS = 30


@dataclass(frozen=True)
class Row:
    """A run in the index. `summary` is None if the run is unreadable; `is_removed`: it was removed from the store.

    `summary.step_times_ms` has at most 30 values: for long runs, each is the largest of several adjacent steps.
    """

    run: str
    parts: tuple[str, ...]
    own: int
    in_run_folder: bool
    place: str
    problems: tuple[str, ...]
    recorded: datetime
    recorded_source: str
    host_names: tuple[str, ...]
    size_bytes: int
    content_id: str
    stamps: str
    reader: str
    ingested_ns: int
    summary: RunSummary | None
    pack_bytes: int = 0
    is_removed: bool = False


def row_of(record: Record) -> Row:
    """The row of a record."""
    return Row(
        run=record.run,
        parts=record.parts,
        own=record.own,
        in_run_folder=record.in_run_folder,
        place=text_of(record.place),
        problems=record.all_problems,
        recorded=record.recorded,
        recorded_source=record.recorded_source,
        host_names=tuple(host.host for host in record.readable),
        size_bytes=record.size_bytes,
        content_id=record.content_id,
        stamps=record.stamps,
        reader=record.reader,
        ingested_ns=record.ingested_ns,
        summary=record.summary,
        pack_bytes=sum(host.pack_bytes for host in record.readable),
    )


@dataclass(frozen=True)
class Index:
    """The latest row of each run in the files of an index, the files' names, and the names of damaged ones."""

    rows: dict[str, Row]
    names: tuple[str, ...]
    damaged: tuple[str, ...]

    @property
    def runs(self) -> list[Row]:
        """The rows of runs that were not removed."""
        return [row for row in self.rows.values() if not row.is_removed]


def read_index(files: StoreFiles) -> Index:
    """The current index. Files that were read before are cached in memory."""
    for _ in range(_TRIES):
        names = sorted(file.name for file in files.listed(FOLDER) if file.name.endswith(_SUFFIX))
        try:
            return _merged(files, names)
        except FileNotFoundError:  # merged with others meanwhile
            continue
    return _merged(files, [name for name in names if files.size(name) is not None])


def forget() -> None:
    """Clear the cache of index files."""
    _rows_in.cache_clear()


def add_to_index(files: StoreFiles, rows: Iterable[Row]) -> str:
    """Add a file with these rows; returns its name."""
    data = to_bytes(list(rows))
    name = f"{FOLDER}/{time.time_ns():020d}-{_digest(data)}{_SUFFIX}"
    files.write(name, data)
    return name


def merge_index(files: StoreFiles, index: Index) -> None:
    """Merge the files that the index was read from into one."""
    now = time.time_ns()
    rows = [row for row in index.rows.values() if not row.is_removed or now - row.ingested_ns < _REMOVALS_LISTED_NS]
    new = add_to_index(files, rows)
    files.remove([name for name in index.names if name != new])


def _merged(files: StoreFiles, names: Sequence[str]) -> Index:
    rows: dict[str, Row] = {}
    damaged = []
    for name in names:
        try:
            for row in _rows_in(files, name):
                if row.run not in rows or rows[row.run].ingested_ns <= row.ingested_ns:
                    rows[row.run] = row
        except Damaged:
            damaged.append(name)
    return Index(rows, tuple(names), tuple(damaged))


@lru_cache(maxsize=64)
def _rows_in(files: StoreFiles, name: str) -> list[Row]:
    data = files.read(name)
    if name.rpartition("-")[2] != f"{_digest(data)}{_SUFFIX}":
        raise Damaged
    return from_bytes(data)


_JSON = ("parts", "problems", "host_names")


def to_bytes(rows: Sequence[Row]) -> bytes:
    """Rows as a Parquet file."""
    table = pa.Table.from_pylist([_plain(row) for row in rows], _schema())
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", write_statistics=False)
    return out.getvalue()


def from_bytes(data: bytes) -> list[Row]:
    """The rows in a Parquet file."""
    table = pq.read_table(pa.BufferReader(data), use_threads=False)
    columns = [table.column(name).to_pylist() for name in table.column_names]
    return [_row(dict(zip(table.column_names, values, strict=True))) for values in zip(*columns, strict=True)]


def _schema() -> Any:
    text, number, flag = pa.string(), pa.int64(), pa.bool_()
    kinds = {"run": text, "parts": text, "own": number, "in_run_folder": flag, "place": text, "problems": text,
             "recorded_us": number, "recorded_source": text, "host_names": text, "size_bytes": number,
             "content_id": text, "stamps": text, "reader": text, "ingested_ns": number, "pack_bytes": number,
             "is_removed": flag, "is_read": flag, "device": text, "device_name": text, "steps": number,
             "step_time_ms_median": pa.float64(), "step_times_ms": pa.list_(pa.float64()),
             "remarks": text}  # fmt: skip
    return pa.schema(list(kinds.items()))


def _plain(row: Row) -> dict[str, Any]:
    values = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in ("summary", "recorded")}
    values |= {name: json.dumps(values[name]) for name in _JSON}
    values |= {"recorded_us": (row.recorded - _EPOCH) // _US, "is_read": row.summary is not None}
    if row.summary is not None:
        values |= asdict(row.summary)
        values["step_times_ms"] = _few(row.summary.step_times_ms)
    return values


def _few(times: tuple[float, ...] | None) -> list[float] | None:
    """At most 30 values, each the largest of several adjacent ones."""
    if times is None or len(times) <= _MOST_BARS:
        return None if times is None else list(times)
    size = -(-len(times) // _MOST_BARS)
    return [max(times[i : i + size]) for i in range(0, len(times), size)]


def _row(values: dict[str, Any]) -> Row:
    values |= {name: _tuple(values[name]) for name in _JSON}
    values["recorded"] = _EPOCH + timedelta(microseconds=values.pop("recorded_us"))
    summary = {f.name: values.pop(f.name) for f in fields(RunSummary)}
    summary["step_times_ms"] = None if summary["step_times_ms"] is None else tuple(summary["step_times_ms"])
    is_read = values.pop("is_read")
    return Row(**values, summary=RunSummary(**summary) if is_read else None)


@lru_cache(maxsize=4096)
def _tuple(text: str) -> tuple[str, ...]:
    """The tuple in a JSON list. Runs of one program have the same hosts, which may be hundreds, so it is cached."""
    return tuple(json.loads(text))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
