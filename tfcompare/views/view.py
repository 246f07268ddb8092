"""What a view is, and what views share: their charts, and tables of diffs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import MATCHED, ROLES
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.schema import SIDES
from tfcompare.views.blocks import Block, Cards, Chart, Section, Text, later
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.options import NoOptions, options_with

CHANGE = ROLES
NARROW_LETTERS = 22
"""The length of names next to bars on a narrow page."""
NOTHING_TESTED = "No change was tested: a test needs nine or more marked steps in each run."

P = ParamSpec("P")
T = TypeVar("T")
Make = Callable[[Pair, Any], Any]
"""Makes a Plotly figure of a pair and the options of its view; None where the runs have nothing that it could show."""


@dataclass(frozen=True)
class View:
    """What a page is about: `make` yields what it shows of a pair, or of a series, with options; `charts` are by name.

    Which blocks `make` yields depends on the pair, never on options; what depends on options stands in the thunk of a
    section, at the place of their widgets or below. `why_not` says why it has nothing to show for a pair, and is empty
    otherwise; `remedy` what to do then; `instead` are blocks that its page shows then. One that `is_of_all` is the same
    for all candidates; `of_several` comes first where there are several.
    """

    name: str
    title: str
    make: Callable[[Any, Any], Iterator[Block]]
    charts: Mapping[str, Make] = field(default_factory=dict)
    why_not: Callable[[Pair], str] = lambda _pair: ""
    remedy: str = ""
    options: type = NoOptions
    is_of_all: bool = False
    instead: Callable[[Pair], Iterable[Block]] = lambda _pair: ()
    of_several: Callable[[Pair], Iterable[Block]] = lambda _pair: ()

    def blocks(self, pair: Pair, **values: Any) -> Iterator[Block]:
        """What it shows of a pair with these options. Raises `Unknown` for an option or value that it lacks."""
        return self.make(pair, options_with(self.options, pair, values))


def by_role(name: str, roles: Sequence[str] = SIDES) -> list[str]:
    """The columns of a diff for a metric as it is named there."""
    return [f"{name}_{role}" for role in roles]


def cards(pair: Pair, figures: Sequence[KeyFigure]) -> Cards:
    """Key figures as cards: of a run alone without a change, of different programs without one that is better."""
    if pair.is_single:
        figures = [one.alone() for one in figures]
    elif pair.are_unrelated:
        figures = [replace(one, better="neither") for one in figures]
    return Cards(figures, pair.headings)


def without_rows(why: str, *tables: str) -> Callable[[Pair], str]:
    """For `View.why_not`: the sentence `why` where all of these tables are empty in both runs."""

    def why_not(pair: Pair) -> str:
        return why if all(len(one) == 0 for name in tables for one in pair.tables(name)) else ""

    return why_not


def cached_per_pair(make: Callable[Concatenate[Pair, P], T]) -> Callable[Concatenate[Pair, P], T]:
    """The function with its results cached in the comparison of the pair, one for each set of its other arguments."""

    def cached(pair: Pair, /, *args: P.args, **named: P.kwargs) -> T:
        return pair.cached((make, *args, *named.items()), lambda: make(pair, *args, **named))

    update_wrapper(cached, make)
    return cached


def charts_of(pair: Pair, charts: Mapping[str, Make], options: Any = None) -> Iterator[Chart]:
    """These charts, to be drawn when they are needed."""
    return (Chart(name, partial(make, pair, options), on=options) for name, make in charts.items())


def cached_section(pair: Pair, name: str, make: Callable[[Pair], Iterable[Block]]) -> Section:
    """Blocks on a pair that depend on no option: made when they are asked for, and kept with the comparison."""
    return later(partial(pair.cached, ("blocks", name), lambda: list(make(pair))))


def everything(pair: Pair, table: schema.Table, enriched: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """The diff of all candidates for a file, with what `enriched` adds to the rows of one of them."""
    parts = [enriched(one.diff(table.name)) for one in pairs_of(pair.among)]
    return pd.concat(parts, ignore_index=True)


def changed(
    name: str, changes: pd.DataFrame, make: Callable[..., Any], *, on: Hashable, nothing: str, is_time: bool = True
) -> Iterator[Block]:
    """The rows of `largest_changes` as the chart of that name, or that there are none; says if none was tested.

    `make` takes the number of `letters` of names. `on` as of a chart.
    """
    if changes.empty:
        yield Text(nothing, "notice")
        return
    is_tested = "interval_low" in changes and changes["interval_low"].notna().any()
    if is_time and not is_tested and (changes["status"] == MATCHED).any():
        yield Text(NOTHING_TESTED, "quiet")
    yield Chart(name, make, on=on, draw_narrow=partial(make, letters=NARROW_LETTERS))


def largest_first(pair: Pair, table: schema.Table, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a run alone by the headline metric: a diff is ordered by change, and nothing changed here."""
    if not pair.is_single or table.headline is None:
        return rows
    return rows.sort_values(f"{table.headline}_baseline", ascending=False, kind="stable")
