"""The versions of the tables in a store: one changes when the table declares other columns, or its number is raised."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

from tfcompare import __version__
from tfcompare.frames.host import NUMBERS, HostTables
from tfcompare.frames.origin import Origin
from tfcompare.schema import HOST_TABLES
from tfcompare.sources.logdir import RunSummary
from tfcompare.store.contents import digest_of

SUMMARY = "summary"
_SUMMARY_NUMBER = 3
"""As `NUMBERS`, of a run's summary."""


def versions() -> dict[str, str]:
    """The version of each table of a host file, of the other facts of a host (`host`), and of a run's `summary`."""
    declared: dict[str, object] = {name: table.declaration for name, table in HOST_TABLES.items()}
    declared["host"] = [(field.name, str(field.type)) for kind in (HostTables, Origin) for field in fields(kind)]
    declared[SUMMARY] = [(field.name, str(field.type)) for field in fields(RunSummary)]
    numbers = NUMBERS | {SUMMARY: _SUMMARY_NUMBER}
    return {name: f"{numbers[name]}-{digest_of(what)[:8]}" for name, what in declared.items()}


@cache
def reader_version() -> str:
    """What the names of packs depend on: the versions, and the release, in case that a number was not raised."""
    return digest_of([versions(), __version__])[:16]
