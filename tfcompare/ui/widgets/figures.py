"""Shows figures, and caches them per comparison for the next rerun of a page."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from time import sleep
from typing import Any

import streamlit as st

from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.views import chart_style as style
from tfcompare.views.options import Subject

TEXT_FIRST_S = 0.4
"""How long a browser takes to show what it was sent, including what it loads for that."""

_HAS_DRAWN = "tfcompare.figures.has_drawn"


def draw(subject: Subject, key: str, make: Callable[[], Any], *on: Hashable, chooses: str = "") -> bool:
    """Show the figure that `make` returns, if any; it is cached as long as `subject`, `key` and `on` are the same.

    `on` is everything that the figure depends on, apart from the subject. A click on a point sets the widget with the
    key `chooses` to its x. Returns whether there is a figure.
    """
    narrow = is_narrow()
    figure = subject.cached((origin(make), key, narrow, *on), partial(_of_narrow_page, make) if narrow else make)
    if figure is not None:
        show(figure, key, chooses)
    return figure is not None


def _of_narrow_page(make: Callable[[], Any]) -> Any:
    figure = make()
    return None if figure is None else style.for_narrow_page(figure)


def show(figure: Any, key: str, chooses: str = "") -> None:
    """Show a figure in the page's theme, after the text above it; `chooses` as of `draw`."""
    _wait_before_first_chart()
    click: dict[str, Any] = {}
    if chooses:
        click = {"selection_mode": "points", "on_select": partial(_choose, key, chooses)}
    st.plotly_chart(figure, key=key, config=style.CONFIG, alt=figure.layout.title.text, **click)


def _choose(key: str, chooses: str) -> None:
    if points := st.session_state[key].selection.points:
        st.session_state[chooses] = points[0]["x"]


def _wait_before_first_chart() -> None:
    """Wait before the first chart of a session: the browser loads Plotly for it, which blocks everything else."""
    if _HAS_DRAWN not in st.session_state:
        st.session_state[_HAS_DRAWN] = True
        sleep(TEXT_FIRST_S)


def origin(make: Any) -> tuple[str, str]:
    """The module and qualified name of a function, also of a partial one, to tell apart equal keys."""
    function = make.func if isinstance(make, partial) else make
    return function.__module__, function.__qualname__
