"""Write a report on one run, or on what changed from a baseline to one or more candidates.

An HTML report is one file with charts, tables and the timeline of a typical step. It needs no network: open it, attach
it, keep it as an artefact of continuous integration, print it. Markdown is about 20 lines for a comment on a pull
request, JSON has every figure in full precision, for programs.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run, or several
captures of one program by their names (run-1, run-2, …); with --store, a run of that store.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tfcompare.commands.shared.options import add_comparison, comparison_question, options_of, words_of
from tfcompare.commands.shared.output import note
from tfcompare.commands.shared.progress import answered
from tfcompare.errors import TfcompareError
from tfcompare.units import format_bytes

SUMMARY = "write a report as HTML, Markdown or JSON"
EXAMPLES = """examples:
  tfcompare report logs/before logs/after -o report.html
  tfcompare report logs/before logs/after --format markdown >> "$GITHUB_STEP_SUMMARY"
  tfcompare report logs/before logs/after -o report.html --redact    # without paths and names"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help="the file to write (default: print the report)")
    meaning = "default: by the suffix of FILE (.html, .md, .json), else html"
    parser.add_argument("--format", choices=("html", "markdown", "json"), help=meaning)
    meaning = "remove names of runs, hosts and users, paths and addresses, to share the report"
    parser.add_argument("--redact", action="store_true", help=meaning)
    add_comparison(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the report. Raises `TfcompareError` for an HTML report on a terminal."""
    from tfcompare.render.redaction import redacted
    from tfcompare.render.report import form_of, report

    form = arguments.format or form_of(arguments.out)
    if form == "html" and arguments.out is None and sys.stdout.isatty():
        raise TfcompareError("an HTML report is not for a terminal: write it to a file with -o report.html")
    comparison = answered(comparison_question(arguments))
    if arguments.redact:
        comparison = redacted(comparison)
        arguments.host, choice = comparison.host, comparison.baseline.choice
        arguments.step_marker, arguments.step_kind = choice.marker, choice.kind
    command = ["tfcompare", "report", *_command(arguments, form)]
    words = [] if arguments.redact else words_of(arguments)
    write(report(comparison, form, command=command, words=words), arguments.out)
    return 0


def write(text: str, path: Path | None) -> None:
    """Print a report, or write it to a file and say so."""
    if path is None:
        sys.stdout.write(text)
        return
    from tfcompare.render import report as making

    making.write(text, path)
    note(f"wrote {path} ({format_bytes(path.stat().st_size)})")


def _command(arguments: argparse.Namespace, form: str) -> list[str]:
    """The words that make the report again, of Markdown the full one; with `--redact` without places, and the other
    names of a redacted one."""
    words = words_of(arguments)
    if arguments.redact:
        words = ["BASELINE", *(["CANDIDATE"] * len(arguments.candidates)), *options_of(arguments, places=False)]
    is_given = arguments.out is not None and form == "html" and not arguments.redact
    words += ["-o", str(arguments.out) if is_given else "report.html"]
    return [*words, "--redact"] if arguments.redact else words
