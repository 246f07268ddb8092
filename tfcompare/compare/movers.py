"""Where a diff of ops moved most, row by row and added up over op types, names or name scopes."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from tfcompare.compare.diff import change
from tfcompare.compare.matching.coverage import without_idle
from tfcompare.compare.matching.tiers import BY_HAND, CANONICAL, PROBABLE, STRUCTURAL
from tfcompare.compare.sums import SIDES, GroupJudge, Judged, add_up, candidates_in_order, in_order
from tfcompare.errors import Unknown
from tfcompare.schema import IDLE, OP_STATS

Grouping = Literal["op_name", "op_type", "scope"]

NO_SCOPE = "(no scope)"
"""The scope of an op whose name has no `/`."""

ADDITIVE = ("occurrences", "self_time_us")
"""Metrics that may be added up over ops; `total_time_us` may not, since it holds that of the ops within."""


def metric_in(diff: pd.DataFrame, metric: str) -> str:
    """The metric's name in a diff: `<metric>_per_step` or `_per_device` where figures are; raises `Unknown`."""
    for name in (metric, f"{metric}_per_step", f"{metric}_per_device"):
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
    return candidates_in_order(largest, diff)


def group_diff(diff: pd.DataFrame, by: Grouping, judge: GroupJudge | None = None) -> pd.DataFrame:
    """A diff of ops added up over `op_type`, `op_name` or `scope` (the name without its last component).

    Each side is added up first, then the sums are compared; host and device are kept apart, since their times overlap.
    An op that was paired under two names counts under the baseline's; one that changed its type counts under the type
    it has on either side. Columns: `candidate`, `host_or_device`, `<by>`; of each metric in `ADDITIVE` (per step as in
    the diff) `_baseline`, `_candidate`, `_delta`, `_ratio`; `status` (whether the group is on both sides), `match`
    (`canonical` where a row of the group was not paired by its exact name), `verdict`. With a `judge`, such as
    `Comparison.group_verdicts`, verdicts are the groups' own, and there are `interval_low` and `interval_high`. The
    largest change of self time comes first.

    Raises `Unknown` for another `by`.
    """
    if by not in ("op_name", "op_type", "scope"):
        raise Unknown("grouping", by, ["op_name", "op_type", "scope"])
    keys = {side: _group_keys(diff, by, side) for side in SIDES}
    metrics = [metric_in(diff, metric) for metric in ADDITIVE]
    is_renamed = diff["match"].isin([BY_HAND, CANONICAL, STRUCTURAL, PROBABLE]) & (by != "op_type")
    judged = None if judge is None else Judged(OP_STATS.name, metrics[-1], judge)
    groups = add_up(diff, keys, dict.fromkeys(metrics, "sum"), is_renamed, judged)
    return in_order(groups, diff, metrics[-1], ["host_or_device", by])


def scope_of(names: pd.Series) -> pd.Series:
    """The names without their last component; `NO_SCOPE` for a name of one, and IDLE for IDLE."""
    scopes = [IDLE if name == IDLE else name.rpartition("/")[0] or NO_SCOPE for name in names]
    return pd.Series(scopes, index=names.index, dtype="str")


def _group_keys(diff: pd.DataFrame, by: Grouping, side: str) -> pd.DataFrame:
    if by == "scope":
        names = scope_of(diff["op_name"])
    else:
        names = diff["op_type_candidate" if by == "op_type" and side == "candidate" else by]
    return pd.DataFrame({"host_or_device": diff["host_or_device"], by: names})
