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
"""For so long a run that could not be fetched is not asked for again: a page is drawn many times a minute."""


class RunCache:
    """Reads runs in the background and keeps them, up to `max_bytes` of frames.

    Always kept are the latest run and those that were asked for together last: what a page compares is needed whole at
    each rerun, so runs that are too large for `max_bytes` together would put each other out and be read anew each time.
    What could not be read is kept too, as the error it gave, until the files change; what could not be fetched, for
    some seconds.
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
        """All these runs, as `request` gives each; they stay until others are asked for together."""
        with self._lock:
            self._together = frozenset(_key(run, steps) for run in found)
        return {run: self.request(run, steps) for run in found}

    def request(self, found: FoundRun, steps: StepChoice = OWN_STEPS) -> Future[Run]:
        """The run with these steps, now or later; reading starts at once unless it was read or is being read."""
        key = _key(found, steps)
        with self._lock:
            if monotonic() >= self._retry_at.get(key, inf):
                del self._futures[key], self._bytes[key], self._retry_at[key]
            future = self._futures.get(key)
            is_new = future is None
            if future is None:
                future = self._futures[key] = self._threads.submit(self._load, found, steps)
            self._futures.move_to_end(key)
        if is_new:  # outside the lock: of a reading that is done already, the callback runs here and now
            future.add_done_callback(lambda done: self._weigh(key, done))
        return future

    def peek(self, found: FoundRun, steps: StepChoice = OWN_STEPS) -> Run | TfcompareError | None:
        """What reading the run gave, or None where it was not read or is still being read."""
        with self._lock:
            future = self._futures.get(_key(found, steps))
        return outcome(future) if future is not None and future.done() else None

    def _weigh(self, key: Key, done: Future[Run]) -> None:
        """Note a run's size, and let go of those that were not used for longest where it has become too much."""
        with self._lock:
            try:
                self._bytes[key] = done.result().memory_bytes
            except TfcompareError as error:
                self._bytes[key] = 0
                if isinstance(error, NotFetched):
                    self._retry_at[key] = monotonic() + RETRY_AFTER_S
            except BaseException:  # a bug is no answer to keep; whoever waits for the future gets it
                self._futures.pop(key, None)
            for old in list(self._futures):
                if sum(self._bytes.values()) <= self.max_bytes:
                    break
                if old != key and old not in self._together and old in self._bytes:
                    del self._futures[old], self._bytes[old]
                    self._retry_at.pop(old, None)


def outcome(done: Future[Run]) -> Run | TfcompareError:
    """The result of a finished request; raises what is no `TfcompareError`."""
    try:
        return done.result()
    except TfcompareError as error:
        return error


def _key(found: FoundRun, steps: StepChoice) -> Key:
    # A run is read anew under another name: names are short and depend on the neighbours, and reading is quick.
    return found.stat_key, found.id, found.name, steps


MAX_COMPARISONS = 8


class Comparisons:
    """A cache of the latest comparisons: up to `MAX_COMPARISONS` with `max_bytes` of runs, and always the last one."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._cached: OrderedDict[Hashable, tuple[Comparison, dict[int, int]]] = OrderedDict()

    def of(self, runs: Sequence[Run], options: Hashable, make: Callable[[], Comparison]) -> Comparison:
        """The comparison of these runs with `options`, cached or made now. Raises as `make` does."""
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
