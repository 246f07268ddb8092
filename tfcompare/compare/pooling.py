"""The rows of a table of several captures of one program as one frame: each figure by the kind of its column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tfcompare.frames.grouping import combinations
from tfcompare.schema import Table
from tfcompare.tables.frames import codes_of

POOLED = (
    *("op_stats", "kernel_stats", "copies", "hlo_ops", "op_profile", "compilations", "memory_summary"),
    *("input_pipeline", "host_annotations"),
)
"""Tables whose rows of several captures are brought together; of others, one capture stands for all."""

_OCCURRENCES = "occurrences"


def sums_of(table: Table) -> list[str]:
    """The columns of a table that are sums over what ran."""
    return [column.name for column in table.columns if column.kind == "sum"]


def pooled(table: Table, frames: Sequence[pd.DataFrame], divisors: Sequence[float]) -> pd.DataFrame:
    """One row for each row of any capture; those of the first capture come first.

    The frames have the same keys for the same row. The sums of each are divided by its divisor; their mean over all
    captures is taken, of which one without the row counts as 0 and one where it is unknown does not count. A mean is
    weighed by occurrences; minima and maxima are those of all; a level is the median capture's, the lower of the middle
    two. Everything else is that of the first capture that has the row.
    """
    every = pd.concat(frames, ignore_index=True)
    kinds = ("sum", "mean", "min", "max", "level")
    of_kind = {kind: [c.name for c in table.metrics if c.kind == kind] for kind in kinds}
    sums = every[of_kind["sum"]].astype("float64").div(np.repeat(divisors, [*map(len, frames)]), axis=0)
    every[of_kind["sum"]] = sums
    firsts, row = combinations(*(codes_of(every[key]) for key in table.keys))
    out = every.iloc[firsts].reset_index(drop=True)

    def by_row(numbers: pd.DataFrame) -> Any:
        return numbers.assign(row=row).groupby("row")

    unknown = by_row(sums.isna()).sum()
    out[of_kind["sum"]] = by_row(sums).sum(min_count=1) / (len(frames) - unknown)
    if of_kind["mean"]:
        means, weight = every[of_kind["mean"]], every[_OCCURRENCES].astype("float64")
        weights = means.notna().mul(weight, axis=0)
        out[of_kind["mean"]] = by_row(means.mul(weight, axis=0)).sum(min_count=1) / by_row(weights).sum()
    for kind in ("min", "max"):
        if of_kind[kind]:
            out[of_kind[kind]] = by_row(every[of_kind[kind]]).agg(kind)
    if of_kind["level"]:
        levels = by_row(every[of_kind["level"]].astype("float64"))
        out[of_kind["level"]] = levels.quantile(0.5, interpolation="lower").astype(every[of_kind["level"]].dtypes)
    return out


def mean_of(figures: Sequence[float]) -> float:
    """The mean of a figure over the captures that have it; NaN if none has."""
    known = [figure for figure in figures if not np.isnan(figure)]
    return float(np.mean(known)) if known else float("nan")


def median_of(figures: Sequence[float]) -> float:
    """The median capture's level, the lower of the middle two; NaN if no capture has one."""
    known = sorted(figure for figure in figures if not np.isnan(figure))
    return known[(len(known) - 1) // 2] if known else float("nan")
