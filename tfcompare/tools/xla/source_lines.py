"""The time of compiled programs by the line of the framework's program that it comes from."""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, change
from tfcompare.schema import SIDES


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
    moved, now = _moved(ours[is_pair], theirs[is_pair]), theirs[is_pair].groupby(ours[is_pair]).agg(_most_frequent)
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


def _moved(ours: pd.Series, theirs: pd.Series) -> dict[str, str]:
    """The baseline's line for each line of the candidate whose matched instructions all have that one."""
    lines: dict[str, set[str]] = defaultdict(set)
    for one, other in zip(ours, theirs, strict=True):
        lines[other].add(one)
    return {other: next(iter(ones)) for other, ones in lines.items() if len(ones) == 1}


def _most_frequent(lines: pd.Series) -> str:
    return str(lines.value_counts().index[0])
