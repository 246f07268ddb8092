"""A store's record of a run: its source, its host files and their packs, and what a list of runs shows.

A record is a digest, followed by JSON: `runs/<digest of the run's id>.json`.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.logdir import HostFile, RunSummary, StoredPack
from tfcompare.sources.logdir.grouping import UnnamedRun
from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata, why_invalid
from tfcompare.sources.remote.fetching import remote_cache
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.sources.remote.places import parse
from tfcompare.store.cached_frames import stamp_of
from tfcompare.store.contents import Damaged, digest_of, unsealed
from tfcompare.store.file_names import is_pack
from tfcompare.store.version import reader_version, versions
from tfcompare.text import is_url, text_of

_LARGEST = 1 << 62
"""The largest number in a record or the index."""
_FIRST_YEAR, _LAST_YEAR = 1600, 2999
"""Any time zone's times in these years can be had in UTC, in every unit that pandas has but ns."""
_MOST_BARS = 30
_VERSION = re.compile("[0-9A-Za-z_-]{1,40}")


@dataclass(frozen=True)
class StoredHost:
    """A host file as it was read. `stamp` is empty if a change of the file could go undetected.

    `pack` is empty if the file could not be read: `failure` is the reason, in a sentence.
    """

    host: str
    path: str
    size_bytes: int
    modified_ns: int
    stamp: str
    version: str | None = None
    pack: str = ""
    pack_bytes: int = 0
    failure: str = ""

    def file(self, store: str, reader: str) -> HostFile:
        """The host file, with the location of its frames in that store, which that reader made."""
        pack = StoredPack(store, self.pack, reader)
        if not is_url(self.path):
            return HostFile(self.host, Path(self.path), self.size_bytes, self.modified_ns, stored=pack)
        place = parse(self.path)
        source = RemoteFile(place.path, place.address, self.size_bytes, self.version or "", self.modified_ns)
        return HostFile(self.host, remote_cache().path_of(source), self.size_bytes, self.modified_ns, source, pack)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a record and a row of the index say of a run.

    `parts`, `own` and `in_run_folder` are the input for its name (`naming.Address`), `place` is where it was found,
    `problems` those of its folder; `reader` the version that made its packs, and `versions` those of its tables and
    summary (`version.versions`), which earlier records lack. `summary` is None if it cannot be read.
    """

    run: str
    parts: tuple[str, ...]
    own: int
    in_run_folder: bool
    place: str
    problems: tuple[str, ...]
    recorded: datetime
    recorded_source: str
    reader: str
    ingested_ns: int = 0
    content_id: str = ""
    summary: RunSummary | None = None
    metadata: Metadata = NO_METADATA
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Record(RunFacts):
    """A run in a store. `metadata` is that of the files beside it, `given` that of the command that ingested it."""

    hosts: tuple[StoredHost, ...]
    given: Metadata = NO_METADATA

    @property
    def readable(self) -> tuple[StoredHost, ...]:
        """The hosts that have a pack."""
        return tuple(host for host in self.hosts if host.pack)

    @property
    def size_bytes(self) -> int:
        """The size of all host files, including unreadable ones."""
        return sum(host.size_bytes for host in self.hosts)

    @property
    def all_metadata(self) -> Metadata:
        """The metadata of the run's files, overridden by what was given."""
        return self.metadata.updated(self.given)

    @property
    def stamps(self) -> str:
        """A digest that changes if any file has to be read again; empty if a change could go undetected."""
        if any(not host.stamp for host in self.hosts):
            return ""
        files = [(h.host, h.path, h.stamp) for h in self.hosts]
        made_by = self.versions or self.reader
        return digest_of([files, self.problems, made_by, self.place, asdict(self.all_metadata)])

    def files(self, store: str) -> tuple[HostFile, ...]:
        """The host files that have a pack."""
        return tuple(host.file(store, self.reader) for host in self.readable)


@dataclass(frozen=True, kw_only=True)
class Row(RunFacts):
    """A run in the index: its problems include those of its hosts, and its metadata what was given.

    `summary.step_times_ms` has at most 30 values: for long runs, each is the largest of several adjacent steps.
    """

    host_names: tuple[str, ...]
    size_bytes: int
    stamps: str
    pack_bytes: int


def row_of(record: Record) -> Row:
    """The row of a record."""
    facts: dict[str, Any] = {fact.name: getattr(record, fact.name) for fact in fields(RunFacts)}
    left_out = [f"left out: {host.failure}" for host in record.hosts if host.failure]
    facts |= {"place": text_of(record.place), "problems": (*record.problems, *left_out)}
    facts |= {"summary": _brief(record.summary), "metadata": record.all_metadata}
    return Row(
        **facts,
        host_names=tuple(host.host for host in record.readable),
        size_bytes=record.size_bytes,
        stamps=record.stamps,
        pack_bytes=sum(host.pack_bytes for host in record.readable),
    )


def _brief(summary: RunSummary | None) -> RunSummary | None:
    """The summary with at most 30 step times, each the largest of several adjacent ones."""
    if summary is None or summary.step_times_ms is None or len(summary.step_times_ms) <= _MOST_BARS:
        return summary
    times = summary.step_times_ms
    size = -(-len(times) // _MOST_BARS)
    return replace(summary, step_times_ms=tuple(max(times[i : i + size]) for i in range(0, len(times), size)))


def new_record(find: UnnamedRun) -> Record:
    """The record of a run whose files will be read. Takes the stamp of each file now."""
    run, address = find.run, find.address
    hosts = []
    for file in run.files:
        stamp = stamp_of(file)
        digest = stamp.digest if stamp is not None and stamp.is_settled else ""
        version = None if file.source is None else file.source.version
        hosts.append(StoredHost(file.host, str(file.where), file.size_bytes, file.modified_ns, digest, version))
    return Record(
        run=run.id,
        parts=address.parts,
        own=address.own,
        in_run_folder=address.in_run_folder,
        place=str(run.path),
        problems=run.problems,
        recorded=run.recorded,
        recorded_source=run.recorded_source,
        hosts=tuple(hosts),
        reader=reader_version(),
        metadata=run.metadata,
        versions=versions(),
    )


def record_name(run: str) -> str:
    """The file name of a run's record."""
    return f"runs/{digest_of(run)}.json"


def from_bytes(data: bytes) -> Record:
    """The record that `sealed` made these bytes of; raises `Damaged` if they have changed since, or are none."""
    record = unsealed(data, Record)
    check(record)
    return record


def check(record: Record) -> None:
    """Raises `Damaged` for values that no run has."""
    check_run(record)
    _check_metadata(record.given)
    names = [host.host for host in record.hosts]
    if len(set(names)) < len(names):
        raise Damaged("two of its hosts have the same name")
    for host in record.hosts:
        if host.pack and not is_pack(host.pack):
            raise Damaged("the name of a pack in it is none")
        sizes = host.size_bytes, host.pack_bytes, abs(host.modified_ns)
        if not host.host or not all(0 <= size <= _LARGEST for size in sizes):
            raise Damaged("a host in it has no name, or a size or time that cannot be")
        _check_place(host.path)


def check_run(run: Record | Row) -> None:
    """Raises `Damaged` for values that no run has."""
    if not run.run or not 0 <= run.own <= len(run.parts):
        raise Damaged("its id or parts are not those of a run")
    if not 0 <= run.size_bytes <= _LARGEST or not 0 <= run.ingested_ns <= _LARGEST:
        raise Damaged("a number in it cannot be")
    if not all(map(_VERSION.fullmatch, (run.reader, *run.versions, *run.versions.values()))):
        raise Damaged("a version in it is none")
    if run.recorded.tzinfo is None or not _FIRST_YEAR <= run.recorded.year <= _LAST_YEAR:
        raise Damaged(f"its time is not one between {_FIRST_YEAR} and {_LAST_YEAR}")
    summary = run.summary
    about = (summary.device, summary.device_name, summary.remarks) if summary else ()
    try:
        "".join((run.recorded_source, *run.problems, *about)).encode()
    except UnicodeEncodeError:
        raise Damaged("a text in it has bytes that are no text") from None
    _check_place(run.place)
    _check_summary(summary)
    _check_metadata(run.metadata)


def _check_place(place: str) -> None:
    """Raises `Damaged` for text that cannot be a path or URL."""
    try:
        if "\0" in place:
            raise Damaged("a path in it has a NUL")
        if is_url(place):
            parse(place)
    except NoSuchPlace:
        raise Damaged("a URL in it is none that tfcompare opens") from None


def _check_summary(summary: RunSummary | None) -> None:
    """Raises `Damaged` for values that no summary has: a run has steps, of which it knows the times, or no steps."""
    if summary is None:
        return
    of_steps = (summary.steps, summary.step_time_ms_median, summary.step_times_ms, summary.step_time_ms_mean)
    if len({value is None for value in of_steps}) > 1:
        raise Damaged("its summary has some facts on steps only")
    numbers = [summary.step_time_ms_median or 0.0, *(summary.step_times_ms or ())]
    times = (summary.step_time_ms_low, summary.step_time_ms_mean, summary.step_time_ms_high)
    for low, value, high in (times, (summary.steps_per_s_low, summary.steps_per_s, summary.steps_per_s_high)):
        known = [number for number in (low, value, high) if number is not None]
        if (low is None) != (high is None) or known != sorted(known):
            raise Damaged("its summary has an interval that cannot be")
        numbers += known
    if not 0 <= (summary.steps or 0) <= _LARGEST or not all(0 <= number <= _LARGEST for number in numbers):
        raise Damaged("its summary has steps, times or a throughput that cannot be")


def _check_metadata(metadata: Metadata) -> None:
    """Raises `Damaged` for metadata that tfcompare does not write."""
    if why := why_invalid(metadata):
        raise Damaged(f"its metadata cannot be: {why}")
