"""Where a diff of ops moved most, row by row and added up over op types, names or name scopes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from tfcompare.compare.coverage import without_idle
from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, change, largest_change_first, ratio
from tfcompare.compare.matching import CANONICAL, EXACT
from tfcompare.compare.verdict import SAME, UNTESTED
from tfcompare.errors import Unknown
from tfcompare.schema import IDLE

Grouping = Literal["op_name", "op_type", "scope"]

NO_SCOPE = "(no scope)"
"""The scope of an op whose name has no `/`."""

ADDITIVE = ("occurrences", "self_time_us")
"""Metrics that may be added up over ops; `total_time_us` may not, since it holds that of the ops within."""


def metric_in(diff: pd.DataFrame, metric: str) -> str:
    """The metric's name in a diff, which is `<metric>_per_step` where figures are per step; raises `Unknown`."""
    for name in (metric, f"{metric}_per_step"):
        if f"{name}_delta" in diff.columns:
            return name
    known = [c.removesuffix("_delta") for c in diff.columns if c.endswith("_delta")]
    raise Unknown("metric of the diff", metric, known)


def largest_changes(diff: pd.DataFrame, n: int = 10, metric: str = "self_time_us") -> pd.DataFrame:
    """The `n` rows of each candidate in which the metric changed most, either way, without IDLE.

    The diff's columns, and `<metric>_change`: candidate − baseline, where an absent side counts as 0. Rows that did not
    change are left out. Raises `Unknown` for a metric that the diff does not have.
    """
    name = metric_in(diff, metric)
    busy = without_idle(diff)
    changes = change(busy[f"{name}_baseline"], busy[f"{name}_candidate"])
    moved = busy.assign(**{f"{name}_change": changes})[changes != 0]
    by_size = moved.loc[moved[f"{name}_change"].abs().sort_values(ascending=False, kind="stable").index]
    largest = by_size.groupby("candidate", sort=False).head(n)
    return _candidates_in_order(largest, diff)


def group_diff(diff: pd.DataFrame, by: Grouping) -> pd.DataFrame:
    """A diff of ops added up over `op_type`, `op_name` or `scope` (the name without its last component).

    Each side is added up first, then the sums are compared; host and device are kept apart, since their times overlap.
    An op that was paired under two names counts under the baseline's; one that changed its type counts under the type
    it has on either side. Columns: `candidate`, `host_or_device`, `<by>`; of each metric in `ADDITIVE` (per step as in
    the diff) `_baseline`, `_candidate`, `_delta`, `_ratio`; `status` (whether the group is on both sides), `match`
    (`canonical` where a row of the group was paired so), `verdict`. The largest change of self time comes first.

    Raises `Unknown` for another `by`.
    """
    if by not in ("op_name", "op_type", "scope"):
        raise Unknown("grouping", by, ["op_name", "op_type", "scope"])
    keys = ["candidate", "host_or_device", by]
    metrics = [metric_in(diff, metric) for metric in ADDITIVE]
    sides = [_side(diff, by, metrics, side) for side in ("baseline", "candidate")]
    groups = pd.concat(sides, ignore_index=True).groupby(keys, as_index=False)
    sums = groups[[f"{metric}_{side}" for metric in metrics for side in ("baseline", "candidate")]].sum(min_count=1)
    columns = {key: sums[key] for key in keys}
    for metric in metrics:
        ours, theirs = sums[f"{metric}_baseline"], sums[f"{metric}_candidate"]
        columns |= {f"{metric}_baseline": ours, f"{metric}_candidate": theirs}
        columns |= {f"{metric}_delta": theirs - ours, f"{metric}_ratio": ratio(ours, theirs)}
    columns |= _labels(groups[["in_baseline", "in_candidate", "is_canonical", "is_same"]].any())
    return _candidates_in_order(largest_change_first(pd.DataFrame(columns), metrics[-1], keys), diff)


def scope_of(names: pd.Series) -> pd.Series:
    """The names without their last component; `NO_SCOPE` for a name of one, and IDLE for IDLE."""
    scopes = [IDLE if name == IDLE else name.rpartition("/")[0] or NO_SCOPE for name in names]
    return pd.Series(scopes, index=names.index, dtype="str")


def _group_key(diff: pd.DataFrame, by: Grouping, side: str) -> pd.Series:
    if by == "op_type" and side == "candidate":
        return diff["op_type_candidate"]
    return scope_of(diff["op_name"]) if by == "scope" else diff[by]


def _side(diff: pd.DataFrame, by: Grouping, metrics: list[str], side: str) -> pd.DataFrame:
    """The rows that one side has, with its metrics and what its groups are to be labelled by."""
    rows = diff[diff["status"] != (ADDED if side == "baseline" else REMOVED)]
    return rows[["candidate", "host_or_device", *(f"{metric}_{side}" for metric in metrics)]].assign(
        **{by: _group_key(rows, by, side)},
        in_baseline=side == "baseline",
        in_candidate=side == "candidate",
        is_canonical=(rows["match"] == CANONICAL) & (by != "op_type"),
        is_same=rows["verdict"] == SAME,
    )


def _labels(groups: pd.DataFrame) -> dict[str, pd.Series]:
    both = groups["in_baseline"] & groups["in_candidate"]
    status = np.select([both, groups["in_baseline"]], [MATCHED, REMOVED], ADDED)
    match = np.where(groups["is_canonical"], CANONICAL, EXACT)
    verdict = np.where(groups["is_same"], SAME, UNTESTED)
    return {
        "status": pd.Series(status, dtype="str"),
        "match": pd.Series(match, dtype="str").where(both),
        "verdict": pd.Series(verdict, dtype="str").where(both),
    }


def _candidates_in_order(rows: pd.DataFrame, diff: pd.DataFrame) -> pd.DataFrame:
    """The rows with their candidates in the order that the diff has them, else in the order they come in."""
    place = {candidate: i for i, candidate in enumerate(diff["candidate"].unique())}
    order = rows["candidate"].map(place).sort_values(kind="stable").index
    return rows.loc[order].reset_index(drop=True)
