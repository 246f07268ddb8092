"""The last of the pairing of ops: rows that no name and no place has paired, by likeness alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.compare.guesses import Figures, likely_ops
from tfcompare.compare.places import UNTYPED

_KEYS = ["host", "host_or_device", "op_type"]


def likely_rows(
    baseline: pd.DataFrame, candidate: pd.DataFrame, whole: tuple[pd.DataFrame, pd.DataFrame]
) -> pd.DataFrame:
    """Likely pairs among the rows of `op_stats` that are left of both sides.

    Columns: `baseline` and `candidate`, the rows' labels. Only ops of one side and type pair. `whole` are all rows of
    either side, which counts and times are put in relation to.
    """
    ours, theirs = (dict(iter(side[~side["op_type"].isin(UNTYPED)].groupby(_KEYS))) for side in (baseline, candidate))
    pairs: list[tuple[int, int]] = []
    for key in ours.keys() & theirs.keys():
        sides = ours[key], theirs[key]
        found = likely_ops(*(_figures(side, of) for side, of in zip(sides, whole, strict=True)))
        pairs += [(sides[0].index[i], sides[1].index[j]) for i, j in found]
    return pd.DataFrame(sorted(pairs), columns=["baseline", "candidate"], dtype=np.intp)


def _figures(rows: pd.DataFrame, whole: pd.DataFrame) -> Figures:
    busy = whole[~whole["op_type"].isin(UNTYPED)]
    count, time = busy["occurrences"].sum(), busy["self_time_us"].sum()
    occurrences = rows["occurrences"].to_numpy(np.float64)
    per_occurrence = rows["self_time_us"].to_numpy(np.float64) / np.maximum(occurrences, 1)
    return Figures(
        rows["op_name"].tolist(), occurrences / max(count, 1), per_occurrence / max(time / max(count, 1), 1e-9)
    )
