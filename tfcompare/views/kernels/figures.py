"""Summaries of the kernels of two runs: key figures, a sentence, ranks and shares, and use of tensor cores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import of_side
from tfcompare.schema import SIDES
from tfcompare.schema.kernels import MEMORY_SET
from tfcompare.units import format_count, format_percent, format_time_us, share_of
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.ops.figures import moved, share_of_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

MATCHED_TIME = "Matched time"
TIME, COUNT = "total_duration_us", "occurrences"
USED, ELIGIBLE = "is_kernel_using_tensor_core", "is_op_tensor_core_eligible"

TIME_MEANING = "Time of all kernels, over all streams; kernels that run at once count in full."
ON_CORES_MEANING = "Share of the kernel time in kernels that use tensor cores (AMD: matrix cores), by their names."
COPIES_MEANING = "Time of all copies, over all devices; copies made by kernels count as kernels."
MATCHED_MEANING = (
    "Share of both runs' kernel time in rows of the table that have a counterpart in the other run. By op, kernels of "
    "no op have none."
)

USES = ("on tensor cores", "eligible, but not on tensor cores", "not eligible")
"""How kernels use tensor cores, in the order of `tensor_core_use`."""


def kernel_figures(diff: pd.DataFrame, copies: pd.DataFrame, rows: pd.DataFrame, per: str) -> list[KeyFigure]:
    """Key figures: kernel time, launches, share of the time on tensor cores, time of copies, share of matched time.

    `diff` and `copies` are diffs of `kernel_stats` and `copies` of one candidate, `rows` the first as it is grouped;
    their sums are `per` step, device or run. Figures that neither side has are left out.
    """
    time = _totals(diff, TIME)
    copy_time = _totals(copies[copies["kind"] != MEMORY_SET], "duration_us")
    using = [diff[diff[f"{USED}_{role}"].fillna(False).astype("bool")] for role in SIDES]
    ours, theirs = (share_of(_without_nan(_totals(used, TIME))[i], time[i]) for i, used in enumerate(using))
    figures = [
        KeyFigure(f"Kernel time per {per}", "µs", *time, "neither", TIME_MEANING),
        KeyFigure(f"Launches per {per}", "", *_totals(diff, COUNT), "lower", "Kernel launches on all devices."),
        KeyFigure("Time on tensor cores", "share", ours, theirs, "neither", ON_CORES_MEANING),
        KeyFigure(f"Copy time per {per}", "µs", *copy_time, "neither", COPIES_MEANING),
        KeyFigure(MATCHED_TIME, "share", math.nan, matched_share(rows), "neither", MATCHED_MEANING),
    ]
    return [f for f in figures if not (math.isnan(f.baseline) and math.isnan(f.candidate))]


def matched_share(rows: pd.DataFrame) -> float:
    """The share of both sides' kernel time in rows of a diff of kernels, or of groups, that have a counterpart; NaN
    without any time. Of groups by op, the one of no op has none: what runs there may be anything."""
    is_matched = rows["status"] == MATCHED
    if "kernel_name" not in rows:
        is_matched &= rows["op_name"] != ""
    matched, whole = (sum(_without_nan(_totals(of, TIME))) for of in (rows[is_matched], rows))
    return share_of(matched, whole)


def why_by_op(by_kernel: float) -> str:
    """Why kernels are grouped by op unless something else is chosen, from the share with a counterpart by kernel."""
    return f"Grouped by op: only {format_percent(by_kernel)} of the kernel time has a counterpart by kernel name."


def kernel_sentence(diff: pd.DataFrame, per: str) -> str:
    """`Kernel time per step fell from 8.14 ms to 1.09 ms (−86.7 %); launches per step stayed at 285.`

    Empty if a side has no kernels. `diff` is a diff of `kernel_stats` of one candidate.
    """
    time, count = _totals(diff, TIME), _totals(diff, COUNT)
    if any(math.isnan(value) for value in time):
        return ""
    took = moved(time, [format_time_us(value) for value in time])
    launched = moved(count, [format_count(value) for value in count])
    return f"Kernel time per {per} {took}; launches per {per} {launched}."


def sentence_alone(diff: pd.DataFrame, per: str) -> str:
    """`Kernels take 8.14 ms per step, in 285 launches.`, of the baseline of a diff of `kernel_stats`."""
    time, count = _totals(diff, TIME)[0], _totals(diff, COUNT)[0]
    return f"Kernels take {format_time_us(time)} per {per}, in {format_count(count)} launches."


def with_ranks_and_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a diff of kernels, or groups of them, with each side's rank and share by total time.

    Adds `time_rank_<role>` (1 is the longest; the first among equals), `time_share_<role>` and
    `cumulative_time_share_<role>` (of this row and all rows ranked before it), missing if a side has no such row.
    """
    columns: dict[str, pd.Series] = {}
    for role in SIDES:
        times = rows[f"{TIME}_{role}"].astype("float64").dropna().sort_values(ascending=False, kind="stable")
        share = share_of_whole(np.asarray(times, dtype=np.float64))
        ranks = {"rank": np.arange(1, len(times) + 1), "share": share, "sum": share.cumsum()}
        ranked = pd.DataFrame(ranks, times.index).reindex(rows.index)
        columns[f"time_rank_{role}"] = ranked["rank"].astype("Int64")
        columns[f"time_share_{role}"] = ranked["share"]
        columns[f"cumulative_time_share_{role}"] = ranked["sum"]
    return rows.assign(**columns)


def tensor_core_use(diff: pd.DataFrame) -> pd.DataFrame:
    """The kernel time of each side on tensor cores, eligible for them, and not eligible; one row for each of `USES`.

    Columns as in `op_stats.time_shares`: `group`, `total_duration_us_<role>`, `share_<role>` (adding up to 1 per side),
    `is_absent_<role>` (the side has no kernels), `others` (0).
    """
    shares = pd.DataFrame({"group": pd.Series(USES, dtype="str"), "others": 0})
    for role in SIDES:
        rows = of_side(diff, role)
        used, eligible = (rows[f"{flag}_{role}"].astype("bool") for flag in (USED, ELIGIBLE))
        times = rows[f"{TIME}_{role}"].astype("float64")
        totals = np.array([times[chosen].sum() for chosen in (used, eligible & ~used, ~eligible & ~used)])
        shares[f"{TIME}_{role}"] = totals
        shares[f"share_{role}"] = share_of_whole(totals)
        shares[f"is_absent_{role}"] = rows.empty
    return shares


def _totals(diff: pd.DataFrame, metric: str) -> tuple[float, float]:
    """The sums of both sides; NaN for a side that has no rows."""
    ours, theirs = (float(diff[f"{metric}_{role}"].astype("float64").sum(min_count=1)) for role in SIDES)
    return ours, theirs


def _without_nan(values: Sequence[float]) -> list[float]:
    return [0.0 if math.isnan(value) else value for value in values]
