"""Print what changed from a baseline to one or more candidates, largest change first.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run, or several
captures of one program by their names (run-1, run-2, …); with --store, a run of that store. Differences are candidate
minus baseline, ratios candidate divided by baseline; lower is better for times and bytes.

Without --table, the output is a summary: the verdict on the step time, key figures, the parts of the average step, the
ops with the largest changes, and what to try next. IDLE, the time in which no op ran, is left out of tables for
reading.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.shared.options import PER, add_options, comparison_question
from tfcompare.commands.shared.output import add_format, add_idle, emit, note, print_blocks, without_idle_rows
from tfcompare.commands.shared.progress import answered, notes
from tfcompare.errors import Unknown
from tfcompare.render.text_table import terminal_width
from tfcompare.views.csv_files import csv_text

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.comparison import Comparison

SUMMARY = "print what changed between runs"
DEFAULT_TABLE = "op_stats"
OCCURRENCE = "occurrence"
EXAMPLES = """examples:
  tfcompare diff logs/before logs/after
  tfcompare diff logs/before logs/after --table op_stats --format csv
  tfcompare diff logs/before logs/after logs/later --out changes/"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("baseline", metavar="BASELINE", help="the run to compare with")
    parser.add_argument("candidates", metavar="CANDIDATE", nargs="+", help="the runs to compare with it")
    tables = ", ".join(diffable())
    meaning = f"one of: {tables} (default: a summary, and {DEFAULT_TABLE} as csv or json)"
    parser.add_argument("--table", metavar="T", help=meaning)
    add_idle(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="write a CSV file for each table to this folder")
    add_options(parser, (*PER, OCCURRENCE))
    add_format(parser)


def diffable() -> list[str]:
    """Names of the tables that have a diff."""
    return [t.name for t in schema.TABLES.values() if t.has_diff]


def run(arguments: argparse.Namespace) -> int:
    """Print the diff, or write all diffs to files with `--out`; with `--table` too, do both."""
    if arguments.table is not None and arguments.table not in diffable():
        raise Unknown("table with a diff", arguments.table, diffable())
    asked = comparison_question(arguments)
    asked = replace(asked, per="run") if arguments.per == OCCURRENCE else asked
    comparison = answered(asked, "tfcompare.views.steps.view")
    if arguments.out is not None:
        _write_all(comparison, arguments)
    if arguments.out is None or arguments.table is not None:
        _print(comparison, arguments)
    if not _is_summary(arguments):  # which has them among its caveats
        notes(comparison.notes)
    return 0


def _is_summary(arguments: argparse.Namespace) -> bool:
    is_of_ops = arguments.table is not None or arguments.per == OCCURRENCE
    return arguments.format == "table" and arguments.out is None and not is_of_ops


def _print(comparison: Comparison, arguments: argparse.Namespace) -> None:
    name = arguments.table or DEFAULT_TABLE
    if arguments.format != "table":
        emit(_rows(comparison, name, arguments), arguments)
        return
    if _is_summary(arguments):
        _print_summary(comparison, arguments)
        return
    from tfcompare.compare.pairs import pairs_of
    from tfcompare.views.blocks import Section
    from tfcompare.views.schema_tables import diff_table

    per_occurrence, pairs = _is_per_occurrence(name, arguments), pairs_of(comparison, by_name=True)
    sections = []
    for pair in pairs:
        blocks = list(diff_table(pair, name, idle=arguments.idle, per_occurrence=per_occurrence))
        sections.append(Section(pair.candidate.name if len(pairs) > 1 else "", blocks))
    print_blocks(sections, arguments)


def _print_summary(comparison: Comparison, arguments: argparse.Namespace) -> None:
    from tfcompare.render.shown import Shown
    from tfcompare.views.blocks import Text

    if comparison.is_single:
        print_blocks([Text(comparison.headline())], arguments)
        print()
    width = None if arguments.all_columns else terminal_width()
    print(Shown.of(comparison, "overview", top=arguments.limit, short=True).to("table", width=width), end="")


def _rows(comparison: Comparison, name: str, arguments: argparse.Namespace) -> pd.DataFrame:
    """The rows for a file."""
    from tfcompare.views.columns import in_words

    frame = comparison.per_occurrence(name) if _is_per_occurrence(name, arguments) else comparison.table(name)
    return without_idle_rows(in_words(frame), arguments, for_reading=False)


def _is_per_occurrence(name: str, arguments: argparse.Namespace) -> bool:
    return arguments.per == OCCURRENCE and "occurrences" in schema.table(name).column_names


def _write_all(comparison: Comparison, arguments: argparse.Namespace) -> None:
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    for name in diffable():
        frame = _rows(comparison, name, arguments)
        path = folder / f"{name}.csv"
        path.write_text(csv_text(frame), encoding="utf-8", newline="")
        note(f"wrote {path} ({len(frame):,} rows)")
