"""What a view is, and what views share: their charts, and tables of diffs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.compare.aggregate import metric_in
from tfcompare.tools.columns import of_one_run, shown, shown_alone
from tfcompare.views.blocks import Block, Chart, Table

MOST_ROWS = 1_000
"""Rows of a table; a note says how many are left out, and `tfcompare diff --format csv` has them all."""
CHANGE = ("baseline", "candidate", "delta", "ratio")
SIDES = CHANGE[:2]
_PLACES = ("host", "memory_id")
"""The keys that tell rows of the same name apart; shown where they differ."""

Make = Callable[[Pair], Any]
"""Makes a Plotly figure; None where the runs have nothing that it could show."""


@dataclass(frozen=True)
class View:
    """What a page is about: `blocks` yields what it shows of a pair, `charts` are its charts by their names.

    `why_not` says why it has nothing to show for a pair, and is empty otherwise.
    """

    name: str
    title: str
    blocks: Callable[[Pair], Iterator[Block]]
    charts: Mapping[str, Make] = field(default_factory=dict)
    why_not: Callable[[Pair], str] = lambda _pair: ""


def without_rows(why: str, *tables: str) -> Callable[[Pair], str]:
    """For `View.why_not`: the sentence `why` where all of these tables are empty in both runs."""

    def why_not(pair: Pair) -> str:
        return why if all(len(one) == 0 for name in tables for one in pair.tables(name)) else ""

    return why_not


def charts_of(pair: Pair, charts: Mapping[str, Make]) -> Iterator[Chart]:
    """These charts, to be drawn when they are needed."""
    return (Chart(name, partial(make, pair)) for name, make in charts.items())


def sides_of(rows: pd.DataFrame, metric: str) -> list[str]:
    """The columns of a sum in a diff: both sides, the change and the ratio."""
    return [f"{metric_in(rows, metric)}_{role}" for role in CHANGE]


def table_of(pair: Pair, table: schema.Table, title: str, rows: pd.DataFrame, names: Sequence[str]) -> Iterator[Table]:
    """A table of some rows of a diff with these columns, or of the baseline's for a run alone; nothing without rows."""
    if rows.empty:
        return
    places = [key for key in _PLACES if key in rows and key not in names and rows[key].nunique() > 1]
    names = [name for name in (names[0], *places, *names[1:]) if not _is_blank(rows[name])]
    if pair.is_single:
        columns = [shown_alone(name, table) for name in of_one_run(names)]
        largest = next(column.name for column in columns if column.is_cost)
        rows = rows.sort_values(largest, ascending=False, kind="stable")
    else:
        columns = [shown(name, table) for name in names]
    kept = rows.head(MOST_ROWS)
    which = "smallest" if pair.is_single else "rows that changed least"
    left_out = len(rows) - len(kept)
    note = f"The {left_out:,} {which} are left out." if left_out else ""
    yield Table(table.name, title, kept.reset_index(drop=True), columns, note)


def _is_blank(cells: pd.Series) -> bool:
    """Whether no cell of a column of texts has any text."""
    return cells.dtype == "str" and not cells.fillna("").str.len().any()
