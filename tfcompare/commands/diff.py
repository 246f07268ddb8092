"""Print what changed from a baseline to one or more candidates, largest change first.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run, or several
captures of one program by their names (run-1, run-2, …); with --store, a run of that store. Differences are candidate
minus baseline, ratios candidate divided by baseline; lower is better for times and bytes.

Without --table, the output is a summary: the verdict on the step time, the parts of the average step, what to try
next, and the ops with the largest changes. IDLE, the time in which no op ran, is left out of tables for reading.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.colour import paint
from tfcompare.commands.diff_summary import coverage_text, diff_summary, verdict_text
from tfcompare.commands.diff_text import as_text, metric_name
from tfcompare.commands.judging import add_judging
from tfcompare.commands.loaded import capture_notes, load_comparison
from tfcompare.commands.output import add_format, add_idle, emit, note, without_idle_rows
from tfcompare.commands.pairs import add_pairs
from tfcompare.commands.reading import add_steps, add_store
from tfcompare.errors import Unknown
from tfcompare.export.csv import csv_text
from tfcompare.text import text_of

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare import Comparison

SUMMARY = "print what changed between runs"
DEFAULT_TABLE = "op_stats"
TOP_CHANGES = 10
"""Rows of the summary."""
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
    parser.add_argument(
        "--table", metavar="T", help=f"one of: {tables} (default: a summary, and {DEFAULT_TABLE} as csv or json)"
    )
    parser.add_argument(
        "--per",
        choices=("step", "run", "device", OCCURRENCE),
        default="step",
        help="what sums are divided by (default: %(default)s)",
    )
    parser.add_argument("--host", metavar="H", help="only this host (default: all hosts)")
    add_idle(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="write a CSV file for each table to this folder")
    add_judging(parser)
    add_store(parser)
    add_steps(parser)
    add_pairs(parser)
    add_format(parser)


def diffable() -> list[str]:
    """Names of the tables that have a diff."""
    return [t.name for t in schema.TABLES.values() if t.has_diff]


def run(arguments: argparse.Namespace) -> int:
    """Print the diff, or write all diffs to files with `--out`; with `--table` too, do both."""
    if arguments.table is not None and arguments.table not in diffable():
        raise Unknown("table with a diff", arguments.table, diffable())
    comparison = load_comparison(arguments, "run" if arguments.per == OCCURRENCE else arguments.per)
    if arguments.out is not None:
        _write_all(comparison, arguments)
    if arguments.out is None or arguments.table is not None:
        _print(comparison, arguments)
    for remark in (*capture_notes(comparison), *comparison.notes):
        note(f"note: {remark}")
    return 0


def _print(comparison: Comparison, arguments: argparse.Namespace) -> None:
    name = arguments.table or DEFAULT_TABLE
    table = schema.table(name)
    if arguments.format != "table":
        emit(_rows(comparison, name, arguments, for_reading=False), arguments, lambda shown: as_text(shown, table))
        return
    frame = _rows(comparison, name, arguments, for_reading=True)
    names = {run.id: run.name for run in comparison.candidates}
    if len(set(names.values())) == len(names):
        frame = frame.assign(candidate=frame["candidate"].map(names))
    if arguments.table is None:
        frame = _changed(frame, name)
    print("\n\n".join(_preamble(comparison, name, arguments)), end="\n\n")
    if frame.empty:
        print("No op's self time differs." if arguments.table is None else f"{name} has no rows.")
        return
    emit(frame, arguments, lambda shown: as_text(shown, table), TOP_CHANGES if arguments.table is None else None)


def _preamble(comparison: Comparison, name: str, arguments: argparse.Namespace) -> list[str]:
    """The sections above the table: the summary of each candidate (with `--table` only the verdict), and how much of
    the table is matched."""
    describe, title = (diff_summary, "Largest changes") if arguments.table is None else (verdict_text, "")
    per = OCCURRENCE if _is_per_occurrence(name, arguments) else ""
    names = [run.name for run in comparison.candidates]
    labels = names if len(set(names)) == len(names) else [run.id for run in comparison.candidates]
    matched = [coverage_text(comparison, run, name, per) for run in comparison.candidates]
    if len(set(matched)) > 1:
        matched = [f"{text_of(label)}: {text}" for label, text in zip(labels, matched, strict=True)]
    lines = filter(None, [paint(title, "bold"), *dict.fromkeys(matched)])
    sections = [*(describe(comparison, run) for run in comparison.candidates), "\n".join(lines)]
    return list(filter(None, sections))


def _changed(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows whose headline metric differs; added and removed rows do."""
    return frame[frame[f"{metric_name(frame, schema.table(name).headline or '')}_delta"] != 0]


def _rows(comparison: Comparison, name: str, arguments: argparse.Namespace, *, for_reading: bool) -> pd.DataFrame:
    frame = comparison.per_occurrence(name) if _is_per_occurrence(name, arguments) else comparison.table(name)
    return without_idle_rows(frame, arguments, for_reading=for_reading)


def _is_per_occurrence(name: str, arguments: argparse.Namespace) -> bool:
    return arguments.per == OCCURRENCE and "occurrences" in schema.table(name).column_names


def _write_all(comparison: Comparison, arguments: argparse.Namespace) -> None:
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    for name in diffable():
        frame = _rows(comparison, name, arguments, for_reading=False)
        path = folder / f"{name}.csv"
        path.write_text(csv_text(frame), encoding="utf-8", newline="")
        note(f"wrote {path} ({len(frame):,} rows)")
