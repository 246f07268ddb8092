"""Rows of a diff of ops that stand for several ops of a side: a fused op and what it was made of, compared as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcompare.compare.matching.fused import fused_ops, fused_product
from tfcompare.compare.matching.matching import Evidence, Pairing
from tfcompare.compare.matching.tiers import FUSED

CONSTITUENTS = "constituents"
"""The column with the ops that a fused row stands for on a side, as TensorFlow writes them: `name:type`."""

_OP = ["op_type", "op_name"]
_RATES = ("flops_per_s", "bandwidth_bytes_per_s", "operational_intensity")


def with_fused_rows(
    pairing: Pairing, sides: tuple[pd.DataFrame, pd.DataFrame], aligned: pd.DataFrame, evidence: Evidence
) -> tuple[Pairing, tuple[pd.DataFrame, pd.DataFrame]]:
    """The pairing and the two frames of `op_stats`, with a further row a side for each group of fused ops.

    The rows of a group are in no pair any more. `aligned` is the candidate's frame with the baseline's names of hosts.
    The frames have the further column `CONSTITUENTS`, which is missing in all other rows.
    """
    pairs = pd.DataFrame({"baseline": pairing.baseline, "candidate": pairing.candidate, "match": pairing.match})
    groups = fused_ops(pairs, (sides[0], aligned), (evidence[0].places, evidence[1].places))
    rows = [group.baseline for group in groups], [group.candidate for group in groups]
    frames = (
        _with_sums(sides[0], rows[0], [group.named[0] for group in groups]),
        _with_sums(sides[1], rows[1], [group.named[1] for group in groups]),
    )
    if not groups:
        return pairing, frames
    ours, theirs = ({row for group in of_side for row in group} for of_side in rows)
    pairs = pairs.assign(
        baseline=pairs["baseline"].where(~pairs["baseline"].isin(ours), -1),
        candidate=pairs["candidate"].where(~pairs["candidate"].isin(theirs), -1),
    )
    pairs = pairs[(pairs["baseline"] >= 0) | (pairs["candidate"] >= 0)]
    on_both = (pairs["baseline"] >= 0) & (pairs["candidate"] >= 0)
    more = np.arange(len(groups))
    return Pairing(
        np.concatenate([pairs["baseline"], len(sides[0]) + more]),
        np.concatenate([pairs["candidate"], len(sides[1]) + more]),
        np.concatenate([pairs["match"].where(on_both, None), np.full(len(groups), FUSED, object)]),
    ), frames


def _with_sums(frame: pd.DataFrame, groups: Sequence[Sequence[int]], named: Sequence[int]) -> pd.DataFrame:
    """The frame with a further row for each group of its rows, each with the name of one of them."""
    frame = frame.assign(**{CONSTITUENTS: pd.Series(None, frame.index, "object")})
    sums = [_sum(frame.iloc[list(rows)], frame.iloc[name]) for rows, name in zip(groups, named, strict=True)]
    return pd.concat([frame, pd.DataFrame(sums).astype(frame.dtypes)], ignore_index=True) if sums else frame


def _sum(ops: pd.DataFrame, named: pd.Series) -> dict[str, object]:
    """One row for several ops: the name of `named`, all types, the sums of counts, times and costs known for all."""
    row: dict[str, object] = dict(named)
    types = Counter(ops["op_type"])
    row["op_type"] = " + ".join(op_type if count == 1 else f"{count} × {op_type}" for op_type, count in types.items())
    for metric in ("occurrences", "total_time_us", "self_time_us", "wall_time_us", "flops", "bytes_accessed"):
        row[metric] = ops[metric].sum(skipna=False)
    row["is_eager"] = bool(ops["is_eager"].any())
    if len(ops) > 1:
        row |= dict.fromkeys(_RATES, np.nan) | {"bound_by": ""}
    row[CONSTITUENTS] = tuple(f"{name}:{op_type}" for op_type, name in ops[_OP].itertuples(index=False))
    return row


def single_ops(rows: pd.DataFrame, side: str) -> pd.DataFrame:
    """The ops behind the rows of a diff of ops on a side: columns `host_or_device`, `op_type` and `op_name`.

    A fused row is as many rows as it has constituents, all with its label in the index.
    """
    names = [f"{key}_candidate" if side == "candidate" and f"{key}_candidate" in rows else key for key in _OP]
    found = rows[["host_or_device", *names]].set_axis(["host_or_device", *_OP], axis=1)
    column = f"{CONSTITUENTS}_{side}"
    if column not in rows or not rows[column].notna().any():
        return found
    several = rows[column].dropna().explode().str.rpartition(":")
    parts = pd.DataFrame({"op_type": several[2], "op_name": several[0]}).join(found["host_or_device"])
    return pd.concat([found[rows[column].isna()], parts[found.columns]])


def fused_types(rows: pd.DataFrame) -> pd.Series:
    """The type of the fused op of each fused row of a diff of ops; missing in other rows."""
    found = rows[rows["match"] == FUSED]
    sides = zip(*(found[f"{CONSTITUENTS}_{side}"] for side in ("baseline", "candidate")), strict=True)
    fewest = [[op.rpartition(":")[2] for op in min(ours, theirs, key=len)] for ours, theirs in sides]
    types = [next(filter(fused_product, of_row), of_row[0]) for of_row in fewest]
    return pd.Series(types, found.index, "str").reindex(rows.index)
