"""How the loops over profile data are compiled: once, then kept on disk.

numba keeps its compiled code beside the source, or in the user's cache folder when that is read-only. Where neither can
be written, the code is compiled anew in each process instead of failing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer, of Python or of numpy: compiled code does not tell them apart
F = TypeVar("F", bound=Callable[..., Any])

EXPECTED_SECONDS = 10
"""What compiling everything takes on two slow cores, for messages to the user."""


def compiled(function: F) -> F:
    """`function` compiled by numba on first call, releasing the GIL, cached on disk where a place can be written."""
    return _compiled(function)


def compiled_without_allocation(function: F) -> F:
    """As `compiled`, for functions that allocate no array, called very often: references to the arrays that they pass
    on are not counted, which took five times as long as what they do."""
    return _compiled(function, _nrt=False)


def compiled_in_place(function: F) -> F:
    """As `compiled_without_allocation`, and put in place wherever it is called: for the smallest and most called."""
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    try:
        dispatcher = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # numba: "no locator available": neither the source folder nor a cache folder is writable
        dispatcher = numba.njit(nogil=True, **options)(function)
    cache = getattr(dispatcher, "_cache", None)
    if cache is not None:
        cache.save_overload = _saved_if_possible(cache.save_overload)
    return cast(F, dispatcher)


def _saved_if_possible(save: Callable[..., None]) -> Callable[..., None]:
    """A full disk shows only when numba saves what it has compiled, which must not be the end of reading a profile."""

    def save_overload(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    return save_overload


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without Python's garbage collector, which goes through everything again and again while numba, before its first
    loop, makes 80,000 objects that stay: a third of the time until a first profile is read."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def needs_compilation() -> bool:
    """Whether reading the first profile of this process will have to compile, which takes a while.

    Told by the loop over a file's bytes: it takes the most, and every profile needs it.
    """
    from tfcompare.xspace import wire

    is_compiled = numba.config.DISABLE_JIT or wire.scan.signatures  # type: ignore[attr-defined]
    return not is_compiled and not _is_cached(wire.scan)


def _is_cached(dispatcher: Any) -> bool:
    """Whether numba will find code on disk: its own index, which goes by source and version, lists some."""
    index = getattr(dispatcher._cache, "_cache_file", None)
    try:
        return index is not None and any(Path(index._data_path(n)).exists() for n in index._load_index().values())
    except OSError:
        return False
