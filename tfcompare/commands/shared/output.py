"""Prints what commands say on stdout: blocks as text, frames as CSV or JSON."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcompare.errors import TfcompareError
from tfcompare.render.text_table import terminal_width
from tfcompare.text import lines_of, more_rows, text_of
from tfcompare.views.csv_files import csv_text

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.views.blocks import Block

FORMATS = ("table", "csv", "json")
_SUFFIXES = {".csv": "csv", ".json": "json", ".md": "markdown", ".html": "html"}
ROWS_ON_SCREEN = 40
_FORMAT = "table: aligned for reading; csv, json: every row, full precision, for programs (default: %(default)s)"
_LIMIT = (
    "the maximum number of rows, per candidate if there are several; 0: all "
    f"(default: {ROWS_ON_SCREEN} for a table on a terminal, else all)"
)
_ALL_COLUMNS = (
    "print all columns and full names, even if lines are wider than the terminal (default: tables are fitted to the "
    "width of the terminal or COLUMNS; in a pipe without COLUMNS, nothing is left out)"
)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare `--format`, `--limit` and `--all-columns`."""
    parser.add_argument("--format", choices=FORMATS, default="table", help=_FORMAT)
    parser.add_argument("--limit", metavar="N", type=at_least_0, help=_LIMIT)
    parser.add_argument("--all-columns", action="store_true", help=_ALL_COLUMNS)


def add_document(parser: argparse.ArgumentParser, forms: Sequence[str]) -> None:
    """Declare `--out`, `--format`, `--limit` and `--all-columns` of a command that prints what a page shows."""
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help="the file to write (default: print)")
    suffixes = [suffix for suffix, form in _SUFFIXES.items() if form in forms]
    meaning = f"default: by the suffix of FILE ({', '.join(suffixes)}), else {forms[0]}"
    parser.add_argument("--format", choices=forms, help=meaning)
    parser.add_argument("--limit", metavar="N", type=at_least_0, help="rows of each table, 0 for all (default: 20)")
    parser.add_argument("--all-columns", action="store_true", help="print all columns and full names")


def document_form(arguments: argparse.Namespace, default: str) -> str:
    """The format that the options of `add_document` ask for. Raises `TfcompareError` for HTML on a terminal."""
    form: str = arguments.format or _SUFFIXES.get(arguments.out.suffix if arguments.out else "", default)
    if form == "html" and arguments.out is None and sys.stdout.isatty():
        raise TfcompareError("HTML is not for a terminal: write it to a file with -o FILE.html")
    return form


def add_idle(parser: argparse.ArgumentParser) -> None:
    """Declare `--idle` and `--no-idle`."""
    idle = parser.add_mutually_exclusive_group()
    meaning = "include IDLE, the time in which no op ran, in tables for reading"
    idle.add_argument("--idle", action="store_true", help=meaning)
    idle.add_argument("--no-idle", action="store_true", help="leave out IDLE in csv and json, too")


def without_idle_rows(frame: pd.DataFrame, arguments: argparse.Namespace, *, for_reading: bool) -> pd.DataFrame:
    """`frame` without IDLE, if the options say so: by default, it is left out only in tables for reading."""
    from tfcompare.compare.groups.aggregate import without_idle

    return without_idle(frame) if arguments.no_idle or (for_reading and not arguments.idle) else frame


def emit(frame: pd.DataFrame, arguments: argparse.Namespace) -> None:
    """Print `frame` as CSV or JSON, and on stderr how many rows the limit leaves out."""
    shown = frame
    if arguments.limit:  # of a diff with several candidates, the first rows of each
        rows = frame.groupby("candidate", sort=False) if "candidate" in frame else frame
        shown = rows.head(arguments.limit)
    text = csv_text(shown) if arguments.format == "csv" else json_text(shown)
    _print(lines_of(text) if sys.stdout.isatty() else text)
    if len(shown) < len(frame):
        note(f"{more_rows(len(frame) - len(shown))} (--limit 0 shows all)")


def print_blocks(blocks: Iterable[Block], arguments: argparse.Namespace) -> None:
    """Print blocks for reading, with as many rows and columns as the options of `add_format` say."""
    from tfcompare.render.terminal import as_lines

    width = None if arguments.all_columns else terminal_width()
    _print(as_lines(blocks, width, rows_for_reading(arguments)) + "\n")


def rows_for_reading(arguments: argparse.Namespace) -> int:
    """How many rows of a table are printed for reading."""
    default = ROWS_ON_SCREEN if sys.stdout.isatty() else 0
    return (default if arguments.limit is None else arguments.limit) or sys.maxsize


def _print(text: str) -> None:
    # Line by line: Python does not report a pipe that breaks during one large write.
    sys.stdout.writelines(text.splitlines(keepends=True))
    sys.stdout.flush()


def at_least_0(text: str) -> int:
    """The number that an option gives. Raises `ValueError` for a negative one."""
    if (number := int(text)) < 0:
        raise ValueError(text)
    return number


def at_least_1(text: str) -> int:
    """The number that an option gives. Raises `ValueError` for one below 1."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def json_text(frame: pd.DataFrame) -> str:
    """`frame` as a JSON list of records, one per line; missing and infinite values are null."""
    from pandas.api.types import is_float_dtype

    finite = [cells.mask(cells.abs() == math.inf) if is_float_dtype(cells) else cells for _, cells in frame.items()]
    columns = [cells.astype(object).where(cells.notna(), None) for cells in finite]
    records = [
        json.dumps(dict(zip(frame.columns, row, strict=True)), ensure_ascii=False, allow_nan=False, default=_plain)
        for row in zip(*columns, strict=True)
    ]
    return "[" + ",\n ".join(records) + "]\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.item()


def note(message: str) -> None:
    """Print a message for the reader on stderr, without control characters of what it quotes."""
    print(lines_of(message), file=sys.stderr)


def print_path(path: Path) -> None:
    """Print a path for `$(…)` in a shell: exactly its bytes, except on a terminal."""
    if sys.stdout.isatty():
        print(text_of(str(path)))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(path) + b"\n")
