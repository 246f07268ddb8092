"""What a user does with two runs, by name: `load`, `table spans`, `diff`, `diff op_stats`, `view hosts`, `page hosts`,
`report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tfcompare import schema
from tfcompare.comparison import Comparison, compare
from tfcompare.render.report import report
from tfcompare.run import Run, load

LOAD, TABLE, DIFF, VIEW, PAGE, REPORT = "load", "table", "diff", "view", "page", "report"
_ON_DEMAND = ("spans", "hlo_edges")
"""Tables that are operations of their own: they repeat texts, and a profile is read again for the first of them."""


def load_all(folder: Path) -> None:
    """Read one capture with all its tables but those of single events and edges."""
    run = load(folder / "before" / "run-1")
    for name in schema.TABLES:
        if name not in _ON_DEMAND:
            run.table(name)


def comparison_of(folder: Path) -> Comparison:
    """The comparison of both sides, read anew: the captures in `before` and `after`."""
    ours, theirs = _captures(folder, "before"), _captures(folder, "after")
    return compare(ours[0], theirs[0], repeats={side[0].id: side[1:] for side in (ours, theirs)})


def _captures(folder: Path, side: str) -> list[Run]:
    return [replace(load(run), id=f"{side}/{run.name}") for run in sorted((folder / side).iterdir())]


def perform(operation: str, comparison: Comparison) -> None:
    """Print what changed, make one table or its diff, what a view says, the same with its charts, or the report."""
    what, _, name = operation.partition(" ")
    if operation == DIFF:
        comparison.view("overview", short=True).to("table")
    elif what == DIFF:
        comparison.table(name)
    elif what == TABLE:
        comparison.baseline.table(name)
    elif what == VIEW:
        comparison.view(name).to("json")
    elif what == PAGE:
        comparison.view(name).to("html")
    else:
        assert operation == REPORT
        report(comparison, "json")
