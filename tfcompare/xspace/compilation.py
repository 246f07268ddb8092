"""Loops over profile data, compiled by numba and cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer, of Python or of numpy: compiled code does not tell them apart
F = TypeVar("F", bound=Callable[..., Any])

EXPECTED_SECONDS = 15
"""What compiling everything takes on two slow cores, for messages to the user."""


def compiled(function: F) -> F:
    """`function` compiled on first call for each combination of argument types, releasing the GIL; cached on disk.

    numba compiles anew when the function's own file has changed, not when a constant or function of another file has.
    """
    return _compiled(function)


def inlined(function: F) -> F:
    """As `compiled`, and inlined wherever it is called."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool = False) -> F:
    try:
        return cast(F, numba.njit(cache=True, nogil=True, forceinline=forceinline)(function))
    except RuntimeError:  # numba finds no folder that it can write to
        return cast(F, numba.njit(nogil=True, forceinline=forceinline)(function))


def needs_compilation() -> bool:
    """Whether reading the first profile of this process will have to compile, which takes a while.

    The loop over a file's bytes stands for all: it takes the longest, and every profile needs it.
    """
    from tfcompare.xspace import wire

    scan: Any = wire.scan
    if not hasattr(scan, "signatures") or scan.signatures:  # plain Python where numba is disabled; or already called
        return False
    folder = scan.stats.cache_path
    written = Path(wire.__file__).stat().st_mtime
    return folder is None or all(f.stat().st_mtime < written for f in Path(folder).glob("wire.scan-*.nbi"))
