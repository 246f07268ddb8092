"""Loaded runs and comparisons, shared by all sessions of the server; the least recently used are dropped first."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from tfcompare.errors import NotFetched, TfcompareError
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.run import Run
    from tfcompare.sources.logdir import FoundRun

Key = tuple[str, str, str, StepChoice]

RETRY_AFTER_S = 10
"""A run that could not be fetched is not requested again for this long, since pages are redrawn often."""


class RunCache:
    """Reads runs in the background and caches them, up to `max_bytes` of frames.

    The latest run, and the runs last requested together, are never dropped: a page needs all runs that it compares at
    each rerun. If they exceeded `max_bytes`, they would otherwise evict each other and be reread each time.
    Errors are cached too: read errors until the files change, fetch errors for some seconds.
    """

    def __init__(self, max_bytes: int, load: Callable[[FoundRun, StepChoice], Run]) -> None:
        self.max_bytes = max_bytes
        self._load = load
        self._lock = threading.Lock()
        self._futures: OrderedDict[Key, Future[Run]] = OrderedDict()
        self._bytes: dict[Key, int] = {}
        self._together: frozenset[Key] = frozenset()
        self._retry_at: dict[Key, float] = {}
        self._threads = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="tfcompare-read")

    def request_together(self, found: Sequence[FoundRun], steps: StepChoice = OWN_STEPS) -> dict[FoundRun, Future[Run]]:
        """Request all these runs, as `request` does; they stay cached until others are requested together."""
        with self._lock:
            self._together = frozenset(_key(run, steps) for run in found)
        return {run: self.request(run, steps) for run in found}

    def request(self, found: FoundRun, steps: StepChoice = OWN_STEPS) -> Future[Run]:
        """A future of the run with these steps; reading starts immediately unless it is cached or in progress."""
        key = _key(found, steps)
        with self._lock:
            if monotonic() >= self._retry_at.get(key, inf):
                del self._futures[key], self._bytes[key], self._retry_at[key]
            future = self._futures.get(key)
            is_new = future is None
            if future is None:
                future = self._futures[key] = self._threads.submit(self._load, found, steps)
            self._futures.move_to_end(key)
        if is_new:  # outside the lock: if reading is already done, the callback runs immediately in this thread
            future.add_done_callback(lambda done: self._record_size(key, done))
        return future

    def peek(self, found: FoundRun, steps: StepChoice = OWN_STEPS) -> Run | TfcompareError | None:
        """The run, or the error from reading it; None if it was not read yet."""
        with self._lock:
            future = self._futures.get(_key(found, steps))
        return outcome(future) if future is not None and future.done() else None

    def _record_size(self, key: Key, done: Future[Run]) -> None:
        """Record the size of a run, and drop the least recently used runs if the cache is too large."""
        with self._lock:
            try:
                self._bytes[key] = done.result().memory_bytes
            except TfcompareError as error:
                self._bytes[key] = 0
                if isinstance(error, NotFetched):
                    self._retry_at[key] = monotonic() + RETRY_AFTER_S
            except BaseException:  # do not cache a bug; whoever waits for the future gets the exception
                self._futures.pop(key, None)
            for old in list(self._futures):
                if sum(self._bytes.values()) <= self.max_bytes:
                    break
                if old != key and old not in self._together and old in self._bytes:
                    del self._futures[old], self._bytes[old]
                    self._retry_at.pop(old, None)


def outcome(done: Future[Run]) -> Run | TfcompareError:
    """The result of a finished request; raises exceptions other than `TfcompareError`."""
    try:
        return done.result()
    except TfcompareError as error:
        return error


def _key(found: FoundRun, steps: StepChoice) -> Key:
    # Reread a run under a new name: short names depend on the other runs, and reading is fast.
    return found.stat_key, found.id, found.name, steps


MAX_COMPARISONS = 8


class Comparisons:
    """A cache of the latest comparisons: up to `MAX_COMPARISONS` with `max_bytes` of runs, but always the last one."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._cached: OrderedDict[Hashable, tuple[Comparison, dict[int, int]]] = OrderedDict()

    def of(self, runs: Sequence[Run], options: Hashable, make: Callable[[], Comparison]) -> Comparison:
        """The comparison of these runs with `options`, cached or made by `make`. Raises as `make` does."""
        key = (tuple((run.content_id, run.id, run.name) for run in runs), options)
        with self._lock:
            if key in self._cached:
                self._cached.move_to_end(key)
                return self._cached[key][0]
        made = make()
        size_of_run = {id(run): run.memory_bytes for run in runs}
        with self._lock:
            made, _ = self._cached.setdefault(key, (made, size_of_run))
            while len(self._cached) > 1 and (len(self._cached) > MAX_COMPARISONS or self._bytes() > self.max_bytes):
                self._cached.popitem(last=False)
        return made

    def _bytes(self) -> int:
        every: dict[int, int] = {}
        for _, size_of_run in self._cached.values():
            every |= size_of_run
        return sum(every.values())
