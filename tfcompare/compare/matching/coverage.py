"""The share of two runs' time that a diff matches."""

from __future__ import annotations

import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.matching.tiers import EXACT
from tfcompare.schema import SIDES
from tfcompare.units import share_of

SHARES = ["matched_share", "exact_share"]
COLUMNS = ["candidate", *SHARES, *(f"{share}_{side}" for side in SIDES for share in SHARES)]


def coverage(diff: pd.DataFrame, metric: str, candidates: list[str]) -> pd.DataFrame:
    """The shares (0 to 1) of a metric's total in matched rows and in exactly matched rows, one row per candidate.

    Columns: `candidate`; `matched_share` and `exact_share` of the total of both sides; the same two shares of each
    side alone (`…_baseline`, `…_candidate`). IDLE rows are excluded. A share is NaN where the total is 0.
    """
    busy = without_idle(diff)
    rows = [
        {"candidate": candidate, **_shares(busy[busy["candidate"] == candidate], metric)} for candidate in candidates
    ]
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
