"""Places into a store: what is new is read on many processes, records are made as runs are done, the index follows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from tfcompare.ingest.plan import Plan, plan
from tfcompare.ingest.pools import Answer, Job, Killed, Pool, Queue
from tfcompare.ingest.tasks import HostOutcome, HostTask, RunTask, ingest_host, ingest_run
from tfcompare.sources.logdir import HostFile
from tfcompare.store.files import full_address
from tfcompare.store.index import Row
from tfcompare.store.records import StoredHost
from tfcompare.store.stored import Store
from tfcompare.store.version import reader_version

_NOTE_EVERY_S = 15.0
"""So long at most, what was done is not in the index; what is not there is done again after a crash."""


@dataclass
class Summary:
    """What an ingest came to. `failures` names runs and files with the reason, one sentence each.

    `notes`: what else there is to tell of the store.
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
    """How far an ingest is: host files read or given up, of how many; their bytes, of how many."""

    files_done: int
    files: int
    bytes_done: int
    bytes: int


Progress = Callable[[Ingest], None]


def ingest(
    places: Sequence[str | Path], address: str, pool: Callable[[], Pool], progress: Progress = lambda _: None
) -> Summary:
    """Put the runs at and below `places` into the store at `address`; what is there and has not changed stays.

    `pool` is asked for processes where there is something to do. What is done is in the store and in its index even
    where this ends early. Raises `TfcompareError` where there is nothing to ingest, or no store can be had there.
    """
    started = monotonic()
    store = Store(full_address(address))
    store.begin()
    index, said = store.index()
    todo = plan(places, store, index)
    work = _Work(store, todo, progress)
    work.summary.notes += said
    if todo.records:
        workers = pool()
        try:
            work.go(workers)
        finally:
            work.note()
            workers.close()
        store.tidy()
    work.summary.seconds = monotonic() - started
    return work.summary


class _Work:
    """Host files handed out, and runs put together of what comes back."""

    def __init__(self, store: Store, todo: Plan, progress: Progress) -> None:
        self._store = store
        self._records = dict(todo.records)
        self._outcomes: dict[str, dict[str, HostOutcome]] = {}
        self._left = {run: len(files) for run, files in todo.to_read.items()}
        self._files = [(run, file) for run, files in todo.to_read.items() for file in _largest_first(files)]
        self._progress = progress
        self._rows: list[Row] = []
        self._noted = monotonic()
        self._done = Ingest(0, len(self._files), 0, sum(file.size_bytes for _, file in self._files))
        kept = sum(len(record.hosts) for record in todo.records.values()) - len(self._files)
        self.summary = Summary(runs_unchanged=todo.unchanged, host_files_kept=kept, failures=list(todo.lost))
        self.summary.runs_failed = len(todo.lost)

    def go(self, pool: Pool) -> None:
        """Until all is done."""
        reader = reader_version()
        address = self._store.address
        tasks = (HostTask(run, file, address, reader) for run, file in self._files)
        queue = Queue(pool, deque(Job(ingest_host, task, task.file.size_bytes) for task in tasks))
        for run, left in list(self._left.items()):
            if not left:
                self._finish(queue, run)
        self._progress(self._done)
        for job, answer in queue.answers():
            if isinstance(job.task, HostTask):
                self._host_done(queue, job.task, answer)
            else:
                self._run_done(job.task, answer)
            if monotonic() - self._noted > _NOTE_EVERY_S:
                self.note()

    def note(self) -> None:
        """Put what was done into the index."""
        rows, self._rows = self._rows, []
        self._noted = monotonic()
        self._store.note(rows)

    def _host_done(self, queue: Queue, task: HostTask, answer: Answer) -> None:
        file = task.file
        if isinstance(answer, HostOutcome):
            outcome = answer
        else:
            outcome = HostOutcome(failure=_given_up(file, answer), is_final=False)
        self._outcomes.setdefault(task.run, {})[file.host] = outcome
        self._count(file, outcome)
        self._left[task.run] -= 1
        if not self._left[task.run]:
            self._finish(queue, task.run)

    def _count(self, file: HostFile, outcome: HostOutcome) -> None:
        summary, done = self.summary, self._done
        if outcome.failure:
            summary.failures.append(outcome.failure)
        else:
            summary.host_files += 1
            summary.bytes_read += file.size_bytes
            summary.pack_bytes += outcome.pack_bytes
        self._done = replace(done, files_done=done.files_done + 1, bytes_done=done.bytes_done + file.size_bytes)
        self._progress(self._done)

    def _finish(self, queue: Queue, run: str) -> None:
        """Have the run's record made, before more files are read: what is done is not to be lost."""
        record, outcomes = self._records.pop(run), self._outcomes.pop(run, {})
        hosts = tuple(_with(host, outcomes[host.host]) if host.host in outcomes else host for host in record.hosts)
        briefs = tuple(outcome.brief for outcome in outcomes.values() if outcome.brief is not None)
        queue.jobs.appendleft(Job(ingest_run, RunTask(replace(record, hosts=hosts), self._store.address, briefs)))

    def _run_done(self, task: RunTask, answer: Answer) -> None:
        if not isinstance(answer, Row):
            self.summary.runs_failed += 1
            self.summary.failures.append(f"{task.record.run}: is not in the store: {_why(answer)}")
            return
        self._rows.append(answer)
        if task.record.readable:
            self.summary.runs_ingested += 1
            return
        self.summary.runs_failed += 1
        self.summary.failures += task.record.problems


def _largest_first(files: Sequence[HostFile]) -> list[HostFile]:
    """So that in the end none is waited for that was begun late and takes long."""
    return sorted(files, key=lambda file: -file.size_bytes)


def _given_up(file: HostFile, answer: Answer) -> str:
    return (
        f"{file.where}: {'could not be read' if isinstance(answer, Killed) else 'is not in the store'}: {_why(answer)}"
    )


def _why(answer: Answer) -> str:
    if isinstance(answer, Killed):
        return (
            f"{answer.tries} processes died of it, of too little memory perhaps; try it alone, or on a larger machine"
        )
    return str(answer)


def _with(host: StoredHost, outcome: HostOutcome) -> StoredHost:
    """The host with what became of its file. What may go well another time is tried again then."""
    stamp = host.stamp if outcome.is_final else ""
    return replace(host, pack=outcome.pack, pack_bytes=outcome.pack_bytes, failure=outcome.failure, stamp=stamp)
