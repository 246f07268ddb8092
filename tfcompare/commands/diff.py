"""Print what changed from a baseline to one or more candidates, biggest change first.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run, or several captures
of one program by their names (run-1, run-2, …); with --store, a run of that store. Differences are candidate minus
baseline, ratios candidate divided by baseline; lower is better for times and bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.diff_text import as_text
from tfcompare.commands.judging import add_judging, load_repeats, spread_of
from tfcompare.commands.output import add_format, emit, note
from tfcompare.commands.pairs import add_pairs, read_pairs
from tfcompare.commands.reading import add_steps, add_store, chosen_steps, load_replicates
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.export.csv import csv_text
from tfcompare.text import lines_of
from tfcompare.units import format_percent

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare import Comparison
    from tfcompare.run import Run

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
    parser.add_argument("candidates", metavar="CANDIDATE", nargs="+", help="the runs that are judged")
    tables = ", ".join(diffable())
    parser.add_argument("--table", metavar="T", help=f"one of: {tables} (default: {DEFAULT_TABLE})")
    parser.add_argument(
        "--per",
        choices=("step", "run", "device", OCCURRENCE),
        default="step",
        help="what sums are given for (default: %(default)s)",
    )
    parser.add_argument("--host", metavar="H", help="of this host only (default: all hosts)")
    parser.add_argument("--no-idle", action="store_true", help="leave out the time in which no op ran")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write one CSV for each table into this folder")
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
    from tfcompare.compare import compare

    if arguments.table is not None and arguments.table not in diffable():
        raise Unknown("table with a diff", arguments.table, diffable())
    if len(arguments.candidates) > 1 and arguments.candidate_repeat:
        raise TfcompareError(
            f"--candidate-repeat takes a single CANDIDATE, for which the recordings are; {len(arguments.candidates)} "
            "were given: compare them one by one"
        )
    spread = spread_of(arguments)
    places = [arguments.baseline, *arguments.candidates]
    groups = load_replicates(places, arguments.store, chosen_steps(arguments))
    repeats = load_repeats(arguments, groups)
    baseline, *candidates = (run for run, *_ in groups)
    comparison = compare(
        baseline,
        *candidates,
        per="run" if arguments.per == OCCURRENCE else arguments.per,
        host=arguments.host,
        repeats=repeats,
        spread=spread,
        manual_pairs=read_pairs(arguments, candidates),
    )
    if arguments.out is not None:
        _write_all(comparison, arguments)
    if arguments.out is None or arguments.table is not None:
        _print(comparison, arguments)
    for remark in (*_capture_notes(comparison), *comparison.notes):
        note(f"note: {remark}")
    return 0


def _capture_notes(comparison: Comparison) -> list[str]:
    """How many captures of a program the verdicts are based on, if more than one."""
    sides = (("baseline", comparison.baseline), ("candidate", comparison.candidates[0]))
    counts = {side: len(comparison.repeats_of(run)) + 1 for side, run in sides}
    return [f"verdicts rest on {count} captures of the {side}" for side, count in counts.items() if count > 1]


def _print(comparison: Comparison, arguments: argparse.Namespace) -> None:
    name = arguments.table or DEFAULT_TABLE
    if arguments.format == "table":
        per = OCCURRENCE if _is_per_occurrence(name, arguments) else ""
        print(lines_of("\n".join(preamble(comparison, name, per)) + "\n"))
    emit(_rows(comparison, name, arguments), arguments, lambda shown: as_text(shown, schema.table(name)))


def preamble(comparison: Comparison, name: str, per: str = "") -> list[str]:
    """The lines above the table: the headline of each candidate, and how much of the table's metric was matched."""
    table = schema.table(name)
    headlines = ["\n".join(_headlines(comparison, candidate)).replace("`", "") for candidate in comparison.candidates]
    if table.headline is None or table.column(table.headline).kind not in ("sum", "level"):
        return headlines
    coverage, what = comparison.coverage(name), table.column(table.headline).label.lower()
    per = f" Figures are per {per or comparison.per}." if table.column(table.headline).kind == "sum" else ""
    matched = [
        f"{format_percent(matched)} of the {what} is matched, {format_percent(exact)} exactly.{per}"
        if matched == matched
        else f"Neither run's profile holds anything for {name}: it recorded none of it."
        for matched, exact in zip(coverage["matched_share"], coverage["exact_share"], strict=True)
    ]
    return [line for lines in zip(headlines, matched, strict=True) for line in lines]


def _headlines(comparison: Comparison, candidate: Run) -> list[str]:
    """The sentences on a candidate: its step time, its slowest host, and time outside steps."""
    from tfcompare.tools.step_attribution import host_sentence
    from tfcompare.tools.throughput import between_steps_sentence, dispatch_sentence

    sentences = [f"{comparison.headline(candidate.id)} {comparison.doubt(candidate.id)}".rstrip()]
    sentences += [of(comparison, candidate) for of in (host_sentence, between_steps_sentence, dispatch_sentence)]
    return [sentence for sentence in sentences if sentence]


def _rows(comparison: Comparison, name: str, arguments: argparse.Namespace) -> pd.DataFrame:
    frame = comparison.per_occurrence(name) if _is_per_occurrence(name, arguments) else comparison.table(name)
    if arguments.no_idle and "op_type" in frame:
        frame = frame[frame["op_type"] != schema.IDLE]
    return frame


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
