"""Computes the diff of one table for a baseline and a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.compare.groups.fused_rows import BECAME, CONSTITUENTS, with_fused_rows
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.matching.matching import Pairing, pair_rows, with_hosts_of
from tfcompare.compare.matching.tiers import FUSED, HLO_TWO_SIDED, NAMINGS
from tfcompare.compare.stats.verdict import LESS, MORE, SAME, UNTESTED, wording
from tfcompare.compare.tf_data.pipelines import Counterparts, with_pipelines_of
from tfcompare.schema import OF_EACH, OP_STATS, SIDES, STEP_TABLES, Column, Table
from tfcompare.schema.arrays import Floats
from tfcompare.tables.frames import repeated
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
    cells: dict[str, Any] = {}  # an array for each column
    if table.name == OP_STATS.name:
        pairing, frames = with_fused_rows(pairing, (baseline.frame, candidate.frame), aligned, evidence)
        baseline, candidate = replace(baseline, frame=frames[0]), replace(candidate, frame=frames[1])
        aligned = with_hosts_of(baseline.frame, candidate.frame)
        cells[f"{CONSTITUENTS}_baseline"] = _take(_values(frames[0][CONSTITUENTS]), pairing.baseline)
        cells[f"{CONSTITUENTS}_candidate"] = _take(_values(frames[1][CONSTITUENTS]), pairing.candidate)
    is_added, is_removed = pairing.baseline < 0, pairing.candidate < 0
    for key in table.keys:
        ours = _take(_values(baseline.frame[key]), pairing.baseline)
        ours[is_added] = _take(_values(aligned[key]), pairing.candidate[is_added])
        cells[key] = ours.astype(baseline.frame[key].dtype)
        cells[f"{key}_candidate"] = _take(_values(candidate.frame[key]), pairing.candidate)
    for metric in table.metrics:
        cells |= _metric_cells(metric, baseline, candidate, pairing, table.headline)
    rows, is_matched = len(pairing.match), ~(is_added | is_removed)
    cells["status"] = pd.array(np.where(is_added, ADDED, np.where(is_removed, REMOVED, MATCHED)), dtype="str")
    cells["match"] = pd.array(pairing.match.tolist(), dtype="str")
    if table.name in OF_EACH:
        cells[SUMS_OF] = repeated(["all"], [rows])
    if (is_fused := pairing.match == FUSED).any():
        cells["op_type"][is_fused] += BECAME + cells["op_type_candidate"][is_fused]
    cells |= {name: np.full(rows, np.nan) for name in INTERVAL}
    verdict: Any = np.where(is_matched, _verdicts(table, cells, identical), None)
    cells["verdict"] = pd.array(verdict, dtype="str")
    cells["evidence"] = pd.array([None] * rows, dtype="str")
    cells["candidate"] = repeated([candidate_id], [rows])
    return _in_order(table, pd.DataFrame({name: cells[name] for name in diff_columns(table)}))


def ratio(baseline: pd.Series, candidate: pd.Series) -> pd.Series:
    """candidate ÷ baseline: 1 if both are 0, infinite if only the baseline is, NaN if one is absent."""
    return pd.Series(_ratio(baseline.array, candidate.array), index=baseline.index)


def _ratio(baseline: Any, candidate: Any) -> Floats:
    ours, theirs = _floats(baseline), _floats(candidate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        return np.where((ours == 0) & (theirs == 0), 1.0, theirs / ours)


def outcome(status: str, verdict: object, evidence: object) -> str:
    """What became of a row, in words: `added` or `removed`, else its verdict; empty for a matched row without one."""
    if status != MATCHED:
        return status
    return wording(verdict, str(evidence)) if isinstance(verdict, str) else ""


def change(baseline: pd.Series, candidate: pd.Series) -> pd.Series:
    """candidate − baseline as float64, with an absent side as 0: for ranking only, not a result."""
    ours, theirs = _floats(baseline.array), _floats(candidate.array)
    return pd.Series(np.where(np.isnan(theirs), 0.0, theirs) - np.where(np.isnan(ours), 0.0, ours), baseline.index)


def largest_change_first(diff: pd.DataFrame, metric: str, keys: list[str]) -> pd.DataFrame:
    """The rows sorted by the metric's change, then by its larger side (both descending), then by the keys."""
    ours, theirs = diff[f"{metric}_baseline"], diff[f"{metric}_candidate"]
    size = np.fmax(_floats(ours.array), _floats(theirs.array))
    ranks = {"change": pa.array(-change(ours, theirs).abs()), "size": pa.array(-size)}
    return _sorted_by(diff, pa.table(ranks | {f"key {key}": pa.array(diff[key]) for key in keys}))


def _sorted_by(diff: pd.DataFrame, ranks: pa.Table) -> pd.DataFrame:
    """The rows in ascending order of the columns of `ranks`, missing ones last."""
    order = pc.sort_indices(ranks, sort_keys=[(name, "ascending") for name in ranks.column_names])
    return diff.take(order.to_numpy()).reset_index(drop=True)


def _metric_cells(
    metric: Column, baseline: SideRows, candidate: SideRows, pairing: Pairing, headline: str | None
) -> dict[str, Any]:
    """The cells of a metric. An added or removed row changes sums, and bytes, by all that it has."""
    name, ours, theirs = metric.name, _values(baseline.frame[metric.name]), _values(candidate.frame[metric.name])
    if metric.kind == "sum" and baseline.divisor is not None and candidate.divisor is not None:
        ours, theirs = ours / baseline.divisor, theirs / candidate.divisor
    ours, theirs = _take(ours, pairing.baseline), _take(theirs, pairing.candidate)
    cells = {f"{name}_baseline": ours, f"{name}_candidate": theirs}
    if metric.is_number:
        delta = theirs - ours
        if metric.kind == "sum" or (metric.name == headline and metric.unit == "bytes"):
            is_added, is_removed = pairing.baseline < 0, pairing.candidate < 0
            delta[is_added], delta[is_removed] = theirs[is_added], -ours[is_removed]
        cells |= {f"{name}_delta": delta, f"{name}_ratio": _ratio(ours, theirs)}
    return cells


def _values(column: pd.Series) -> Any:
    """The cells as an array: of NumPy where the dtype is, since that calls the least."""
    return column.array if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) else column.to_numpy()


def _floats(values: Any) -> Floats:
    """The cells of an array as float64, with NaN for missing ones."""
    return values if isinstance(values, np.ndarray) else values.to_numpy(np.float64, na_value=np.nan)


def _take(values: Any, positions: npt.NDArray[np.intp]) -> Any:
    """The cells at these positions, missing at -1; integers and flags become nullable dtypes to avoid rounding."""
    nullable = {"i": "Int64", "u": "Int64", "b": "boolean"}.get(values.dtype.kind)
    values = values if nullable is None else pd.array(values, dtype=nullable)
    return pd.api.extensions.take(values, positions, allow_fill=True, fill_value=np.nan)


def _verdicts(table: Table, cells: dict[str, Any], identical: bool) -> Any:
    """The verdict of each row, or of all: bytes are exact and compared directly; times are untested, since sums do not
    suffice."""
    if table.headline is None:
        return None
    headline = table.column(table.headline)
    if identical or headline.unit != "bytes":
        return SAME if identical else UNTESTED
    delta = _floats(cells[f"{headline.name}_delta"])
    return np.select([delta < 0, delta > 0], [LESS, MORE], SAME)


def _in_order(table: Table, diff: pd.DataFrame) -> pd.DataFrame:
    if table.name in ("steps", "hosts"):
        return diff  # in order of position, which may differ from the order of step numbers
    keys = [c for c in diff.columns if c in table.keys or c.removesuffix("_candidate") in table.keys]
    if table.headline is None:
        return _sorted_by(diff, pa.table({key: pa.array(diff[key]) for key in keys}))
    return largest_change_first(diff, table.headline, keys)
