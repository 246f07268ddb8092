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

Text, JSON, Markdown and HTML have what the page Series shows; csv has a row per run. Exit status: 0 done, 2 bad input.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tfcompare.commands.shared.options import add_store
from tfcompare.commands.shared.output import add_document, document_form, note
from tfcompare.commands.shared.progress import note_if_compiling, notes, progress
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.render.text_table import terminal_width
from tfcompare.text import lines_of, some_of
from tfcompare.views.csv_files import csv_text

if TYPE_CHECKING:
    from tfcompare.sources.logdir import FoundRun
    from tfcompare.views.series.changes import Series

SUMMARY = "show when a metric of many runs changed"
EXAMPLES = """examples:
  tfcompare series --store s3://bucket/store
  tfcompare series --store store --program resnet --metric 'op:*Conv2D*' --tag branch=main
  tfcompare series logs/ --metric peak_memory --format csv > peaks.csv
  tfcompare series --store store --every-op -o series.html"""
_MOST_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="runs or folders of runs")
    parser.add_argument("--metric", default="step_time", help="what to show of each run (default: %(default)s)")
    parser.add_argument("--by", metavar="KEY", default="", help="order runs by this of their metadata, such as build")
    meaning = "only runs with this tag, such as nightly or branch=main; can be given several times"
    parser.add_argument("--tag", metavar="TAG", action="append", default=[], help=meaning)
    parser.add_argument("--program", metavar="NAME", help="only runs of this program, by the names that are noted")
    meaning = "look for changes in every op, too, tested together (last 200 runs); csv has these in place of the runs"
    parser.add_argument("--every-op", action="store_true", help=meaning)
    add_document(parser, ("text", "csv", "json", "markdown", "html"))
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the series. Raises `TfcompareError` for an unknown metric, if no run matches, or for HTML on a terminal."""
    from tfcompare.commands.report import write
    from tfcompare.loading import cache_problems
    from tfcompare.views.series.changes import Series
    from tfcompare.views.series.figures import ordered, parse_metric

    metric, form = parse_metric(arguments.metric), document_form(arguments, "text")
    found = ordered(_of_program(_find_runs(arguments), arguments), arguments.by)
    if not found:
        raise NoRuns("no readable run matches; leave out --tag, --program or --by, or name other runs")
    if not metric.is_in_index or any(run.summary is None for run in found):
        note_if_compiling()
    series = Series.of(found, metric, arguments.by, _reading)
    text = _csv(series, arguments) if form == "csv" else _render(series, form, arguments)
    progress("")
    write(lines_of(text) if arguments.out is None and sys.stdout.isatty() and form != "text" else text, arguments.out)
    notes(cache_problems())
    return 0


def _find_runs(arguments: argparse.Namespace) -> list[FoundRun]:
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
    from tfcompare.views.series.figures import ordered

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
        named = some_of(others, _MOST_NAMED)
        note(f"note: {chosen.text}: {counts[chosen]:,} of {len(tagged):,} runs; --program takes another: {named}")
    return [run for run in tagged if programs[run.id] == chosen]


def _reading(done: int, total: int) -> None:
    if done % 20 == 0:
        progress(f"reading {done:,} of {total:,} runs")


def _csv(series: Series, arguments: argparse.Namespace) -> str:
    """A row per run, and what to know of them as notes; or a row per change of an op."""
    from tfcompare.render.inline import plain
    from tfcompare.views.series import words

    if arguments.every_op:
        return csv_text(series.op_changes()[0])
    progress("")
    notes(plain(remark) for remark in words.remarks(series))
    return csv_text(series.rows)


def _render(series: Series, form: str, arguments: argparse.Namespace) -> str:
    """What the page shows, as text, JSON, Markdown or HTML."""
    from tfcompare.render import as_json, terminal
    from tfcompare.render.document import with_all_columns
    from tfcompare.render.shown import ALL_ROWS, as_document
    from tfcompare.views.series.view import Options, blocks
    from tfcompare.views.series.words import title

    options = Options(every_op=arguments.every_op)
    shown = list(blocks(series, options))
    rows = terminal.MOST_ROWS if arguments.limit is None else arguments.limit or ALL_ROWS
    if form in ("text", "json") and arguments.all_columns:
        shown = list(with_all_columns(shown))
    if form == "text":
        width = None if arguments.all_columns or arguments.out else terminal_width()
        return terminal.as_lines(shown, width, rows) + "\n"
    if form == "json":
        content = {"metric": series.metric.text, "options": asdict(options)}
        return as_json.document("series", content | {"blocks": as_json.block_values(shown, as_json.Style(rows))})
    return as_document(form, f"Series: {title(series.metric)}", shown, rows)
