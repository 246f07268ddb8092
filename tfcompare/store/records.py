"""A store's record of a run: its source, its host files and their packs, and what a list of runs shows.

A record is a JSON file, preceded by its digest: `runs/<digest of the run's id>.json`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.logdir import HostFile, RunSummary, StoredPack, remote_cache
from tfcompare.sources.logdir.grouping import UnnamedRun
from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata, why_invalid
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.sources.remote.places import parse
from tfcompare.store.cached_frames import stamp_of
from tfcompare.store.names import is_pack
from tfcompare.store.typed import Damaged, from_json, json_in
from tfcompare.store.version import reader_version
from tfcompare.text import is_url

LARGEST = 1 << 62
"""The largest number in a record or the index."""


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

    @classmethod
    def of(cls, file: HostFile, stamp: str) -> StoredHost:
        """A host file that will be read."""
        version = None if file.source is None else file.source.version
        return cls(file.host, str(file.where), file.size_bytes, file.modified_ns, stamp, version)

    def file(self, store: str) -> HostFile:
        """The host file, with the location of its frames in that store."""
        pack = StoredPack(store, self.pack)
        if not is_url(self.path):
            return HostFile(self.host, Path(self.path), self.size_bytes, self.modified_ns, stored=pack)
        place = parse(self.path)
        source = RemoteFile(place.path, place.address, self.size_bytes, self.version or "", self.modified_ns)
        return HostFile(self.host, remote_cache().path_of(source), self.size_bytes, self.modified_ns, source, pack)


@dataclass(frozen=True)
class Record:
    """A run in a store.

    `parts`, `own` and `in_run_folder` are the input for its name (`naming.Address`), `place` is where it was found,
    `problems` those of its folder; `reader` the version that made its packs. `summary` is None if it cannot be read.
    `metadata` is that of the files beside it, `given` that of the command that ingested it.
    """

    run: str
    parts: tuple[str, ...]
    own: int
    in_run_folder: bool
    place: str
    problems: tuple[str, ...]
    recorded: datetime
    recorded_source: str
    hosts: tuple[StoredHost, ...]
    reader: str
    ingested_ns: int = 0
    content_id: str = ""
    summary: RunSummary | None = None
    metadata: Metadata = NO_METADATA
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
    def all_problems(self) -> tuple[str, ...]:
        """The problems of its folder, and the host files that are left out."""
        return (*self.problems, *(f"left out: {host.failure}" for host in self.hosts if host.failure))

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
        return _digest([files, self.problems, self.reader, self.place, asdict(self.all_metadata)])

    def files(self, store: str) -> tuple[HostFile, ...]:
        """The host files that have a pack."""
        return tuple(host.file(store) for host in self.readable)


def unread(find: UnnamedRun) -> Record:
    """The record of a run whose files will be read. Takes the stamp of each file now."""
    run, address = find.run, find.address
    hosts = []
    for file in run.files:
        stamp = stamp_of(file)
        hosts.append(StoredHost.of(file, stamp.digest if stamp is not None and stamp.is_settled else ""))
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
    )


def record_name(run: str) -> str:
    """The file name of a run's record."""
    return f"runs/{_digest(run)}.json"


def to_bytes(record: Record) -> bytes:
    """The record as the bytes of its file."""
    fields = asdict(record) | {"recorded": record.recorded.isoformat()}
    return json.dumps({"digest": _digest(fields), "record": fields}, default=_plain).encode()


def from_bytes(data: bytes) -> Record:
    """The record in the bytes of a file; raises `Damaged` if they have changed since they were written, or are none."""
    content = json_in(data)
    if not isinstance(content, dict) or content.get("digest") != _digest(content.get("record")):
        raise Damaged
    record = from_json(content["record"], Record)
    check(record)
    return record


def check(record: Record) -> None:
    """Raises `Damaged` for values that no run has."""
    names = [host.host for host in record.hosts]
    if not record.run or len(set(names)) < len(names) or not 0 <= record.own <= len(record.parts):
        raise Damaged("its id, hosts or parts are not those of a run")
    if max(record.size_bytes, abs(record.ingested_ns)) > LARGEST:
        raise Damaged("a number in it is too large")
    check_place(record.place)
    check_summary(record.summary)
    check_metadata(record.metadata)
    check_metadata(record.given)
    for host in record.hosts:
        if host.pack and not is_pack(host.pack):
            raise Damaged("the name of a pack in it is none")
        if min(host.size_bytes, host.pack_bytes) < 0 or not host.host:
            raise Damaged("a host in it has a negative size or no name")
        check_place(host.path)


def check_place(place: str) -> None:
    """Raises `Damaged` for text that cannot be a path or URL."""
    try:
        if "\0" in place:
            raise Damaged("a path in it has a NUL")
        if is_url(place):
            parse(place)
    except NoSuchPlace:
        raise Damaged("a URL in it is none that tfcompare opens") from None


def check_summary(summary: RunSummary | None) -> None:
    """Raises `Damaged` for values that no summary has: a run has steps, of which it knows the times, or no steps."""
    if summary is None:
        return
    of_steps = (summary.steps, summary.step_time_ms_median, summary.step_times_ms, summary.step_time_ms_mean)
    if len({value is None for value in of_steps}) > 1:
        raise Damaged("its summary has some facts on steps only")
    numbers = [summary.step_time_ms_median or 0.0, *(summary.step_times_ms or ())]
    for low, value, high in (
        (summary.step_time_ms_low, summary.step_time_ms_mean, summary.step_time_ms_high),
        (summary.steps_per_s_low, summary.steps_per_s, summary.steps_per_s_high),
    ):
        known = [number for number in (low, value, high) if number is not None]
        if (low is None) != (high is None) or known != sorted(known):
            raise Damaged("its summary has an interval that cannot be")
        numbers += known
    if not 0 <= (summary.steps or 0) <= LARGEST or not all(0 <= number <= LARGEST for number in numbers):
        raise Damaged("its summary has steps, times or a throughput that cannot be")


def check_metadata(metadata: Metadata) -> None:
    """Raises `Damaged` for metadata that tfcompare does not write."""
    if why := why_invalid(metadata):
        raise Damaged(f"its metadata cannot be: {why}")


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, default=_plain)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value.item()
