"""Lets a limited number of callers proceed at a time; those that wait take turns by client."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

MEANWHILE_EVERY_S = 0.25

Meanwhile = Callable[[], object]
"""Called several times a second while something is waited for; if it raises, the wait ends."""


class FairSemaphore:
    """Lets `count` callers proceed at a time, and of each client at most `per_client`; further ones wait.

    Clients take turns: of those that wait, the one whose last turn is longest ago is next, however many callers each of
    them has. If `per_client` is less than `count`, one client alone, whatever it does, never keeps another one waiting.
    """

    def __init__(self, count: int, per_client: int | None = None) -> None:
        self._free = count
        self._per_client = per_client or count
        self._lock = threading.Lock()
        self._running: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[threading.Event]] = {}  # the next client first

    @contextmanager
    def turn(self, client: Hashable = None, meanwhile: Meanwhile | None = None) -> Iterator[None]:
        """Wait for a turn, and have it inside the `with` block. `meanwhile` is called several times a second."""
        admitted = threading.Event()
        with self._lock:
            self._waiting.setdefault(client, deque()).append(admitted)
            self._admit()
        try:
            while not admitted.wait(MEANWHILE_EVERY_S if meanwhile is not None else None):
                assert meanwhile is not None
                meanwhile()
            yield
        finally:
            with self._lock:
                if admitted.is_set():
                    self._running -= Counter([client])
                    self._free += 1
                else:
                    self._waiting[client].remove(admitted)
                    if not self._waiting[client]:
                        del self._waiting[client]
                self._admit()

    def _admit(self) -> None:
        for client, waiting in self._waiting.items():
            if self._free and self._running[client] < self._per_client:
                waiting.popleft().set()
                del self._waiting[client]
                if waiting:
                    self._waiting[client] = waiting  # behind the other clients
                self._running[client] += 1
                self._free -= 1
                return
