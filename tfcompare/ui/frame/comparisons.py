"""Comparisons, shared by all sessions of the server and kept for the next rerun."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.run import Run

MOST = 8


class Comparisons:
    """The latest ones: up to `MOST`, up to `max_bytes` of runs, which stay as long as what they are compared in, and
    always the last."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Comparison, dict[int, int]]] = OrderedDict()

    def of(self, runs: Sequence[Run], said: Hashable, make: Callable[[], Comparison]) -> Comparison:
        """What `make` gives for these runs, every one of which it holds, and all else that was `said`; kept or made
        now. Raises as `make` does."""
        key = (tuple((run.content_id, run.id, run.name) for run in runs), said)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        made = make()
        size_of_run = {id(run): run.memory_bytes for run in runs}
        with self._lock:
            made, _ = self._kept.setdefault(key, (made, size_of_run))
            while len(self._kept) > 1 and (len(self._kept) > MOST or self._held_bytes() > self.max_bytes):
                self._kept.popitem(last=False)
        return made

    def _held_bytes(self) -> int:
        every: dict[int, int] = {}
        for _, size_of_run in self._kept.values():
            every |= size_of_run
        return sum(every.values())
