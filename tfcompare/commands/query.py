"""Query the tables of runs in SQL.

The statement is one SELECT (or WITH, FROM, DESCRIBE, SHOW, SUMMARIZE, …) in DuckDB's dialect. It sees the tables that
`show` prints, with the rows of all runs and a first column `run`, and the table `runs` with one row per run: the
first has the role `baseline`, the others `candidate`. Of several runs there are also the diffs, such as
`op_stats_diff`: the first run against each other, with rows paired, changes and verdicts as `diff` prints them. A
folder of several runs stands for all of them, in the order of capture. `spans` has the events of the timeline,
`hlo_edges` what feeds each instruction of XLA programs. `SHOW TABLES` lists the tables, `DESCRIBE op_stats` the columns
of one. A query cannot read anything else, or write.

Exit status: 0 done, 2 the query or a run is bad.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tfcompare.commands.shared.options import add_steps, add_store, question
from tfcompare.commands.shared.output import FORMATS, at_least_0, emit, note, print_blocks
from tfcompare.commands.shared.progress import Reading, notes
from tfcompare.text import lines_of
from tfcompare.units import MINUS, MISSING

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.query.asking import Answer

SUMMARY = "query the tables of runs in SQL"
EXAMPLES = """examples:
  tfcompare query 'SHOW TABLES' logs/before
  tfcompare query 'SELECT run, avg(duration_us) / 1000 AS step_ms FROM steps WHERE included GROUP BY run' \\
    logs/before logs/after
  tfcompare query "FROM op_stats_diff WHERE verdict = 'slower'" logs/before logs/after
  tfcompare query "SELECT name, start_us, duration_us FROM spans WHERE step = 12 ORDER BY start_us" logs/before
  tfcompare query "SELECT from_hlo_op, shape FROM hlo_edges WHERE to_hlo_op = 'loop_add_fusion.2'" logs/before
  tfcompare query 'SELECT run, step_time_ms_mean FROM run_info' logs/
  tfcompare query 'FROM op_stats ORDER BY self_time_us DESC' logs/before --limit 20 --format csv"""

BAD_QUERY = 2
DEFAULT_SECONDS = 30.0
_MAX_SECONDS = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("sql", metavar="SQL", help="the statement, in quotes")
    meaning = "a profile file, a run folder, a logdir, or a folder of those"
    parser.add_argument("places", metavar="RUN", nargs="+", help=meaning)
    add_store(parser)
    add_steps(parser)
    meaning = "table: aligned for reading; csv, json: full precision, for programs (default: %(default)s)"
    parser.add_argument("--format", choices=FORMATS, default="table", help=meaning)
    meaning = "the maximum number of rows; 0: all (default: 0)"
    parser.add_argument("--limit", metavar="N", type=at_least_0, default=0, help=meaning)
    meaning = "limit on the processor time of the query, in seconds, without reading the runs (default: %(default)g)"
    parser.add_argument("--timeout", metavar="S", type=_seconds, default=DEFAULT_SECONDS, help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Print the result. Errors in the query are printed as DuckDB's message, on several lines."""
    from tfcompare import settings
    from tfcompare.comparison import compare
    from tfcompare.loading import runs_below
    from tfcompare.query.asking import Limits, QueryFailed, ask
    from tfcompare.query.diff_tables import DiffTables
    from tfcompare.query.tables import RunTables

    limits = Limits(arguments.timeout, settings.from_environment().query_bytes, rows=arguments.limit or None)
    runs, remarks = runs_below(question(arguments, *arguments.places), Reading())
    notes(remarks)
    diffs = DiffTables(compare(*runs)) if len(runs) > 1 else None
    tables = RunTables.of(runs, diffs)
    try:
        answer = ask(arguments.sql, tables, limits)
    except QueryFailed as error:
        note(f"tfcompare: {error}")
        return BAD_QUERY
    _print(answer, arguments)
    if answer.cut:
        note(f"the first {len(answer.frame):,} rows; there are more (--limit 0 shows all)")
    return 0


def _print(answer: Answer, arguments: argparse.Namespace) -> None:
    frame = answer.named()
    if arguments.format == "table" and answer.is_plan:
        sys.stdout.writelines(f"{lines_of(plan)}\n" for plan in frame.iloc[:, 1])
        return
    if arguments.format != "table":
        emit(frame, argparse.Namespace(format=arguments.format, limit=0))
        return
    from tfcompare.views.blocks import Facts

    numbers = [position for position, dtype in enumerate(frame.dtypes) if dtype.kind in "iuf"]
    rows = list(zip(*(_texts(frame[name]) for name in frame), strict=True))
    print_blocks([Facts(list(map(str, frame)), rows, numbers)], argparse.Namespace(limit=0, all_columns=False))


def _texts(values: pd.Series) -> list[str]:
    """The cells as they are read: numbers of a column with the same number of decimals."""
    from tfcompare.views.columns import decimals

    shown = values.map({True: "yes", False: "no"}) if values.dtype == "boolean" else values.astype("str")
    if values.dtype.kind in "iuf":
        digits = decimals(values.to_frame())
        shown = values.map(lambda value: f"{value:,.{digits}f}".replace("-", MINUS), na_action="ignore")
    return list(shown.where(values.notna(), MISSING))


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= _MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"must be more than 0 and at most {_MAX_SECONDS}; not {text!r}")
    return seconds
