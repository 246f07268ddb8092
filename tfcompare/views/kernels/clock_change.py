"""Whether only what computes changed its speed, and not what moves memory: a sign of another clock or power limit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED, ratio
from tfcompare.schema import DEVICE, SIDES
from tfcompare.views.advice.kernel_rules import LAYOUT

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair


CPU = "CPU"
COMPUTE = "compute"
MEMORY = "memory"

_SAME_WORK = 0.9
"""The share of the device's time, on both sides, in work that is the same on both: with less, the program differs."""
_SAME_COUNT = 0.02
"""By how much the numbers of executions per step may differ: the ends of a profile cut some off."""
_CLEARLY = 1.1
"""The ratio from which on compute changed: a GPU's clock varies by some per cent from capture to capture."""
_UNCHANGED = 1.05
"""The ratio up to which memory did not change."""
_ENOUGH = 0.03
"""The share of the same work that each group must have for its ratio to say anything."""
_SHORTEST_US = 5.0
"""Shorter kernels take as long as it takes to start one."""
_MOST = (0.1, 0.9)
"""Between which shares of a group's time its ratios are given: the few that are far off are of tiny kernels."""
_PRODUCT = re.compile(r"gemm|conv|wgrad|dgrad|_wrw|matmul|xmma|cutlass|winograd|mfma|^Cijk_", re.I)
"""In names of kernels that multiply matrices or convolve."""


@dataclass(frozen=True)
class ClockChange:
    """The ratios of time, candidate ÷ baseline, within which most of the work is that computes and that moves memory.

    `count`: how many kernels, or instructions of XLA, are the same on both sides.
    """

    compute: tuple[float, float]
    memory: tuple[float, float]
    count: int
    of: str


def clock_change(pair: Pair) -> ClockChange | None:
    """The ratios of both groups where only that of compute changed, in work on devices that is the same; else None."""
    if any(run.info.device_type == CPU for run in pair.runs):
        return None
    rows, of = _kernels(pair), "kernels"
    if rows.empty:
        diff = pair.instructions()  # whose costs say what they are bound by
        rows, of = _work(diff, "self_time_us", "executions", diff["bound_by_baseline"].fillna("")), "instructions"
    same = rows[rows["is_same"]]
    for side in ("ours", "theirs"):
        if not same[side].sum() >= _SAME_WORK * rows[side].sum() > 0:
            return None
    groups = [same[same["bound_by"] == bound] for bound in (COMPUTE, MEMORY)]
    if any(group["ours"].sum() < _ENOUGH * same["ours"].sum() for group in groups):
        return None
    compute, memory = map(_range, groups)
    is_clear = compute[0] >= _CLEARLY or compute[1] <= 1 / _CLEARLY
    if not is_clear or memory[0] < 1 / _UNCHANGED or memory[1] > _UNCHANGED:
        return None
    return ClockChange(compute, memory, len(same), of)


def _kernels(pair: Pair) -> pd.DataFrame:
    """The kernels of both sides: `ours` and `theirs`, the times in the unit of the diff; `is_same`, whether both ran
    them as often, of one name and launched in one way; `bound_by`, as their op's costs say, else by their names: what
    is no product and belongs to no op with one moves memory."""
    diff = pair.diff("kernel_stats")
    names = diff["kernel_name"]
    is_layout = names.str.contains(LAYOUT)
    is_product = names.str.contains(_PRODUCT) & ~is_layout
    is_eligible = diff["is_op_tensor_core_eligible_baseline"].fillna(value=False).astype(bool)
    moves = (is_layout | ~is_eligible) & (diff["avg_duration_us_baseline"] >= _SHORTEST_US)
    by_name = pd.Series(np.select([is_product, moves], [COMPUTE, MEMORY], ""), diff.index)
    ops = pair.diff()
    ops = ops[ops["host_or_device"] == DEVICE].drop_duplicates("op_name")
    by_op = diff["op_name"].map(ops.set_index("op_name")["bound_by_baseline"]).fillna("")
    bound_by = by_op.where(by_op.isin([COMPUTE, MEMORY]), by_name)
    return _work(diff, "total_duration_us", "occurrences", bound_by)


def _work(diff: pd.DataFrame, total: str, count: str, bound_by: pd.Series) -> pd.DataFrame:
    is_same = (diff["status"] == MATCHED) & (diff["match"] == "exact")
    is_same &= (diff[f"{count}_ratio"].astype("float64") - 1).abs() <= _SAME_COUNT
    ours, theirs = (diff[f"{total}_{side}"].astype("float64").fillna(0.0) for side in SIDES)
    return pd.DataFrame({"ours": ours, "theirs": theirs, "is_same": is_same, "bound_by": bound_by})


def _range(rows: pd.DataFrame) -> tuple[float, float]:
    """Between which ratios most of the time of these rows is."""
    ratios = ratio(rows["ours"], rows["theirs"]).to_numpy(np.float64)
    order = np.argsort(ratios, kind="stable")
    shares = np.cumsum(rows["ours"].to_numpy()[order]) / rows["ours"].sum()
    low, high = (float(ratios[order][min(int(np.searchsorted(shares, end)), len(order) - 1)]) for end in _MOST)
    return low, high
