"""A table with everything that belongs to it: controls, rows, CSV files, the selected row and the largest changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.compare.aggregate import metric_in
from tfcompare.tools.columns import as_shown, of_one_run, shown, shown_alone
from tfcompare.ui.widgets.downloads import csv_buttons
from tfcompare.ui.widgets.tables import sortable

C = TypeVar("C")
HOW_TO_SORT = "A click on a header sorts the table by that column."
HOW_TO_SELECT = "Select a row at its left end to open its details."
_POSITION = "position"


def _no_controls(pair: Pair) -> Any:
    del pair


@dataclass(frozen=True, kw_only=True)
class TablePage(Generic[C]):
    """A diff with its widgets. `C` is the type of the choice that the controls or the page make: rows and grouping."""

    table: schema.Table
    """Determines the names of the CSV files and the meanings of the columns."""

    title: Callable[[C], str]
    rows: Callable[[Pair, C], pd.DataFrame]
    columns: Callable[[Pair, pd.DataFrame, C, bool], Sequence[str]]
    """The names of the columns to show; the flag says whether `All columns` is on."""

    controls: Callable[[Pair], C] = _no_controls
    changes: Callable[[Pair, pd.DataFrame, C], None] | None = None
    """Draws what changed among the rows, below the table."""

    details: Callable[[Pair, pd.DataFrame, C, str], None] | None = None
    """Opens the details of the selected row, given its key."""

    row_key: Callable[[pd.DataFrame], pd.Series] | None = None
    """A unique key of each row for the URL; None if no row can be selected."""

    has_row_key: Callable[[C], bool] = lambda _choice: True
    how_to_select: str = HOW_TO_SELECT

    everything: Callable[[Pair], pd.DataFrame] | None = None
    """The rows of the second CSV file; by default the full diff, of all candidates."""

    cells: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows
    """The rows as shown on screen, in the same order; the CSV files contain the original ones."""

    readings: Callable[[Pair], Mapping[str, str]] | None = None
    """What is shown in place of texts that are too long to read."""

    nothing: Callable[[C], str] = lambda _choice: "There are no rows."
    """What is shown if there are no rows, in Markdown."""

    is_section: bool = True
    """Whether the title is a heading of the page, or of a section below another heading."""

    switch: str = "all_columns"
    """The URL key of `All columns`; `address` is the prefix of the other URL keys."""

    address: str = ""

    def show(self, pair: Pair) -> C:
        """Show everything, beginning with the controls; returns what was chosen there."""
        choice = self.controls(pair)
        self.show_rows(pair, choice)
        return choice

    def show_rows(self, pair: Pair, choice: C) -> pd.DataFrame:
        """Show everything except the controls; returns the rows."""
        rows = self.rows(pair, choice)
        if pair.is_single:
            rows = self._largest_first(rows)
        chosen = self._show_table(pair, rows, choice)
        if self.details is not None and chosen is not None:
            self.details(pair, rows, choice, chosen)
        if self.changes is not None and not pair.is_single:
            self.changes(pair, rows, choice)
        return rows

    def _show_table(self, pair: Pair, rows: pd.DataFrame, choice: C) -> str | None:
        """Show the table and its CSV files; returns the key of the selected row."""
        title = self.title(choice)
        row_key = self.row_key if self.has_row_key(choice) else None
        help_text = HOW_TO_SORT if row_key is None else f"{HOW_TO_SORT} {self.how_to_select}"
        with st.container(horizontal=True, vertical_alignment="center"):
            if self.is_section:
                st.subheader(title, width="content", help=help_text)
            else:
                st.markdown(f"#### {title}", width="content", help=help_text)
            every = st.toggle("All columns", key=self.switch, bind="query-params")
        if rows.empty:
            st.info(self.nothing(choice))
            return None
        names, show = list(self.columns(pair, rows, choice, every)), shown
        if pair.is_single:
            names, show = of_one_run(names), shown_alone
        cells = self.cells(rows).assign(**{_POSITION: range(len(rows))})
        ordered, chosen = sortable(
            cells,
            [show(name, self.table) for name in names],
            key=f"{self.table.name} {title} {every}",
            row_key=row_key,
            address=self.address,
            readings=self.readings(pair) if self.readings else None,
        )
        csv_buttons(
            as_shown(rows.iloc[ordered[_POSITION]], names).rename(columns=lambda name: _without_side(pair, name)),
            lambda: self._everything(pair),
            name=" ".join([self.table.name, *(run.name for _, run in pair.shown)]),
            key=f"{self.table.name}_csv",
        )
        return chosen

    def _everything(self, pair: Pair) -> pd.DataFrame:
        if pair.is_single:
            return pair.tables(self.table.name)[0]
        return self.everything(pair) if self.everything else pair.comparison.table(self.table.name)

    def _largest_first(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows of a run alone by its headline metric: a diff is ordered by change, and nothing changed here."""
        if self.table.headline is None:
            return rows
        column = f"{metric_in(rows, self.table.headline)}_baseline"
        return rows.sort_values(column, ascending=False, kind="stable")


def _without_side(pair: Pair, name: str) -> str:
    return name.removesuffix("_baseline") if pair.is_single else name
