"""How the loops over profile data are compiled: once, then kept on disk.

numba keeps its compiled code beside the source, or in the user's cache folder when that is read-only. Where neither can
be written, the code is compiled anew in each process instead of failing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer, of Python or of numpy: compiled code does not tell them apart
F = TypeVar("F", bound=Callable[..., Any])

_COMPILED: list[Any] = []
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
    _COMPILED.append(dispatcher)
    return cast(F, dispatcher)


def needs_compilation() -> bool:
    """Whether the loops imported so far still have to be compiled; import what uses them before asking."""
    return any(not dispatcher.signatures and not _is_cached(dispatcher) for dispatcher in _COMPILED)


def _is_cached(dispatcher: Any) -> bool:
    stats = getattr(dispatcher, "stats", None)
    cache_path = getattr(stats, "cache_path", None)
    if cache_path is None:
        return False
    source = Path(dispatcher.py_func.__code__.co_filename)
    name = f"{source.stem}.{dispatcher.py_func.__qualname__}-*.nbi"
    try:
        stamp = source.stat().st_mtime
        return any(index.stat().st_mtime >= stamp for index in Path(cache_path).glob(name))
    except OSError:
        return False
