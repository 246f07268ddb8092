"""Loaded runs and comparisons, shared by all sessions of the server; the least recently used are dropped first."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from tfcompare.child import FairSemaphore
from tfcompare.compare.cache import Cache
from tfcompare.errors import NotFetched, TfcompareError
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice

if TYPE_CHECKING:
    from tfcompare.run import Run
    from tfcompare.sources.logdir import FoundRun

T = TypeVar("T")
Key = tuple[str, str, str, StepChoice]

AT_ONCE = min(4, os.cpu_count() or 1)
"""The number of runs that are read at the same time for one client; one more if another client asks."""
_WAITING = 256
"""Threads: those that read, and those that wait for their turn."""

RETRY_AFTER_S = 10
"""A run that could not be fetched is not requested again for this long, since pages are redrawn often."""


class RunCache:
    """Reads runs in the background and caches them, up to `max_bytes` of frames.

    `load` reads a run for a client, and `client` says who the client of the calling thread is. Clients take turns.
    The latest run, and the runs last requested together, are never dropped: a page needs all runs that it compares at
    each rerun. If they exceeded `max_bytes`, they would otherwise evict each other and be reread each time.
    Errors are cached too: read errors until the files change, fetch errors for some seconds.
    """

    def __init__(
        self,
        max_bytes: int,
        load: Callable[[FoundRun, StepChoice, Hashable], Run],
        client: Callable[[], Hashable] = lambda: None,
    ) -> None:
        self.max_bytes = max_bytes
        self._load = load
        self._client = client
        self._lock = threading.Lock()
        self._futures: OrderedDict[Key, Future[Run]] = OrderedDict()
        self._finished: set[Key] = set()
        self._reading: list[FoundRun] = []
        self._together: frozenset[Key] = frozenset()
        self._retry_at: dict[Key, float] = {}
        self._threads = ThreadPoolExecutor(_WAITING, thread_name_prefix="tfcompare-read")
        self._turns = FairSemaphore(AT_ONCE + 1, per_client=AT_ONCE)

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
                self._drop(key)
            future = self._futures.get(key)
            is_new = future is None
            if future is None:
                future = self._futures[key] = self._threads.submit(self._read, found, steps, self._client())
            self._futures.move_to_end(key)
            self._drop_oldest(key)  # what is cached has grown since: pages derive tables from it
        if is_new:  # outside the lock: if reading is already done, the callback runs immediately in this thread
            future.add_done_callback(lambda done: self._finish(key, done))
        return future

    def _read(self, found: FoundRun, steps: StepChoice, client: Hashable) -> Run:
        with self._turns.turn(client):
            self._reading.append(found)
            try:
                return self._load(found, steps, client)
            finally:
                self._reading.remove(found)

    def first_read(self, pending: Sequence[FoundRun]) -> FoundRun:
        """Of runs that are requested, the first that is being read now; the first one if all of them wait."""
        reading = [*self._reading]
        return next((run for run in pending if run in reading), pending[0])

    def peek(self, found: FoundRun, steps: StepChoice = OWN_STEPS) -> Run | TfcompareError | None:
        """The run, or the error from reading it; None if it was not read yet."""
        with self._lock:
            future = self._futures.get(_key(found, steps))
        return outcome(future) if future is not None and future.done() else None

    def _finish(self, key: Key, done: Future[Run]) -> None:
        """Cache a run or error that was just read, and drop the least recently used runs if the cache is too large."""
        with self._lock:
            try:
                done.result()
                self._finished.add(key)
            except TfcompareError as error:
                self._finished.add(key)
                if isinstance(error, NotFetched):
                    self._retry_at[key] = monotonic() + RETRY_AFTER_S
            except BaseException:  # do not cache a bug; whoever waits for the future gets the exception
                self._futures.pop(key, None)
            self._drop_oldest(key)

    def _drop_oldest(self, latest: Key) -> None:
        """Drop the least recently used runs while the cache is too large, except the latest and those compared."""
        finished = {key: self._futures[key] for key in self._finished}
        sizes = {key: 0 if done.exception() else done.result().memory_bytes for key, done in finished.items()}
        total = sum(sizes.values())
        for old in list(self._futures):
            if total <= self.max_bytes:
                break
            if old != latest and old not in self._together and old in self._finished:
                self._drop(old)
                total -= sizes[old]

    def _drop(self, key: Key) -> None:
        del self._futures[key]
        self._finished.discard(key)
        self._retry_at.pop(key, None)


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


class Comparisons(Cache, Generic[T]):
    """A cache of the latest comparisons: up to `MAX_COMPARISONS` with `max_bytes` of runs and of what pages derived
    from them, but always the last one.

    `derived_bytes` is the memory of what a page caches for a comparison, besides the runs.
    """

    def __init__(self, max_bytes: int, derived_bytes: Callable[[T], int]) -> None:
        super().__init__()
        self.max_bytes = max_bytes
        self._derived_bytes = derived_bytes

    def of(self, runs: Sequence[Run], options: Hashable, make: Callable[[], T]) -> T:
        """The comparison of these runs with `options`, cached or made by `make`. Raises as `make` does."""
        key = (tuple((run.content_id, run.id, run.name) for run in runs), options)
        return self.get(key, lambda: (make(), tuple(runs)))[0]

    def _is_full(self) -> bool:
        """Measured at each request: pages derive tables after the comparison was made."""
        made = list(self._results.values())
        runs = {id(run): run for _, several in made for run in several}
        derived = sum(self._derived_bytes(comparison) for comparison, _ in made)
        return len(self) > MAX_COMPARISONS or sum(run.memory_bytes for run in runs.values()) + derived > self.max_bytes
