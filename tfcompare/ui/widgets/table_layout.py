"""The widths of table columns, the decimals of their numbers, and the units of sizes and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from tfcompare.render.payload import units_of
from tfcompare.units import Scale, format_factor
from tfcompare.views.columns import Shown

PAGE_PIXELS = 950
"""The width of a table in a window of 1440 px. In a wider window, the browser widens all columns by the same amount."""

NARROW_PAGE_PIXELS = 410
"""The width of a table in a window of 900 px, next to the sidebar."""

FIGURES_IN_VIEW = 3
"""The figures of a narrow table: baseline, candidate and change of its first metric."""

NAME_PIXELS = (180, 420)
LEAST_TEXT_PIXELS = 160
"""Of a text that is long: a shape before and after, or most of it."""
NARROW_NAME_PIXELS = (110, 210)
LETTER_PIXELS = 7.2
"""The width of a digit, and of an average letter, in Streamlit's font."""

NAME_LETTER_PIXELS = 6.8
"""The width of a letter of a name, which is of small letters for the most part."""
HALF_AS_WIDE = ",.[]() ijl"
"""Of letters, those of punctuation, and the narrowest."""
PADDING_PIXELS = 16
MARKER_PIXELS = 40
"""The width of the column that selects a row."""

MOST_MEASURED = 20
"""Of a column's texts: the longest in letters are the widest but for some letters."""
FACTOR_LETTERS = len("1/7.24")
BAR_LETTERS = 13
"""The width of a bar with its share in percent, in letters."""

SORTED = {True: " ▼", False: " ▲"}
LONGEST_WORDS = {"verdict": "likely slower", "match": "same position"}
"""The longest cell text of columns whose cells are written from several columns."""


@dataclass(frozen=True)
class Layout:
    """The width of each column, the decimals of its numbers, and the units of sizes and costs.

    `pinned` columns stay visible when the others are scrolled.
    """

    pixels: dict[str, int]
    digits: dict[str, int]
    scales: dict[str, Scale]
    pinned: tuple[str, ...] = ()

    def letters(self, column: Shown) -> int:
        """How many letters of a name the column has room for; these are narrower than digits."""
        return int((self.pixels[column.name] - PADDING_PIXELS) / NAME_LETTER_PIXELS)

    def fits(self, column: Shown, text: str) -> bool:
        """Whether the column has room for the whole text."""
        return letters_of(text) * LETTER_PIXELS <= self.pixels[column.name] - PADDING_PIXELS

    def factor(self, column: Shown) -> float:
        """The divisor of the column's values."""
        return self.scales[column.name].size if column.name in self.scales else 1.0

    def with_unit(self, column: Shown, text: str) -> str:
        """The heading or label of a column, with the unit of its values."""
        if column.name not in self.scales:
            return text
        per = "/s" if column.unit.endswith("/s") else ""
        return text.replace(f"({column.unit}", f"({self.scales[column.name].unit}{per}")


def figures_first(columns: Sequence[Shown]) -> list[Shown]:
    """The column order on a narrow page: the first column, then the figures with the host and the step's number, which
    tell rows of one name apart, then all others."""
    first, *others = columns
    return [first, *sorted(others, key=lambda column: not (column.is_figure or column.name in ("host", "step")))]


def layout(
    frame: pd.DataFrame, columns: Sequence[Shown], sorted_by: str | None = None, page_pixels: int = PAGE_PIXELS
) -> Layout:
    """The layout: columns under one heading have the same decimals, and the first column gets the remaining width.

    If too little width is left, the widest text gives some up. If that is not enough for all columns, the table scrolls
    horizontally, and what was judged, with its verdict, is in view; if there is too little for that, too, the first
    column is as wide as it needs.
    """
    formats = _formats(frame, columns)
    first, *others = columns
    pixels = {column.name: _pixels(frame, column, formats, sorted_by) for column in others}
    least, most = NAME_PIXELS
    most = min(most, _pixels(frame, replace(first, letters=most, is_name=True), formats, sorted_by))
    room = page_pixels - MARKER_PIXELS
    texts = [column.name for column in others if column.format == "text"]
    if texts:
        widest = max(texts, key=pixels.__getitem__)
        lacking = min(least, most) - (room - sum(pixels.values()))
        pixels[widest] -= max(min(lacking, pixels[widest] - LEAST_TEXT_PIXELS), 0)
    lefts = [room - sum(pixels.values())]
    if judged := [at for at, column in enumerate(others, 1) if column.is_judged or column.name == "verdict"]:
        lefts.append(room - sum([*pixels.values()][: judged[-1]]))
    name = next((min(left, most) for left in lefts if left >= least), most)
    return replace(formats, pixels=pixels | {first.name: name})


def narrow_layout(frame: pd.DataFrame, columns: Sequence[Shown], sorted_by: str | None = None) -> Layout:
    """As `layout`, for a narrow page: names leave room for the first figures, and stay visible when scrolling."""
    wide = layout(frame, columns, sorted_by)
    first, *others = columns
    figures = [wide.pixels[column.name] for column in others if column.is_figure][:FIGURES_IN_VIEW]
    host = sum(wide.pixels[column.name] for column in others if column.name == "host")
    if first.format != "text" or not figures:
        return wide
    least, most = NARROW_NAME_PIXELS
    left = NARROW_PAGE_PIXELS - MARKER_PIXELS - host - sum(figures)
    name = min(max(left, least), most, wide.pixels[first.name])
    return replace(wide, pixels=wide.pixels | {first.name: name}, pinned=(first.name,))


def _formats(frame: pd.DataFrame, columns: Sequence[Shown]) -> Layout:
    """The decimals and units of the columns, without widths."""
    digits: dict[str, int] = {}
    scales: dict[str, Scale] = {}
    units = units_of(frame, columns)
    for column in columns:
        size, unit, decimals = units.get(column.heading or column.name, (1.0, "", 0))
        if column.format in ("number", "change"):
            digits[column.name] = decimals
        if unit and column.format in ("number", "change", "ratio"):  # a heading has the unit of all below it
            scales[column.name] = Scale(unit, 1.0 if column.format == "ratio" else size)
    return Layout({}, digits, scales)


def _pixels(frame: pd.DataFrame, column: Shown, formats: Layout, sorted_by: str | None) -> int:
    """The width needed by the longest cell and the label; for texts at most that of `column.letters`."""
    letters = letters_of(formats.with_unit(column, column.label)) + 2 * (column.name == sorted_by)
    if column.format == "text":
        cells = frame[column.name].dropna().astype("str").drop_duplicates()
        longest = cells[cells.str.len().nlargest(MOST_MEASURED).index]
        widest = max(map(letters_of, [LONGEST_WORDS.get(column.name, ""), *longest]))
        if column.is_name:  # which `Layout.letters` cuts by their number of letters
            widest = (
                max(widest, longest.str.len().max() * NAME_LETTER_PIXELS / LETTER_PIXELS) if len(longest) else widest
            )
        letters = max(letters, min(widest, column.letters))
    elif column.format == "factor":
        values = frame[column.name].to_numpy(dtype=np.float64, na_value=np.nan)
        ends = values[np.isfinite(values)]
        letters = max(
            letters,
            FACTOR_LETTERS,
            *(len(format_factor(float(end))) for end in (ends.min(initial=1), ends.max(initial=1))),
        )
    elif column.format not in ("flag", "bar"):
        sizes = np.abs(frame[column.name].to_numpy(dtype=np.float64, na_value=np.nan))
        largest = float(sizes[np.isfinite(sizes)].max(initial=0)) / formats.factor(column)
        number = f"{largest:,.{formats.digits.get(column.name, 3)}f}"
        ends = {"change": "+", "ratio": "×", "share": "0 %"}  # shares are shown multiplied by 100
        commas = number.count(",") + number.count(".")  # half as wide as a digit
        letters = max(letters, len(number + ends.get(column.format, "")) - commas / 2)
    elif column.format == "bar":
        letters = BAR_LETTERS
    return ceil(letters * LETTER_PIXELS) + PADDING_PIXELS


def letters_of(text: str) -> float:
    """How many average letters wide a text is."""
    return len(text) - sum(map(text.count, HALF_AS_WIDE)) / 2


def config(column: Shown, laid_out: Layout, sorted_by: bool | None) -> Any:
    """Streamlit's column configuration; `sorted_by`: None if not sorted by this column, True if descending."""
    label = laid_out.with_unit(column, column.label) + ("" if sorted_by is None else SORTED[sorted_by])
    width = laid_out.pixels[column.name]
    pinned = column.name in laid_out.pinned or None
    if column.format == "text":
        return st.column_config.TextColumn(label, help=column.help, width=width, pinned=pinned)
    if column.format == "flag":
        return st.column_config.CheckboxColumn(label, help=column.help, width=width)
    if column.format == "bar":
        return st.column_config.ProgressColumn(label, help=column.help, format="%.1f %%", max_value=100, width=width)
    digits = laid_out.digits.get(column.name, 0)
    if column.format == "factor":  # its texts are those of the table's styles
        return st.column_config.NumberColumn(label, help=column.help, width=width)
    formats = {"number": f"%,.{digits}f", "change": f"%+,.{digits}f", "ratio": "%.3f×", "share": "%.1f %%"}
    return st.column_config.NumberColumn(label, help=column.help, format=formats[column.format], width=width)
