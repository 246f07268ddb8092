"""Every view by its name, and every chart by its: for reports, commands, notebooks and the sidebar."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from tfcompare.charts.pair import Pair, pairs_of
from tfcompare.compare import Comparison
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


def figure(comparison: Comparison, name: str, candidate: str | None = None) -> Any:
    """The chart `name` of a comparison as a Plotly figure, with the candidate of that id (by default the first).

    Raises `Unknown` for an unknown name or candidate, `TfcompareError` if the runs have nothing that it could show.
    """
    if name not in charts():
        raise Unknown("chart", name, list(charts()))
    found = charts()[name](pair_with(comparison, candidate))
    if found is None:
        have = ", ".join(figure_names(comparison, candidate))
        raise TfcompareError(f"these runs have nothing for the chart {name!r}; they have: {have or 'none'}")
    return found


def figure_names(comparison: Comparison, candidate: str | None = None) -> tuple[str, ...]:
    """The names of the charts that these runs have. Each is drawn to know it. Raises `Unknown` for the candidate."""
    pair = pair_with(comparison, candidate)
    return tuple(name for name, make in charts().items() if make(pair) is not None)


def pair_with(comparison: Comparison, candidate: str | None) -> Pair:
    """The baseline and the candidate of that id, by default the first. Raises `Unknown`."""
    pairs = {pair.candidate.id: pair for pair in pairs_of(comparison)}
    if candidate is not None and candidate not in pairs:
        raise Unknown("candidate", candidate, list(pairs))
    return next(iter(pairs.values())) if candidate is None else pairs[candidate]
