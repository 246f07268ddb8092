"""Print a summary of one run, or one of its tables.

RUN is a profile file, a run folder, or a logdir that holds a single run, or several captures of one program by their
names (run-1, run-2, …); with --store, a run of that store. Of several captures, tables are of the first. Without
TABLE, the summary says how long steps take and what they consist of, the longest ops, peak memory, what to try next,
what was captured, and which tables the run has. Of `tf_data`, the slowest execution of each pipeline is
printed. IDLE, the time in which no op ran, is left out of tables for reading.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.diff_text import KEY_RANKS
from tfcompare.commands.shared.options import add_host, add_steps, add_store, question
from tfcompare.commands.shared.output import add_format, add_idle, emit, without_idle_rows
from tfcompare.commands.shared.progress import Reading, answered, notes
from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_markdown
from tfcompare.render.text_table import TextColumn, column_scale, number_column, text_column

if TYPE_CHECKING:
    import pandas as pd

SUMMARY = "print a summary of one run, or one of its tables"
EXAMPLES = """examples:
  tfcompare show logs/before
  tfcompare show logs/before op_stats
  tfcompare show logs/before steps --format csv"""
_METRIC_RANK, _TIME_POINT_RANK, _EMPTY_RANK = 10, 50, 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("place", metavar="RUN", help="the run")
    parser.add_argument(
        "table", metavar="TABLE", nargs="?", help=f"one of: {', '.join(schema.TABLES)} (default: a summary)"
    )
    add_host(parser)
    add_idle(parser)
    add_store(parser)
    add_steps(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the summary or the table."""
    if arguments.table is None:
        return _print_summary(arguments)
    from tfcompare.loading import first_captures

    table = schema.table(arguments.table)
    (one,), remarks = first_captures(question(arguments, arguments.place), Reading())
    notes(remarks)
    is_text = arguments.format == "table"
    frame = without_idle_rows(one.table(table.name, host=arguments.host), arguments, for_reading=is_text)
    if "execution" in frame:
        frame = frame[frame["execution"] == 0]
    if table.headline is not None:
        frame = frame.sort_values(table.headline, ascending=False, kind="stable")
    if is_text and frame.empty:
        print(f"{table.name} has no rows: the profile of {one.name} holds nothing for it.")
        return 0
    emit(frame, arguments, lambda shown: as_text(shown, table))
    return 0


def _print_summary(arguments: argparse.Namespace) -> int:
    from tfcompare.render.shown import Shown
    from tfcompare.render.terminal import as_lines
    from tfcompare.render.text_table import terminal_width
    from tfcompare.tools.environment import environment
    from tfcompare.views.blocks import Block, Facts, Text

    if arguments.format != "table":
        raise TfcompareError(
            f"--format {arguments.format} needs a TABLE, since the summary is text; must be one of: "
            f"{', '.join(schema.TABLES)}"
        )
    comparison = answered(question(arguments, arguments.place))
    one = comparison.baseline
    names = [name for name in schema.TABLES if len(one.table(name, host=arguments.host))]
    width = None if arguments.all_columns else terminal_width()
    print(Shown.of(comparison, "overview", top=arguments.limit, short=True).to("table", width=width))
    about: list[Block] = [
        Facts(["Capture", one.name], [[fact.label, fact.values[0]] for fact in environment([one.info])]),
        Text(f"Tables (`tfcompare show RUN TABLE`): {', '.join(map(as_markdown, names))}."),
    ]
    print(as_lines(about, width))
    return 0


def as_text(frame: pd.DataFrame, table: schema.Table) -> list[TextColumn]:
    """The table's columns for a terminal: a single row is transposed, and the host omitted if there is only one."""
    if len(table.keys) == 1 and len(frame) == 1:
        return _transposed(frame, table)
    columns = [column for column in table.columns if not (column.name == "host" and frame["host"].nunique() == 1)]
    return [replace(_column(frame, column), rank=_rank(frame, column, table)) for column in columns]


def _rank(frame: pd.DataFrame, column: schema.Column, table: schema.Table) -> int:
    """Columns that are empty or 0 in all rows are dropped first, then time points, then the last of the other metrics.

    The headline metric is never dropped.
    """
    if column.name == table.headline:
        return 0
    if not frame[column.name].fillna(0).astype(bool).any():
        return _EMPTY_RANK
    if column.kind == "time_point":
        return _TIME_POINT_RANK
    return KEY_RANKS.get(column.name, 0) if column.kind == "key" else _METRIC_RANK + table.columns.index(column)


def _column(frame: pd.DataFrame, column: schema.Column) -> TextColumn:
    values = frame[column.name]
    if column.unit in ("µs", "ms", "bytes") or column.is_number:
        shown = column_scale(column.unit, values)
        header = f"{column.label.lower()} ({shown.unit})" if shown.unit else column.label.lower()
        return number_column(header, values * shown.factor, shown.decimals)
    if column.dtype == "bool":
        return text_column(column.label.lower(), ["yes" if v else "no" for v in values])
    return text_column(column.label.lower(), values)


def _transposed(frame: pd.DataFrame, table: schema.Table) -> list[TextColumn]:
    cells = [_column(frame, c) for c in table.columns]
    return [TextColumn("", [c.header for c in cells]), TextColumn("value", [c.cells[0] for c in cells])]
