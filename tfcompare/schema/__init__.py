"""Every table's columns, declared once: name, dtype, kind, unit, label, meaning.

Frames, diffs, the command line, CSV headers and pages all read the columns from here. Times are microseconds as float64
unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfcompare.errors import Unknown
from tfcompare.schema.columns import ALL_HOSTS, DEVICE, HOST, IDLE, Column, Kind, Table
from tfcompare.schema.ops import OP_STATS, OP_STEPS
from tfcompare.schema.runs import RUN_INFO, STEPS

__all__ = [
    "ALL_HOSTS",
    "DEVICE",
    "HOST",
    "IDLE",
    "OP_STATS",
    "OP_STEPS",
    "RUN_INFO",
    "STEPS",
    "TABLES",
    "Column",
    "Kind",
    "Table",
    "names",
    "table",
]

TABLES: dict[str, Table] = {t.name: t for t in (RUN_INFO, STEPS, OP_STATS, OP_STEPS)}


def table(name: str) -> Table:
    """The declared table of that name; raises `Unknown` for any other."""
    if name not in TABLES:
        raise Unknown("table", name, sorted(TABLES))
    return TABLES[name]


def names(columns: Iterable[Column]) -> list[str]:
    """The columns' names, in their order."""
    return [c.name for c in columns]
