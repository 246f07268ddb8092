"""Tables of any length, sorted by clicking a header.

The server sorts, not the browser. So the order is known here: it is used for the CSV, is part of the URL, and covers
all rows, while the browser has only those of one page.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from tfcompare.compare.stats.verdict import FASTER, SINGLE, SLOWER, wording
from tfcompare.text import middle_ellipsis
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.widgets.table_layout import PAGE_PIXELS, Layout, config, figures_first, layout, narrow_layout
from tfcompare.units import format_factor
from tfcompare.views import chart_style as style
from tfcompare.views.columns import (
    MATCH_MARKS,
    MATCH_MEANINGS,
    MATCH_WORDS,
    SCOPE_MARK,
    Shown,
    changes_of,
    distinct_names,
    innermost_first,
    marked_rows,
    shown,
)
from tfcompare.views.csv_files import for_spreadsheet
from tfcompare.views.verdict_marks import colour_of

__all__ = ["PAGE_ROWS", "Order", "Shown", "shown", "sortable", "styled"]

PAGE_ROWS = 500
FEWEST_PAGE_ROWS = 50
PAGE_LETTERS = 400_000
"""Tables with long texts have fewer rows per page, since each text is sent in full."""

ROW_PIXELS = 35
VISIBLE_ROWS = 15
MISSING = "–"


@dataclass(frozen=True)
class Order:
    """The column and direction that a table is sorted by; without a column, the rows keep their original order."""

    column: str | None = None
    falling: bool = True

    @classmethod
    def from_text(cls, text: str, columns: Sequence[str]) -> Order:
        """The order in a URL: a column, or `-` and a column; the original order for any other text."""
        column = text.removeprefix("-")
        return cls(column, text.startswith("-")) if column in columns else cls()

    def to_text(self) -> str:
        """The text that `from_text` parses."""
        return f"{'-' if self.falling else ''}{self.column}" if self.column else ""

    def after_click(self, column: str, first_falling: bool) -> Order:
        """The order after a click: sorted, then sorted the other way, then the original order again."""
        if column != self.column:
            return Order(column, first_falling)
        return Order(column, not first_falling) if self.falling == first_falling else Order()

    def of(self, frame: pd.DataFrame, readings: Mapping[str, str] | None = None) -> pd.DataFrame:
        """The sorted rows; texts are sorted by their readings if they have one, missing values last.

        For a change, a missing side counts as 0, so that large additions and removals are among the largest changes.
        """
        if self.column is None:
            return frame.reset_index(drop=True)
        cells = changes_of(frame, self.column)
        if readings and cells.dtype == "str":
            cells = cells.replace(dict(readings))
        order = cells.reset_index(drop=True).sort_values(ascending=not self.falling, kind="stable", na_position="last")
        return frame.iloc[order.index].reset_index(drop=True)


def sortable(
    frame: pd.DataFrame,
    columns: Sequence[Shown],
    *,
    key: str,
    row_key: Callable[[pd.DataFrame], pd.Series] | None = None,
    address: str = "",
    readings: Mapping[str, str] | None = None,
    page_pixels: int = PAGE_PIXELS,
    is_neutral: bool = False,
) -> tuple[pd.DataFrame, str | None]:
    """Show `frame`; returns its rows in the order shown, and the key of the selected row.

    `row_key` gives each row a key that does not depend on the order; without it no row can be selected. Order and
    selection are in the page's URL as `sort` and `row`, prefixed with `address` if a page has several tables.
    `readings` maps texts that are too long to read to what is shown, and sorted by, instead. On a narrow page, the
    numbers of both sides come first. `page_pixels` is the width of the table in a window of 1440 px. A table that
    `is_neutral` has no change that is better or worse.
    """
    narrow = is_narrow()
    columns = figures_first(columns) if narrow else columns
    names = [column.name for column in columns]
    order = Order.from_text(st.query_params.get(f"{address}sort", ""), names)
    displayed = frame.assign(**{c.name: changes_of(frame, c.name) for c in columns if c.format == "change"})
    fitted = narrow_layout if narrow else partial(layout, page_pixels=page_pixels)
    laid_out = fitted(displayed, columns, order.column)
    rows = order.of(frame, _sorted_as(frame, columns, order, readings or {}))
    page = _page(rows, key, _rows_on_page(rows, columns))
    row_keys = row_key(page).tolist() if row_key else []
    chosen = st.query_params.get(f"{address}row")
    position = [row_keys.index(chosen)] if chosen in row_keys else []
    # Each order has its own grid: in the browser, a clicked header stays selected as long as its grid exists.
    grid = f"{key} {order.to_text()}{' narrow' if narrow else ''}"
    st.session_state[grid] = {"selection": {"rows": position, "columns": []}}
    st.dataframe(
        styled(page, columns, laid_out, readings, is_neutral=is_neutral),
        key=grid,
        hide_index=True,
        height=(min(len(page), VISIBLE_ROWS) + (2 if _has_headings(columns) else 1)) * ROW_PIXELS + 2,
        placeholder=MISSING,
        column_config=cast(Any, _configs(columns, laid_out, order)),  # by position, which the annotation does not allow
        on_select=partial(_on_select, grid, columns, order, row_keys, address),
        selection_mode=["single-row", "single-column"] if row_key else "single-column",
    )
    marks = [f"**{MATCH_MARKS[match]}** {MATCH_WORDS[match]}: {MATCH_MEANINGS[match]}" for match in marked_rows(page)]
    if marks:
        st.caption(f"{'; '.join(marks)}.")
    return rows, chosen if row_key is not None else None


def _sorted_as(
    frame: pd.DataFrame, columns: Sequence[Shown], order: Order, readings: Mapping[str, str]
) -> Mapping[str, str]:
    """The texts that the column of the order is sorted by: those displayed."""
    column = next((column for column in columns if column.name == order.column and column.format == "text"), None)
    return {} if column is None else _readings(frame[column.name], frame[column.name], column, readings)


def _rows_on_page(rows: pd.DataFrame, columns: Sequence[Shown]) -> int:
    texts = [rows[column.name] for column in columns if column.format == "text"]
    longest = sum(int(cells.astype("str").str.len().max()) for cells in texts if cells.notna().any())
    return max(FEWEST_PAGE_ROWS, min(PAGE_ROWS, PAGE_LETTERS // max(longest, 1)))


def _page(rows: pd.DataFrame, key: str, most: int) -> pd.DataFrame:
    """The rows to send to the browser: all of a short table, or one page of up to `most` rows of a long one."""
    if len(rows) <= most:
        return rows
    pages = -(-len(rows) // most)
    number = int(st.session_state.get(f"{key}_page", 1))
    first = (min(number, pages) - 1) * most
    last = min(first + most, len(rows))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Rows {first + 1:,} to {last:,} of {len(rows):,}")
        st.pagination(pages, key=f"{key}_page", width="stretch")
    return rows.iloc[first:last].reset_index(drop=True)


def styled(
    page: pd.DataFrame,
    columns: Sequence[Shown],
    laid_out: Layout,
    readings: Mapping[str, str] | None = None,
    *,
    is_neutral: bool = False,
) -> pd.DataFrame | Styler:
    """The page with two levels of headers if there are headings, and with changes coloured by their verdict, unless it
    `is_neutral`.

    Changes of bytes are exact and need no verdict. Cells hold full texts; names are displayed innermost part first.
    Rows of one side show their whole value as change, and their status as verdict.
    """
    cells = for_spreadsheet(page[[column.name for column in columns]])
    shares = [column.name for column in columns if column.format in ("share", "bar")]
    cells[shares] *= 100  # Streamlit's format `percent` drops trailing zeros, so that decimals would not align
    short: dict[str, dict[str, str]] = {}
    for column in columns:
        if column.format == "change":
            cells[column.name] = changes_of(page, column.name)
        if column.name in laid_out.scales:
            cells[column.name] = cells[column.name].astype("float64") / laid_out.factor(column)
        elif column.format == "text":
            room = laid_out if column.is_name or column is columns[0] else None
            short[column.name] = _readings(cells[column.name], page[column.name], column, readings or {}, room)
        if column.name == "match":
            short[column.name] = MATCH_WORDS
        if column.name == "verdict" and "evidence" in page:
            cells[column.name] = cells[column.name].astype("str").fillna(page["status"])
            evidence = SINGLE if (page["evidence"] == SINGLE).any() else ""  # all tested rows of a pair have the same
            short[column.name] = {str(word): wording(str(word), evidence) for word in page["verdict"].dropna().unique()}
    at: dict[str, Hashable] = {column.name: column.name for column in columns}
    if _has_headings(columns):
        labels = [(laid_out.with_unit(column, column.heading), column.name) for column in columns]
        cells.columns = pd.MultiIndex.from_tuples(labels)
        at = dict(zip(at, labels, strict=True))
    judged = [] if is_neutral else [c for c in columns if c.format == "change" and c.is_cost]
    colours = {at[c.name]: _change_colours(page, c) for c in judged}
    formats: dict[Hashable, Callable[[Any], str]]
    formats = {at[name]: partial(_look_up, texts) for name, texts in short.items() if texts}
    formats |= {at[column.name]: format_factor for column in columns if column.format == "factor"}
    if not colours and not formats and not marked_rows(page):
        return cells
    styler = cells.style.apply(lambda cell: colours[cell.name], subset=list(colours)).format(cast(Any, formats))
    first = columns[0].name
    for match, rows in marked_rows(page).items():
        look = partial(_with_mark, MATCH_MARKS[match], short.get(first, {}))
        styler = styler.format(look, subset=cast(Any, (rows, [at[first]])))
    return styler


def _has_headings(columns: Sequence[Shown]) -> bool:
    return any(column.heading for column in columns)


def _readings(
    cells: pd.Series, texts: pd.Series, column: Shown, readings: Mapping[str, str], room: Layout | None = None
) -> dict[str, str]:
    """What is displayed for each text, if it is not the text itself; names have the room of their column."""
    whole = texts.dropna().astype("str").drop_duplicates()
    names = whole.tolist()
    if column.is_name:
        names = [innermost_first(name) for name in names]
    if room is not None:
        names = _fitted(whole.tolist(), names, column, room)
    shown = [readings.get(text) or name for text, name in zip(whole, names, strict=True)]
    return {cell: label for cell, text, label in zip(cells[whole.index], whole, shown, strict=True) if label != text}


def _fitted(texts: list[str], names: list[str], column: Shown, room: Layout) -> list[str]:
    """The names that fit the column, and of the others what tells them apart."""
    letters = room.letters(column)
    short = distinct_names(texts, letters) if column.is_name else names
    cut = [name if SCOPE_MARK in name else middle_ellipsis(name, letters) for name in short]
    return [name if room.fits(column, name) else less for name, less in zip(names, cut, strict=True)]


def _look_up(texts: Mapping[str, str], text: str) -> str:
    return texts.get(text, text)


def _change_colours(page: pd.DataFrame, column: Shown) -> list[str]:
    """The colour of each cell of changes; none unless the verdict is better or worse."""
    changes = page[column.name].astype("float64")
    better, worse = changes < 0, changes > 0
    if not column.is_time:
        return [str(c) for c in np.select([better, worse], [f"color: {style.BETTER}", f"color: {style.WORSE}"], "")]
    if not column.is_judged or "verdict" not in page:
        return [""] * len(page)
    claims = (better & (page["verdict"] == FASTER)) | (worse & (page["verdict"] == SLOWER))
    evidence = page["evidence"] if "evidence" in page else pd.Series("", page.index, dtype="str")
    return [
        f"color: {colour_of(word, of_row)}" if is_claim else ""
        for is_claim, word, of_row in zip(claims, page["verdict"], evidence, strict=True)
    ]


def _configs(columns: Sequence[Shown], laid_out: Layout, order: Order) -> dict[int, Any]:
    """Configurations by position, from 1 (0 is the hidden index): with two header levels, names are not unique."""
    return {
        position: config(column, laid_out, order.falling if order.column == column.name else None)
        for position, column in enumerate(columns, 1)
    }


def _on_select(grid: str, columns: Sequence[Shown], order: Order, row_keys: Sequence[str], address: str) -> None:
    selection = st.session_state[grid]["selection"]
    sort, row = f"{address}sort", f"{address}row"
    if selection["columns"]:
        clicked = next(column for column in columns if column.name == selection["columns"][0])
        st.query_params[sort] = order.after_click(clicked.name, clicked.format != "text").to_text()
    elif selection["rows"]:
        st.query_params[row] = row_keys[selection["rows"][0]]
    else:
        st.query_params.pop(row, None)
    if not st.query_params.get(sort):
        st.query_params.pop(sort, None)


def _with_mark(mark: str, texts: Mapping[str, str], text: str) -> str:
    return f"{mark} {texts.get(text, text)}"
