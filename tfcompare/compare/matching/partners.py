"""Suggestions for manual matches: the unmatched ops or kernels of the other side, the most similar first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import of_side
from tfcompare.compare.matching.guesses import names_apart
from tfcompare.compare.matching.manual import Name, names_of_rows
from tfcompare.schema import IDLE

MOST_COMPARED = 2000
"""Only this many names, those with the most time, are ranked."""

_TENFOLD = np.log(10)


def free_names(diff: pd.DataFrame, side: str, columns: Sequence[str], metric: str) -> pd.DataFrame:
    """The names on one side of a diff without any matched row; `columns` are the columns that hold the names.

    Columns: `name`, `kind` (the op type, else empty), `time_us` (the metric's sum, per step as in the diff), sorted by
    descending time. IDLE and kernels without an op are excluded.
    """
    own = "_candidate" if side == "candidate" else ""
    rows = of_side(diff, side)
    if "op_type" in rows:
        rows = rows[rows["op_type"] != IDLE]
    names = names_of_rows(rows, [f"{column}{own}" for column in columns])
    kinds = rows[f"op_type{own}"].array if "op_type" in rows else ""
    found = pd.DataFrame(
        {
            "name": pd.Series(names, dtype="object"),
            "kind": pd.Series(kinds, index=range(len(names)), dtype="str"),
            "time_us": rows[f"{metric}_{side}"].astype("float64").array,
            "is_matched": (rows["status"] == MATCHED).array,
        }
    )
    groups = found.groupby("name", sort=True)
    result = groups.agg(kind=("kind", "first"), time_us=("time_us", "sum"), is_matched=("is_matched", "any"))
    result = result[~result["is_matched"]].drop(columns="is_matched").reset_index()
    result = result[np.array([all(name) for name in result["name"]], np.bool_)]
    return result.sort_values("time_us", ascending=False, kind="stable", ignore_index=True)


def most_alike_first(free: pd.DataFrame, name: Name, kind: str, time_us: float) -> pd.DataFrame:
    """The result of `free_names`, sorted by similarity of words, type and time to a name of the other side."""
    free = free.head(MOST_COMPARED)
    if free.empty:
        return free
    names = [" ".join(other) for other in free["name"]]
    times = np.log(np.maximum(free["time_us"].to_numpy(np.float64), 1e-6) / max(time_us, 1e-6))
    apart = (
        0.6 * names_apart([" ".join(name)], names)[0]
        + 0.2 * (free["kind"] != kind).to_numpy(np.float64)
        + 0.2 * np.minimum(np.abs(times) / _TENFOLD, 1.0)
    )
    return free.iloc[np.argsort(apart, kind="stable")].reset_index(drop=True)
