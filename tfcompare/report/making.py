"""Makes a report of a comparison in one of its formats."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tfcompare import schema
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.render.as_json import as_json, block_values, cells
from tfcompare.render.html import as_html
from tfcompare.render.markdown import as_text
from tfcompare.render.terminal import MOST_ROWS
from tfcompare.report.contents import Checked, all_candidates, brief, compared, contents, sections_of
from tfcompare.report.redaction import redacted
from tfcompare.views.blocks import Section, Table
from tfcompare.views.columns import in_words

Format = Literal["html", "markdown", "json"]
FORMATS: tuple[Format, ...] = ("html", "markdown", "json")
_SUFFIXES: dict[str, Format] = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json",
}  # fmt: skip


_ONLY_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS, errno.EXDEV)
"""Why a file cannot be replaced although it may be writable: its folder is not, or it is mounted by itself."""


def form_of(path: Path | None) -> Format:
    """The format that a file's suffix asks for; HTML without a file. Raises `TfcompareError` for another suffix."""
    if path is None:
        return "html"
    if path.suffix.lower() not in _SUFFIXES:
        raise TfcompareError(f"{path}: expected a name that ends with .html, .md or .json")
    return _SUFFIXES[path.suffix.lower()]


def write(text: str, path: Path) -> None:
    """Write a report to a file, in a folder that is made if it is missing.

    An existing file is replaced once the new one is complete, where its folder allows that. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # such as /dev/stdout
        path.write_text(text, encoding="utf-8")
        return
    arriving = target.with_name(f".tfcompare-{secrets.token_hex(8)}")
    try:
        arriving.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, arriving)
        arriving.replace(target)
    except OSError as error:
        if error.errno not in _ONLY_IN_PLACE:
            raise
        path.write_text(text, encoding="utf-8")
    finally:
        arriving.unlink(missing_ok=True)


def for_pull_request(comparison: Pairs) -> str:
    """The answer as Markdown, short enough for a comment on a pull request."""
    return as_text(brief(comparison))


def report(
    comparison: Pairs,
    form: Format = "html",
    *,
    command: Sequence[str] = (),
    words: Sequence[str] = (),
    checked: Checked | None = None,
    redact: bool = False,
) -> str:
    """The report on a comparison, or on a run alone, as text.

    `command` are the words of the command that makes it again, `words` the runs as they are typed in commands, by
    default their ids; `checked` stands above the verdicts. `redact` removes
    names of runs, hosts and users, paths and addresses, but for what these two say. Raises `Unknown` for an
    unknown format.
    """
    if form not in FORMATS:
        raise Unknown("format of a report", form, list(FORMATS))
    if redact:
        comparison = redacted(comparison)
    if form == "json":
        return _as_json(comparison, words or [run.id for run in comparison.runs], checked)
    found = contents(comparison, command=command, checked=checked)
    return as_html(found) if form == "html" else as_text(found)


def _as_json(comparison: Pairs, words: Sequence[str], checked: Checked | None) -> str:
    """As a view in JSON, with what the report says of all runs, what was checked, and the whole diff of each table."""
    pairs = pairs_of(comparison, by_name=True)
    blocks = [Section("What was compared", compared(comparison))]
    if len(pairs) > 1:
        blocks.insert(0, Section("All candidates", all_candidates(pairs)))
    candidates = [
        {
            "candidate": pair.candidate.id,
            "options": {},
            "blocks": block_values(sections_of(pair), words, MOST_ROWS),
            "tables": {table.name: _diff(pair, table) for table in schema.TABLES.values() if table.has_diff},
        }
        for pair in pairs
    ]
    others = {} if checked is None else {"check": checked.content}
    return as_json(comparison, "report", candidates, blocks=block_values(blocks, words, MOST_ROWS), **others)


def _diff(pair: Pair, table: schema.Table) -> dict[str, Any]:
    rows = in_words(pair.diff(table.name)).drop(columns=list(schema.SIDES))
    return cells(Table(table, "", rows, list(rows.columns), sums_per=pair.sums_per()), rows)
