"""Rows of a diff added up over groups: each side by itself first, then the sums are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, largest_change_first, ratio
from tfcompare.compare.matching import CANONICAL, EXACT
from tfcompare.compare.verdict import SAME, UNTESTED

Part = Literal["sum", "whole_sum", "min", "max", "any"]
"""How the cells of a group become one: a `whole_sum` is missing as soon as one of them is; `any` is for flags."""

SIDES = ("baseline", "candidate")


def add_up(
    diff: pd.DataFrame, keys: Mapping[str, pd.DataFrame], parts: Mapping[str, Part], is_renamed: pd.Series
) -> pd.DataFrame:
    """The groups of a diff, those of each candidate apart.

    `keys` are what each row of the diff counts under on the `baseline` and on the `candidate` side, `parts` the metrics
    by their names in the diff, `is_renamed` the rows whose pairing makes a group `canonical`. Columns: `candidate`, the
    keys; of each metric `_baseline`, `_candidate` and, but for flags, `_delta` and `_ratio`; `status` (whether the
    group is on both sides), `match`, `verdict` (`same` where a row's is). Rows are in no particular order.
    """
    sides = [_side(diff, side, keys[side], list(parts)).assign(is_renamed=is_renamed) for side in SIDES]
    names = ["candidate", *keys[SIDES[0]].columns]
    groups = pd.concat(sides, ignore_index=True).groupby(names)
    columns: dict[str, pd.Series] = {}
    for metric, part in parts.items():
        ours, theirs = (_put_together(groups, metric, side, part) for side in SIDES)
        columns |= both_sides(metric, ours, theirs) if part == "any" else compared(metric, ours, theirs)
    labels = groups[["in_baseline", "in_candidate", "is_renamed", "is_same"]].any()
    return pd.DataFrame(columns | _labels(labels)).reset_index()


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
    rows = of_side(diff, side)[["candidate", "verdict", *(f"{metric}_{side}" for metric in metrics)]]
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


def _labels(groups: pd.DataFrame) -> dict[str, pd.Series]:
    both = groups["in_baseline"] & groups["in_candidate"]
    status = np.select([both, groups["in_baseline"]], [MATCHED, REMOVED], ADDED)
    match = np.where(groups["is_renamed"], CANONICAL, EXACT)
    verdict = np.where(groups["is_same"], SAME, UNTESTED)
    return {
        "status": pd.Series(status, groups.index, dtype="str"),
        "match": pd.Series(match, groups.index, dtype="str").where(both),
        "verdict": pd.Series(verdict, groups.index, dtype="str").where(both),
    }
