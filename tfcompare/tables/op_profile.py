"""`op_profile`: where the time of XLA programs goes, as trees over the rows of `hlo_ops`."""

from __future__ import annotations

import pandas as pd

from tfcompare import schema
from tfcompare.schema.hlo import BY_PROGRAM, BY_SOURCE, MOST_UNKNOWN, UNKNOWN_SOURCE

_KEYS = [name for name in schema.OP_PROFILE.keys if name != "host"]
_SUMS = ["occurrences", "executions", "self_time_us", "flops", "bytes_accessed"]
_COSTS = ["flops", "bytes_accessed"]
_PATHS = {
    BY_PROGRAM: (["program"], ["program", "category"], ["program", "category", "hlo_op"]),
    BY_SOURCE: (["source_file"], ["source_file", "source"], ["source_file", "source", "program", "category", "hlo_op"]),
}
"""The columns that identify the nodes of each level of a tree."""


def op_profile(hlo_ops: pd.DataFrame) -> pd.DataFrame:
    """Columns of `schema.OP_PROFILE`, host by host and level by level, from `hlo_ops`; longest self time first. What
    SparseCores ran at the same time as a TensorCore is left out."""
    hlo_ops = hlo_ops[hlo_ops["core_type"] != schema.SPARSE_CORE]
    if hlo_ops.empty:
        return schema.OP_PROFILE.empty()
    source = hlo_ops["source"].where(hlo_ops["source"] != "", UNKNOWN_SOURCE)
    ops = hlo_ops.assign(source=source, source_file=source.str.replace(r":\d+$", "", regex=True))
    nodes = [
        _nodes(ops, ["host", *path]).assign(tree=tree, depth=depth)
        for tree, paths in _PATHS.items()
        for depth, path in enumerate(paths, 1)
    ]
    rows = pd.concat(nodes, ignore_index=True)
    rows[[*_KEYS, "op_name"]] = rows[[*_KEYS, "op_name"]].fillna("")
    rows = rows.sort_values(
        ["host", "tree", "depth", "self_time_us", *_KEYS], ascending=[True, True, True, False, *[True] * len(_KEYS)]
    )
    seconds = (rows["self_time_us"] / 1e6).where(rows["self_time_us"] > 0)
    return schema.OP_PROFILE.conform(
        rows.assign(
            flops_per_s=rows["flops"] / seconds,
            bandwidth_bytes_per_s=rows["bytes_accessed"] / seconds,
        ).reset_index(drop=True)
    )


def _nodes(ops: pd.DataFrame, path: list[str]) -> pd.DataFrame:
    """One row per node; costs are missing where those of instructions within are that take a part of the time."""
    unknown = {f"unknown_{cost}": ops["self_time_us"].where(ops[cost].isna(), 0.0) for cost in _COSTS}
    groups = ops.assign(**unknown).groupby(path, as_index=False, sort=False)
    rows, known = groups[[*_SUMS, *unknown]].sum(), groups[_COSTS].count()
    for cost in _COSTS:
        is_known = rows[f"unknown_{cost}"] <= MOST_UNKNOWN * rows["self_time_us"]
        rows[cost] = rows[cost].where(is_known & (known[cost] > 0))
    return rows.assign(op_name=groups["op_name"].first()["op_name"]) if "hlo_op" in path else rows
