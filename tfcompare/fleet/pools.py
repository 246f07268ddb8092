"""Runs tasks in processes that may crash: only a task that crashes its process is lost, all others are completed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from tfcompare.child import Children, Exceeded
from tfcompare.errors import TfcompareError, unexpected
from tfcompare.settings import ReadLimits

_CHECK_S = 5.0
_BATCH_JOBS = 16
_PER_PROCESS = 2
"""Tasks in flight for each process: the current one and the next, so that it never waits."""


class Pool(ABC):
    """Worker processes. `batch_bytes`: the size of a batch if sending tasks is slow; 0 sends each job separately."""

    batch_bytes = 0

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of batches to have in flight."""

    @abstractmethod
    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start `work(*arguments)`, in new processes if the previous ones have died."""

    def is_killed(self, error: Exception) -> bool:  # noqa: ARG002
        """Whether a task failed with this error because its process died."""
        return False

    def check(self) -> None:  # noqa: B027
        """Raises `TfcompareError` if no workers are left."""

    def close(self) -> None:  # noqa: B027
        """Stop the processes and abandon what they are working on."""


@dataclass(frozen=True)
class Killed:
    """The outcome of a task that ended its process twice; `why` says how, such as "takes more memory than allowed"."""

    why: str = ""


@dataclass(eq=False)
class Job:
    """A task and what to do with it. `is_suspect`: whether a process has died while running it."""

    work: Callable[[Any], Any]
    task: Any
    size_bytes: float = inf
    is_suspect: bool = False


Outcome = Any | TfcompareError | Killed


def outcomes(jobs: deque[Job], pool: Pool) -> Iterator[tuple[Job, Outcome]]:
    """Yields each job when it is done, with the result of its work, the `TfcompareError` that it raised, or `Killed`.

    The caller may add jobs meanwhile. Jobs that were in flight when a process died are repeated at the end, one at a
    time, to identify the one that killed it.
    """
    running: dict[Future[list[Outcome]], list[Job]] = {}
    suspects: deque[Job] = deque()
    while jobs or running or suspects:
        if not jobs and not running:
            jobs.append(suspects.popleft())
        while jobs and len(running) < pool.width:
            batch = [jobs.popleft()]  # further small ones: fewer towards the end, so that processes finish together
            size_bytes, most = batch[0].size_bytes, min(_BATCH_JOBS, len(jobs) // (2 * pool.width))
            while len(batch) < most and (size_bytes := size_bytes + jobs[0].size_bytes) <= pool.batch_bytes:
                batch.append(jobs.popleft())
            running[pool.submit(_attempt, [(job.work, job.task) for job in batch])] = batch
        done, _ = wait(running, timeout=_CHECK_S, return_when=FIRST_COMPLETED)
        if not done:
            pool.check()
        for future in done:
            batch = running.pop(future)
            try:
                results = future.result()
            except Exception as error:
                results = [Killed(str(error)) if pool.is_killed(error) else _portable(error)] * len(batch)
            for job, outcome in zip(batch, results, strict=True):
                if isinstance(outcome, Killed) and not job.is_suspect:
                    suspects.append(replace(job, is_suspect=True))
                else:
                    yield job, outcome


def _attempt(batch: list[tuple[Callable[[Any], Any], Any]]) -> list[Outcome]:
    """For each (work, task), the result, or the error in a form that can be sent between processes."""
    results: list[Outcome] = []
    for work, task in batch:
        try:
            results.append(work(task))
        except (Exception, SystemExit) as error:
            results.append(_portable(error))
    return results


def _portable(error: BaseException) -> TfcompareError:
    return TfcompareError(str(error)) if isinstance(error, TfcompareError) else unexpected(error)


class Here(Pool):
    """This process, which runs one task at a time."""

    width = 1

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """See `Pool`."""
        future = Future[Any]()
        future.set_result(work(*arguments))
        return future


class Processes(Pool):
    """Processes on this machine. A task that exceeds the limits ends its process."""

    width = 0

    def __init__(self, processes: int, limits: ReadLimits | None = None) -> None:
        self.width = _PER_PROCESS * processes
        self._limits = limits
        self._children = Children(processes, prepare=_load_loops)
        self._threads = ThreadPoolExecutor(processes)

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """See `Pool`."""
        call = self._children.call
        if limits := self._limits:
            call = partial(call, memory_bytes=limits.memory_bytes, seconds=limits.seconds)
        return self._threads.submit(call, work, *arguments)

    def is_killed(self, error: Exception) -> bool:
        """See `Pool`."""
        return isinstance(error, Exceeded)

    def close(self) -> None:
        """See `Pool`."""
        self._children.close()
        self._threads.shutdown(cancel_futures=True)


def _load_loops() -> None:
    from tfcompare.frames import load_loops

    load_loops()
