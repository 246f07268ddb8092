"""Computes the diff of one table for a baseline and a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.groups.fused_rows import BECAME, CONSTITUENTS, with_fused_rows
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.matching.matching import Pairing, pair_rows, with_hosts_of
from tfcompare.compare.matching.tiers import FUSED, HLO_TWO_SIDED, NAMINGS
from tfcompare.compare.stats.verdict import LESS, MORE, SAME, UNTESTED, wording
from tfcompare.compare.tf_data.pipelines import Counterparts, with_pipelines_of
from tfcompare.schema import OF_EACH, OP_STATS, SIDES, STEP_TABLES, Column, Table
from tfcompare.tables.op_evidence import OpEvidence

MATCHED = "matched"
ADDED = "added"
INTERVAL = ("interval_low", "interval_high")
"""The columns of the confidence interval of the headline metric's ratio, missing if it was not tested."""
VERDICT = ("verdict", "evidence", *INTERVAL)
"""The columns of a row's verdict; `evidence` is missing if nothing was tested."""
REMOVED = "removed"
SUMS_OF = "sums_of"
"""The column that says whose sums a row has, in the tables of `schema.OF_EACH`."""
ROLES = (*SIDES, "delta", "ratio")
"""What a column of a number in a diff is of."""
_OCCURRENCES = "occurrences"

_TWO_SIDED_KEYS = {
    "steps": ("host", "step"),
    "hosts": ("host", "device", "step"),
    "tf_data_pipelines": ("pipeline",),
    "tf_data": ("pipeline", "iterator_id"),
    **HLO_TWO_SIDED,
} | {table: naming.two_sided for table, naming in NAMINGS.items()}
"""Keys that may differ between matched rows: `<key>` holds the baseline's value, `<key>_candidate` the candidate's."""


@dataclass(frozen=True)
class SideRows:
    """One run's rows of a table, and the divisor of its sums: its number of steps; None if they are left.

    `pipelines` are the matched pipelines of a candidate whose table has pipelines; unmatched ones are added.
    `evidence` helps to identify ops beyond their names.
    """

    frame: pd.DataFrame
    divisor: int | None = None
    pipelines: Counterparts = field(default_factory=dict)
    evidence: OpEvidence = field(default_factory=OpEvidence)


class SumsPer(NamedTuple):
    """What the `sums` of a diff are divided by, and `counts` of occurrences: `step`, `device`, `occurrence` or `run`.

    Columns of sums are named without it; `names` are those in files, JSON and SQL.
    """

    sums: str
    counts: str

    def of(self, column: Column) -> str:
        """What a column is per: `step`, `device` or `occurrence`; nothing per run, and for what is no sum."""
        per = "run" if column.kind != "sum" else self.counts if column.name == _OCCURRENCES else self.sums
        return "" if per == "run" else per

    def names(self, table: Table) -> dict[str, str]:
        """The names of the columns of sums with what they are per: `self_time_us_per_step_delta` for
        `self_time_us_delta`."""
        pers = {column.name: per for column in table.metrics if (per := self.of(column))}
        return {f"{name}_{role}": f"{name}_per_{per}_{role}" for name, per in pers.items() for role in ROLES}


PER_RUN = SumsPer("run", "run")


def diff_columns(table: Table) -> list[str]:
    """The columns of a table's diff, in order."""
    columns = ["candidate", *table.keys, *(f"{key}_candidate" for key in _TWO_SIDED_KEYS.get(table.name, ()))]
    if table.name == OP_STATS.name:
        columns += [f"{CONSTITUENTS}_baseline", f"{CONSTITUENTS}_candidate"]
    columns += [SUMS_OF] if table.name in OF_EACH else []
    for metric in table.metrics:
        columns += [f"{metric.name}_baseline", f"{metric.name}_candidate"]
        if metric.is_number:
            columns += [f"{metric.name}_delta", f"{metric.name}_ratio"]
    return [*columns, "status", "match", *(INTERVAL if table.name in STEP_TABLES else ()), "verdict", "evidence"]


def diff_table(
    table: Table,
    candidate_id: str,
    baseline: SideRows,
    candidate: SideRows,
    *,
    identical: bool,
    manual_pairs: Sequence[ManualChoice] = (),
) -> pd.DataFrame:
    """The diff of two runs, sorted by the headline metric's change, then its size, then the keys.

    `manual_pairs` are the manual choices for `pair_rows`.
    """
    aligned = with_hosts_of(baseline.frame, candidate.frame) if "host" in table.keys else candidate.frame
    if "pipeline" in table.keys:
        aligned = with_pipelines_of(baseline.frame, aligned, candidate.pipelines)
    evidence = baseline.evidence, candidate.evidence
    pairing = pair_rows(table, baseline.frame, aligned, manual_pairs, evidence)
    cells: dict[str, pd.Series] = {}
    if table.name == OP_STATS.name:
        pairing, frames = with_fused_rows(pairing, (baseline.frame, candidate.frame), aligned, evidence)
        baseline, candidate = replace(baseline, frame=frames[0]), replace(candidate, frame=frames[1])
        aligned = with_hosts_of(baseline.frame, candidate.frame)
        cells[f"{CONSTITUENTS}_baseline"] = _take(frames[0][CONSTITUENTS], pairing.baseline)
        cells[f"{CONSTITUENTS}_candidate"] = _take(frames[1][CONSTITUENTS], pairing.candidate)
    for key in table.keys:
        ours = _take(baseline.frame[key], pairing.baseline)
        theirs = _take(aligned[key], pairing.candidate)
        cells[key] = ours.where(pairing.baseline >= 0, theirs).astype(baseline.frame[key].dtype)
        cells[f"{key}_candidate"] = _take(candidate.frame[key], pairing.candidate)
    for metric in table.metrics:
        cells |= _metric_cells(metric, baseline, candidate, pairing, table.headline)
    status = np.select([pairing.baseline < 0, pairing.candidate < 0], [ADDED, REMOVED], MATCHED)
    cells |= {"status": pd.Series(status, dtype="str"), "match": pd.Series(pairing.match, dtype="str")}
    if table.name in OF_EACH:
        cells[SUMS_OF] = pd.Series("all", cells["status"].index, dtype="str")
    if CONSTITUENTS in baseline.frame:
        is_fused = cells["match"] == FUSED
        both = cells["op_type"] + BECAME + cells["op_type_candidate"]
        cells["op_type"] = cells["op_type"].where(~is_fused, both)
    cells |= {name: pd.Series(np.nan, index=cells["status"].index) for name in INTERVAL}
    cells["verdict"] = _verdicts(table, cells, identical).where(cells["status"] == MATCHED)
    cells["evidence"] = pd.Series(None, index=cells["status"].index, dtype="str")
    cells["candidate"] = pd.Series(candidate_id, index=cells["status"].index, dtype="str")
    return _in_order(table, pd.DataFrame({name: cells[name] for name in diff_columns(table)}))


def ratio(baseline: pd.Series, candidate: pd.Series) -> pd.Series:
    """candidate ÷ baseline: 1 if both are 0, infinite if only the baseline is, NaN if one is absent."""
    ours, theirs = (side.to_numpy(np.float64, na_value=np.nan) for side in (baseline, candidate))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        quotient = theirs / ours
    return pd.Series(np.where((ours == 0) & (theirs == 0), 1.0, quotient), index=baseline.index)


def outcome(status: str, verdict: object, evidence: object) -> str:
    """What became of a row, in words: `added` or `removed`, else its verdict; empty for a matched row without one."""
    if status != MATCHED:
        return status
    return wording(verdict, str(evidence)) if isinstance(verdict, str) else ""


def change(baseline: pd.Series, candidate: pd.Series) -> pd.Series:
    """candidate − baseline as float64, with an absent side as 0: for ranking only, not a result."""
    return candidate.astype("float64").fillna(0.0) - baseline.astype("float64").fillna(0.0)


def largest_change_first(diff: pd.DataFrame, metric: str, keys: list[str]) -> pd.DataFrame:
    """The rows sorted by the metric's change, then by its larger side (both descending), then by the keys."""
    ours, theirs = diff[f"{metric}_baseline"], diff[f"{metric}_candidate"]
    size = pd.concat([ours, theirs], axis=1).astype("float64").max(axis=1)
    ranks = diff[keys].assign(change=-change(ours, theirs).abs(), size=-size)
    return diff.loc[ranks.sort_values(["change", "size", *keys]).index].reset_index(drop=True)


def _metric_cells(
    metric: Column, baseline: SideRows, candidate: SideRows, pairing: Pairing, headline: str | None
) -> dict[str, pd.Series]:
    """The cells of a metric. An added or removed row changes sums, and bytes, by all that it has."""
    name, ours, theirs = metric.name, baseline.frame[metric.name], candidate.frame[metric.name]
    if metric.kind == "sum" and baseline.divisor is not None and candidate.divisor is not None:
        ours, theirs = ours / baseline.divisor, theirs / candidate.divisor
    ours, theirs = _take(ours, pairing.baseline), _take(theirs, pairing.candidate)
    cells = {f"{name}_baseline": ours, f"{name}_candidate": theirs}
    if metric.is_number:
        delta = theirs - ours
        if metric.kind == "sum" or (metric.name == headline and metric.unit == "bytes"):
            delta = delta.mask(pairing.baseline < 0, theirs).mask(pairing.candidate < 0, -ours)
        cells |= {f"{name}_delta": delta, f"{name}_ratio": ratio(ours, theirs)}
    return cells


def _take(column: pd.Series, positions: npt.NDArray[np.intp]) -> pd.Series:
    """The cells at these positions, missing at -1; integers and flags become nullable dtypes to avoid rounding."""
    if column.dtype.kind in "iu":
        column = column.astype("Int64")
    elif column.dtype.kind == "b":
        column = column.astype("boolean")
    return pd.Series(column.array.take(positions, allow_fill=True))


def _verdicts(table: Table, cells: dict[str, pd.Series], identical: bool) -> pd.Series:
    """The verdict of each row: bytes are exact and compared directly; times are untested, since sums do not suffice."""
    rows = cells["status"].index
    if table.headline is None:
        return pd.Series(None, index=rows, dtype="str")
    headline = table.column(table.headline)
    if identical or headline.unit != "bytes":
        return pd.Series(SAME if identical else UNTESTED, index=rows, dtype="str")
    delta = cells[f"{headline.name}_delta"].to_numpy(np.float64, na_value=np.nan)
    return pd.Series(np.select([delta < 0, delta > 0], [LESS, MORE], SAME), index=rows, dtype="str")


def _in_order(table: Table, diff: pd.DataFrame) -> pd.DataFrame:
    if table.name in ("steps", "hosts"):
        return diff  # in order of position, which may differ from the order of step numbers
    keys = [c for c in diff.columns if c in table.keys or c.removesuffix("_candidate") in table.keys]
    if table.headline is None:
        return diff.sort_values(keys, ignore_index=True)
    return largest_change_first(diff, table.headline, keys)
