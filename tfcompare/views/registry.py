"""Every view by its name, and every chart by its: for reports, commands, notebooks and the sidebar."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.views import MODULES, NAMES
from tfcompare.views.options import options_with
from tfcompare.views.view import Make, View


@cache
def views() -> list[View]:
    """The views that have a page, in the order of the pages."""
    return list(map(view, NAMES))


def view(name: str) -> View:
    """The view of that name, also one without a page. Raises `Unknown`."""
    if name not in MODULES:
        raise Unknown("view", name, list(MODULES))
    found: View = import_module(f"tfcompare.views.{MODULES[name]}").VIEW
    return found


@cache
def charts() -> dict[str, Callable[[Pair], Any]]:
    """All charts by their names, with the options that their views have if nothing is chosen."""
    return {name: partial(_preset, one, make) for one in views() for name, make in one.charts.items()}


def _preset(of: View, make: Make, pair: Pair) -> Any:
    return make(pair, options_with(of.options, pair, {}))


def figure(pair: Pair, name: str) -> Any:
    """The chart `name` of a pair as a Plotly figure.

    Raises `Unknown` for an unknown name, `TfcompareError` if the runs have nothing that it could show.
    """
    if name not in charts():
        raise Unknown("chart", name, list(charts()))
    found = charts()[name](pair)
    if found is None:
        have = ", ".join(figure_names(pair))
        raise TfcompareError(f"these runs have nothing for the chart {name!r}; they have: {have or 'none'}")
    return found


def figure_names(pair: Pair) -> tuple[str, ...]:
    """The names of the charts that these runs have. Each is drawn to know it."""
    return tuple(name for name, make in charts().items() if make(pair) is not None)
