"""Plans an ingest: which runs are new or have changed, and which of their host files have to be read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.logdir import HostFile
from tfcompare.sources.logdir.grouping import UnnamedRun
from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata, why_invalid
from tfcompare.sources.logdir.places import open_places
from tfcompare.sources.logdir.runs import survey
from tfcompare.store.contents import Damaged
from tfcompare.store.file_names import all_packs
from tfcompare.store.records import Record, Row, StoredHost, check, new_record, record_name
from tfcompare.store.run_store import Store
from tfcompare.store.version import reader_version

_AT_ONCE = 32


@dataclass
class Plan:
    """Runs to put into a store. `to_read`: their files that have no pack yet, by run id.

    `lost`: why places cannot be searched, or runs cannot be ingested.
    """

    unchanged: int = 0
    records: dict[str, Record] = field(default_factory=dict)
    to_read: dict[str, tuple[HostFile, ...]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)


def plan(places: Sequence[str | Path], store: Store, rows: Sequence[Row], given: Metadata = NO_METADATA) -> Plan:
    """The plan for the runs at and below those places, which get the metadata `given` besides what they have.

    `rows`: the runs in the store.

    Raises `NoSuchPlace` or `NoRuns` if there is nothing to ingest at all.
    """
    found = survey(open_places(places))
    if not found.unnamed:
        for error in found.lost:
            raise error
        raise NoRuns(found.why_none)
    runs = {find.run.id for find in found.unnamed}
    without = [problem for run in found.runs if run.id not in runs for problem in run.problems]
    out = Plan(lost=[*map(str, found.lost), *without])
    stored = {record_name(row.run) for row in rows}
    known = {row.stamps for row in rows if row.stamps}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for find, new, before in pool.map(lambda find: _look_up(find, store, stored, known, given), found.unnamed):
            _add(out, find, new, before, store)
    return out


def _look_up(
    find: UnnamedRun, store: Store, stored: set[str], known: set[str], given: Metadata
) -> tuple[UnnamedRun, Record, Record | TfcompareError | None]:
    """(the run, its new record, its record in the store); both records are identical if nothing has changed."""
    new = replace(new_record(find), given=given)
    try:
        check(new)
    except Damaged as error:
        return find, new, TfcompareError(f"{find.run.path}: cannot be put into a store: {error}; rename it")
    try:
        before = store.record(new.run) if record_name(new.run) in stored else None
    except Damaged:
        before = None
    except TfcompareError as error:
        return find, new, error
    if before is not None:
        new = replace(new, given=before.given.updated(given))
        if why := why_invalid(new.given):
            return find, new, TfcompareError(f"{find.run.path}: cannot be tagged: with its earlier tags, {why}")
        if new.stamps in known and all(_has_packs(store, host) for host in before.readable):
            return find, new, new
    return find, new, before


def _has_packs(store: Store, host: StoredHost) -> bool:
    """Whether all its packs exist. Only checked for local folders, where old packs are deleted to free space."""
    return not store.files.is_folder or all(store.files.info(name) is not None for name in all_packs(host.pack))


def _add(out: Plan, find: UnnamedRun, new: Record, before: Record | TfcompareError | None, store: Store) -> None:
    if before is new:
        out.unchanged += 1
        return
    if isinstance(before, TfcompareError):
        out.lost.append(str(before))
        return
    reusable = {}  # hosts that were read by this version and whose packs exist
    if before is not None and before.reader == reader_version():
        for host in before.hosts:
            if host.stamp and (_has_packs(store, host) if host.pack else host.failure):
                reusable[host.host, host.path, host.stamp] = host
    hosts, to_read = [], []
    for host, file in zip(new.hosts, find.run.files, strict=True):
        hosts.append(reusable.get((host.host, host.path, host.stamp), host))
        if hosts[-1] is host:
            to_read.append(file)
    new = replace(new, hosts=tuple(hosts))
    if before is not None and before.place != new.place:
        was, now = ([(host.host, host.size_bytes) for host in record.hosts] for record in (before, new))
        if was != now:  # else the run may have been moved
            out.lost.append(
                f"{find.run.path}: the store has another run {new.run}, of {before.place}; ingest a folder further "
                "up, so that they go by different names"
            )
            return
    out.records[new.run] = new
    out.to_read[new.run] = tuple(to_read)
