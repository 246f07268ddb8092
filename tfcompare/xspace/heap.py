"""Memory that is let go of while a profile is read stays at hand for what is needed next.

Reading makes many large arrays for a short time. The C library gives each back to the system at once, which then has to
hand out cleared pages for the next one: a tenth of the whole time. glibc can be told to keep them until all is read,
and then to give everything back, also what it would have held on to for each thread; elsewhere nothing changes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's numbers for them
_ALL_BYTES = 1 << 30
_USUAL_BYTES = 32 << 20
"""How far glibc itself raises, with use, the size from which an array is memory of its own."""

_LOCK = Lock()
_users = 0


@contextmanager
def kept_at_hand() -> Iterator[None]:
    """While this lasts, in any thread; what is free at the end of the last one is given back then."""
    glibc = _glibc()
    if glibc is None:
        yield
        return
    _enter(glibc)
    try:
        yield
    finally:
        _leave(glibc)


def _enter(glibc: Any) -> None:
    global _users
    with _LOCK:
        _users += 1
        if _users == 1:
            glibc.mallopt(_MMAP_THRESHOLD, _ALL_BYTES)
            glibc.mallopt(_TRIM_THRESHOLD, _ALL_BYTES)


def _leave(glibc: Any) -> None:
    global _users
    with _LOCK:
        _users -= 1
        if not _users:
            glibc.mallopt(_MMAP_THRESHOLD, _USUAL_BYTES)
            glibc.mallopt(_TRIM_THRESHOLD, 2 * _USUAL_BYTES)
            glibc.malloc_trim(0)


@cache
def _glibc() -> Any:
    """The C library if it is glibc, else None."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
