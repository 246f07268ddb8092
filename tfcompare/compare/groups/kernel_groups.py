"""Sums a diff of kernels over hosts and launches: by kernel, by op, or by both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import pandas as pd

from tfcompare.compare.diff import ADDED, INTERVAL, MATCHED, REMOVED
from tfcompare.compare.groups.aggregate import GroupJudge, Judged, Part, aggregate, compared, in_order, of_side
from tfcompare.compare.matching.kernel_names import is_instruction, plain_kernel
from tfcompare.compare.matching.manual import OF_CANDIDATE, ManualChoice, counterparts, parted, with_distinct_names
from tfcompare.compare.matching.matching import op_counterparts
from tfcompare.errors import Unknown
from tfcompare.schema import KERNEL_STATS, SIDES

KernelGrouping = Literal["kernel_name", "op_name", "kernel_and_op"]

KEYS: dict[KernelGrouping, list[str]] = {
    "kernel_name": ["kernel_name"],
    "op_name": ["op_name"],
    "kernel_and_op": ["kernel_name", "op_name"],
}

_TOTAL, _OCCURRENCES, _MEAN = "total_duration_us", "occurrences", "avg_duration_us"
_PARTS: dict[str, Part] = {"sum": "sum", "min": "min", "max": "max", "flag": "any"}

OF_BASELINE = " (baseline's)"
"""Suffix for a kernel without a counterpart whose name also belongs to another one."""

_Kernel = tuple[str, ...]
"""A kernel of one side: its name and, where XLA named it after an instruction, its op, since another program has
another kernel of that name; empty for none."""

_Names = tuple[str, str]
"""A kernel's names in the baseline and the candidate, empty where it has no counterpart."""


def group_kernels(
    diff: pd.DataFrame,
    by: KernelGrouping,
    judge: GroupJudge | None = None,
    manual_pairs: Sequence[ManualChoice] = (),
    counted: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A diff of `kernel_stats` grouped by `kernel_name`, `op_name`, or both (`kernel_and_op`).

    Each side is summed first, then the sums are compared. Counts and total times are sums (per step as in the diff),
    the average is total ÷ count, shortest and longest are taken over all rows, and a flag is true if any row's is. Rows
    matched under two names count under the baseline's name, and so do other rows of the same kernel or op. One that
    XLA named after an instruction is the same only in the same op; different kernels of one name get names such as
    `fusion_3 → fusion_5` or `fusion_3 (candidate's)`.
    `manual_pairs` are the manual choices with which the diff (of one candidate) was made; `counted` is the result of
    `counted_under`, if it is known.

    Columns: `candidate`, the keys (`op_name` is empty for kernels without an op); for each metric `_baseline`,
    `_candidate` and, except for flags, `_delta` and `_ratio`; `status`, `match` (`canonical` if names differ),
    `verdict`, `evidence`. With a `judge`, such as `Pair.group_verdicts`, each group is tested, and there are
    `interval_low` and `interval_high`. The largest change of total time comes first.

    Raises `Unknown` for another `by`.
    """
    if by not in KEYS:
        raise Unknown("grouping", by, list(KEYS))
    parts = {metric.name: _PARTS[metric.kind] for metric in KERNEL_STATS.metrics if metric.kind in _PARTS}
    counted = counted_under(diff, by, manual_pairs) if counted is None else counted
    is_renamed = pd.concat([diff[f"{key}_candidate"].fillna(counted[key]) != counted[key] for key in KEYS[by]], axis=1)
    judged = None if judge is None else Judged(KERNEL_STATS.name, _TOTAL, judge)
    groups = aggregate(diff, dict.fromkeys(SIDES, counted[KEYS[by]]), parts, is_renamed.any(axis=1), judged)
    means = [groups[f"{_TOTAL}_{side}"] / groups[f"{_OCCURRENCES}_{side}"] for side in SIDES]
    groups = groups.assign(**compared(_MEAN, *(mean.astype("float64") for mean in means)))
    order = [c for m in KERNEL_STATS.metrics for c in groups.columns if c.rpartition("_")[0] == m.name]
    intervals = [name for name in INTERVAL if name in groups]
    groups = groups[["candidate", *KEYS[by], *order, "status", "match", *intervals, "verdict", "evidence"]]
    return in_order(groups, diff, _TOTAL, KEYS[by])


def counted_under(
    diff: pd.DataFrame, by: KernelGrouping = "op_name", manual_pairs: Sequence[ManualChoice] = ()
) -> pd.DataFrame:
    """The `kernel_name` and `op_name` under which each row of a diff of `kernel_stats` counts if grouped `by`."""
    names = with_distinct_names(diff, manual_pairs)[["kernel_name", "op_name"]].copy()
    for _, rows in diff.groupby("candidate", sort=False):
        added = rows.index[rows["status"] == ADDED]
        ops = _ops(rows, manual_pairs)
        own = zip(rows.loc[added, "op_name"], names.loc[added, "op_name"], strict=True)
        names.loc[added, "op_name"] = [ops.get(name, counted) for name, counted in own]
        within = names.loc[rows.index, "op_name"].tolist() if by == "kernel_and_op" else [""] * len(rows)
        names.loc[rows.index, "kernel_name"] = _labels(_kernels(rows), within)
        if manual_pairs and by == "kernel_and_op":
            _apply_choices(names, rows.loc[added], manual_pairs)
    return names


def _apply_choices(names: pd.DataFrame, added: pd.DataFrame, manual_pairs: Sequence[ManualChoice]) -> None:
    """Sets in `names` the names under which manually paired or separated kernels among the added rows count."""
    pairs, apart = counterparts(manual_pairs, 2), parted(manual_pairs, 2)
    taken = set(pairs.values())
    for row, op, kernel in zip(added.index, added["op_name"], added["kernel_name"], strict=True):
        counted = names.at[row, "op_name"], names.at[row, "kernel_name"]
        if (op, kernel) in pairs:
            names.loc[row, ["op_name", "kernel_name"]] = list(pairs[op, kernel])
        elif counted in taken or (counted, (op, kernel)) in apart:
            names.at[row, "op_name"] = f"{op}{OF_CANDIDATE}"


def _ops(rows: pd.DataFrame, manual_pairs: Sequence[ManualChoice]) -> dict[str, str]:
    """Maps each matched op of the candidate to the baseline's name: by its matched kernels, else by op names."""
    ours, theirs = of_side(rows, "baseline"), of_side(rows, "candidate")
    sides = (
        pd.DataFrame({"op_name": ours["op_name"], _TOTAL: ours[f"{_TOTAL}_baseline"]}),
        pd.DataFrame({"op_name": theirs["op_name_candidate"], _TOTAL: theirs[f"{_TOTAL}_candidate"]}),
    )
    pairs = rows.loc[rows["status"] == MATCHED, ["op_name_candidate", "op_name"]].drop_duplicates()
    sole = pairs[~(pairs["op_name_candidate"].duplicated(keep=False) | pairs["op_name"].duplicated(keep=False))]
    known = dict(zip(sole["op_name_candidate"], sole["op_name"], strict=True))
    by_name = op_counterparts(KERNEL_STATS.name, sides[0], sides[1], manual_pairs)
    taken = set(known.values())
    return known | {c: b for c, b in by_name.items() if c not in known and b not in taken}


def _kernels(rows: pd.DataFrame) -> list[_Names]:
    """The names of each row's kernel on both sides: its own if it is matched, else those in other rows."""
    ours, theirs = _identities(rows, ADDED, ""), _identities(rows, REMOVED, "_candidate")
    pairs = {(one, other) for one, other in zip(ours, theirs, strict=True) if one and other}
    sets = {one for one in ours if one}, {other for other in theirs if other}
    forth, back = _counterparts(pairs, *sets), _counterparts({pair[::-1] for pair in pairs}, *sets[::-1])
    return [
        (one[0] if one else back.get(other, ""), other[0] if other else forth.get(one, ""))
        for one, other in zip(ours, theirs, strict=True)
    ]


def _identities(rows: pd.DataFrame, absent: str, suffix: str) -> list[_Kernel]:
    """The kernel of each row on one side; empty in rows of status `absent`, which do not exist there."""
    names = zip(rows["status"], rows[f"kernel_name{suffix}"], rows[f"op_name{suffix}"], strict=True)
    return [() if status == absent else (name, op if is_instruction(name) else "") for status, name, op in names]


def _counterparts(pairs: set[tuple[_Kernel, _Kernel]], ours: set[_Kernel], theirs: set[_Kernel]) -> dict[_Kernel, str]:
    """The name on the other side of each kernel of one side that has exactly one there.

    Kernels correspond if they are equal, if rows were matched, or if they differ only in return type, arguments and
    compiler suffixes.
    """
    known: dict[_Kernel, set[str]] = defaultdict(set)
    for one, other in pairs:
        known[one].add(other[0])
    found = {one: next(iter(names)) for one, names in known.items() if len(names) == 1}
    left = _by_plain_name(theirs - ours - {other for _, other in pairs})
    for plain, kernels in _by_plain_name(ours - theirs - known.keys()).items():
        if len(kernels) == 1 and len(left.get(plain, [])) == 1:
            found[kernels[0]] = left[plain][0][0]
    return found | {one: one[0] for one in ours & theirs}


def _by_plain_name(kernels: set[_Kernel]) -> dict[_Kernel, list[_Kernel]]:
    found: dict[_Kernel, list[_Kernel]] = defaultdict(list)
    for name, op in kernels:
        found[plain_kernel(name), op].append((name, op))
    return found


def _labels(kernels: Sequence[_Names], within: Sequence[str]) -> list[str]:
    """The name in the baseline, else in the candidate, of each kernel, unique among those with an equal `within`."""
    labels: dict[tuple[str, _Names], str] = {}
    taken: set[tuple[str, str]] = set()
    for scope, (ours, theirs) in sorted(
        set(zip(within, kernels, strict=True)),
        key=lambda one: (not one[1][0], not one[1][1], one[1][0] != one[1][1], one),
    ):
        label = ours or theirs
        if (scope, label) in taken:
            label = f"{ours} → {theirs}" if ours and theirs else f"{label}{OF_BASELINE if ours else OF_CANDIDATE}"
        taken.add((scope, label))
        labels[scope, (ours, theirs)] = label
    return [labels[one] for one in zip(within, kernels, strict=True)]
