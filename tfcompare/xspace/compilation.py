"""Compiles loops over profile data with numba, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer of Python or numpy, which are the same in compiled code
F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """`function` compiled on first call for each combination of argument types, releasing the GIL; cached on disk.

    numba recompiles if the function's own file has changed, but not if a constant or function in another file has.
    """
    return _compiled(function)


def inlined(function: F) -> F:
    """As `compiled`, and inlined wherever it is called."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool = False) -> F:
    try:
        return cast(F, numba.njit(cache=True, nogil=True, forceinline=forceinline)(function))
    except RuntimeError:  # numba has no writable cache folder
        return cast(F, numba.njit(nogil=True, forceinline=forceinline)(function))
