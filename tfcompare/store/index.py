"""The index of a store: one row per run, with everything that a list of runs shows, in a few files.

    index/<time of writing in ns>-<digest of the file>.rows
    8 bytes: size of the head | head: JSON | the rows as columns

Each ingest adds a file with its changes; many files are merged into one. There are no locks: the latest row of a run
counts, a merged file exists before its inputs are removed, and a reader that finds a file missing lists the files
again. The digest in the name shows whether the content is intact.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from tfcompare.frames.arrow import schema_of, table_of
from tfcompare.sources.logdir import RunSummary
from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata
from tfcompare.store.arrays import CODEC, Sizes, check_sizes, decode, encode, expanded, expanded_bytes, text_bytes
from tfcompare.store.files import StoreFiles
from tfcompare.store.names import INDEX_SUFFIX
from tfcompare.store.records import LARGEST, Record, check_metadata, check_place, check_summary
from tfcompare.store.typed import FIRST_TIME, LAST_TIME, Damaged, from_json, head_bytes, json_in, split_head
from tfcompare.text import text_of
from tfcompare.units import format_bytes

FOLDER = "index"
_TRIES = 5
_MOST_EXPANDED = 1 << 30
"""The size limit of the rows of one file: a million rows of 1,000 bytes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_FIRST_US, _LAST_US = ((when - _EPOCH) // _US for when in (FIRST_TIME, LAST_TIME))
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
    metadata: Metadata = NO_METADATA


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
        metadata=record.all_metadata,
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
        names = sorted(file.name for file in files.listed(FOLDER))
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
    name = f"{FOLDER}/{time.time_ns():020d}-{_digest(data)}{INDEX_SUFFIX}"
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
    if name.rpartition("-")[2] != f"{_digest(data)}{INDEX_SUFFIX}":
        raise Damaged
    return from_bytes(data)


_JSON = ("parts", "problems", "host_names")
_TIMES = "step_times_ms"
_OF_SUMMARY = {"device": "str", "device_name": "str", "steps": "Int64", "step_time_ms_median": "Float64",
               _TIMES: "str", "remarks": "str", "step_time_ms_mean": "Float64", "step_time_ms_low": "Float64",
               "step_time_ms_high": "Float64", "steps_per_s": "Float64", "steps_per_s_low": "Float64",
               "steps_per_s_high": "Float64"}  # fmt: skip
_DTYPES = {"run": "str", "parts": "str", "own": "int64", "in_run_folder": "bool", "place": "str", "problems": "str",
           "recorded_us": "int64", "recorded_source": "str", "host_names": "str", "size_bytes": "int64",
           "content_id": "str", "stamps": "str", "reader": "str", "ingested_ns": "int64", "pack_bytes": "int64",
           "is_removed": "bool", "is_read": "bool", "metadata": "str", **_OF_SUMMARY}  # fmt: skip


_SCHEMA = schema_of(_DTYPES)


@dataclass(frozen=True)
class _Head:
    """What precedes the rows: see `arrays.Sizes`."""

    sizes: Sizes


def to_bytes(rows: Sequence[Row]) -> bytes:
    """Rows as the bytes of a file."""
    plain = [_plain(row) for row in rows]
    columns = {name: [row.get(name) for row in plain] for name in _SCHEMA.names}
    sizes, buffers = encode(table_of(_SCHEMA, columns))
    data: bytes = pa.compress(b"".join(buffers), codec=CODEC, asbytes=True)
    return head_bytes(_Head(sizes)) + data


def from_bytes(data: bytes) -> list[Row]:
    """The rows in the bytes of a file; raises `Damaged`."""
    head, rest = split_head(data, _Head)
    check_sizes(_SCHEMA, head.sizes)
    if (size := expanded_bytes(head.sizes)) + text_bytes(head.sizes) > _MOST_EXPANDED:
        raise Damaged(f"takes more than {format_bytes(_MOST_EXPANDED)}")
    return [_row(row) for row in decode(_SCHEMA, head.sizes, expanded(rest, size), 0).to_pylist()]


def _plain(row: Row) -> dict[str, Any]:
    values = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in ("summary", "recorded")}
    values |= {name: json.dumps(values[name]) for name in _JSON}
    values |= {"recorded_us": (row.recorded - _EPOCH) // _US, "is_read": row.summary is not None}
    values["metadata"] = json.dumps(asdict(row.metadata))
    summary = asdict(row.summary) if row.summary is not None else {}
    return values | {"device": "", "device_name": "", "remarks": ""} | summary | {_TIMES: _times(row.summary)}


def _times(summary: RunSummary | None) -> str:
    return json.dumps(None if summary is None else _few(summary.step_times_ms))


def _few(times: tuple[float, ...] | None) -> list[float] | None:
    """At most 30 values, each the largest of several adjacent ones."""
    if times is None or len(times) <= _MOST_BARS:
        return None if times is None else list(times)
    size = -(-len(times) // _MOST_BARS)
    return [max(times[i : i + size]) for i in range(0, len(times), size)]


def _row(values: dict[str, Any]) -> Row:
    """The row with these values; raises `Damaged` for values that no row has."""
    values |= {name: _tuple(values[name]) for name in _JSON}
    if not _FIRST_US <= (recorded_us := values.pop("recorded_us")) <= _LAST_US:
        raise Damaged("a time in it is out of range")
    values["recorded"] = _EPOCH + timedelta(microseconds=recorded_us)
    values["metadata"] = _metadata(values["metadata"])
    facts, is_read = {name: values.pop(name) for name in _OF_SUMMARY}, values.pop("is_read")
    row = Row(**values, summary=_summary(facts) if is_read else None)
    if not row.run or not 0 <= row.own <= len(row.parts) or not 0 <= row.size_bytes <= LARGEST:
        raise Damaged("an id, size or part in it is not that of a run")
    check_place(row.place)
    return row


def _summary(facts: dict[str, Any]) -> RunSummary:
    times = json_in(facts[_TIMES].encode())
    if times is not None and not (isinstance(times, list) and all(isinstance(time, float) for time in times)):
        raise Damaged("its step times are no numbers")
    summary = RunSummary(**facts | {_TIMES: None if times is None else tuple(times)})
    check_summary(summary)
    return summary


@lru_cache(maxsize=4096)
def _tuple(text: str) -> tuple[str, ...]:
    """The tuple in a JSON list. Runs of one program have the same hosts, which may be hundreds, so it is cached."""
    found = json_in(text.encode())
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise Damaged("a list in it is none of texts")
    return tuple(found)


@lru_cache(maxsize=4096)
def _metadata(text: str) -> Metadata:
    found = from_json(json_in(text.encode()), Metadata)
    check_metadata(found)
    return found


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
