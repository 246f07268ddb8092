"""Figures and what they are made from: made once for a comparison, and at hand whenever a page is drawn again."""

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
from tfcompare.ui.widgets.figure_theme import sent

if TYPE_CHECKING:
    from tfcompare.ui.frame.pair import Pair

TEXT_FIRST_S = 0.4
"""What a browser takes to show what it was sent, with what it loads for that."""

_HAS_DRAWN = "tfcompare.figures.has_drawn"

MOST_KEPT = 64
"""Of one comparison: about two of every figure there is."""

T = TypeVar("T")

_lock = threading.Lock()
_shelves: WeakKeyDictionary[Comparison, OrderedDict[Hashable, Any]] = WeakKeyDictionary()


def draw(of: Comparison | Pair, key: str, make: Callable[[], Any], *on: Hashable) -> None:
    """Show the figure that `make` gives; a second time without making it, while `of`, `key` and `on` are the same.

    `on` is all that the figure depends on beside the comparison, or the pair.
    """
    theme = st.context.theme.type or "light"
    _show(_kept(of, (_origin(make), key, theme, *on), lambda: _finished(make(), theme)), key)


def show(figure: Any, key: str) -> None:
    """A figure as every page shows it: what is written in it reads as well as the page's own text."""
    _show(_finished(figure, st.context.theme.type or "light"), key)


def _finished(figure: Any, theme: str) -> Any:
    """The figure in the theme's colours. It is not changed from now on, so what is sent of it is made once, too."""
    spec = sent(figure, theme)
    figure.to_dict = lambda: spec
    return figure


def _show(figure: Any, key: str) -> None:
    _let_text_come_first()
    st.plotly_chart(figure, theme=None, key=key, config=style.CONFIG, alt=figure.layout.title.text)


def _let_text_come_first() -> None:
    """Before the first chart of a session. The browser loads Plotly for it, and shows nothing more meanwhile."""
    if _HAS_DRAWN not in st.session_state:
        st.session_state[_HAS_DRAWN] = True
        sleep(TEXT_FIRST_S)


def kept(of: Comparison | Pair, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, made once for the comparison or pair and `key`. Nobody may change it.

    What other functions make under the same key, on other pages, is kept apart.
    """
    return _kept(of, (_origin(make), key), make)


def _origin(make: Any) -> tuple[str, str]:
    """Which function it is, wherever it was made."""
    function = make.func if isinstance(make, partial) else make
    return function.__module__, function.__qualname__


def _kept(of: Comparison | Pair, key: Hashable, make: Callable[[], T]) -> T:
    comparison = of if isinstance(of, Comparison) else of.comparison
    key = (None if isinstance(of, Comparison) else of.candidate.id, key)
    with _lock:
        shelf = _shelves.setdefault(comparison, OrderedDict())
        if key in shelf:
            shelf.move_to_end(key)
            found: T = shelf[key]
            return found
    made = make()
    with _lock:
        shelf[key] = made
        while len(shelf) > MOST_KEPT:
            shelf.popitem(last=False)
    return made
