"""Prints the data of commands on stdout, as aligned text, CSV or JSON."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcompare.commands.text_table import TextColumn, render, terminal_width
from tfcompare.export.csv import csv_text
from tfcompare.text import lines_of, text_of

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("table", "csv", "json")
ROWS_ON_SCREEN = 40


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare `--format` and `--limit`."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="table",
        help="table: aligned for reading; csv, json: every row, full precision, for programs (default: %(default)s)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_at_least_0,
        help="rows to print at most (of several candidates, of each), 0: all "
        f"(default: {ROWS_ON_SCREEN} for a table on a terminal, else all)",
    )


def emit(
    frame: pd.DataFrame, arguments: argparse.Namespace, as_text: Callable[[pd.DataFrame], Sequence[TextColumn]]
) -> None:
    """Print `frame` in the requested format; `as_text` converts it to columns for a terminal."""
    limit = arguments.limit
    if limit is None:
        limit = ROWS_ON_SCREEN if arguments.format == "table" and sys.stdout.isatty() else 0
    shown = _first(frame, limit) if limit else frame
    if arguments.format == "csv":
        text = csv_text(shown)
    elif arguments.format == "json":
        text = json_text(shown)
    else:
        text = render(as_text(shown), terminal_width()) + "\n"
    if sys.stdout.isatty():
        text = lines_of(text)
    # Line by line: Python does not report a pipe that breaks during one large write.
    sys.stdout.writelines(text.splitlines(keepends=True))
    if len(shown) < len(frame):
        note(f"{len(frame) - len(shown):,} more rows (--limit 0 shows all)")


def _first(frame: pd.DataFrame, limit: int) -> pd.DataFrame:
    """The first `limit` rows, per candidate in a diff of several."""
    return frame.groupby("candidate", sort=False).head(limit) if "candidate" in frame else frame.head(limit)


def _at_least_0(text: str) -> int:
    number = int(text)
    if number < 0:
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
