"""Print a summary of one run, or one of its tables.

RUN is a profile file, a run folder, or a logdir that holds a single run, or several captures of one program by their
names (run-1, run-2, …); with --store, a run of that store. Of several captures, tables are of the first. Without
TABLE, the summary says how long steps take and what they consist of, the longest ops, peak memory, what to try next,
what was captured, and which tables the run has. Of `tf_data`, the slowest execution of each pipeline is
printed. IDLE, the time in which no op ran, is left out of tables for reading.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.shared.options import add_host, add_steps, add_store, question
from tfcompare.commands.shared.output import add_format, add_idle, emit, print_blocks, without_idle_rows
from tfcompare.commands.shared.progress import Reading, answered, notes
from tfcompare.errors import TfcompareError
from tfcompare.text import as_markdown

if TYPE_CHECKING:
    from tfcompare.run import Run

SUMMARY = "print a summary of one run, or one of its tables"
EXAMPLES = """examples:
  tfcompare show logs/before
  tfcompare show logs/before op_stats
  tfcompare show logs/before steps --format csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("place", metavar="RUN", help="the run")
    meaning = f"one of: {', '.join(schema.TABLES)} (default: a summary)"
    parser.add_argument("table", metavar="TABLE", nargs="?", help=meaning)
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
    if not is_text:
        emit(frame, arguments)
        return 0
    from tfcompare.views.schema_tables import run_table

    print_blocks([run_table(frame, table, one.name)], arguments)
    return 0


def _has_rows(run: Run, name: str, host: str | None) -> bool:
    """Whether a table has rows; the largest ones are not made for that."""
    if name == schema.SPANS.name:
        return run.info.duration_ms > 0
    if name == schema.HLO_EDGES.name:
        return run.tables.count_edges(host=host) > 0
    return len(run.table(name, host=host)) > 0


def _print_summary(arguments: argparse.Namespace) -> int:
    from tfcompare.render.shown import Shown
    from tfcompare.render.text_table import terminal_width
    from tfcompare.views.blocks import Block, Facts, Text
    from tfcompare.views.caveats import environment

    if arguments.format != "table":
        needs = "needs a TABLE, since the summary is text; must be one of"
        raise TfcompareError(f"--format {arguments.format} {needs}: {', '.join(schema.TABLES)}")
    comparison = answered(question(arguments, arguments.place))
    one = comparison.baseline
    names = [name for name in schema.TABLES if _has_rows(one, name, arguments.host)]
    width = None if arguments.all_columns else terminal_width()
    print(Shown.of(comparison, "overview", top=arguments.limit, short=True).to("table", width=width))
    about: list[Block] = [
        Facts(["Capture", one.name], [[fact.label, fact.values[0]] for fact in environment([one.info])]),
        Text(f"Tables (`tfcompare show RUN TABLE`): {', '.join(map(as_markdown, names))}."),
    ]
    print_blocks(about, arguments)
    return 0
