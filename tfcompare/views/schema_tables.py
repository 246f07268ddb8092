"""Any table of `schema`, whole: of one run, or what changed in it between two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import ADDED
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.pair import Pair
from tfcompare.text import as_code
from tfcompare.units import MISSING, format_percent, format_value
from tfcompare.views.answer import verdict
from tfcompare.views.blocks import Block, Facts, Table, Text
from tfcompare.views.columns import NAMES
from tfcompare.views.ops.figures import outside_of_steps
from tfcompare.views.view import CHANGE, by_role, largest_first

_PLACES = ("host", "device", "program", "host_or_device", "core_type")
"""Keys that say where a row is from: after what names it, and only if rows differ in them."""
_DETAILS = ("execution", "iterator_id", "block_dim", "grid_dim", "registers_per_thread", "shared_memory_bytes")
"""Keys that say least: they come last."""


def run_table(rows: pd.DataFrame, table: schema.Table, run: str) -> Block:
    """Rows of a table of the run of that name, with all columns; the one row of a table on runs as lines."""
    if len(table.keys) == 1 and len(rows) == 1:
        return _lines(table, [run], [[column.name for column in table.columns]], rows)

    def importance(metric: schema.Column) -> tuple[bool, bool, bool]:
        is_empty = not rows[metric.name].fillna(0).astype(bool).any()
        return metric.name != table.headline, is_empty, metric.kind == "time_point"

    keys, details = _keys(table, rows)
    return Table(
        table,
        table.name,
        rows,
        [*keys, *(column.name for column in sorted(table.metrics, key=importance)), *details],
        nothing=f"{as_code(table.name)} has no rows: the profile of {as_code(run)} holds nothing for it.",
    )


def diff_table(pair: Pair, name: str, *, idle: bool, per_occurrence: bool) -> Iterator[Block]:
    """The verdict on the pair, how much of the table of that name is matched, and its diff."""
    table = schema.table(name)
    yield verdict(pair)
    rows = pair.rows_per_occurrence(pair.diff(name), name) if per_occurrence else pair.diff(name)
    rows = rows if idle else without_idle(rows)
    coverage = _coverage(pair, table, per_occurrence=per_occurrence)
    yield Text(coverage if coverage or len(rows) else f"{as_code(name)} has no rows.")
    if rows.empty:
        return
    if table.keys == ("run",):
        sides = ["baseline"] if pair.is_single else list(schema.SIDES)
        yield _lines(table, pair.headings, [[f"{one.name}_{side}" for one in table.metrics] for side in sides], rows)
        return
    keys, details = _keys(table, rows)
    if "long_name_baseline" in rows:
        name_of_row = rows["long_name_baseline"].where(rows["status"] != ADDED, rows["long_name_candidate"])
        rows, keys = rows.assign(long_name=name_of_row), [*keys, "long_name"]
    main = table.headline or next(metric.name for metric in table.metrics if metric.is_number)
    counts = [one.name for one in table.metrics if one.kind == "sum" and not one.unit and one.name != main]
    of_counts = [name for count in counts for name in by_role(count)]
    yield Table(
        table,
        name,
        largest_first(pair, table, rows),
        [*keys, *by_role(main, CHANGE), "verdict", "match", *of_counts, *details],
        is_alone=pair.is_single,
        sums_per=pair.sums_per(per_occurrence=per_occurrence),
    )


def _keys(table: schema.Table, rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    """(The keys that say what a row is, its name first; the `_DETAILS`)."""
    found = [key for key in table.keys if key not in _PLACES or rows[key].nunique() > 1]
    keys = [key for key in found if key not in _DETAILS]
    return sorted(keys, key=lambda key: (key in _PLACES, key not in NAMES)), [key for key in found if key in _DETAILS]


def _lines(table: schema.Table, header: Sequence[str], sides: Sequence[Sequence[str]], rows: pd.DataFrame) -> Facts:
    """The first row as a line for each column, with its cells of these names for each of the `sides`."""
    row, columns = rows.iloc[0], [table.column(name.removesuffix("_baseline")) for name in sides[0]]
    cells = [[_text(row[name], column) for name, column in zip(names, columns, strict=True)] for names in sides]
    return Facts(["", *header], list(zip([column.label for column in columns], *cells, strict=True)))


def _text(value: Any, column: schema.Column) -> str:
    if pd.isna(value):
        return MISSING
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return format_value(value, column.unit) if column.is_number else str(value) or MISSING


def _coverage(pair: Pair, table: schema.Table, *, per_occurrence: bool) -> str:
    """The matched share of a table's headline metric, what figures are per, and what ran outside of steps; empty for
    metrics such as means."""
    if table.headline is None or table.column(table.headline).kind not in ("sum", "level"):
        return ""
    headline = table.column(table.headline)
    matched, exact = (float(pair.coverage(table.name).iloc[0][share]) for share in ("matched_share", "exact_share"))
    if math.isnan(matched) and not pair.knows_devices:
        return (
            f"What ran on devices is not compared: a run has no record of it. `show RUN {table.name}` has the other's."
        )
    if math.isnan(matched):
        return f"Neither run's profile has anything for {as_code(table.name)}."
    what = "memory" if headline.unit == "bytes" else headline.label.lower()
    text = f"Matched {what}: {format_percent(matched)} ({format_percent(exact)} exactly)."
    if headline.kind == "sum":
        text += f" Figures are per {'occurrence' if per_occurrence else pair.per_what}."
    is_in_steps = table.name in schema.STEP_TABLES and not per_occurrence
    return " ".join(filter(None, [text, outside_of_steps(pair, table.name) if is_in_steps else ""]))
