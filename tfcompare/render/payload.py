"""Figures, tables and timelines of a report as JSON values, for its JavaScript and for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tfcompare.text import more_rows
from tfcompare.units import MISSING, format_factor, format_percent, format_ratio, scale
from tfcompare.views.blocks import Facts, FlameGraph, Table, Timeline
from tfcompare.views.columns import MATCH_WORDS, MOST_DECIMALS, MOST_DECIMALS_OF_COUNTS, Shown, changes_of, decimals
from tfcompare.views.flame import component as flame
from tfcompare.views.verdict_marks import outcome_text, tone_of

_SCALED = ("bytes", "FLOP")
"""Units with prefixes, also per second; times stay in microseconds, as in the app."""


def figure_json(drawn: Any) -> dict[str, Any]:
    """A Plotly figure as JSON values, without its template: the report has its own."""
    figure: dict[str, Any] = json.loads(drawn.to_json())
    figure["layout"].pop("template", None)
    return figure


def table_json(table: Table) -> dict[str, Any]:
    """`name`, `title`, and `columns`: each with `label`, `heading`, `help`, `kind` (`text` or `number`), `texts` (the
    cells as shown), `values` of numbers in full precision, in the unit of `schema`, for sorting and CSV, `csv` (the
    column's name) and, of verdicts, `tones`.
    """
    numbers = [one.name for one in table.columns if one.format in ("number", "change")]
    changes = {name: changes_of(table.rows, name) for name in numbers}
    units = units_of(table.rows.assign(**changes), table.columns)
    columns = [_column(table, column, units.get(column.heading or column.name)) for column in table.columns]
    return {"name": table.name, "title": table.title, "columns": columns}


def first_rows(table: Table, most: int) -> Facts:
    """The first rows of a table as texts, where it cannot be scrolled."""
    columns = table_json(replace(table, rows=table.rows.head(most)))["columns"]
    header = [f"{one['heading']}, {one['label'].lower()}" if one["heading"] else one["label"] for one in columns]
    texts = [[text or MISSING for text in one["texts"]] for one in columns]
    more = len(table.rows) - most
    note = f"{more_rows(more)}." if more > 0 else ""
    numbers = [i for i, one in enumerate(columns) if one["kind"] == "number"]
    return Facts(header, list(zip(*texts, strict=True)), numbers, note=note)


def units_of(cells: pd.DataFrame, columns: Sequence[Shown]) -> dict[str, tuple[float, str, int]]:
    """For each group of columns with one heading: the size and name of its unit, and its decimals.

    `cells` are the cells as shown, before division by the unit; the name is empty for units without prefixes.
    """
    groups: dict[str, list[Shown]] = {}
    for column in columns:
        if column.format in ("number", "change"):
            groups.setdefault(column.heading or column.name, []).append(column)
    found = {}
    for heading, members in groups.items():
        values = cells[[one.name for one in members]]
        unit, size, name = members[0].unit.removesuffix("/s"), 1.0, ""
        if unit in _SCALED:
            chosen = scale(values.to_numpy(dtype=np.float64, na_value=np.nan).ravel().tolist(), unit)
            size, name = chosen.size, chosen.unit
        most = MOST_DECIMALS if unit == "µs" else MOST_DECIMALS_OF_COUNTS
        found[heading] = size, name, min(decimals(values / size), most)
    return found


def _column(table: Table, column: Shown, unit: tuple[float, str, int] | None) -> dict[str, Any]:
    cells = table.rows[column.name]
    label, heading = column.label, column.heading
    if unit is not None and unit[1]:
        per = "/s" if column.unit.endswith("/s") else ""
        label, heading = (text.replace(f"({column.unit}", f"({unit[1]}{per}") for text in (label, heading))
    found: dict[str, Any] = {"label": label, "heading": heading, "help": column.help}
    found["csv"] = table.name_in_file(column.name)
    if column.name == "verdict":
        rows = table.rows.to_dict("records")
        tones = [tone_of(row["verdict"], row["evidence"]) for row in rows]
        return found | {"kind": "text", "texts": [outcome_text(row) for row in rows], "tones": tones}
    if column.format in ("text", "flag"):
        words = MATCH_WORDS if column.name == "match" else {}
        texts = ["" if pd.isna(cell) else str(table.readings.get(cell, cell)) for cell in cells]
        return found | {"kind": "text", "texts": [words.get(text, text) for text in texts]}
    values = changes_of(table.rows, column.name).astype("float64").tolist()
    texts = [_text(column, value, unit) for value in values]
    finite = [value if math.isfinite(value) else None for value in values]
    return found | {"kind": "number", "texts": texts, "values": finite}


def _text(column: Shown, value: float, unit: tuple[float, str, int] | None) -> str:
    if math.isnan(value):
        return MISSING
    if column.format == "ratio":
        return format_ratio(value)
    if column.format == "factor":
        return format_factor(value)
    if column.format in ("share", "bar"):
        return format_percent(value)
    size, _, digits = unit or (1.0, "", 0)
    if not math.isfinite(value):
        return MISSING
    if column.format == "number" and 0 < value / size < 0.5 * 10.0**-digits:
        return f"<{10.0**-digits:.{digits}f}"
    sign = "+" if column.format == "change" and value else ""
    return f"{value / size:{sign},.{digits}f}".replace("-", "−")


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    """`data` and `state` with plain lists for the columns; times to the nanosecond."""
    data, state = timeline.draw()
    lists = {key: _lists(frame, 3) for key, frame in data.items() if isinstance(frame, pd.DataFrame)}
    return {"data": data | lists, "state": state}


def flame_json(graph: FlameGraph) -> dict[str, Any] | None:
    """The `data` of its drawing with plain lists for the columns, times to the picosecond; None for an empty tree."""
    drawn = flame.drawing(replace(graph, chooses=""))
    if drawn is None:
        return None
    data, ids = drawn
    return {"data": data | {"nodes": _lists(data["nodes"], 6), "selected": flame.position(graph.selected, ids)}}


def _lists(frame: pd.DataFrame, digits: int) -> dict[str, list[Any]]:
    """The columns as lists, numbers with this many digits after the point, None for those that are unknown."""
    lists = {}
    for name, column in frame.items():
        values = column.to_numpy()
        if values.dtype.kind == "f":
            exact = np.round(values.astype(np.float64), digits)
            values = exact if np.isfinite(exact).all() else exact.astype(object)
            values[~np.isfinite(exact)] = None
        lists[str(name)] = values.tolist()
    return lists
