"""Work handed out to processes that may die of it: what a dying one leaves is done again, the culprit alone is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from types import ModuleType
from typing import Any, Protocol

from tfcompare.errors import TfcompareError

_LOOK_S = 5.0


class Pool(Protocol):
    """Processes that work. `most_tries`: how often a task may kill one."""

    most_tries: int

    @property
    def width(self) -> int:
        """How many tasks are to be in hand at once."""

    def submit(self, work: Callable[[Any], Any], task: object) -> Future[Any]:
        """Have it done."""

    def is_killed(self, error: BaseException) -> bool:
        """Whether that is what a task gets whose process died."""

    def mend(self) -> None:
        """Make it work again after a process died."""

    def check(self) -> None:
        """Raises `TfcompareError` where nobody is left to work."""

    def close(self) -> None:
        """Let go of it; what is being worked on is given up."""


@dataclass(frozen=True)
class Killed:
    """A task that the processes which worked on it died of, so many times."""

    tries: int


@dataclass(eq=False)
class Job:
    """A task, and how often a process died while it was working on it."""

    work: Callable[[Any], Any]
    task: Any
    tries: int = 0


Answer = Any | TfcompareError | Killed


@dataclass
class Queue:
    """Jobs to be done. More can be added while they are."""

    pool: Pool
    jobs: deque[Job] = field(default_factory=deque)
    _suspects: deque[Job] = field(default_factory=deque, init=False)
    _running: dict[Future[Any], Job] = field(default_factory=dict, init=False)

    def answers(self) -> Iterator[tuple[Job, Answer]]:
        """Each job with what its work returned, the `TfcompareError` that it raised, or `Killed`.

        Of those that were worked on when a process died, each is then done alone: so the one that killed it is found.
        """
        while self.jobs or self._suspects or self._running:
            self._hand_out()
            done, _ = wait(self._running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            if not done:
                self.pool.check()
            killed = []
            for future in done:
                job, error = self._running.pop(future), future.exception()
                if error is not None and self.pool.is_killed(error):
                    killed.append(job)
                elif error is None or isinstance(error, TfcompareError):
                    yield job, error or future.result()
                else:
                    told = (
                        f"failed with {type(error).__name__} ({error}), which is a bug in tfcompare: please report it"
                    )
                    yield job, TfcompareError(told)
            if killed:
                yield from self._after_death(killed)

    def _hand_out(self) -> None:
        try:
            if self._suspects:
                if not self._running:
                    self._start(self._suspects)
                return
            while self.jobs and len(self._running) < self.pool.width:
                self._start(self.jobs)
        except BrokenProcessPool:  # of the others' futures it will be told
            if not self._running:
                self.pool.mend()

    def _start(self, waiting: deque[Job]) -> None:
        job = waiting[0]
        self._running[self.pool.submit(job.work, job.task)] = job
        waiting.popleft()

    def _after_death(self, killed: list[Job]) -> Iterator[tuple[Job, Killed]]:
        self.pool.mend()
        for future in [future for future in self._running if future.done()]:
            error = future.exception()
            if error is not None and self.pool.is_killed(error):
                killed.append(self._running.pop(future))
        for job in killed:
            job.tries += 1
            if job.tries >= self.pool.most_tries:
                yield job, Killed(job.tries)
            else:
                self._suspects.append(job)


class Here:
    """In this process, one after the other."""

    width = 1
    most_tries = 1

    def submit(self, work: Callable[[Any], Any], task: object) -> Future[Any]:
        """See `Pool`."""
        future = Future[Any]()
        try:
            future.set_result(work(task))
        except Exception as error:
            future.set_exception(error)
        return future

    def is_killed(self, error: BaseException) -> bool:  # noqa: ARG002
        """See `Pool`."""
        return False

    def mend(self) -> None:
        """See `Pool`."""

    def check(self) -> None:
        """See `Pool`."""

    def close(self) -> None:
        """Let go of it."""


class Processes:
    """Processes on this machine."""

    most_tries = 3

    def __init__(self, processes: int) -> None:
        self.width = 2 * processes  # one waits for each, so that none waits for the next
        self._processes = processes
        self._pool = self._new()

    def submit(self, work: Callable[[Any], Any], task: object) -> Future[Any]:
        """See `Pool`."""
        with _blank_main():
            return self._pool.submit(work, task)

    def is_killed(self, error: BaseException) -> bool:
        """See `Pool`."""
        return isinstance(error, BrokenProcessPool)

    def mend(self) -> None:
        """See `Pool`."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = self._new()

    def check(self) -> None:
        """See `Pool`."""

    def close(self) -> None:
        """End the processes; what they are about is given up."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            with suppress(OSError):
                process.terminate()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._processes, mp_context=get_context("spawn"), initializer=_go_with_parent)


@contextmanager
def _blank_main() -> Iterator[None]:
    """Processes that are started run the script that this one was started with, which may be anybody's: here they find
    none."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _go_with_parent() -> None:
    """Let this process be ended by its parent alone, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := parent_process()) is not None:
        Thread(target=_wait_for, args=(parent,), daemon=True).start()


def _wait_for(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
