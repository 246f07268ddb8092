"""Long tables: columns named and formatted by what `schema.py` says of them, sorted by a click on a header.

A click sorts here and not in the browser, so that the order is known: the CSV has it, the address keeps it, and it goes
over all rows where the browser only has those of one page.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from tfcompare import schema
from tfcompare.charts import style
from tfcompare.export.csv import for_spreadsheet
from tfcompare.schema import Column
from tfcompare.units import bytes_scale

PAGE_ROWS = 500
ROW_PIXELS = 35
VISIBLE_ROWS = 15
MISSING = "–"
PAGE_PIXELS = 950
"""The width of a table in a window of 1440."""

TEXT_PIXELS = {
    "op_type": 150,
    "op_type_candidate": 150,
    "op_name_candidate": 400,
    "host_or_device": 70,
    "host": 120,
    "op_name": 220,
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
    "verdict": 76,
    "verdict_text": 112,
    "recorded": 150,
}
NAME_PIXELS = (180, 420)
KIND_PIXELS = (114, 114)
NEVER_CUT = ("kind",)
"""Texts that fit where an estimate by their letters says they do not."""

SHORT_NAME_PIXELS = {"pipeline": 140, "iterator": 140, "name": 220}
"""What such names need at most, where a table begins with them."""

DIGIT_PIXELS = 7.2
LETTER_PIXELS = 7.0
MARKER_PIXELS = 40
MOST_DIGITS = 4
MOST_DIGITS_OF_COUNTS = 2

SORTED = {True: " ▼", False: " ▲"}

ROLES = {"baseline": "Baseline", "candidate": "Candidate", "delta": "Change", "ratio": "Ratio"}
"""What the last part of a diff's column name says, as a label."""

SHORT_LABELS = {"host_or_device": "Where", "data_type": "Type"}

OF_A_DIFF = {
    c.name: c
    for c in (
        Column("candidate", "str", "key", "", "Run", "The candidate that the row is about."),
        Column("scope", "str", "key", "", "Name scope", "The names of the ops up to their last `/`."),
        Column(
            "status", "str", "text", "", "Status", "`matched`, or on which side alone the row is: `added`, `removed`."
        ),
        Column(
            "match",
            "str",
            "text",
            "",
            "Match",
            "How the row was paired: `exact` name, `canonical` (numbered anew), `structural` (same place, other name "
            "or done otherwise), `probable` (a guess).",
        ),
        Column(
            "interval_low",
            "float64",
            "level",
            "",
            "Interval from",
            "Lower end of the 95 % interval of the ratio; empty where it was not tested.",
        ),
        Column(
            "interval_high",
            "float64",
            "level",
            "",
            "Interval to",
            "Upper end of the 95 % interval of the ratio; empty where it was not tested.",
        ),
        Column("verdict", "str", "text", "", "Verdict", "Whether the difference is real, as far as it can be told."),
        Column("rank", "Int64", "level", "", "Rank", "Place among the run's ops: device before host, by self time."),
        Column("avg_time_us", "float64", "mean", "µs", "Average time", "Total time ÷ occurrences."),
        Column("avg_self_time_us", "float64", "mean", "µs", "Average self time", "Self time ÷ occurrences."),
        Column("self_share", "float64", "level", "share", "Share", "Share of the self time on host, or on device."),
        Column(
            "input_self_share",
            "float64",
            "level",
            "share",
            "Self time, share",
            "Share of the self time of all input ops.",
        ),
        Column(
            "input_total_share",
            "float64",
            "level",
            "share",
            "Total time, share",
            "Total time as a share of the self time of all input ops: with what runs within, so they add up to more.",
        ),
        Column("time_rank", "Int64", "level", "", "Rank", "Place in the run by total time, 1 is the longest."),
        Column("time_share", "float64", "level", "share", "Share", "Share of the run's kernel time."),
        Column(
            "cumulative_time_share",
            "float64",
            "level",
            "share",
            "Cumulative share",
            "Share of the run's kernel time in this row and those that take longer.",
        ),
        Column(
            "cumulative_share", "float64", "level", "share", "Cumulative share", "Share of this op and all above it."
        ),
    )
}
"""Columns that a diff, or TensorBoard's order, adds to those of a table."""

Format = Literal["text", "flag", "number", "change", "ratio", "share"]


@dataclass(frozen=True)
class Shown:
    """How a column is shown: `heading` stands above neighbours that share it, `label` above the column itself."""

    name: str
    heading: str
    label: str
    help: str
    format: Format
    unit: str = ""

    @property
    def is_time(self) -> bool:
        """Whether it is shown in a unit of time."""
        return self.unit == "µs"

    @property
    def is_cost(self) -> bool:
        """Whether less of it is better."""
        return self.unit in ("µs", "bytes")


def shown(name: str, table: schema.Table) -> Shown:
    """How the column `name` of a diff of `table`, or of the table itself, is shown; raises `Unknown`."""
    base, per, role = _parts(name, table)
    column = OF_A_DIFF.get(base) or table.column(base)
    unit = "" if column.unit == "share" else column.unit
    unit = f"{unit}/step" if unit and per else "per step" if per else unit
    name_and_unit = f"{column.label} ({unit})" if unit else column.label
    if not column.is_number and column.kind not in ("flag", "time_point"):
        label = SHORT_LABELS.get(name, column.label)
        label = f"{label}, candidate" if role == "candidate" and column.kind == "key" else label
        if column.dtype != "str":
            return Shown(name, "", f"{label} ({unit})" if unit else label, column.meaning, "number", column.unit)
        return Shown(name, "", label, column.meaning, "text")
    if not role:
        return Shown(name, "", name_and_unit, column.meaning, _format(column, role), column.unit)
    return Shown(name, name_and_unit, ROLES[role], column.meaning, _format(column, role), column.unit)


def _parts(name: str, table: schema.Table) -> tuple[str, bool, str]:
    """(the column's own name, whether it is per step, `baseline`, `candidate`, `delta`, `ratio` or nothing)."""
    known = {*OF_A_DIFF, *table.column_names}
    if name in known:
        return name, False, ""
    base, _, role = name.rpartition("_")
    if role not in ROLES:
        base, role = name, ""
    return base.removesuffix("_per_step"), base.endswith("_per_step"), role


def _format(column: Column, role: str) -> Format:
    if column.kind == "flag":
        return "flag"
    if role == "ratio":
        return "ratio"
    if column.unit == "share":
        return "share"
    return "change" if role == "delta" else "number"


def decimals(values: pd.DataFrame) -> int:
    """Digits after the point that let the largest of some numbers and most small ones be read, the same for all."""
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size or bool((numbers == np.round(numbers)).all()):
        return 0
    return int(np.clip(5 - np.floor(np.log10(max(float(np.abs(numbers).max()), 1e-3))), 1, MOST_DIGITS))


@dataclass(frozen=True)
class Layout:
    """How wide each column is, how many digits its numbers have after the point, and the unit of those in bytes."""

    pixels: dict[str, int]
    digits: dict[str, int]
    scales: dict[str, tuple[str, float]]

    def factor(self, column: Shown) -> float:
        """What the column's values are divided by."""
        return self.scales[column.name][1] if column.name in self.scales else 1.0

    def with_unit(self, column: Shown, text: str) -> str:
        """The heading or label of a column in the unit that its values are shown in."""
        if column.name not in self.scales:
            return text
        return text.replace(f"({column.unit}", f"({self.scales[column.name][0]}{column.unit.removeprefix('bytes')}")


def layout(frame: pd.DataFrame, columns: Sequence[Shown]) -> Layout:
    """Columns under one heading have the same digits; the first column, of names, takes the width that is left.

    Where next to nothing is left the table is scrolled sideways anyway, and names are as wide as they like.
    """
    of_heading: dict[str, list[str]] = {}
    for column in columns:
        if column.format in ("number", "change"):
            of_heading.setdefault(column.heading or column.name, []).append(column.name)
    digits: dict[str, int] = {}
    scales: dict[str, tuple[str, float]] = {}
    units = {column.name: column.unit for column in columns}
    for names in of_heading.values():
        values = frame[names]
        if units[names[0]] in ("bytes", "bytes/s"):
            scale = bytes_scale(_largest(values))
            scales |= dict.fromkeys(names, scale)
            values = values / scale[1]
        most = MOST_DIGITS if units[names[0]] == "µs" else MOST_DIGITS_OF_COUNTS
        digits |= dict.fromkeys(names, min(decimals(values), most))
    for column in columns:  # stands under the same heading, in which the unit is named
        if column.format == "ratio" and (beside := of_heading.get(column.heading)) and beside[0] in scales:
            scales[column.name] = (scales[beside[0]][0], 1.0)
    first, *others = columns
    laid_out = Layout({}, digits, scales)
    pixels = {column.name: _pixels(frame, column, laid_out) for column in others}
    left = PAGE_PIXELS - MARKER_PIXELS - sum(pixels.values())
    least, most = KIND_PIXELS if first.name == "kind" else NAME_PIXELS
    most = SHORT_NAME_PIXELS.get(first.name, most)
    return replace(laid_out, pixels=pixels | {first.name: min(left, most) if left >= least else most})


def _largest(values: pd.DataFrame) -> float:
    """The largest of the numbers, signs aside; 0 where there is none."""
    numbers = np.abs(values.to_numpy(dtype=np.float64, na_value=np.nan))
    numbers = numbers[np.isfinite(numbers)]
    return float(numbers.max()) if numbers.size else 0.0


def _pixels(frame: pd.DataFrame, column: Shown, laid_out: Layout) -> int:
    header = int(len(column.label + SORTED[True]) * DIGIT_PIXELS)
    if column.format == "text":
        return max(TEXT_PIXELS.get(column.name, 0), min(header, 150)) + 16
    digits = laid_out.digits
    if column.format in ("number", "change"):
        largest = frame[column.name].astype("float64").abs().max() / laid_out.factor(column)
        text = f"+{largest if largest == largest else 0:,.{digits[column.name]}f}"
        header = max(header, int(len(text) * DIGIT_PIXELS))
    return header + 20


def config(column: Shown, laid_out: Layout, sorted_by: bool | None) -> Any:
    """Streamlit's column configuration; `sorted_by` tells whether the table is sorted by it: falling, rising or not."""
    label = laid_out.with_unit(column, column.label) + ("" if sorted_by is None else SORTED[sorted_by])
    width = laid_out.pixels[column.name]
    if column.format == "text":
        return st.column_config.TextColumn(label, help=column.help, width=width)
    if column.format == "flag":
        return st.column_config.CheckboxColumn(label, help=column.help, width=width)
    digits = laid_out.digits.get(column.name, 0)
    formats = {"number": f"%,.{digits}f", "change": f"%+,.{digits}f", "ratio": "%.3f×", "share": "%.1f %%"}
    return st.column_config.NumberColumn(label, help=column.help, format=formats[column.format], width=width)


@dataclass(frozen=True)
class Order:
    """What a table is sorted by; no column: as the rows come."""

    column: str | None = None
    falling: bool = True

    @classmethod
    def from_text(cls, text: str, columns: Sequence[str]) -> Order:
        """The order that an address names: a column, or `-` and a column; the rows' own for any other text."""
        column = text.removeprefix("-")
        return cls(column, text.startswith("-")) if column in columns else cls()

    def to_text(self) -> str:
        """As `from_text` reads it."""
        return f"{'-' if self.falling else ''}{self.column}" if self.column else ""

    def after_click(self, column: str, first_falling: bool) -> Order:
        """A click sorts, a second one the other way round, a third one goes back to the rows' own order."""
        if column != self.column:
            return Order(column, first_falling)
        return Order(column, not first_falling) if self.falling == first_falling else Order()

    def of(self, frame: pd.DataFrame, readings: Mapping[str, str] | None = None) -> pd.DataFrame:
        """The rows in this order, texts by their readings where they have one, what is missing last."""
        if self.column is None:
            return frame.reset_index(drop=True)
        return frame.sort_values(
            self.column,
            ascending=not self.falling,
            kind="stable",
            na_position="last",
            ignore_index=True,
            key=lambda cells: cells.replace(dict(readings)) if readings and cells.dtype == "str" else cells,
        )


def sortable(
    frame: pd.DataFrame,
    columns: Sequence[Shown],
    *,
    key: str,
    row_name: Callable[[pd.DataFrame], pd.Series] | None = None,
    address: str = "",
    readings: Mapping[str, str] | None = None,
) -> tuple[pd.DataFrame, str | None]:
    """Show `frame`; returns its rows in the order shown, and the name of the row that is chosen.

    `row_name` gives each row a name that does not depend on the order; without it no row can be chosen. Order and
    choice are kept in the page's address as `sort` and `row`, behind `address` where a page has several tables.
    `readings` are what texts are shown as, and sorted by, that are too long to be read.
    """
    names = [column.name for column in columns]
    order = Order.from_text(st.query_params.get(f"{address}sort", ""), names)
    laid_out = layout(frame, columns)
    rows = order.of(frame, readings)
    page = _page(rows, key)
    row_names = row_name(page).tolist() if row_name else []
    chosen = st.query_params.get(f"{address}row")
    position = [row_names.index(chosen)] if chosen in row_names else []
    # A grid of its own for each order: in the browser, a clicked header stays chosen for as long as its grid lives.
    grid = f"{key} {order.to_text()}"
    st.session_state[grid] = {"selection": {"rows": position, "columns": []}}
    st.dataframe(
        styled(page, columns, laid_out, readings),
        key=grid,
        hide_index=True,
        height=min(len(page), VISIBLE_ROWS) * ROW_PIXELS + 2 * ROW_PIXELS + 2,
        placeholder=MISSING,
        column_config=cast(Any, _configs(columns, laid_out, order)),  # by position: the annotation knows names only
        on_select=partial(_on_select, grid, columns, order, row_names, address),
        selection_mode=["single-row", "single-column"] if row_name else "single-column",
    )
    return rows, chosen if row_name is not None else None


def _page(rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows to send to the browser: all of a short table, one page of a long one."""
    if len(rows) <= PAGE_ROWS:
        return rows
    pages = -(-len(rows) // PAGE_ROWS)
    number = int(st.session_state.get(f"{key}_page", 1))
    first = (min(number, pages) - 1) * PAGE_ROWS
    last = min(first + PAGE_ROWS, len(rows))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Rows {first + 1:,} to {last:,} of {len(rows):,}")
        st.pagination(pages, key=f"{key}_page", width="stretch")
    return rows.iloc[first:last].reset_index(drop=True)


def styled(
    page: pd.DataFrame, columns: Sequence[Shown], laid_out: Layout, readings: Mapping[str, str] | None = None
) -> pd.DataFrame | Styler:
    """The page with two levels of headers, and changes of time in the colours of better and worse.

    Texts are cut to what fits for the eye alone: a double click on a cell shows the whole.
    """
    cells = for_spreadsheet(page[[column.name for column in columns]])
    shares = [column.name for column in columns if column.format == "share"]
    cells[shares] *= 100  # the format `percent` drops zeros at the end, so that the points would not stand in line
    short: dict[str, dict[str, str]] = {}
    for column in columns:
        if column.name in laid_out.scales:
            cells[column.name] = cells[column.name].astype("float64") / laid_out.factor(column)
        elif column.format == "text" and column.name not in NEVER_CUT:
            fitting = int((laid_out.pixels[column.name] - 16) / LETTER_PIXELS)
            short[column.name] = _shortened(cells[column.name], page[column.name], fitting, readings or {})
    headings = {column.name: laid_out.with_unit(column, column.heading) for column in columns}
    cells.columns = pd.MultiIndex.from_tuples([(headings[column.name], column.name) for column in columns])
    changes: list[Hashable] = [(headings[c.name], c.name) for c in columns if c.format == "change" and c.is_cost]
    formats = {(headings[name], name): partial(_look_up, texts) for name, texts in short.items() if texts}
    if not changes and not formats:
        return cells
    return cells.style.apply(_change_colours, subset=changes).format(cast(Any, formats))


def _shortened(cells: pd.Series, texts: pd.Series, letters: int, readings: Mapping[str, str]) -> dict[str, str]:
    """What is shown in place of each text that does not fit as it is."""
    whole = texts.dropna().astype("str").drop_duplicates()
    short = style.shorten_apart([readings.get(text, text) for text in whole], letters)
    return {cell: label for cell, text, label in zip(cells[whole.index], whole, short, strict=True) if label != text}


def _look_up(texts: Mapping[str, str], text: str) -> str:
    return texts.get(text, text)


def _change_colours(changes: pd.Series) -> list[str]:
    colours = np.select([changes < 0, changes > 0], [f"color: {style.BETTER}", f"color: {style.WORSE}"], "")
    return [str(colour) for colour in colours]


def _configs(columns: Sequence[Shown], laid_out: Layout, order: Order) -> dict[int, Any]:
    """By position, counted from 1 since the hidden index is 0: with two levels of headers names are not unique."""
    return {
        position: config(column, laid_out, order.falling if order.column == column.name else None)
        for position, column in enumerate(columns, 1)
    }


def _on_select(grid: str, columns: Sequence[Shown], order: Order, row_names: Sequence[str], address: str) -> None:
    selection = st.session_state[grid]["selection"]
    sort, row = f"{address}sort", f"{address}row"
    if selection["columns"]:
        clicked = next(column for column in columns if column.name == selection["columns"][0])
        st.query_params[sort] = order.after_click(clicked.name, clicked.format != "text").to_text()
    elif selection["rows"]:
        st.query_params[row] = row_names[selection["rows"][0]]
    else:
        st.query_params.pop(row, None)
    if not st.query_params.get(sort):
        st.query_params.pop(sort, None)
