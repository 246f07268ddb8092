"""Rows of a diff summed by group, their largest changes, and the share of time that was matched.

`aggregate` is the general function; this module also groups ops and copies. `kernel_groups` groups kernels, and
`scope_tree` builds the tree of name scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, INTERVAL, MATCHED, REMOVED, change, largest_change_first, ratio
from tfcompare.compare.groups.fused_rows import fused_types
from tfcompare.compare.matching.scopes import in_baseline_scopes
from tfcompare.compare.matching.tiers import CANONICAL, EXACT, FUSED, MANUAL, PROBABLE, STRUCTURAL
from tfcompare.compare.stats.verdict import SAME, UNTESTED
from tfcompare.errors import Unknown
from tfcompare.schema import IDLE, OP_STATS, SIDES
from tfcompare.units import share_of

Grouping = Literal["op_name", "op_type", "scope"]

NO_SCOPE = "(no scope)"
"""The scope of an op whose name has no `/`."""

ADDITIVE = ("occurrences", "self_time_us")
"""Metrics that can be summed over ops; `total_time_us` cannot, since it includes nested ops."""

Part = Literal["sum", "whole_sum", "min", "max", "any"]
"""How the cells of a group are aggregated: a `whole_sum` is missing if any cell is missing; `any` is for flags."""

_BANDWIDTH = "bandwidth_bytes_per_s"
SHARES = ["matched_share", "exact_share"]
COLUMNS = ["candidate", *SHARES, *(f"{share}_{side}" for side in SIDES for share in SHARES)]


@dataclass(frozen=True)
class Groups:
    """Groups of the rows of the diff of `table` with one candidate, numbered from 0.

    `number_of`: for each side, the group number of each row, indexed as `rows`; `ratios`: the displayed ratio
    (candidate ÷ baseline) of each group's headline metric.
    """

    table: str
    rows: pd.DataFrame
    number_of: Mapping[str, pd.Series]
    ratios: pd.Series


GroupJudge = Callable[[Groups], pd.DataFrame]
"""A function that returns `verdict`, `evidence`, `interval_low` and `interval_high` of each group.

`Pair.group_verdicts` is one.
"""


@dataclass(frozen=True)
class Judged:
    """How groups get their verdicts: their table, its headline metric as named in the diff, and the judge."""

    table: str
    metric: str
    judge: GroupJudge


def aggregate(
    diff: pd.DataFrame,
    keys: Mapping[str, pd.DataFrame],
    parts: Mapping[str, Part],
    is_renamed: pd.Series,
    judged: Judged | None = None,
) -> pd.DataFrame:
    """Aggregates a diff into groups, separately for each candidate.

    `keys` are the group keys of each row for the `baseline` and the `candidate` side; `parts` are the metrics, by their
    names in the diff; `is_renamed` marks the rows whose match makes a group `canonical`.

    Columns: `candidate`, the keys; for each metric `_baseline`, `_candidate` and, except for flags, `_delta` and
    `_ratio`; `status` (whether the group is on both sides), `match`, `verdict`, `evidence`; with `judged` also
    `interval_low` and `interval_high`. Without `judged`, `verdict` is `same` if it is for every row, else `untested`.
    Rows are in no particular order.
    """
    diff = diff.assign(is_renamed=is_renamed)
    sides = [_side(diff, side, keys[side], list(parts)) for side in SIDES]
    names = ["candidate", *keys[SIDES[0]].columns]
    groups = pd.concat(sides, ignore_index=True).groupby(names)
    columns: dict[str, pd.Series] = {}
    for metric, part in parts.items():
        ours, theirs = (_combine(groups, metric, side, part) for side in SIDES)
        columns |= both_sides(metric, ours, theirs) if part == "any" else compared(metric, ours, theirs)
    labels = groups[["in_baseline", "in_candidate", "is_renamed"]].any().join(groups["is_same"].all())
    result = pd.DataFrame(columns | _labels(labels)).reset_index()
    if judged is None:
        return result
    ends = np.cumsum([len(side) for side in sides])[:-1]
    numbers = zip(SIDES, np.split(groups.ngroup().to_numpy(), ends), sides, strict=True)
    number_of = {name: pd.Series(number, side.index) for name, number, side in numbers}
    return with_verdicts(result, diff, number_of, judged)


def with_verdicts(
    groups: pd.DataFrame, diff: pd.DataFrame, number_of: Mapping[str, pd.Series], judged: Judged
) -> pd.DataFrame:
    """Adds `interval_low`, `interval_high`, `verdict` and `evidence` to groups of one candidate, tested as one family.

    `groups` has the columns `candidate`, `status` and the metric's. `number_of` maps, for each side, the index of the
    diff's rows to the position of their group in `groups`.
    """
    ratios = ratio(*(groups[f"{judged.metric}_{side}"].astype("float64") for side in SIDES)).reset_index(drop=True)
    columns = judged.judge(Groups(judged.table, diff, number_of, ratios)).set_axis(groups.index)
    on_both = groups["status"] == MATCHED
    return groups.drop(columns=["verdict", "evidence"], errors="ignore").assign(
        **{name: columns[name].where(on_both) for name in INTERVAL},
        **{name: columns[name].astype("str").where(on_both) for name in ("verdict", "evidence")},
    )


def compared(metric: str, baseline: pd.Series, candidate: pd.Series) -> dict[str, pd.Series]:
    """The four columns of a numeric metric in a diff."""
    change = {f"{metric}_delta": candidate - baseline, f"{metric}_ratio": ratio(baseline, candidate)}
    return both_sides(metric, baseline, candidate) | change


def both_sides(metric: str, baseline: pd.Series, candidate: pd.Series) -> dict[str, pd.Series]:
    """The two columns of a non-numeric metric in a diff."""
    return {f"{metric}_baseline": baseline, f"{metric}_candidate": candidate}


def of_side(diff: pd.DataFrame, side: str) -> pd.DataFrame:
    """The rows of a diff that exist on one side."""
    return diff[diff["status"] != (ADDED if side == "baseline" else REMOVED)]


def in_order(groups: pd.DataFrame, diff: pd.DataFrame, metric: str, keys: list[str]) -> pd.DataFrame:
    """Sorts by the change of the metric, largest first, with candidates in the order of the diff."""
    return candidates_in_order(largest_change_first(groups, metric, ["candidate", *keys]), diff)


def candidates_in_order(rows: pd.DataFrame, diff: pd.DataFrame) -> pd.DataFrame:
    """The rows with candidates sorted as in the diff, otherwise in their original order, numbered anew."""
    place = {candidate: i for i, candidate in enumerate(diff["candidate"].unique())}
    order = rows["candidate"].map(place).sort_values(kind="stable").index
    return rows.loc[order].reset_index(drop=True)


def without_idle(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table or diff without IDLE; all rows if there is no column `op_type`."""
    return rows[rows["op_type"] != IDLE] if "op_type" in rows.columns else rows


def largest_changes(diff: pd.DataFrame, n: int = 10, metric: str = "self_time_us") -> pd.DataFrame:
    """The `n` rows of each candidate with the largest absolute change of the metric, without IDLE.

    Returns the diff's columns and `<metric>_change`: candidate − baseline, where an absent side counts as 0. Rows
    without a change are left out. Raises `Unknown` if the diff does not have the metric.
    """
    if f"{metric}_delta" not in diff:
        known = [c.removesuffix("_delta") for c in diff.columns if c.endswith("_delta")]
        raise Unknown("metric of the diff", metric, known)
    busy = without_idle(diff)
    changes = change(busy[f"{metric}_baseline"], busy[f"{metric}_candidate"])
    moved = busy.assign(**{f"{metric}_change": changes})[changes != 0]
    by_size = moved.loc[moved[f"{metric}_change"].abs().sort_values(ascending=False, kind="stable").index]
    largest = by_size.groupby("candidate", sort=False).head(n)
    return candidates_in_order(largest, diff)


def group_diff(diff: pd.DataFrame, by: Grouping, judge: GroupJudge | None = None) -> pd.DataFrame:
    """A diff of ops grouped by `op_type`, `op_name` or `scope` (the name without its last component).

    Each side is summed first, then the sums are compared. Host and device are separate groups, since their times
    overlap. An op matched under two names counts under the baseline's; an op whose type changed counts on each side
    under its type there, except that a fused op and what it was made of count under the fused type; an op that only the
    candidate has counts in the baseline's scope (`in_baseline_scopes`).

    Columns: `candidate`, `host_or_device`, `<by>`; for each metric in `ADDITIVE` (per step as in the diff) `_baseline`,
    `_candidate`, `_delta`, `_ratio`; `status` (whether the group is on both sides), `match` (`canonical` if any row of
    the group was not matched by its exact name), `verdict`. With a `judge`, such as `Pair.group_verdicts`, each
    group is tested, and there are `interval_low` and `interval_high`. The largest change of self time comes first.

    Raises `Unknown` for another `by`.
    """
    if by not in ("op_name", "op_type", "scope"):
        raise Unknown("grouping", by, ["op_name", "op_type", "scope"])
    keys = {side: _group_keys(diff, by, side) for side in SIDES}
    is_renamed = diff["match"].isin([MANUAL, CANONICAL, STRUCTURAL, FUSED, PROBABLE]) & (by != "op_type")
    judged = None if judge is None else Judged(OP_STATS.name, ADDITIVE[-1], judge)
    groups = aggregate(diff, keys, dict.fromkeys(ADDITIVE, "sum"), is_renamed, judged)
    return in_order(groups, diff, ADDITIVE[-1], ["host_or_device", by])


def scope_of(names: pd.Series) -> pd.Series:
    """The names without their last component; `NO_SCOPE` for names with one component, and IDLE for IDLE."""
    scopes = [IDLE if name == IDLE else name.rpartition("/")[0] or NO_SCOPE for name in names]
    return pd.Series(scopes, index=names.index, dtype="str")


def group_copies(diff: pd.DataFrame) -> pd.DataFrame:
    """A diff of `copies` summed by `kind`: columns `candidate`, `kind` and the non-key columns of the diff.

    Counts, bytes and times are sums; bytes are missing if any row lacks them. Bandwidth is the time-weighted mean of
    the rows that have one, which is bytes ÷ time. The largest change of time comes first.
    """
    keys = dict.fromkeys(SIDES, diff[["kind"]])
    weighted = diff.copy()
    for side in SIDES:
        is_known = diff[f"{_BANDWIDTH}_{side}"].notna()
        weighted[f"known_us_{side}"] = diff[f"duration_us_{side}"].where(is_known)
        weighted[f"moved_{side}"] = diff[f"{_BANDWIDTH}_{side}"].astype("float64") * diff[f"duration_us_{side}"]
    parts: dict[str, Part] = {"occurrences": "sum", "size_bytes": "whole_sum", "duration_us": "sum"}
    helpers: dict[str, Part] = {"known_us": "sum", "moved": "sum"}
    groups = aggregate(weighted, keys, parts | helpers, pd.Series(False, index=diff.index))
    means = [(groups[f"moved_{side}"] / groups[f"known_us_{side}"].replace(0.0, np.nan)) for side in SIDES]
    groups = groups.assign(**compared(_BANDWIDTH, *means))
    columns = [c for name in (*parts, _BANDWIDTH) for c in groups.columns if c.rpartition("_")[0] == name]
    groups = groups[["candidate", "kind", *columns, "status", "match", "verdict", "evidence"]]
    return in_order(groups, diff, "duration_us", ["kind"])


def _group_keys(diff: pd.DataFrame, by: Grouping, side: str) -> pd.DataFrame:
    if by == "scope":
        names = scope_of(in_baseline_scopes(diff))
    else:
        names = diff["op_type_candidate" if by == "op_type" and side == "candidate" else by]
        if by == "op_type":
            names = fused_types(diff).fillna(names)
    return pd.DataFrame({"host_or_device": diff["host_or_device"], by: names})


def _side(diff: pd.DataFrame, side: str, keys: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """The rows that exist on one side, with that side's metrics and the columns for the groups' labels."""
    rows = of_side(diff, side)[["candidate", "verdict", "is_renamed", *(f"{metric}_{side}" for metric in metrics)]]
    there = {f"in_{name}": side == name for name in SIDES}
    return rows.join(keys).assign(**there, is_same=rows["verdict"] == SAME)


def _combine(groups: Any, metric: str, side: str, part: Part) -> pd.Series:
    cells = groups[f"{metric}_{side}"]
    if part == "min":
        return pd.Series(cells.min())
    if part in ("max", "any"):
        return pd.Series(cells.max())
    total = pd.Series(cells.sum(min_count=1))
    return total if part == "sum" else total.where(cells.count() == groups[f"in_{side}"].sum())


def _labels(groups: pd.DataFrame) -> dict[str, pd.Series]:
    both = groups["in_baseline"] & groups["in_candidate"]
    status = np.select([both, groups["in_baseline"]], [MATCHED, REMOVED], ADDED)
    match = np.where(groups["is_renamed"], CANONICAL, EXACT)
    verdict = np.where(groups["is_same"], SAME, UNTESTED)
    return {
        "status": pd.Series(status, groups.index, dtype="str"),
        "match": pd.Series(match, groups.index, dtype="str").where(both),
        "verdict": pd.Series(verdict, groups.index, dtype="str").where(both),
        "evidence": pd.Series(None, groups.index, dtype="str"),
    }


def coverage(diff: pd.DataFrame, metric: str, candidates: list[str]) -> pd.DataFrame:
    """The shares (0 to 1) of a metric's total in matched rows and in exactly matched rows, one row per candidate.

    Columns: `candidate`; `matched_share` and `exact_share` of the total of both sides; the same two shares of each
    side alone (`…_baseline`, `…_candidate`). IDLE rows are excluded. A share is NaN where the total is 0.
    """
    busy = without_idle(diff)
    of_candidates = ((candidate, busy[busy["candidate"] == candidate]) for candidate in candidates)
    rows = [{"candidate": candidate, **_shares(own, metric)} for candidate, own in of_candidates]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"candidate": "str"})


def _shares(diff: pd.DataFrame, metric: str) -> dict[str, float]:
    sides = {side: diff[f"{metric}_{side}"].astype("float64").fillna(0.0) for side in SIDES}
    shares: dict[str, float] = {}
    for name, chosen in zip(SHARES, (diff["status"] == MATCHED, diff["match"] == EXACT), strict=True):
        parts = {side: (float(values[chosen].sum()), float(values.sum())) for side, values in sides.items()}
        (ours, our_total), (theirs, their_total) = parts.values()
        shares[name] = share_of(ours + theirs, our_total + their_total)
        shares |= {f"{name}_{side}": share_of(part, total) for side, (part, total) in parts.items()}
    return shares
