"""Tables as aligned text, fitted to the terminal, and colours of terminals."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from tfcompare.text import middle_ellipsis, text_of

GAP = "  "
NAME_WIDTH = 32
"""Columns are dropped rather than abbreviating texts to less than this width."""
MIN_TEXT_WIDTH = 12
"""The least width of a text column where no further column can be dropped."""
Tone = Literal["", "better", "worse", "likely-better", "likely-worse", "neutral", "bold"]
"""What a text says; `likely` is from too few captures for a definite claim."""

_CODES: dict[Tone, str] = {
    "better": "38;5;33",
    "worse": "38;5;166",
    "likely-better": "38;5;67",
    "likely-worse": "38;5;137",
    "bold": "1",
}
"""SGR parameters: the nearest of the 256 colours to those of the charts."""

_BETTER, _WORSE = ("faster", "less"), ("slower", "more")


@dataclass(frozen=True)
class TextColumn:
    """One column: its header, its cells as text, and whether to right-align them.

    Adjacent columns of the same `group` share a heading. A column with a `rank` above 0 may be dropped to fit the
    terminal, the highest rank first. `tones` are the colours of the cells, if any.
    """

    header: str
    cells: list[str]
    is_number: bool = False
    group: str = ""
    rank: int = 0
    tones: Sequence[Tone] = field(default=())

    @property
    def width(self) -> int:
        """The width that shows every cell in full."""
        return max(map(len, [self.header, *self.cells]))


def render(columns: Sequence[TextColumn], width: int | None) -> str:
    """The table as text, one line per row, with texts abbreviated to fit into `width` characters (None: in full).

    Different texts stay different. Control characters are escaped.
    """
    columns = [replace(c, header=text_of(c.header), cells=list(map(text_of, c.cells))) for c in columns]
    widths = _fitting_widths(columns, width)
    shown = [c.cells for c in columns]
    for i, (c, w) in enumerate(zip(columns, widths, strict=True)):
        if not c.is_number and c.width > w:
            from tfcompare.views.short_names import shorten_distinct

            shown[i] = shorten_distinct(c.cells, w)
    lines = [_group_line(columns, widths)] if any(c.group for c in columns) else []
    lines.append(_line([_align(middle_ellipsis(c.header, w), c, w) for c, w in zip(columns, widths, strict=True)]))
    for row in range(len(columns[0].cells) if columns else 0):
        cells = [_align(cells[row], c, w) for cells, c, w in zip(shown, columns, widths, strict=True)]
        lines.append(
            _line([paint(cell, c.tones[row]) if c.tones else cell for cell, c in zip(cells, columns, strict=True)])
        )
    return "\n".join(lines)


def fitting(columns: Sequence[TextColumn], width: int | None) -> tuple[list[TextColumn], list[str]]:
    """The columns to show in `width` characters, and the names of those that are dropped: headers, or whole groups."""
    shown = list(columns)
    while width is not None and (highest := max((c.rank for c in shown), default=0)) > 0:
        least = sum(c.width if c.is_number else min(c.width, NAME_WIDTH) for c in shown)
        if least + len(GAP) * (len(shown) - 1) <= width:
            break
        shown = [c for c in shown if c.rank < highest]
    groups = {c.group for c in shown}
    dropped = [c.header if c.group in groups else c.group for c in columns if all(c is not one for one in shown)]
    return shown, list(dict.fromkeys(dropped))


def _align(cell: str, column: TextColumn, width: int) -> str:
    return cell.rjust(width) if column.is_number else cell.ljust(width)


def _line(cells: Sequence[str]) -> str:
    return GAP.join(cells).rstrip()


def _group_line(columns: Sequence[TextColumn], widths: Sequence[int]) -> str:
    parts = []
    for group, members in groupby(zip(columns, widths, strict=True), key=lambda pair: pair[0].group):
        sizes = [w for _, w in members]
        span = sum(sizes) + len(GAP) * (len(sizes) - 1)
        parts.append(middle_ellipsis(f" {group} ", span).center(span, "·") if group else " " * span)
    return _line(parts)


def _fitting_widths(columns: Sequence[TextColumn], width: int | None) -> list[int]:
    widths = [c.width for c in columns]
    if width is None:
        return widths
    surplus = sum(widths) + len(GAP) * (len(widths) - 1) - width
    texts = [i for i, c in enumerate(columns) if not c.is_number]
    while surplus > 0:
        widest = max(texts, key=lambda i: widths[i], default=None)
        if widest is None or widths[widest] <= MIN_TEXT_WIDTH:
            break
        widths[widest] -= 1
        surplus -= 1
    return widths


def paragraph(text: str, width: int | None, indent: int = 0) -> str:
    """`text` in lines of at most `width` characters (None: one line), with all lines but the first indented."""
    if width is None:
        return text
    return textwrap.fill(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def terminal_width() -> int | None:
    """Characters per line of the terminal, or COLUMNS; None if stdout is not a terminal and COLUMNS is not set."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


def paint(text: str, tone: Tone) -> str:
    """`text` in the colour of `tone`, if stdout shows colours and NO_COLOR (https://no-color.org) is empty."""
    if tone not in _CODES or not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_CODES[tone]}m{text}\x1b[0m"


def tone_of(verdict: str) -> Tone:
    """The tone of a verdict in words, such as `likely faster`; none unless it claims a change."""
    word = verdict.removeprefix("likely ")
    likely = word != verdict
    if word in _BETTER:
        return "likely-better" if likely else "better"
    if word in _WORSE:
        return "likely-worse" if likely else "worse"
    return ""
