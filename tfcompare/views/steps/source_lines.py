"""The time of compiled programs by source line, of the framework's program that each instruction comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any

import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, change
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.pair import Pair
from tfcompare.schema import SIDES
from tfcompare.units import format_delta, format_ratio, format_time_us, ratio_of
from tfcompare.views import links
from tfcompare.views.blocks import Block, Details, Facts, Finding, Links, Opens
from tfcompare.views.short_names import shorten_distinct
from tfcompare.views.view import by_role

MOST_LINES = 5
MOST_INSTRUCTIONS = 10
_ID = "source:"
_HELP = (
    "Self time of the instructions of compiled programs that come from this line of the program, as XLA recorded it; "
    "an arrow leads to the line's number in the candidate, and to its file if that is another. Select a row "
    "for its instructions."
)


def changes(pair: Pair) -> Iterator[Block]:
    """The lines whose time changed most; nothing for a run alone, for different programs, or where no line is known."""
    if pair.is_single or pair.are_unrelated:
        return
    lines = pair.cached("source lines", lambda: by_line(pair.instructions()))
    if lines.empty:
        return
    found = lines.head(MOST_LINES)
    labels = shorten_distinct(found["line"].tolist())
    cells, findings = [], []
    for label, row in zip(labels, found.to_dict("records"), strict=True):
        ours, theirs = float(row["self_time_us_baseline"]), float(row["self_time_us_candidate"])
        times = format_delta(theirs - ours, "µs"), format_time_us(ours), format_time_us(theirs)
        cells.append([f"{label}{_arrow(row)}", *times, format_ratio(ratio_of(ours, theirs))])
        findings.append(Finding(_id(row), str(row["line"]), "µs", ours, theirs, more="xla"))
    more = len(lines) - len(found)
    note, opens = f"{more:,} more changed." if more else "", Opens(partial(_details, pair, lines))
    header = [f"Largest changes by source line, self time per {pair.per_what}", "Change", *pair.headings, "Ratio"]
    yield Facts(header, cells, (1, 2, 3, 4), (), (2, 3), note, findings, opens, _HELP, "line")


def _details(pair: Pair, lines: pd.DataFrame, chosen: str) -> Details | None:
    """The line whose finding has that id."""
    for row in lines.to_dict("records"):
        if _id(row) == chosen:
            line = str(row["line"])
            return Details(line, partial(_instructions, pair, line, row["instructions"]))
    return None


def _id(row: Mapping[Hashable, Any]) -> str:
    return f"{_ID}{row['line']}{_arrow(row)}"


def _arrow(row: Mapping[Hashable, Any]) -> str:
    """` → 23`, where a line is in the candidate, in a file of another name ` → other.py:23`, without the folders that
    both are in; empty if it is the same line."""
    (file, _, before), (file_now, _, number) = (str(row[name]).rpartition(":") for name in ("line", "line_candidate"))
    if file_now.rpartition("/")[2] == file.rpartition("/")[2]:  # perhaps of another checkout
        return f" → {number}" if number != before else ""
    parts = file_now.split("/")
    same = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(file.split("/"), parts, strict=False)))
    return f" → {'/'.join(parts[same:])}:{number}"


def _instructions(pair: Pair, line: str, index: list[int]) -> Iterator[Block]:
    """The instructions of a line whose time changed most."""
    every = pair.instructions().loc[index]
    rows = largest_changes(every, MOST_INSTRUCTIONS)
    ops = rows["op_name_baseline"].fillna(rows["op_name_candidate"])
    cells = []
    for op, row in zip(ops, rows.to_dict("records"), strict=True):
        times = [format_time_us(row[name]) for name in by_role("self_time_us")]
        cells.append([str(row["hlo_op"]), format_delta(float(row["self_time_us_change"]), "µs"), *times, str(op)])
    header = [f"Instructions, self time per {pair.per_what}", "Change", *pair.headings, "Op"]
    yield Facts(header, cells, (1, 2, 3), optional=(4,))
    yield Links(list(links.to_instructions(pair, every, line)))


def by_line(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each line, the one whose time changed most first; none for lines whose time did not change.

    `rows` are those of a diff of `hlo_ops`. An instruction of both sides counts for its line in the baseline on both,
    though lines above it may have been added or removed since; so does one that only the candidate has, on a line that
    belongs to one of the baseline's. Columns: `line` (`train.py:118`), `line_candidate`, where most of its matched
    instructions are in the candidate, `self_time_us_baseline`, `_candidate` and `_delta`, in the diff's unit, and
    `instructions`, the index of its rows. Where a line moved and the candidate has new code at its old number, there
    are two rows of that `line` with another `line_candidate`.
    Instructions of unknown line are left out.
    """
    ours, theirs = (rows[f"source_{side}"].fillna("").astype(str) for side in SIDES)
    is_pair = (rows["status"] == MATCHED) & (ours != "") & (theirs != "")
    moved, now = _moved_line(ours[is_pair], theirs[is_pair]), theirs[is_pair].groupby(ours[is_pair]).agg(_most_frequent)
    is_theirs = (rows["status"] == ADDED) | (ours == "")
    line = ours.mask(is_theirs, theirs.map(lambda one: moved.get(one, one)))
    candidate = line.map(lambda one: now.get(one, one)).mask(is_theirs & ~theirs.isin(moved), theirs)
    times = {f"self_time_us_{side}": rows[f"self_time_us_{side}"].astype("float64").fillna(0.0) for side in SIDES}
    known = pd.DataFrame({"line": line, "line_candidate": candidate, **times, "row": rows.index})[line != ""]
    groups = known.groupby(["line", "line_candidate"], sort=False)
    found = groups[list(times)].sum()
    found["instructions"] = groups["row"].agg(list)
    found["self_time_us_delta"] = change(*(found[name] for name in times))
    found = found[found["self_time_us_delta"] != 0].reset_index()
    order = found["self_time_us_delta"].abs().sort_values(ascending=False, kind="stable").index
    return found.loc[order].reset_index(drop=True)


def _moved_line(ours: pd.Series, theirs: pd.Series) -> dict[str, str]:
    """The baseline's line for each line of the candidate whose matched instructions all have that one."""
    lines: dict[str, set[str]] = defaultdict(set)
    for one, other in zip(ours, theirs, strict=True):
        lines[other].add(one)
    return {other: next(iter(ones)) for other, ones in lines.items() if len(ones) == 1}


def _most_frequent(lines: pd.Series) -> str:
    return str(lines.value_counts().index[0])
