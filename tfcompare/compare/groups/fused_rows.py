"""Rows of a diff of ops that stand for several ops of a side: a fused op and what it was made of, compared as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcompare.compare.matching.fused import fused_ops, fused_product
from tfcompare.compare.matching.matching import Evidence, Pairing
from tfcompare.compare.matching.tiers import FUSED
from tfcompare.schema import SIDES
from tfcompare.text import as_code, as_markdown, middle_ellipsis

CONSTITUENTS = "constituents"
"""The column with the ops that a fused row stands for on a side, as TensorFlow writes them: `name:type`."""

BECAME = " → "
"""Between the ops that a fused row stands for in the baseline and those in the candidate, in its `op_type`."""
MOST_OF_TYPES = 160
"""Longer types of fused rows are cut in sentences; those of Grappler take half of it."""
_OP = ["op_type", "op_name"]
_SUMS = ("total_time_us", "self_time_us", "wall_time_us", "flops", "bytes_accessed")
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
    ours, theirs = (_with_sums(sides[k], rows[k], [group.named[k] for group in groups]) for k in (0, 1))
    if not groups:
        return pairing, (ours, theirs)
    parts = [{row for group in of_side for row in group} for of_side in rows]
    pairs = pairs.assign(
        baseline=pairs["baseline"].where(~pairs["baseline"].isin(parts[0]), -1),
        candidate=pairs["candidate"].where(~pairs["candidate"].isin(parts[1]), -1),
    )
    pairs = pairs[(pairs["baseline"] >= 0) | (pairs["candidate"] >= 0)]
    on_both = (pairs["baseline"] >= 0) & (pairs["candidate"] >= 0)
    more = np.arange(len(groups))
    return Pairing(
        np.concatenate([pairs["baseline"], len(sides[0]) + more]),
        np.concatenate([pairs["candidate"], len(sides[1]) + more]),
        np.concatenate([pairs["match"].where(on_both, None), np.full(len(groups), FUSED, object)]),
    ), (ours, theirs)


def _with_sums(frame: pd.DataFrame, groups: Sequence[Sequence[int]], named: Sequence[int]) -> pd.DataFrame:
    """The frame with a row for each group, named as one of them: sums, missing if one is, and the most occurrences."""
    frame = frame.assign(**{CONSTITUENTS: pd.Series(None, frame.index, "object")})
    if not groups:
        return frame
    number = np.repeat(np.arange(len(groups)), [len(rows) for rows in groups])
    parts = frame.iloc[[row for rows in groups for row in rows]]
    by_group = parts.groupby(number)
    sizes = by_group.size()
    fused = frame.iloc[list(named)].reset_index(drop=True)
    fused[list(_SUMS)] = by_group[list(_SUMS)].sum().where(by_group[list(_SUMS)].count().eq(sizes, axis=0))
    fused["occurrences"], fused["is_eager"] = by_group["occurrences"].max(), by_group["is_eager"].any()
    fused["op_type"] = by_group["op_type"].agg(_listed_names)
    fused[CONSTITUENTS] = (parts["op_name"] + ":" + parts["op_type"]).groupby(number).agg(tuple)
    for rate in _RATES:
        fused[rate] = fused[rate].where(sizes == 1)
    fused["bound_by"] = fused["bound_by"].where(sizes == 1, "")
    return pd.concat([frame, fused.astype(frame.dtypes)], ignore_index=True)


def _listed_names(types: pd.Series) -> str:
    """`MatMul + BiasAdd`, or `2 × MatMul + BiasAdd`."""
    counts = Counter(types)
    return " + ".join(op_type if count == 1 else f"{count} × {op_type}" for op_type, count in counts.items())


def row_name(op_name: str, op_type: str) -> str:
    """What a row of a diff of ops is called: `m/d/Relu`, or `m/d: MatMul + BiasAdd + Relu → _FusedMatMul` if it is a
    fused row, of which the name of an op would be that of a part."""
    return f"{_layer(op_name)}: {op_type}" if BECAME in op_type else op_name


def row_name_as_code(op_name: str, op_type: str, letters: int) -> str:
    """The result of `row_name` in Markdown, with names of at most so many letters."""
    if BECAME in op_type:
        return f"{as_code(_layer(op_name), letters)}: {as_markdown(middle_ellipsis(op_type, MOST_OF_TYPES))}"
    return as_code(op_name, letters)


def _layer(op_name: str) -> str:
    return op_name.rpartition("/")[0] or op_name


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
    columns = [found[name] for name in ("op_name", "op_name_candidate", *(f"{CONSTITUENTS}_{side}" for side in SIDES))]
    types = []
    for ours, theirs, before, after in zip(*columns, strict=True):
        parts = [(f"{name}:", op) for name, ops in ((ours, before), (theirs, after)) for op in ops]
        own = (op.removeprefix(name) for name, op in parts if op.startswith(name))
        types.append(next(filter(fused_product, own)))
    return pd.Series(types, found.index, "str").reindex(rows.index)
