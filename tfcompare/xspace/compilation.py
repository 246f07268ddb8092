"""Compiles loops over profile data with numba, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

from tfcompare.sources.folder_permissions import why_not_private

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer of Python or numpy, which are the same in compiled code
F = TypeVar("F", bound=Callable[..., Any])

_MOST_LOOPS = 100


def compiled(function: F, *, forceinline: bool = False) -> F:
    """`function` compiled on first call for each combination of argument types, releasing the GIL; cached on disk.

    numba recompiles if the function's own file has changed, but not if a constant or function in another file has. It
    unpickles what is cached, so a folder that others can write to is not used: the function is compiled each time.
    """
    try:
        cached = numba.njit(cache=True, nogil=True, forceinline=forceinline)(function)
    except RuntimeError:  # numba has no writable cache folder
        pass
    else:
        is_plain = not hasattr(cached, "stats")  # numba is disabled
        if is_plain or _is_private(Path(str(cached.stats.cache_path))):
            return cast(F, cached)
    return cast(F, numba.njit(nogil=True, forceinline=forceinline)(function))


def inlined(function: F) -> F:
    """As `compiled`, and inlined wherever it is called."""
    return compiled(function, forceinline=True)


def survives_full_disk(function: F) -> F:
    """`function`, which calls compiled functions and writes nothing itself, also where these cannot be cached any more.

    numba raises the OSError of writing its cache once the compiled function is ready, so calling again goes on.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for _ in range(_MOST_LOOPS):
            try:
                return function(*args, **options)
            except OSError:
                continue
        return function(*args, **options)

    return cast(F, call)


def why_uncached() -> str:
    """Why compiled functions are not cached although there is a folder for them, as a sentence; else empty."""
    return "; ".join(f"{folder}: compiled code is not cached there, since {why}" for folder, why in _refused.items())


_refused: dict[Path, str] = {}


@cache
def _is_private(folder: Path) -> bool:
    if why := why_not_private(folder):
        _refused[folder] = why
    return not why
