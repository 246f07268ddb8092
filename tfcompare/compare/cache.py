"""What is derived from comparisons, such as frames and figures."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import pandas as pd

from tfcompare.tables.frames import frame_bytes

MOST_KEPT = 64
"""About twice the number of figures."""

T = TypeVar("T")


class Cache:
    """The `most` results used last, by their keys; thread-safe."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, kept for `key`. Callers must not modify it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                found: T = self._kept[key][0]
                return found
        made = make()
        with self._lock:
            self._kept[key] = made, frame_bytes(made) if isinstance(made, pd.DataFrame) else 0
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made

    @property
    def memory_bytes(self) -> int:
        """How many bytes the kept frames take. Figures are small and do not count."""
        with self._lock:
            return sum(size_bytes for _, size_bytes in self._kept.values())
