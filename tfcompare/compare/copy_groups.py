"""A diff of copies added up by kind, over hosts and devices."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.compare.movers import metric_in
from tfcompare.compare.sums import SIDES, add_up, compared, in_order

_BANDWIDTH = "bandwidth_bytes_per_s"


def group_copies(diff: pd.DataFrame) -> pd.DataFrame:
    """A diff of `copies` added up by `kind`: columns `candidate`, `kind` and those of the diff that are no keys.

    Counts, bytes and times are sums, bytes missing where a row does not tell them; bandwidth is the mean over the time
    of the rows that have one, which is bytes ÷ time. The largest change of time comes first.
    """
    time = metric_in(diff, "duration_us")
    names = {metric: metric_in(diff, metric) for metric in ("occurrences", "size_bytes", "duration_us")}
    keys = dict.fromkeys(SIDES, diff[["kind"]])
    weighted = diff.copy()
    for side in SIDES:
        is_told = diff[f"{_BANDWIDTH}_{side}"].notna()
        weighted[f"told_us_{side}"] = diff[f"{time}_{side}"].where(is_told)
        weighted[f"moved_{side}"] = diff[f"{_BANDWIDTH}_{side}"].astype("float64") * diff[f"{time}_{side}"]
    groups = add_up(
        weighted,
        keys,
        {names["occurrences"]: "sum", names["size_bytes"]: "whole_sum", time: "sum", "told_us": "sum", "moved": "sum"},
        pd.Series(False, index=diff.index),
    )
    means = [(groups[f"moved_{side}"] / groups[f"told_us_{side}"].replace(0.0, np.nan)) for side in SIDES]
    groups = groups.assign(**compared(_BANDWIDTH, *means))
    columns = [c for name in (*names.values(), _BANDWIDTH) for c in groups.columns if c.rpartition("_")[0] == name]
    return in_order(
        groups[["candidate", "kind", *columns, "status", "match", "verdict", "evidence"]], diff, time, ["kind"]
    )
