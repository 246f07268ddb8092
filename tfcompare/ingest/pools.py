"""Work done by processes that may die of it: a task that kills its process is lost, all others are done."""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from tfcompare.errors import TfcompareError

_CHECK_S = 5.0
_BATCH_JOBS = 16
_PER_PROCESS = 2
"""Tasks in flight for each process: the one that it works on and the next, so that it never waits."""


class Pool(ABC):
    """Processes that work. `batch_bytes`: up to how much is sent in one task, where sending takes long; 0: one job."""

    batch_bytes = 0

    @property
    @abstractmethod
    def width(self) -> int:
        """How many batches to have in flight at once."""

    @abstractmethod
    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start `work(*arguments)`, in new processes where those before have died."""

    def is_killed(self, error: Exception) -> bool:  # noqa: ARG002
        """Whether a task failed with this error because its process died."""
        return False

    def check(self) -> None:  # noqa: B027
        """Raises `TfcompareError` where nobody is left to work."""

    def close(self) -> None:  # noqa: B027
        """End the processes; what they are working on is given up."""


@dataclass(frozen=True)
class Killed:
    """The outcome of a task that killed its process twice."""


@dataclass(eq=False)
class Job:
    """A task and what is to be done with it. `is_suspect`: whether a process died with it before."""

    work: Callable[[Any], Any]
    task: Any
    size_bytes: float = inf
    is_suspect: bool = False


Outcome = Any | TfcompareError | Killed


def outcomes(jobs: deque[Job], pool: Pool) -> Iterator[tuple[Job, Outcome]]:
    """Each job as it is done, with what its work returned, the `TfcompareError` that it raised, or `Killed`.

    The caller may add jobs meanwhile. Jobs that were in flight when a process died are run once more in the end, one at
    a time, which finds the one that killed it.
    """
    running: dict[Future[list[Outcome]], list[Job]] = {}
    suspects: deque[Job] = deque()
    while jobs or running or suspects:
        if not jobs and not running:
            jobs.append(suspects.popleft())
        while jobs and len(running) < pool.width:
            batch = _next_batch(jobs, pool)
            running[pool.submit(_attempt, [(job.work, job.task) for job in batch])] = batch
        done, _ = wait(running, timeout=_CHECK_S, return_when=FIRST_COMPLETED)
        if not done:
            pool.check()
        for future in done:
            batch = running.pop(future)
            for job, outcome in zip(batch, _results(future, pool, len(batch)), strict=True):
                if isinstance(outcome, Killed) and not job.is_suspect:
                    suspects.append(replace(job, is_suspect=True))
                else:
                    yield job, outcome


def _next_batch(jobs: deque[Job], pool: Pool) -> list[Job]:
    """Take the next job, and with it further small ones: fewer towards the end, so that all processes end together."""
    batch = [jobs.popleft()]
    size, most = batch[0].size_bytes, min(_BATCH_JOBS, len(jobs) // (2 * pool.width))
    while len(batch) < most and (size := size + jobs[0].size_bytes) <= pool.batch_bytes:
        batch.append(jobs.popleft())
    return batch


def _attempt(batch: list[tuple[Callable[[Any], Any], Any]]) -> list[Outcome]:
    """For each (work, task) what the work returns, or its error as one that can be sent between processes."""
    results: list[Outcome] = []
    for work, task in batch:
        try:
            results.append(work(task))
        except (Exception, SystemExit) as error:
            results.append(_portable(error))
    return results


def _results(future: Future[list[Outcome]], pool: Pool, count: int) -> list[Outcome]:
    try:
        return future.result()
    except Exception as error:
        return [Killed() if pool.is_killed(error) else _portable(error)] * count


def _portable(error: BaseException) -> TfcompareError:
    if isinstance(error, TfcompareError):
        return TfcompareError(str(error))
    return TfcompareError(
        f"failed with {type(error).__name__} ({error}), which is a bug in tfcompare: please report it"
    )


class Here(Pool):
    """This process: one task after the other."""

    width = 1

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """See `Pool`."""
        future = Future[Any]()
        future.set_result(work(*arguments))
        return future


class Processes(Pool):
    """Processes on this machine."""

    width = 0

    def __init__(self, processes: int) -> None:
        self.width = _PER_PROCESS * processes
        self._processes = processes
        self._context = get_context("spawn")
        self._closed, self._open = self._context.Pipe(duplex=False)
        self._pool = self._start()

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """See `Pool`."""
        try:
            return self._pool.submit(work, *arguments)
        except BrokenProcessPool:
            self._pool.shutdown()
            self._pool = self._start()
            return self._pool.submit(work, *arguments)

    def is_killed(self, error: Exception) -> bool:
        """See `Pool`."""
        return isinstance(error, BrokenProcessPool)

    def close(self) -> None:
        """See `Pool`."""
        self._open.close()
        self._pool.shutdown(cancel_futures=True)
        self._closed.close()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._processes, mp_context=self._context, initializer=_start_worker, initargs=(self._closed,)
        )


def _start_worker(closed: Connection) -> None:
    """Leave Ctrl-C to the parent, end this process when the parent closes the pool or ends itself, and load the
    compiled loops before the first task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_at_end_of, args=(closed,), daemon=True).start()
    from tfcompare.frames import load_loops

    load_loops()


def _exit_at_end_of(closed: Connection) -> None:
    with suppress(EOFError, OSError):
        closed.recv()
    os._exit(1)
