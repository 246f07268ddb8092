"""Show a metric of many runs in order, and when it changed.

PATHs are runs or folders of runs; with --store, ids of runs or folders of runs in that store, or nothing for all of
them. Only runs of one program on one device are shown: those of most of the newest runs, unless --program names others.
A program is the `program` in the runs' metadata or else their folders' names, apart from dates, commits and counters.
Runs are in order of recording, or of one of their metadata with --by. Each change has its size with a 95 % confidence
interval and, of the step time, the ops that explain it. docs/verdicts.md has the rate of false alarms.

  METRIC  step_time      the mean step (default)
          throughput     steps per second of the whole loop, with the time between steps
          op:PATTERN     self time per step of all ops whose name or type matches, such as op:*Conv2D*
          kernel:PATTERN time per step of all kernels whose name matches
          part:PART      time of a part of the step, a column of the table steps, such as part:input_us
          peak_memory    the largest peak of any memory

--format csv and json print the series, one row per run; text prints the changes. Exit status: 0 done, 2 bad input.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare.commands.shared.options import add_store
from tfcompare.commands.shared.output import json_text, note
from tfcompare.commands.shared.progress import note_if_compiling, notes, progress
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.export.csv import csv_text
from tfcompare.text import lines_of, some_of, text_of

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.sources.logdir import FoundRun
    from tfcompare.tools.runs.series import Metric

SUMMARY = "show when a metric of many runs changed"
EXAMPLES = """examples:
  tfcompare series --store s3://bucket/store
  tfcompare series --store store --program resnet --metric 'op:*Conv2D*' --tag branch=main
  tfcompare series logs/ --metric peak_memory --format csv > peaks.csv
  tfcompare series --store store --every-op"""
_OPS_SHOWN = 20
_MOST_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="runs or folders of runs")
    parser.add_argument("--metric", default="step_time", help="what to show of each run (default: %(default)s)")
    parser.add_argument("--by", metavar="KEY", default="", help="order runs by this of their metadata, such as build")
    parser.add_argument(
        "--tag", metavar="TAG", action="append", default=[],
        help="only runs with this tag, such as nightly or branch=main; can be given several times",
    )  # fmt: skip
    parser.add_argument("--program", metavar="NAME", help="only runs of this program, by the names that are noted")
    parser.add_argument(
        "--every-op", action="store_true", help="look for changes in every op instead, tested together (last 200 runs)"
    )
    parser.add_argument(
        "--format", choices=("text", "csv", "json"), default="text",
        help="text: the changes, for reading; csv, json: every run, full precision (default: %(default)s)",
    )  # fmt: skip
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the series or its changes. Raises `TfcompareError` for an unknown metric, or if no run matches."""
    from tfcompare.loading import cache_problems
    from tfcompare.tools.runs.series import on_last_device, ordered, parse_metric, series
    from tfcompare.tools.runs.series_changes import op_changes, version_remark

    metric = parse_metric(arguments.metric)
    found = ordered(_of_program(_found(arguments), arguments), arguments.by)
    if not found:
        raise NoRuns("no readable run matches; leave out --tag, --program or --by, or name other runs")
    if not metric.is_in_index or any(run.summary is None for run in found):
        note_if_compiling()
    if arguments.every_op:
        frame, tested = op_changes(found, _reading)
        progress("")
        _print(frame, arguments.format, _ops_text(frame, tested))
    else:
        rows = series(found, metric, arguments.by, _reading)
        progress("")
        frame = on_last_device(rows)
        if len(frame) < len(rows):
            note(f"note: left out: {len(rows) - len(frame):,} runs on other devices than {frame['device'].max()}")
            found = [run for run in found if run.id in set(frame["run"])]
        if remark := version_remark(frame):
            note(f"note: {text_of(remark.replace('`', ''))}")
        text = _text(frame, found, metric) if arguments.format == "text" else ""
        _print(frame, arguments.format, text)
    notes(cache_problems())
    return 0


def _found(arguments: argparse.Namespace) -> list[FoundRun]:
    from tfcompare.loading import stored_runs
    from tfcompare.sources.logdir import find_runs

    runs: Sequence[FoundRun]
    if arguments.store is not None:
        runs, problems = stored_runs(arguments.store, arguments.paths)
        notes(problems)
    elif arguments.paths:
        runs = find_runs(*arguments.paths, join=arguments.join)
    else:
        raise TfcompareError("no runs were named: give a PATH, or a store with --store")
    return list(runs)


def _of_program(runs: Sequence[FoundRun], arguments: argparse.Namespace) -> list[FoundRun]:
    """The runs with all tags of the chosen program, or else of the one of most of the newest; notes the others."""
    from tfcompare.sources.programs import most_frequent, programs_of, wanted
    from tfcompare.tools.runs.series import ordered

    readable = ordered(runs)
    programs = programs_of(readable)
    tagged = [run for run in readable if set(arguments.tag) <= set(run.metadata.texts)]
    if not tagged:
        return []
    if arguments.program is not None:
        chosen = wanted(arguments.program, list(programs.values()))
    else:
        chosen = most_frequent([programs[run.id] for run in tagged])
    counts = Counter(programs[run.id] for run in tagged)
    others = [f"{program.text} ({count:,})" for program, count in counts.most_common() if program != chosen]
    if others and arguments.program is None:
        note(f"note: {chosen.text}: {counts[chosen]:,} of {len(tagged):,} runs; --program takes another: "
             f"{some_of(others, _MOST_NAMED)}")  # fmt: skip
    return [run for run in tagged if programs[run.id] == chosen]


def _reading(done: int, total: int) -> None:
    if done % 20 == 0:
        progress(f"reading {done:,} of {total:,} runs")


def _print(frame: pd.DataFrame, form: str, text: str) -> None:
    out = {"text": lambda: text, "csv": lambda: csv_text(frame), "json": lambda: json_text(frame)}[form]()
    sys.stdout.writelines((lines_of(out) if sys.stdout.isatty() else out).splitlines(keepends=True))


def _text(rows: pd.DataFrame, found: Sequence[FoundRun], metric: Metric) -> str:
    """A sentence per change, the last first, and the runs without a value."""
    from tfcompare.tools.runs.series_changes import changes, op_moves, sentence

    points = changes(rows)
    ids = [run.id for run in found]
    edges = [0, *(ids.index(run) for run in points["run"]), len(ids)]
    lines = [sentence(rows, points, metric)] if points.empty else []
    for position in reversed(range(len(points))):
        first, at, end = edges[position : position + 3]
        moves = op_moves(found, at, first, end, metric=metric) if metric.is_in_index else None
        lines.append(sentence(rows, points.iloc[: position + 1], metric, moves))
        lines.append(f"  compare {points['run_before'].iloc[position]} with {points['run'].iloc[position]}")
    for problem, names in rows[rows["value"].isna()].groupby("problem")["name"]:
        note(f"note: {len(names):,} runs have no value, such as {names.iloc[0]}: {problem}")
    return "".join(f"{text_of(line.replace('`', ''))}\n" for line in lines)


def _ops_text(frame: pd.DataFrame, tested: int) -> str:
    lines = [f"{frame['op_name'].nunique():,} of {tested:,} tested ops changed"]
    for row in frame.head(_OPS_SHOWN).to_dict("records"):
        ratio, low, high = (f"{100 * (row[name] - 1):+.1f} %" for name in ("ratio", "ratio_low", "ratio_high"))
        op = f"{row['op_name']} ({row['op_type']})"
        lines.append(f"  {op}: {ratio} ({low} to {high}), {row['delta_us']:+.1f} µs per step, at {row['label']}")
    return "".join(f"{text_of(line)}\n" for line in lines)
