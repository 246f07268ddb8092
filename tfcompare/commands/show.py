"""Print one table of one run.

RUN is a profile file, a run folder, or a logdir that holds a single run; with --store, a run of that store. Of
`tf_data`, the slowest execution of each pipeline is printed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.output import add_format, emit
from tfcompare.commands.reading import add_steps, add_store, chosen_steps, load_runs
from tfcompare.commands.text_table import TextColumn, number_column, scale, text_column

if TYPE_CHECKING:
    import pandas as pd

SUMMARY = "print a table of one run"
EXAMPLES = "examples:\n  tfcompare show logs/before op_stats --no-idle\n  tfcompare show logs/before steps --format csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("place", metavar="RUN", help="the run")
    parser.add_argument("table", metavar="TABLE", help=f"one of: {', '.join(schema.TABLES)}")
    parser.add_argument("--host", metavar="H", help="of this host only (default: all hosts)")
    parser.add_argument("--no-idle", action="store_true", help="leave out the time in which no op ran")
    add_store(parser)
    add_steps(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    table = schema.table(arguments.table)
    (one,) = load_runs([arguments.place], arguments.store, chosen_steps(arguments))
    frame = one.table(table.name, host=arguments.host)
    if arguments.no_idle and "op_type" in frame:
        frame = frame[frame["op_type"] != schema.IDLE]
    if "execution" in frame:
        frame = frame[frame["execution"] == 0]
    if table.headline is not None:
        frame = frame.sort_values(table.headline, ascending=False, kind="stable")
    emit(frame, arguments, lambda shown: as_text(shown, table))
    return 0


def as_text(frame: pd.DataFrame, table: schema.Table) -> list[TextColumn]:
    """The table's columns for a terminal: a single row is transposed, and the host omitted if there is only one."""
    if len(table.keys) == 1 and len(frame) == 1:
        return _transposed(frame, table)
    return [_column(frame, column) for column in table.columns if not _is_one_host(frame, column)]


def _is_one_host(frame: pd.DataFrame, column: schema.Column) -> bool:
    return column.name == "host" and frame["host"].nunique() == 1


def _column(frame: pd.DataFrame, column: schema.Column) -> TextColumn:
    values = frame[column.name]
    if column.unit in ("µs", "ms", "bytes") or column.is_number:
        shown = scale(column.unit, values)
        header = f"{column.label.lower()} ({shown.unit})" if shown.unit else column.label.lower()
        return number_column(header, values * shown.factor, shown.decimals)
    if column.dtype == "bool":
        return text_column(column.label.lower(), ["yes" if v else "no" for v in values])
    return text_column(column.label.lower(), values)


def _transposed(frame: pd.DataFrame, table: schema.Table) -> list[TextColumn]:
    cells = [_column(frame, c) for c in table.columns]
    return [TextColumn("", [c.header for c in cells]), TextColumn("value", [c.cells[0] for c in cells])]
