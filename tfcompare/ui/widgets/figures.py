"""Figures and the data they show: made once for a comparison, and cached for the next rerun of a page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import streamlit as st

from tfcompare.charts import style
from tfcompare.compare import Comparison

if TYPE_CHECKING:
    from tfcompare.ui.frame.pair import Pair

TEXT_FIRST_S = 0.4
"""What a browser takes to show what it was sent, with what it loads for that."""

_HAS_DRAWN = "tfcompare.figures.has_drawn"

MAX_CACHED = 64
"""Of one comparison: about two of every figure there is."""

T = TypeVar("T")

_lock = threading.Lock()
_caches: WeakKeyDictionary[Comparison, OrderedDict[Hashable, Any]] = WeakKeyDictionary()


def draw(of: Comparison | Pair, key: str, make: Callable[[], Any], *on: Hashable) -> None:
    """Show the figure that `make` returns; it is cached while `of`, `key` and `on` are the same.

    `on` is all that the figure depends on beside the comparison, or the pair.
    """
    show(_cached(of, (_origin(make), key, *on), make), key)


def show(figure: Any, key: str) -> None:
    """A figure in the page's own theme."""
    _let_text_come_first()
    st.plotly_chart(figure, key=key, config=style.CONFIG, alt=figure.layout.title.text)


def _let_text_come_first() -> None:
    """Before the first chart of a session. The browser loads Plotly for it, and shows nothing more meanwhile."""
    if _HAS_DRAWN not in st.session_state:
        st.session_state[_HAS_DRAWN] = True
        sleep(TEXT_FIRST_S)


def cached(of: Comparison | Pair, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` returns, made once for the comparison or pair and `key`. Nobody may change it.

    Other functions have a cache of their own, even under the same key.
    """
    return _cached(of, (_origin(make), key), make)


def _origin(make: Any) -> tuple[str, str]:
    """Which function it is, wherever it was made."""
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
