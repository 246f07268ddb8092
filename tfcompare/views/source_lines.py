"""Which lines of the program became slower or faster, as far as they are in compiled programs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from tfcompare.charts.pair import Pair
from tfcompare.compare.groups.aggregate import largest_changes, metric_in
from tfcompare.tools.short_names import shorten_distinct
from tfcompare.tools.xla.source_lines import by_line
from tfcompare.units import format_delta, format_ratio, format_time_us, ratio_of
from tfcompare.views import links
from tfcompare.views.blocks import Block, Details, Facts, Finding, Links, Opens
from tfcompare.views.view import sides_of

MOST_LINES = 5
MOST_INSTRUCTIONS = 10
_ID = "source:"
_HELP = (
    "Self time of the instructions of compiled programs that come from this line of the program, as XLA recorded it; "
    "an arrow leads to the line's number in the candidate. Select a row for its instructions."
)


def changes(pair: Pair) -> Iterator[Block]:
    """The lines whose time changed most; nothing for a run alone, or where no line is known."""
    if pair.is_single:
        return
    lines = pair.cached("source lines", lambda: by_line(pair.instructions()))
    if lines.empty:
        return
    found = lines.head(MOST_LINES)
    labels = shorten_distinct(found["line"].tolist())
    cells, findings = [], []
    for label, row in zip(labels, found.to_dict("records"), strict=True):
        ours, theirs = float(row["self_time_us_baseline"]), float(row["self_time_us_candidate"])
        now = str(row["line_candidate"])
        cells.append([
            label if now in ("", row["line"]) else f"{label} → {now.rpartition(':')[2]}",
            format_delta(theirs - ours, "µs"), format_time_us(ours), format_time_us(theirs),
            format_ratio(ratio_of(ours, theirs)),
        ])  # fmt: skip
        findings.append(Finding(f"{_ID}{row['line']}", str(row["line"]), "µs", ours, theirs, more="xla"))
    more = len(lines) - len(found)
    yield Facts(
        [f"Largest changes by source line, self time per {pair.comparison.per}", "Change", *pair.headings, "Ratio"],
        cells, (1, 2, 3, 4), optional=(2, 3), note=f"{more:,} more changed." if more else "", findings=findings,
        opens=Opens(partial(_details, pair, lines)), help=_HELP, address="line",
    )  # fmt: skip


def _details(pair: Pair, lines: pd.DataFrame, chosen: str) -> Details | None:
    """The line whose finding has that id."""
    found = lines[lines["line"] == chosen.removeprefix(_ID)]
    if found.empty:
        return None
    line = str(found["line"].iloc[0])
    return Details(line, partial(_instructions, pair, line, found["instructions"].iloc[0]))


def _instructions(pair: Pair, line: str, index: list[int]) -> Iterator[Block]:
    """The instructions of a line whose time changed most."""
    every = pair.instructions().loc[index]
    rows = largest_changes(every, MOST_INSTRUCTIONS)
    metric = metric_in(rows, "self_time_us")
    ops = rows["op_name_baseline"].fillna(rows["op_name_candidate"])
    cells = [
        [
            str(row["hlo_op"]),
            format_delta(float(row[f"{metric}_change"]), "µs"),
            *(format_time_us(row[name]) for name in sides_of(metric)),
            str(op),
        ]
        for op, row in zip(ops, rows.to_dict("records"), strict=True)
    ]
    header = [f"Instructions, self time per {pair.comparison.per}", "Change", *pair.headings, "Op"]
    yield Facts(header, cells, (1, 2, 3), optional=(4,))
    yield Links(list(links.to_instructions(pair, every, line)))
