"""A cache in memory, such as that of the frames and figures that are derived from a comparison."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import pandas as pd

from tfcompare.tables.frames import frame_bytes

MOST_RESULTS = 64
"""About twice the number of figures."""

T = TypeVar("T")


class Cache:
    """The `most` results used last, by their keys; thread-safe. The last one stays however large it is."""

    def __init__(self, most: int = MOST_RESULTS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._results)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, cached for `key`. Callers must not modify it. Raises as `make` does."""
        with self._lock:
            is_there = key in self._results
            made: Any = self._results.get(key)
        if not is_there:
            made = make()
        with self._lock:
            found: T = self._results.setdefault(key, made)
            self._results.move_to_end(key)
            while len(self) > 1 and self._is_full():
                self._sizes.pop(self._results.popitem(last=False)[0], None)
        return found

    def _is_full(self) -> bool:
        return len(self) > self._most

    @property
    def memory_bytes(self) -> int:
        """How many bytes the cached frames take. Figures are small and do not count."""
        with self._lock:
            for key, made in self._results.items():
                if key not in self._sizes:
                    self._sizes[key] = frame_bytes(made) if isinstance(made, pd.DataFrame) else 0
            return sum(self._sizes.values())
