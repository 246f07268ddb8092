"""Tables as aligned text for a terminal: numbers right-aligned, long names shortened in their middle."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from tfcompare.text import text_of
from tfcompare.units import MINUS, MISSING, middle_ellipsis

GAP = "  "
MIN_TEXT_WIDTH = 16


@dataclass(frozen=True)
class TextColumn:
    """One column: its header, its cells as text, and whether to right-align them.

    Adjacent columns of the same `group` share a heading.
    """

    header: str
    cells: list[str]
    is_number: bool = False
    group: str = ""

    @property
    def width(self) -> int:
        """The width that shows every cell in full."""
        return max(map(len, [self.header, *self.cells]))


def render(columns: Sequence[TextColumn], width: int | None) -> str:
    """The table as text, one line per row. Text columns are shortened until it fits into `width` characters."""
    widths = _fitting_widths(columns, width)
    lines = [_group_line(columns, widths)] if any(c.group for c in columns) else []
    for cells in [[c.header for c in columns], *zip(*(c.cells for c in columns), strict=True)]:
        placed = (
            middle_ellipsis(cell, w).rjust(w) if column.is_number else middle_ellipsis(cell, w).ljust(w)
            for cell, w, column in zip(cells, widths, columns, strict=True)
        )
        lines.append(GAP.join(placed).rstrip())
    return "\n".join(lines)


def _group_line(columns: Sequence[TextColumn], widths: Sequence[int]) -> str:
    parts = []
    for group, members in groupby(zip(columns, widths, strict=True), key=lambda pair: pair[0].group):
        sizes = [w for _, w in members]
        span = sum(sizes) + len(GAP) * (len(sizes) - 1)
        parts.append(f" {group} ".center(span, "·") if group else " " * span)
    return GAP.join(parts).rstrip()


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


def text_column(header: str, values: Iterable[object]) -> TextColumn:
    """A column of text."""
    return TextColumn(header, [text_of(_as_text(v)) or MISSING for v in values])


def _as_text(value: object) -> str:
    if _is_absent(value):
        return ""
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else str(value)


def number_column(
    header: str, values: Iterable[float], decimals: int, *, sign: str = "", group: str = ""
) -> TextColumn:
    """A column of numbers with the same number of decimals, so that they are easy to compare."""
    cells = [MISSING if _is_absent(v) else f"{v:{sign},.{decimals}f}".replace("-", MINUS) for v in values]
    return TextColumn(header, cells, is_number=True, group=group)


def _is_absent(value: object) -> bool:
    # pandas has four missing values; comparing its NA with anything has no truth value.
    return not isinstance(value, str) and str(value) in ("None", "nan", "NaT", "<NA>")


def terminal_width() -> int | None:
    """Characters per line of the terminal; None if stdout is no terminal and COLUMNS is not set."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


@dataclass(frozen=True)
class Scale:
    """The unit in which a whole column is shown: `value * factor` is in `unit`."""

    factor: float
    unit: str
    decimals: int


def scale(unit: str, values: Iterable[float]) -> Scale:
    """The best unit for a column in `unit` ("µs", "ms", "bytes", ""), chosen by its largest value."""
    largest = max((abs(v) for v in values if not _is_absent(v) and math.isfinite(v)), default=0.0)
    for factor, name, decimals, from_value in _SCALES.get(unit, ()):
        if largest >= from_value:
            return Scale(factor, name, decimals)
    return Scale(1.0, unit, 0 if all(_is_absent(v) or not math.isfinite(v) or v == int(v) for v in values) else 2)


_SCALES = {
    "µs": ((1e-6, "s", 3, 1e7), (1e-3, "ms", 3, 1e4), (1.0, "µs", 1, 0)),
    "ms": ((1e-3, "s", 3, 1e4), (1.0, "ms", 3, 10.0), (1e3, "µs", 1, 0)),
    "bytes": ((1e-9, "GB", 2, 1e9), (1e-6, "MB", 2, 1e6), (1e-3, "kB", 1, 1e3), (1.0, "B", 0, 0)),
    "bytes/s": ((1e-9, "GB/s", 2, 1e9), (1e-6, "MB/s", 2, 1e6), (1e-3, "kB/s", 1, 1e3), (1.0, "B/s", 0, 0)),
}
