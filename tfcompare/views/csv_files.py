"""Frames as CSV: machine column names with units, full precision, empty cells for missing values.

Names in a profile come from whoever captured it, and what is printed or downloaded as CSV is opened in a terminal
or a spreadsheet: no text in it is a command to either.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.text import text_of

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.pairs import Pairs

_MAY_RUN = re.compile(r"[\t\r\n]|[ \u00a0]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""A spreadsheet may execute a text cell that begins so: it skips blanks, and takes full-width signs for plain ones."""


def csv_text(frame: pd.DataFrame) -> str:
    """`frame` as CSV: its own column names, one line per row, times in UTC, the items of lists separated by `; `, texts
    as `for_spreadsheet` makes them.

    Names of columns are treated as cells are: a query, which a link may contain, chooses them.
    """
    safe = for_spreadsheet(frame).rename(columns=defused)
    return safe.to_csv(index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%S.%fZ")


def for_spreadsheet(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with printable texts, and a `'` before each that a spreadsheet would run as a formula; numbers are
    unchanged."""
    from pandas.api.types import is_object_dtype, is_string_dtype

    lists = [name for name in frame.columns if frame[name].map(lambda cell: isinstance(cell, tuple)).any()]
    frame = frame.assign(**{name: frame[name].map("; ".join, na_action="ignore") for name in lists})
    texts = [name for name in frame.columns if is_string_dtype(frame[name]) or is_object_dtype(frame[name])]
    out = frame.copy(deep=False)
    for name in texts:
        out[name] = frame[name].map(defused, na_action="ignore")
    return out


def spreadsheet_csv(frame: pd.DataFrame) -> bytes:
    """`csv_text` as a file for download, in UTF-8 with a byte order mark for Excel."""
    return csv_text(frame).encode("utf-8-sig")


def spreadsheet_csv_of(parts: Iterable[pd.DataFrame]) -> Iterator[bytes]:
    """As `spreadsheet_csv`, for a frame that comes in parts, so that it is never in memory as a whole."""
    for number, part in enumerate(parts):
        text = csv_text(part)
        yield text.encode("utf-8-sig") if number == 0 else text.partition("\n")[2].encode()


def zipped_diffs(comparison: Pairs) -> bytes:
    """A zip archive with a file for each table that has a diff with rows, as `spreadsheet_csv` makes them."""
    from tfcompare.views.columns import for_file

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for table in schema.TABLES.values():
            if table.has_diff and len(rows := comparison.diffs(table.name)):
                rows = for_file(rows, table, comparison.sums_per())
                files.writestr(f"{table.name}.csv", spreadsheet_csv(rows))
    return archive.getvalue()


def gzipped(parts: Iterable[bytes]) -> bytes:
    """The concatenated parts as one gzip file."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
        for part in parts:
            file.write(part)
    return out.getvalue()


def defused(cell: object) -> object:
    """`cell`, if it is a text, made printable, and with a `'` before it if a spreadsheet would run it as a formula."""
    if not isinstance(cell, str):
        return cell
    return text_of(f"'{cell}" if _MAY_RUN.match(cell) else cell)


def file_stem(name: str) -> str:
    """`name` as the beginning of a file name that is valid on any system."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:120] or "tfcompare"
