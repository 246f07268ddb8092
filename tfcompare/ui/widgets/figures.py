"""Shows figures, and caches them and their data per comparison for the next rerun of a page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import pandas as pd
import streamlit as st

from tfcompare.charts import steps, style
from tfcompare.compare import Comparison
from tfcompare.frames.ops.op_parts import frame_bytes

if TYPE_CHECKING:
    from tfcompare.ui.frame.pair import Pair

TEXT_FIRST_S = 0.4
"""How long a browser takes to show what it was sent, including what it loads for that."""

_HAS_DRAWN = "tfcompare.figures.has_drawn"

MAX_CACHED = 64
"""Per comparison: about twice the number of figures."""

T = TypeVar("T")

_lock = threading.Lock()
_caches: WeakKeyDictionary[Comparison, OrderedDict[Hashable, Any]] = WeakKeyDictionary()


def draw(of: Comparison | Pair, key: str, make: Callable[[], Any], *on: Hashable) -> None:
    """Show the figure that `make` returns; it is cached as long as `of`, `key` and `on` are the same.

    `on` is everything that the figure depends on, apart from the comparison or pair.
    """
    show(_cached(of, (_origin(make), key, *on), make), key)


def draw_op_in_steps(pair: Pair, op_name: str, frames: Sequence[pd.DataFrame], *on: Hashable) -> bool:
    """Show one op in every step of both runs, or that no steps are known; returns whether there are any.

    `frames` are those of `step_series.op_by_step` for each side; `on` as for `draw`.
    """
    if all(frame.empty for frame in frames):
        st.info("Nothing is known of single steps: no step markers were found, or what ran belongs to no step.")
        return False
    series = list(zip(pair.sides, frames, strict=True))
    draw(pair, "chosen_op", lambda: steps.op_in_steps(series, op_name), *on)
    return True


def show(figure: Any, key: str) -> None:
    """Show a figure in the page's theme."""
    _wait_before_first_chart()
    st.plotly_chart(figure, key=key, config=style.CONFIG, alt=figure.layout.title.text)


def _wait_before_first_chart() -> None:
    """Wait before the first chart of a session: the browser loads Plotly for it, which blocks everything else."""
    if _HAS_DRAWN not in st.session_state:
        st.session_state[_HAS_DRAWN] = True
        sleep(TEXT_FIRST_S)


def cached(of: Comparison | Pair, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, cached for the comparison or pair and `key`. Callers must not modify it.

    Each function has a separate cache, even for the same key.
    """
    return _cached(of, (_origin(make), key), make)


def cached_bytes(comparison: Comparison) -> int:
    """The memory of the frames that are cached for a comparison and its pairs, in bytes; figures are small."""
    with _lock:
        values = list(_caches.get(comparison, {}).values())
    return sum(frame_bytes(value) for value in values if isinstance(value, pd.DataFrame))


def _origin(make: Any) -> tuple[str, str]:
    """The module and qualified name of a function, also of a partial one."""
    function = make.func if isinstance(make, partial) else make
    return function.__module__, function.__qualname__


def _cached(of: Comparison | Pair, key: Hashable, make: Callable[[], T]) -> T:
    comparison = of if isinstance(of, Comparison) else of.comparison
    key = (None if isinstance(of, Comparison) else of.candidate.id, key)
    with _lock:
        cache = _caches.setdefault(comparison, OrderedDict())
        if key in cache:
            cache.move_to_end(key)
            found: T = cache[key]
            return found
    made = make()
    with _lock:
        cache[key] = made
        while len(cache) > MAX_CACHED:
            cache.popitem(last=False)
    return made
