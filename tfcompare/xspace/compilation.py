"""Loops over profile data, compiled by numba and cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer, of Python or of numpy: compiled code does not tell them apart
F = TypeVar("F", bound=Callable[..., Any])


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
