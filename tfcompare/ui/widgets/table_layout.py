"""How wide the columns of a table are, how many digits their numbers have, and in which unit sizes are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from tfcompare.ui.widgets.columns import Shown
from tfcompare.ui.widgets.text_pixels import text_pixels
from tfcompare.units import Scale, scale

PAGE_PIXELS = 950
"""The width of a table in a window of 1440."""

NARROW_PAGE_PIXELS = 410
"""The width of a table in a window of 900 beside the sidebar."""

FIGURES_IN_VIEW = 3
"""Of a narrow table: baseline, candidate and change of its first metric."""

TEXT_PIXELS = {
    "op_type": 150,
    "op_type_candidate": 150,
    "op_name_candidate": 400,
    "host_or_device": 70,
    "host": 120,
    "op_name": 210,
    "kernel_name_candidate": 400,
    "block_dim": 80,
    "block_dim_candidate": 110,
    "grid_dim": 100,
    "grid_dim_candidate": 110,
    "device": 120,
    "shape": 96,
    "shape_candidate": 96,
    "category": 140,
    "category_candidate": 140,
    "status": 80,
    "verdict": 108,
    "evidence": 84,
    "verdict_text": 130,
    "recorded": 150,
}
NAME_PIXELS = (180, 420)
NARROW_NAME_PIXELS = (120, 210)
KIND_PIXELS = (114, 114)
NEVER_CUT = ("kind",)
"""Texts that fit where an estimate by their letters says they do not."""

SHORT_NAME_PIXELS = {"pipeline": 140, "iterator": 140, "name": 220}
"""What such names need at most, where a table begins with them."""

DIGIT_PIXELS = 7.2
LETTER_PIXELS = 7.0
PADDING_PIXELS = 16
MARKER_PIXELS = 40
MOST_DIGITS = 4
MOST_DIGITS_OF_COUNTS = 2

SORTED = {True: " ▼", False: " ▲"}


def decimals(values: pd.DataFrame) -> int:
    """Digits after the point that let the largest of some numbers and most small ones be read, the same for all."""
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size or bool((numbers == np.round(numbers)).all()):
        return 0
    return int(np.clip(5 - np.floor(np.log10(max(float(np.abs(numbers).max()), 1e-3))), 1, MOST_DIGITS))


@dataclass(frozen=True)
class Layout:
    """How wide each column is, how many digits its numbers have after the point, and the unit of those in bytes.

    `pinned` columns stay when the others are scrolled.
    """

    pixels: dict[str, int]
    digits: dict[str, int]
    scales: dict[str, Scale]
    pinned: tuple[str, ...] = ()

    def factor(self, column: Shown) -> float:
        """What the column's values are divided by."""
        return self.scales[column.name].size if column.name in self.scales else 1.0

    def with_unit(self, column: Shown, text: str) -> str:
        """The heading or label of a column in the unit that its values are shown in."""
        if column.name not in self.scales:
            return text
        return text.replace(f"({column.unit}", f"({self.scales[column.name].unit}{column.unit.removeprefix('bytes')}")


def figures_first(columns: Sequence[Shown]) -> list[Shown]:
    """The columns for a narrow page: behind the first the figures of both sides, then what else is told of a row."""
    first, *others = columns
    return [first, *sorted(others, key=lambda column: not column.heading)]


def layout(frame: pd.DataFrame, columns: Sequence[Shown], sorted_by: str | None = None) -> Layout:
    """Columns under one heading have the same digits; the first column, of names, takes the width that is left.

    Where next to nothing is left the table is scrolled sideways anyway, and names are as wide as they like.
    """
    laid_out = _formats(frame, columns)
    first, *others = columns
    pixels = {column.name: _pixels(frame, column, laid_out, sorted_by) for column in others}
    left = PAGE_PIXELS - MARKER_PIXELS - sum(pixels.values())
    least, most = KIND_PIXELS if first.name == "kind" else NAME_PIXELS
    most = SHORT_NAME_PIXELS.get(first.name, most)
    if first.format != "text" or first.pixels:
        least = most = _pixels(frame, first, laid_out, sorted_by)
    return replace(laid_out, pixels=pixels | {first.name: min(left, most) if left >= least else most})


def narrow_layout(frame: pd.DataFrame, columns: Sequence[Shown], sorted_by: str | None = None) -> Layout:
    """As `layout`, for a narrow page: names leave room for the first figures, and stay when one scrolls to the rest."""
    wide = layout(frame, columns, sorted_by)
    first, *others = columns
    figures = [wide.pixels[column.name] for column in others if column.heading][:FIGURES_IN_VIEW]
    if first.format != "text" or not figures:
        return wide
    least, most = NARROW_NAME_PIXELS
    left = NARROW_PAGE_PIXELS - MARKER_PIXELS - sum(figures)
    name = min(max(left, least), most, wide.pixels[first.name])
    return replace(wide, pixels=wide.pixels | {first.name: name}, pinned=(first.name,))


def _formats(frame: pd.DataFrame, columns: Sequence[Shown]) -> Layout:
    """The digits and units of the columns, which have no widths yet."""
    of_heading: dict[str, list[str]] = {}
    for column in columns:
        if column.format in ("number", "change"):
            of_heading.setdefault(column.heading or column.name, []).append(column.name)
    digits: dict[str, int] = {}
    scales: dict[str, Scale] = {}
    units = {column.name: column.unit for column in columns}
    for names in of_heading.values():
        values = frame[names]
        if units[names[0]] in ("bytes", "bytes/s"):
            shown = scale(values.to_numpy(dtype=np.float64, na_value=np.nan).ravel().tolist(), "bytes")
            scales |= dict.fromkeys(names, shown)
            values = values / shown.size
        most = MOST_DIGITS if units[names[0]] == "µs" else MOST_DIGITS_OF_COUNTS
        digits |= dict.fromkeys(names, min(decimals(values), most))
    for column in columns:  # stands under the same heading, in which the unit is named
        if column.format == "ratio" and (beside := of_heading.get(column.heading)) and beside[0] in scales:
            scales[column.name] = Scale(scales[beside[0]].unit, 1.0)
    return Layout({}, digits, scales)


def _pixels(frame: pd.DataFrame, column: Shown, laid_out: Layout, sorted_by: str | None) -> int:
    if column.format == "text":
        header = int(len(column.label + SORTED[True]) * DIGIT_PIXELS)
        return column.pixels or max(TEXT_PIXELS.get(column.name, 0), min(header, 150)) + PADDING_PIXELS
    label = laid_out.with_unit(column, column.label) + (SORTED[True] if column.name == sorted_by else "")
    widest = text_pixels(label)
    if column.format != "flag":
        largest = frame[column.name].astype("float64").abs().max() / laid_out.factor(column)
        number = f"{largest if largest == largest else 0:,.{laid_out.digits.get(column.name, 3)}f}"
        ends = {"change": ("+", ""), "ratio": ("", "×"), "share": ("", "0 %")}  # shares are shown times 100
        widest = max(widest, text_pixels(number.join(ends.get(column.format, ("", "")))))
    return int(widest) + PADDING_PIXELS + 2


def config(column: Shown, laid_out: Layout, sorted_by: bool | None) -> Any:
    """Streamlit's column configuration; `sorted_by` tells whether the table is sorted by it: falling, rising or not."""
    label = laid_out.with_unit(column, column.label) + ("" if sorted_by is None else SORTED[sorted_by])
    width = laid_out.pixels[column.name]
    pinned = column.name in laid_out.pinned or None
    if column.format == "text":
        return st.column_config.TextColumn(label, help=column.help, width=width, pinned=pinned)
    if column.format == "flag":
        return st.column_config.CheckboxColumn(label, help=column.help, width=width)
    digits = laid_out.digits.get(column.name, 0)
    formats = {"number": f"%,.{digits}f", "change": f"%+,.{digits}f", "ratio": "%.3f×", "share": "%.1f %%"}
    return st.column_config.NumberColumn(label, help=column.help, format=formats[column.format], width=width)
