"""The time of the input pipeline on the host, by op category, for both runs."""

from __future__ import annotations

import math

import pandas as pd

from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.schema import SIDES
from tfcompare.schema.input import INPUT_CATEGORIES, OTHER_INPUT


def with_shares(diff: pd.DataFrame) -> pd.DataFrame:
    """A diff of `input_pipeline` with shares of each side's total self time of input ops.

    Adds `input_self_share_<role>`, which add up to 1 over the rows of a side, and `input_total_share_<role>`, which may
    exceed 1 in total because an op's total time includes nested ops.
    """
    columns = {}
    for role in SIDES:
        self_time, total_time = (diff[f"{name}_{role}"].astype("float64") for name in ("self_time_us", "total_time_us"))
        whole = float(self_time.sum())
        for name, times in (("input_self_share", self_time), ("input_total_share", total_time)):
            columns[f"{name}_{role}"] = times / whole if whole > 0 else times * 0.0
    return diff.assign(**columns)


def category_times(diff: pd.DataFrame) -> pd.DataFrame:
    """The self time of input ops by category, one row for each of `INPUT_CATEGORIES`, in that order.

    Columns: `category`; `self_time_us_<role>` (per step if the diff is; missing on a side without input ops) and
    `share_<role>`, which add up to 1. `OTHER_INPUT` is left out if neither side has any.
    """
    times = pd.DataFrame({"category": pd.Series(INPUT_CATEGORIES, dtype="str")})
    for role, absent, key in (("baseline", ADDED, "category"), ("candidate", REMOVED, "category_candidate")):
        rows = diff[diff["status"] != absent]
        sums = rows[f"self_time_us_{role}"].astype("float64").groupby(rows[key]).sum()
        of_side = times["category"].map(sums).astype("float64").fillna(0.0 if len(rows) else math.nan)
        whole = float(of_side.sum())
        times[f"self_time_us_{role}"] = of_side
        times[f"share_{role}"] = of_side / whole if whole > 0 else of_side
    is_empty = times[[f"self_time_us_{role}" for role in SIDES]].fillna(0.0).sum(axis=1) == 0
    return times[~(is_empty & (times["category"] == OTHER_INPUT))].reset_index(drop=True)


def host_input_time_us(categories: pd.DataFrame, role: str) -> float:
    """The self time of all input ops of one side of `category_times`; NaN if it has none."""
    return float(categories[f"self_time_us_{role}"].sum(min_count=1))


def dominant(categories: pd.DataFrame, role: str) -> tuple[str, float] | None:
    """(the category with the most input time of a side, its share); None if the input took no time."""
    shares = categories.set_index("category")[f"share_{role}"].dropna()
    if shares.empty or shares.max() <= 0:
        return None
    return str(shares.idxmax()), float(shares.max())


def longest_op(diff: pd.DataFrame, role: str, category: str) -> str:
    """The name of the op with the largest self time in a category of a side, which must have such an op."""
    key = "_candidate" if role == "candidate" else ""
    rows = diff[diff["status"] != (REMOVED if role == "candidate" else ADDED)]
    rows = rows[rows[f"category{key}"] == category]
    longest_first = rows.sort_values(f"self_time_us_{role}", ascending=False, kind="stable")
    return str(longest_first[f"op_name{key}"].iloc[0])
