"""Each change of time as a product: how often it runs × the work each time × the time per work."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.schema import SIDES
from tfcompare.schema.arrays import Bools, Floats, Strings

FLOPS, BYTES = "FLOPs", "bytes"
"""What work is measured in: the values of `work_in`."""
MORE_WORK, LESS_WORK, SAME_WORK = "more work", "less work", "same work"
COLUMNS = (
    *("count_ratio", "work_ratio", "time_per_work_ratio", "time_each_ratio", "work_in"),
    *("work_rate_baseline", "work_rate_candidate"),
)
"""The columns that `work_terms` adds."""
COMPUTES_FROM = 5.0
"""FLOP/byte from which an op computes rather than moves data, where a device's peaks are unknown, as of CPUs: these
reach their peak from 5 to 15 on. Chains of element-wise ops do fewer, products and convolutions of some size more."""
SAME_WITHIN = 0.01
"""Work that differs by less is the same: captures of one program differ by up to 0.04 % of FLOPs, and how often an op
runs by up to 0.2 %."""
_US_PER_S = 1e6
ROUNDING = 1e-6  # relative, of sums of the same times


RATES = {"flops": "flops_per_s", "bytes_accessed": "bandwidth_bytes_per_s"}
"""The column of the rate of each cost: missing where the time of a row is not that of its work."""


class Measured(NamedTuple):
    """The columns of a diff that terms are made from.

    `time`: whose ratio is explained, in µs; `how_often`: how often it ran in that time; `runs`: how often it ran to do
    the row's `flops` and `bytes_accessed`; `own` and `whole` are equal where nothing else ran within its time.
    """

    time: str
    how_often: str
    runs: str
    own: str = "self_time_us"
    whole: str = "total_time_us"


OF_OPS = Measured("self_time_us", "occurrences", "occurrences")
OF_INSTRUCTIONS = Measured("execution_time_us", "runs_per_execution", "executions")


def with_work_terms(rows: pd.DataFrame, measured: Measured) -> pd.DataFrame:
    """Rows of a diff of ops or instructions with `COLUMNS`; ratios are candidate ÷ baseline.

    `count_ratio` × `work_ratio` × `time_per_work_ratio` is the ratio of the time, and so is `count_ratio` ×
    `time_each_ratio`. The work is that of one occurrence: FLOPs where the op computes on either side, else bytes read
    and written, which `work_in` says; `work_rate` is FLOP/s or bytes/s. Missing: everything of a row that only one side
    has; work that is unknown or none on a side; the time per work and the rates where the row's time is not the time
    that its work took, as of transfers and of ops with others within.
    """
    is_matched = (rows["status"] == MATCHED).to_numpy(np.bool_)
    time, count = (_positive(rows, name, is_matched) for name in measured[:2])
    costs = [_positive(rows, name, is_matched) / _positive(rows, measured.runs, is_matched) for name in RATES]
    unknown = [np.isnan(cost).any(axis=0) for cost in costs]
    bounds = np.array([rows[f"bound_by_{role}"].fillna("").to_numpy(np.object_) for role in SIDES])
    use_flops = ~unknown[0] & (unknown[1] | computes(bounds, costs[0] / costs[1]))
    work = np.where(use_flops, costs[0], costs[1])
    work[:, np.isnan(work).any(axis=0)] = np.nan
    rate = np.where(use_flops, *(_positive(rows, name, is_matched) for name in RATES.values()))
    took = np.where(~np.isnan(rate).any(axis=0) & _has_its_time(rows, measured), time, np.nan)
    count_ratio, work_ratio = count[1] / count[0], work[1] / work[0]
    each = took / count / work
    measures = np.where(use_flops, FLOPS, BYTES).astype(np.object_)
    measures[np.isnan(work_ratio)] = None
    return rows.assign(
        count_ratio=count_ratio,
        work_ratio=work_ratio,
        time_per_work_ratio=each[1] / each[0],
        time_each_ratio=(time[1] / count[1]) / (time[0] / count[0]),
        work_in=pd.Series(measures, rows.index, dtype="str"),
        work_rate_baseline=_US_PER_S / np.where(np.isnan(each[1]), np.nan, each[0]),
        work_rate_candidate=_US_PER_S / np.where(np.isnan(each[0]), np.nan, each[1]),
    )


def computes(bounds: Strings, intensity: Floats) -> Bools:
    """Whether ops compute rather than move data, on any of the sides (the first axis): they are bound by compute, or,
    if no side knows its peaks, do many FLOPs per byte."""
    of_unknown = (bounds == "").all(axis=0) & (intensity >= COMPUTES_FROM).any(axis=0)
    return np.asarray((bounds == "compute").any(axis=0) | of_unknown, np.bool_)


def work_changes(rows: pd.DataFrame) -> pd.Series:
    """`more work`, `less work` or `same work` in all occurrences of each row; empty where its work is unknown."""
    ratio = (rows["count_ratio"] * rows["work_ratio"]).to_numpy(np.float64)
    conditions = [ratio > 1 + SAME_WITHIN, ratio < 1 / (1 + SAME_WITHIN), ~np.isnan(ratio)]
    return pd.Series(np.select(conditions, [MORE_WORK, LESS_WORK, SAME_WORK], ""), rows.index, dtype="str")


def _floats(rows: pd.DataFrame, name: str) -> Floats:
    """Both sides of a metric, one below the other."""
    return np.array([rows[f"{name}_{role}"].to_numpy(np.float64, na_value=np.nan) for role in SIDES])


def _positive(rows: pd.DataFrame, name: str, is_matched: Bools) -> Floats:
    """As `_floats`, NaN where there is nothing to divide by."""
    found = _floats(rows, name)
    return np.where((found > 0) & np.isfinite(found) & is_matched, found, np.nan)


def _has_its_time(rows: pd.DataFrame, measured: Measured) -> Bools:
    """Whether the self time of each row is all of its time on both sides, which costs are of."""
    of_itself, total = _floats(rows, measured.own), _floats(rows, measured.whole)
    return np.asarray(np.isclose(of_itself, total, ROUNDING, 0.0).all(axis=0), np.bool_)
