"""Rows of a diff added up over groups: each side by itself first, then the sums are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.diff import ADDED, INTERVAL, MATCHED, REMOVED, VERDICT, largest_change_first, ratio
from tfcompare.compare.matching.tiers import CANONICAL, EXACT
from tfcompare.compare.stats.verdict import SAME, UNTESTED

Part = Literal["sum", "whole_sum", "min", "max", "any"]
"""How the cells of a group become one: a `whole_sum` is missing as soon as one of them is; `any` is for flags."""

SIDES = ("baseline", "candidate")


@dataclass(frozen=True)
class Groups:
    """Groups of one candidate's rows in the diff of `table`, by their numbers from 0.

    `number_of`: for each side the group that each row of it counts under, under the index of `rows`; `ratios`:
    candidate ÷ baseline of each group's headline metric as it is displayed.
    """

    table: str
    candidate: str
    rows: pd.DataFrame
    number_of: Mapping[str, pd.Series]
    ratios: pd.Series


GroupJudge = Callable[[Groups], pd.DataFrame]
"""Gives each group `verdict`, `evidence`, `interval_low` and `interval_high`, such as `Comparison.group_verdicts`."""


@dataclass(frozen=True)
class Judged:
    """How groups come by their verdicts: the table they are of, its headline metric as the diff names it, the judge."""

    table: str
    metric: str
    judge: GroupJudge


def add_up(
    diff: pd.DataFrame,
    keys: Mapping[str, pd.DataFrame],
    parts: Mapping[str, Part],
    is_renamed: pd.Series,
    judged: Judged | None = None,
) -> pd.DataFrame:
    """The groups of a diff, those of each candidate apart.

    `keys` are what each row of the diff counts under on the `baseline` and on the `candidate` side, `parts` the metrics
    by their names in the diff, `is_renamed` the rows whose pairing makes a group `canonical`. Columns: `candidate`, the
    keys; of each metric `_baseline`, `_candidate` and, but for flags, `_delta` and `_ratio`; `status` (whether the
    group is on both sides), `match`, `interval_low` and `interval_high` where groups are judged, `verdict` (where they
    are not: `same` where that of every row is, else `untested`), `evidence`. Rows are in no particular order.
    """
    diff = diff.assign(is_renamed=is_renamed)
    sides = [_side(diff, side, keys[side], list(parts)) for side in SIDES]
    names = ["candidate", *keys[SIDES[0]].columns]
    groups = pd.concat(sides, ignore_index=True).groupby(names)
    columns: dict[str, pd.Series] = {}
    for metric, part in parts.items():
        ours, theirs = (_put_together(groups, metric, side, part) for side in SIDES)
        columns |= both_sides(metric, ours, theirs) if part == "any" else compared(metric, ours, theirs)
    labels = groups[["in_baseline", "in_candidate", "is_renamed"]].any().join(groups["is_same"].all())
    result = pd.DataFrame(columns | _labels(labels)).reset_index()
    if judged is None:
        return result
    return with_verdicts(result, diff, _numbers(groups, sides), judged)


def with_verdicts(
    groups: pd.DataFrame, diff: pd.DataFrame, number_of: Mapping[str, pd.Series], judged: Judged
) -> pd.DataFrame:
    """`groups` with `interval_low`, `interval_high`, `verdict` and `evidence`, those of each candidate judged as one
    family.

    They have the columns `candidate`, `status` and the metric's; `number_of` gives for each side, under the index of
    the diff's rows, the position in `groups` of what a row counts under.
    """
    place = np.zeros(len(groups), np.int64)
    found = []
    for candidate, rows in groups.assign(position=np.arange(len(groups))).groupby("candidate", sort=False):
        place[rows["position"]] = np.arange(len(rows))
        here = diff[diff["candidate"] == candidate]
        numbers = {side: _renumbered(of_row, here.index, place) for side, of_row in number_of.items()}
        ratios = ratio(*(rows[f"{judged.metric}_{side}"].astype("float64") for side in SIDES)).reset_index(drop=True)
        of_groups = judged.judge(Groups(judged.table, str(candidate), here, numbers, ratios))
        found.append(of_groups.set_axis(rows.index))
    columns = pd.concat(found).reindex(groups.index) if found else pd.DataFrame(columns=list(VERDICT), dtype="float64")
    on_both = groups["status"] == MATCHED
    return groups.drop(columns=["verdict", "evidence"], errors="ignore").assign(
        **{name: columns[name].where(on_both) for name in INTERVAL},
        **{name: columns[name].astype("str").where(on_both) for name in ("verdict", "evidence")},
    )


def compared(metric: str, baseline: pd.Series, candidate: pd.Series) -> dict[str, pd.Series]:
    """The four columns that a diff has of a number."""
    change = {f"{metric}_delta": candidate - baseline, f"{metric}_ratio": ratio(baseline, candidate)}
    return both_sides(metric, baseline, candidate) | change


def both_sides(metric: str, baseline: pd.Series, candidate: pd.Series) -> dict[str, pd.Series]:
    """The two columns that a diff has of what is no number."""
    return {f"{metric}_baseline": baseline, f"{metric}_candidate": candidate}


def of_side(diff: pd.DataFrame, side: str) -> pd.DataFrame:
    """The rows of a diff that one side has."""
    return diff[diff["status"] != (ADDED if side == "baseline" else REMOVED)]


def in_order(groups: pd.DataFrame, diff: pd.DataFrame, metric: str, keys: list[str]) -> pd.DataFrame:
    """The largest change of the metric first, candidates in the order of the diff."""
    return candidates_in_order(largest_change_first(groups, metric, ["candidate", *keys]), diff)


def candidates_in_order(rows: pd.DataFrame, diff: pd.DataFrame) -> pd.DataFrame:
    """The rows with their candidates in the order that the diff has them, else in the order they come in."""
    place = {candidate: i for i, candidate in enumerate(diff["candidate"].unique())}
    order = rows["candidate"].map(place).sort_values(kind="stable").index
    return rows.loc[order].reset_index(drop=True)


def _side(diff: pd.DataFrame, side: str, keys: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """The rows that one side has, with its metrics and what its groups are to be labelled by."""
    rows = of_side(diff, side)[["candidate", "verdict", "is_renamed", *(f"{metric}_{side}" for metric in metrics)]]
    return rows.join(keys).assign(
        in_baseline=side == "baseline",
        in_candidate=side == "candidate",
        is_same=rows["verdict"] == SAME,
    )


def _put_together(groups: Any, metric: str, side: str, part: Part) -> pd.Series:
    cells = groups[f"{metric}_{side}"]
    if part == "min":
        return pd.Series(cells.min())
    if part in ("max", "any"):
        return pd.Series(cells.max())
    total = pd.Series(cells.sum(min_count=1))
    return total if part == "sum" else total.where(cells.count() == groups[f"in_{side}"].sum())


def _renumbered(of_row: pd.Series, rows: pd.Index, place: npt.NDArray[np.int64]) -> pd.Series:
    """The numbers of those of these rows that a side has, by their place among one candidate's groups."""
    there = of_row[of_row.index.isin(rows)]
    return pd.Series(place[there.to_numpy(np.int64)], there.index)


def _numbers(groups: Any, sides: list[pd.DataFrame]) -> dict[str, pd.Series]:
    """For each side, under the index of the diff's rows, the position of the group that each row counts under."""
    numbers = groups.ngroup().to_numpy()
    ours, theirs = (side.index for side in sides)
    return {"baseline": pd.Series(numbers[: len(ours)], ours), "candidate": pd.Series(numbers[len(ours) :], theirs)}


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
