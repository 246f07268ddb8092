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
from itertools import accumulate, islice
from math import ceil, inf
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from types import ModuleType
from typing import Any, Protocol

from tfcompare.errors import TfcompareError

_LOOK_S = 5.0
_HAND_JOBS = 16
_HANDS_LEFT = 2
"""Of what is left, a hand holds at most as much as leaves so many of them for each that can be out at once."""


class Pool(Protocol):
    """Processes that work. `most_tries`: how often a task may kill one.

    `hand_bytes`: up to how much is handed out at once, where that takes time of its own; 0: one task at a time.
    """

    most_tries: int
    hand_bytes: int

    @property
    def width(self) -> int:
        """How many hands are to be out at once."""

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
    """A task, and how often a process died while working on it. `size_bytes`: what there is to read, where known."""

    work: Callable[[Any], Any]
    task: Any
    size_bytes: float = inf
    tries: int = 0


Answer = Any | TfcompareError | Killed


@dataclass
class Queue:
    """Jobs to be done. More can be added while they are."""

    pool: Pool
    jobs: deque[Job] = field(default_factory=deque)
    _suspects: deque[Job] = field(default_factory=deque, init=False)
    _out: dict[Future[list[Answer]], list[Job]] = field(default_factory=dict, init=False)

    def answers(self) -> Iterator[tuple[Job, Answer]]:
        """Each job with what its work returned, the `TfcompareError` that it raised, or `Killed`.

        Of those that were in the hands of a process when it died, each is then done alone: so the one that killed it is
        found.
        """
        while self.jobs or self._suspects or self._out:
            self._hand_out()
            done, _ = wait(self._out, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            if not done:
                self.pool.check()
            killed: list[Job] = []
            for future in done:
                hand, error = self._out.pop(future), future.exception()
                if error is None:
                    yield from zip(hand, future.result(), strict=True)
                elif self.pool.is_killed(error):
                    killed += hand
                else:
                    yield from ((job, _told(error)) for job in hand)
            if killed:
                yield from self._after_death(killed)

    def _hand_out(self) -> None:
        try:
            if self._suspects:
                if not self._out:
                    self._submit([self._suspects[0]])
                    self._suspects.popleft()
                return
            while self.jobs and len(self._out) < self.pool.width:
                hand = self._next()
                self._submit(hand)
                for _ in hand:
                    self.jobs.popleft()
        except BrokenProcessPool:  # of the others' futures it will be told
            if not self._out:
                self.pool.mend()

    def _next(self) -> list[Job]:
        """What is handed out next: small files together, ever fewer towards the end, so that none waits long for the
        last."""
        most = ceil(len(self.jobs) / (_HANDS_LEFT * self.pool.width))
        candidates = list(islice(self.jobs, max(1, min(most, _HAND_JOBS))))
        sizes = accumulate(job.size_bytes for job in candidates)
        fitting = sum(1 for size in sizes if size <= self.pool.hand_bytes)
        return candidates[: max(1, fitting)]

    def _submit(self, hand: list[Job]) -> None:
        self._out[self.pool.submit(_each, [(job.work, job.task) for job in hand])] = hand

    def _after_death(self, killed: list[Job]) -> Iterator[tuple[Job, Killed]]:
        self.pool.mend()
        for future in [future for future in self._out if future.done()]:
            error = future.exception()
            if error is not None and self.pool.is_killed(error):
                killed += self._out.pop(future)
        for job in killed:
            job.tries += 1
            if job.tries >= self.pool.most_tries:
                yield job, Killed(job.tries)
            else:
                self._suspects.append(job)


def _each(hand: list[tuple[Callable[[Any], Any], Any]]) -> list[Answer]:
    """What each work returns of its task, or the error: one that fails takes none of the others with it."""
    answers: list[Answer] = []
    for work, task in hand:
        try:
            answers.append(work(task))
        except (Exception, SystemExit) as error:
            answers.append(_told(error))
    return answers


def _told(error: BaseException) -> TfcompareError:
    """The error, as one that comes through from another process."""
    if isinstance(error, TfcompareError):
        return TfcompareError(str(error))
    return TfcompareError(
        f"failed with {type(error).__name__} ({error}), which is a bug in tfcompare: please report it"
    )


class Here:
    """In this process, one after the other."""

    width = 1
    most_tries = 1
    hand_bytes = 0

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
    hand_bytes = 0

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
        return ProcessPoolExecutor(self._processes, mp_context=get_context("spawn"), initializer=_begin)


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


def _begin() -> None:
    """Tie this process to its parent, and load the loops over profiles before the first task."""
    _go_with_parent()
    from tfcompare.frames import load_loops

    load_loops()


def _go_with_parent() -> None:
    """Let this process be ended by its parent alone, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := parent_process()) is not None:
        Thread(target=_wait_for, args=(parent,), daemon=True).start()


def _wait_for(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
