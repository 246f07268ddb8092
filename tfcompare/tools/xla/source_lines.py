"""The time of compiled programs by the line of the framework's program that it comes from."""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, change
from tfcompare.compare.groups.aggregate import metric_in
from tfcompare.schema import SIDES


def by_line(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each line, the one whose time changed most first; none for lines whose time did not change.

    `rows` are those of a diff of `hlo_ops`. An instruction of both sides counts for its line in the baseline on both,
    though lines above it may have been added or removed since; so does one that only the candidate has, on a line that
    belongs to one of the baseline's. Columns: `line` (`train.py:118`), `line_candidate`, where that line is in
    the candidate, `self_time_us_baseline`, `_candidate` and `_delta`, in the diff's unit, and `instructions`, the index
    of its rows.
    Instructions of unknown line are left out.
    """
    ours, theirs = (rows[f"source_{side}"].fillna("").astype(str) for side in SIDES)
    moved = _moved(ours[rows["status"] == MATCHED], theirs[rows["status"] == MATCHED])
    line = ours.mask((rows["status"] == ADDED) | (ours == ""), theirs.map(lambda one: moved.get(one, one)))
    metric = metric_in(rows, "self_time_us")
    times = {f"self_time_us_{side}": rows[f"{metric}_{side}"].astype("float64").fillna(0.0) for side in SIDES}
    known = pd.DataFrame({"line": line, "theirs": theirs, **times, "row": rows.index})[line != ""]
    groups = known.groupby("line", sort=False)
    found = groups[list(times)].sum()
    now = groups["theirs"].agg(_most_frequent)
    found["line_candidate"] = now.mask(now.isin(found.index), found.index.to_series())
    found["instructions"] = groups["row"].agg(list)
    found["self_time_us_delta"] = change(*(found[name] for name in times))
    found = found[found["self_time_us_delta"] != 0].reset_index()
    order = found["self_time_us_delta"].abs().sort_values(ascending=False, kind="stable").index
    return found.loc[order].reset_index(drop=True)


def _moved(ours: pd.Series, theirs: pd.Series) -> dict[str, str]:
    """The baseline's line for each line of the candidate whose matched instructions all have that one."""
    lines: dict[str, set[str]] = defaultdict(set)
    for one, other in zip(ours, theirs, strict=True):
        if one and other:
            lines[other].add(one)
    return {other: next(iter(ones)) for other, ones in lines.items() if len(ones) == 1}


def _most_frequent(lines: pd.Series) -> str:
    counts = lines[lines != ""].value_counts()
    return str(counts.index[0]) if len(counts) else ""
