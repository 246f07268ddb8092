"""What pages derive from a comparison, such as frames and figures, cached as long as the comparison exists."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pandas as pd

from tfcompare.compare import Comparison
from tfcompare.tables.frames import frame_bytes

MAX_CACHED = 64
"""Per comparison: about twice the number of figures."""

T = TypeVar("T")

_lock = threading.Lock()
_caches: WeakKeyDictionary[Comparison, OrderedDict[Hashable, tuple[Any, int]]] = WeakKeyDictionary()
"""Each value with the bytes of its frame; figures are small."""


def cached(comparison: Comparison, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, cached for the comparison and `key`. Callers must not modify it."""
    with _lock:
        cache = _caches.setdefault(comparison, OrderedDict())
        if key in cache:
            cache.move_to_end(key)
            found: T = cache[key][0]
            return found
    made = make()
    size_bytes = frame_bytes(made) if isinstance(made, pd.DataFrame) else 0
    with _lock:
        cache[key] = made, size_bytes
        while len(cache) > MAX_CACHED:
            cache.popitem(last=False)
    return made


def cached_bytes(comparison: Comparison) -> int:
    """The memory of the frames that are cached for a comparison, in bytes."""
    with _lock:
        return sum(size_bytes for _, size_bytes in _caches.get(comparison, {}).values())


def origin(make: Any) -> tuple[str, str]:
    """The module and qualified name of a function, also of a partial one, to tell apart equal keys."""
    function = make.func if isinstance(make, partial) else make
    return function.__module__, function.__qualname__
