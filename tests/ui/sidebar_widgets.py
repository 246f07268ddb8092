"""The sidebar's widgets, whose keys end in a number that tells one drawing from another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from streamlit.testing.v1.element_tree import Widget

_Widget = TypeVar("_Widget", bound=Widget)


def names(widgets: Iterable[Widget]) -> list[str]:
    """The keys of `widgets` without the number."""
    return [widget.key.rpartition(".")[0] for widget in widgets if widget.key]


def named(widgets: Iterable[_Widget], name: str) -> _Widget:
    """The only one of `widgets` with this name."""
    (found,) = (widget for widget in widgets if widget.key and widget.key.rpartition(".")[0] == name)
    return found
