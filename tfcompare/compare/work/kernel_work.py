"""The work of kernels: that of the ops that launched them, where it can be attributed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.compare.work.terms import RATES, Measured, with_work_terms
from tfcompare.schema import DEVICE, SIDES
from tfcompare.schema.hlo import MOST_UNKNOWN

TIME = "total_duration_us"
OF_KERNELS = Measured(TIME, "occurrences", "occurrences", own=TIME, whole=TIME)
_OCCURRENCES = "op_occurrences"
OF_THEIR_OPS = Measured(TIME, _OCCURRENCES, _OCCURRENCES, own=TIME, whole=TIME)
_COSTS = [*RATES, *RATES.values(), _OCCURRENCES]
_BOUND = "bound_by"


def with_kernel_terms(
    groups: pd.DataFrame, kernels: pd.DataFrame, group_of: pd.Series, ops: pd.DataFrame, *, per_op: bool
) -> pd.DataFrame:
    """Groups of the rows `kernels` of a diff of `kernel_stats` with what each change is made of (`with_work_terms`).

    `group_of` is the label in `groups` of the group of each row; `ops` is the diff of `op_stats` of the same pair. A
    kernel does the work of its op if it takes 99 % of the op's time; with `per_op`, all kernels of the op together do,
    and it is counted how often the op ran, not its kernels.
    """
    columns: dict[str, pd.Series] = {}
    for role, absent in zip(SIDES, (ADDED, REMOVED), strict=True):
        rows = _of_side(kernels, role, absent, ops, per_op=per_op)
        by_group = rows.groupby(group_of[rows.index])
        sums = by_group[_COSTS].sum().where(by_group[_COSTS].count().eq(by_group.size(), axis=0))
        bounds = by_group[_BOUND].agg(["first", "nunique"])
        sums[_BOUND] = bounds["first"].where(bounds["nunique"] == 1, "")
        columns |= {f"{name}_{role}": cells for name, cells in sums.reindex(groups.index).items()}
    measured = OF_THEIR_OPS if per_op else OF_KERNELS
    return with_work_terms(groups.assign(**columns), measured).drop(columns=list(columns))


def without_work(groups: pd.DataFrame) -> pd.DataFrame:
    """As `with_kernel_terms`, of runs without compiled programs, whose ops have no known work."""
    unknown = {f"{name}_{role}": np.nan for name in _COSTS for role in SIDES} | {
        f"{_BOUND}_{role}": "" for role in SIDES
    }
    return with_work_terms(groups.assign(**unknown), OF_KERNELS).drop(columns=list(unknown))


def _of_side(kernels: pd.DataFrame, role: str, absent: str, ops: pd.DataFrame, *, per_op: bool) -> pd.DataFrame:
    """`_COSTS` and `_BOUND` of the kernels that a side has; missing where they are not attributed. With `per_op`, the
    first kernel of an op has the work of all, and the others have none."""
    key = "op_name_candidate" if role == SIDES[1] else "op_name"
    here = kernels[kernels["status"] != absent]
    on_device = ops[(ops["status"] != absent) & (ops["host_or_device"] == DEVICE)].drop_duplicates(key, keep=False)
    names = ["total_time_us", *_COSTS, _BOUND]
    cells = [f"{name.removeprefix('op_')}_{role}" for name in names]
    known = on_device.set_index(key)[cells].set_axis(names, axis=1)
    found = known.reindex(here[key]).set_axis(here.index)
    times = here[f"{TIME}_{role}"].astype("float64")
    of_op = times.groupby(here[key]).transform("sum") if per_op else times
    # Beside its kernels, an op may have set memory.
    is_whole = (of_op >= (1 - MOST_UNKNOWN) * found["total_time_us"].astype("float64")).to_numpy(np.bool_)
    found.loc[~is_whole, _COSTS] = np.nan
    if per_op:
        found.loc[here[key].duplicated() & is_whole, _COSTS] = 0.0
    return found
