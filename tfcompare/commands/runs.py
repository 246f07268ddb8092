"""List the runs below each PATH, with what one chooses by; those that cannot be read are listed with the reason.

PATHs are files, run folders, logdirs or parents of them. Times of recording are UTC.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare.commands.output import add_format, emit
from tfcompare.commands.reading import say_if_compiling
from tfcompare.commands.text_table import TextColumn, number_column, printable, scale, text_column
from tfcompare.errors import TfcompareError

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.logdir import FoundRun
    from tfcompare.run import Run

SUMMARY = "list the runs below a path"
EXAMPLES = "examples:\n  tfcompare runs logs/\n  tfcompare runs logs/a logs/b --format json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="where to look for runs")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the runs; raises `TfcompareError` where none of them can be read."""
    from tfcompare.listing import READ, listing
    from tfcompare.logdir import find_runs

    found = find_runs(*arguments.paths)
    frame = listing(found, _read_all(found))
    emit(frame.drop(columns=["step_times_ms"]), arguments, _as_text)
    if arguments.format == "table":
        _print_remarks(frame)
    if not (frame["state"] == READ).any():
        raise TfcompareError(f"none of the {len(frame)} runs can be read; the listing says why")
    return 0


def _read_all(found: Sequence[FoundRun]) -> dict[str, Run | TfcompareError]:
    from tfcompare.run import load

    readable = [f for f in found if f.is_readable]
    if readable:
        say_if_compiling()
    outcomes: dict[str, Run | TfcompareError] = {}
    for count, one in enumerate(readable, start=1):
        _progress(f"reading {count} of {len(readable)}: {one.name}")
        try:
            outcomes[one.id] = load(one)
        except TfcompareError as error:
            outcomes[one.id] = error
    _progress("")
    return outcomes


def _progress(message: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{message}", end="", file=sys.stderr, flush=True)


def _as_text(frame: pd.DataFrame) -> list[TextColumn]:
    step_time = scale("ms", frame["step_time_ms_median"])
    size = scale("bytes", frame["size_bytes"])
    return [
        text_column("run", frame["name"]),
        text_column("recorded", frame["recorded"].dt.strftime("%Y-%m-%d %H:%M:%S")),
        number_column("hosts", frame["hosts"], 0),
        text_column("device", frame["device"]),
        number_column("steps", frame["steps"], 0),
        number_column(
            f"median step ({step_time.unit})", frame["step_time_ms_median"] * step_time.factor, step_time.decimals
        ),
        number_column(f"size ({size.unit})", frame["size_bytes"] * size.factor, size.decimals),
        text_column("path", frame["path"]),
    ]


def _print_remarks(frame: pd.DataFrame) -> None:
    remarked = frame[frame["remarks"] != ""]
    for name, remark in zip(remarked["name"], remarked["remarks"], strict=True):
        print(f"\n{printable(name)}: {printable(remark)}")
