"""Puts runs into a store: processes read new host files, and write a run's record once its files are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from tfcompare.errors import TfcompareError
from tfcompare.fleet.plan import Plan, plan
from tfcompare.fleet.pools import Job, Killed, Outcome, Pool, outcomes
from tfcompare.fleet.tasks import HostOutcome, HostTask, RunTask, ingest_host, ingest_run
from tfcompare.sources.logdir.metadata import NO_METADATA, Metadata
from tfcompare.store.files import full_address
from tfcompare.store.records import StoredHost
from tfcompare.store.run_store import Store
from tfcompare.store.version import reader_version


@dataclass
class Summary:
    """Counts of what an ingest did. `failures`: runs and files that failed, with the reason, one sentence each.

    `notes`: remarks on the store.
    """

    runs_ingested: int = 0
    runs_unchanged: int = 0
    runs_failed: int = 0
    host_files: int = 0
    host_files_kept: int = 0
    bytes_read: int = 0
    pack_bytes: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ingest:
    """Progress of an ingest: the number and bytes of host files that were read or skipped, each with the total."""

    files_done: int
    files: int
    bytes_done: int
    bytes: int


OnIngested = Callable[[Ingest], None]


def ingest(
    places: Sequence[str | Path],
    address: str,
    pool: Callable[[], Pool],
    progress: OnIngested = lambda _: None,
    given: Metadata = NO_METADATA,
) -> Summary:
    """Put the runs at and below `places` into the store at `address`, except unchanged runs that are already there.

    The runs get the metadata `given`, unchanged ones too. `pool` is called only if there is something to do. Finished
    runs are in the store and its index even if the ingest ends early. Raises `TfcompareError` if there is nothing to
    ingest, or the store is not available.
    """
    started = monotonic()
    store = Store(full_address(address))
    store.begin()
    rows, notes = store.rows()
    todo = plan(places, store, rows, given)
    work = _Work(store, todo, progress)
    work.summary.notes += notes
    try:
        if todo.records:
            workers = pool()
            try:
                work.run(workers)
            finally:
                workers.close()
    finally:
        store.write_index()
    store.files.remove_abandoned()
    work.summary.seconds = monotonic() - started
    return work.summary


class _Work:
    """The host files and runs of a plan, and their outcomes."""

    def __init__(self, store: Store, todo: Plan, progress: OnIngested) -> None:
        self._store = store
        self._records = dict(todo.records)
        self._outcomes: dict[str, dict[str, HostOutcome]] = {}
        self._left = {run: len(files) for run, files in todo.to_read.items()}
        self._files = [  # the largest of each run first, so that no long one is started last
            (run, file)
            for run, files in todo.to_read.items()
            for file in sorted(files, key=lambda file: -file.size_bytes)
        ]
        self._progress = progress
        self._jobs: deque[Job] = deque()
        self._done = Ingest(0, len(self._files), 0, sum(file.size_bytes for _, file in self._files))
        unchanged = sum(len(record.hosts) for record in todo.records.values()) - len(self._files)
        self.summary = Summary(runs_unchanged=todo.unchanged, host_files_kept=unchanged, failures=list(todo.lost))
        self.summary.runs_failed = len(todo.lost)

    def run(self, pool: Pool) -> None:
        """Read all files and write all records."""
        reader, address = reader_version(), self._store.address
        tasks = (HostTask(run, file, address, reader) for run, file in self._files)
        self._jobs.extend(Job(ingest_host, task, task.file.size_bytes) for task in tasks)
        for run, left in list(self._left.items()):
            if not left:
                self._make_record(run)
        self._progress(self._done)
        for job, outcome in outcomes(self._jobs, pool):
            if isinstance(job.task, HostTask):
                self._host_done(job.task, outcome)
            else:
                self._run_done(job.task, outcome)

    def _host_done(self, task: HostTask, outcome: Outcome) -> None:
        file = task.file
        if not isinstance(outcome, HostOutcome):
            what = "could not be read" if isinstance(outcome, Killed) else "is not in the store"
            outcome = HostOutcome(failure=f"{file.where}: {what}: {_reason(outcome)}", is_final=False)
        self._outcomes.setdefault(task.run, {})[file.host] = outcome
        summary, done = self.summary, self._done
        if outcome.failure:
            summary.failures.append(outcome.failure)
        else:
            summary.host_files += 1
            summary.bytes_read += file.size_bytes
            summary.pack_bytes += outcome.pack_bytes
        self._done = replace(done, files_done=done.files_done + 1, bytes_done=done.bytes_done + file.size_bytes)
        self._progress(self._done)
        self._left[task.run] -= 1
        if not self._left[task.run]:
            self._make_record(task.run)

    def _make_record(self, run: str) -> None:
        """Queue the run's record before other files, so that an interruption loses little."""
        record, outcomes = self._records.pop(run), self._outcomes.pop(run, {})
        hosts = tuple(_with(host, outcomes[host.host]) if host.host in outcomes else host for host in record.hosts)
        briefs = tuple(outcome.brief for outcome in outcomes.values() if outcome.brief is not None)
        self._jobs.appendleft(Job(ingest_run, RunTask(replace(record, hosts=hosts), self._store.address, briefs)))

    def _run_done(self, task: RunTask, outcome: Outcome) -> None:
        if outcome is not None:
            self.summary.runs_failed += 1
            self.summary.failures.append(f"{task.record.run}: is not in the store: {_reason(outcome)}")
            return
        if task.record.readable:
            self.summary.runs_ingested += 1
            return
        self.summary.runs_failed += 1
        self.summary.failures += task.record.problems


def _reason(outcome: TfcompareError | Killed) -> str:
    if isinstance(outcome, Killed):
        how = f"it {outcome.why}: " if outcome.why else ""
        return f"{how}2 processes died of it, of too little memory perhaps; try it alone, or on a larger machine"
    return str(outcome)


def _with(host: StoredHost, outcome: HostOutcome) -> StoredHost:
    """The host with the outcome of its file; without a stamp if another try may succeed, so that it is read again."""
    stamp = host.stamp if outcome.is_final else ""
    return replace(host, pack=outcome.pack, pack_bytes=outcome.pack_bytes, failure=outcome.failure, stamp=stamp)
