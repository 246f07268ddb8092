"""Kernels, instructions and op profile of all hosts as frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames.grouping import combinations
from tfcompare.schema.arrays import Int64
from tfcompare.schema.hlo import BY_PROGRAM, BY_SOURCE, HLO_OPS, MOST_UNKNOWN, UNKNOWN_SOURCE
from tfcompare.schema.kernels import KERNEL_STATS, KERNEL_STEPS
from tfcompare.tables.frames import codes_of
from tfcompare.tables.step_times import StepCells
from tfcompare.xspace.space import PS_PER_US

_COUNTS = ["executions", "occurrences"]
_COSTS = ["flops", "bytes_accessed"]
_TIMES = {"total_time_us": "total_time_ps", "self_time_us": "self_time_ps"}
_NAMES = [name for name in schema.OP_PROFILE.keys if name not in ("host", "tree", "depth")]
_SUMS = ["occurrences", "executions", "self_time_us", "flops", "bytes_accessed"]
_PATHS = {
    BY_PROGRAM: (["program"], ["program", "category"], ["program", "category", "hlo_op"]),
    BY_SOURCE: (["source_file"], ["source_file", "source"], ["source_file", "source", "program", "category", "hlo_op"]),
}
"""The columns that identify the nodes of each level of a tree."""


def kernel_steps(stats: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Columns of `schema.KERNEL_STEPS`, from the tables `kernel_stats` and `kernel_cells` of some hosts."""
    rows = StepCells(stats[list(KERNEL_STATS.keys)], cells).frame()
    return KERNEL_STEPS.conform(rows.rename(columns={"time_us": "total_duration_us"}))


def kernel_stats_in_steps(whole: pd.DataFrame, cells: pd.DataFrame, included: pd.Series) -> pd.DataFrame:
    """`whole`, which has the columns of `schema.KERNEL_STATS`, with occurrences and times of the included steps alone.

    `cells` are `kernel_cells` of the rows of `whole`, which are counted from 0; `included` are step numbers. A kernel
    without any there has 0 of both, and the average of the whole; shortest and longest times are always those of the
    whole.
    """
    chosen = cells[np.isin(cells["step"], included)]
    found = chosen.groupby("row")[["occurrences", "time_us"]].sum().reindex(range(len(whole)), fill_value=0)
    count, time_us = found["occurrences"].to_numpy(), found["time_us"].to_numpy()
    average_us = np.where(count > 0, time_us / np.maximum(count, 1), whole["avg_duration_us"].to_numpy())
    return KERNEL_STATS.conform(whole.assign(occurrences=count, total_duration_us=time_us, avg_duration_us=average_us))


def hlo_ops_in_steps(whole: pd.DataFrame, cells: pd.DataFrame, included: pd.Series) -> pd.DataFrame:
    """`whole`, which has the columns of `schema.HLO_OPS`, with executions and times of the included steps alone.

    `cells` are `hlo_cells` of the rows of `whole`, which are counted from 0; `included` are step numbers. FLOPs and
    bytes are by executions, unless each was recorded. An instruction without any there has 0 of all. Rates are always
    those of the whole.
    """
    groups = cells[np.isin(cells["step"], included)].groupby("row")
    sums = groups[[*_COUNTS, *_TIMES.values()]].sum().reindex(range(len(whole)), fill_value=0)
    share = sums["executions"] / whole["executions"].clip(lower=1)
    recorded = groups[_COSTS].sum().where(groups[_COSTS].count().eq(groups.size(), axis=0)).reindex(sums.index)
    return HLO_OPS.conform(
        whole.assign(
            **{name: sums[name] for name in _COUNTS},
            **{name: sums[own] / PS_PER_US for name, own in _TIMES.items()},
            **{cost: recorded[cost].fillna(whole[cost] * share) for cost in _COSTS},
        )
    )


def op_profile(hlo_ops: pd.DataFrame) -> pd.DataFrame:
    """Columns of `schema.OP_PROFILE`, host by host and level by level, from `hlo_ops`; longest self time first. What
    SparseCores ran at the same time as a TensorCore is left out."""
    hlo_ops = hlo_ops[hlo_ops["core_type"] != schema.SPARSE_CORE]
    if hlo_ops.empty:
        return schema.OP_PROFILE.empty()
    source = hlo_ops["source"].where(hlo_ops["source"] != "", UNKNOWN_SOURCE)
    ops = hlo_ops.assign(source=source, source_file=source.str.replace(r":\d+$", "", regex=True))
    unknown = {f"unknown_{cost}": ops["self_time_us"].where(ops[cost].isna(), 0.0) for cost in _COSTS}
    figures = ops[_SUMS].assign(**unknown)
    codes = {name: codes_of(ops[name]) for name in ("host", *_NAMES)}
    nodes = []
    for tree, paths in _PATHS.items():
        for depth, path in enumerate(paths, 1):
            firsts, node = combinations(*(codes[name] for name in ("host", *path)))
            names = ["host", *path, *(["op_name"] if "hlo_op" in path else [])]
            cells = {name: ops[name].array.take(firsts) for name in names}
            nodes.append(_sums_of_nodes(figures, node).assign(**cells, tree=tree, depth=depth))
    rows = pd.concat(nodes, ignore_index=True)
    rows[[*_NAMES, "op_name"]] = rows[[*_NAMES, "op_name"]].fillna("")
    order = ["host", "tree", "depth", "self_time_us", *_NAMES]
    ranks = pa.table({name: pa.array(rows[name]) for name in order})
    by = [(name, "descending" if name == "self_time_us" else "ascending") for name in order]
    rows = rows.iloc[pc.sort_indices(ranks, sort_keys=by).to_numpy()].reset_index(drop=True)
    seconds = (rows["self_time_us"] / 1e6).where(rows["self_time_us"] > 0)
    rates = {"flops_per_s": rows["flops"] / seconds, "bandwidth_bytes_per_s": rows["bytes_accessed"] / seconds}
    return schema.OP_PROFILE.conform(rows.assign(**rates))


def _sums_of_nodes(figures: pd.DataFrame, node: Int64) -> pd.DataFrame:
    """One row per node; costs are missing where those of instructions within are that take a part of the time."""
    groups = figures.assign(node=node).groupby("node")
    rows, known = groups.sum(), groups[_COSTS].count()
    for cost in _COSTS:
        is_known = rows[f"unknown_{cost}"] <= MOST_UNKNOWN * rows["self_time_us"]
        rows[cost] = rows[cost].where(is_known & (known[cost] > 0))
    return rows
