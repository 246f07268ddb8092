"""Normalises sums of runs without steps: per computing device, or per occurrence of an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.diff import change
from tfcompare.compare.groups.aggregate import compared
from tfcompare.compare.matching.renamed_scopes import UNTYPED
from tfcompare.compare.stats.verdict import UNTESTED
from tfcompare.errors import TfcompareError
from tfcompare.schema import DEVICE, HOST, OF_DEVICES, SIDES, Table

if TYPE_CHECKING:
    from tfcompare.run import Run

_COUNT = "occurrences"
PerStep = Callable[[pd.Series], pd.Series]
_ONE_COUNT = 0.005
"""Occurrences per step that differ by less are equal: an execution is cut off at an end of the profile."""


def computing_devices(run: Run, host: str | None = None) -> int:
    """The number of devices, over all hosts or of one, with ops other than copies; if there are none, the number of all
    devices, at least 1."""
    types = run.op_types_on_devices(host=host)
    busy = types.loc[~types["op_type"].isin(UNTYPED), ["host", "device"]].drop_duplicates()
    return max(len(busy) or len(run.devices), 1)


def of_hosts_alone(table: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table that are not of devices."""
    if table in OF_DEVICES:
        return rows.iloc[:0]
    return rows[rows["host_or_device"] == HOST].reset_index(drop=True) if "host_or_device" in rows else rows


def device_counts(runs: Sequence[Run], hosts: Sequence[str | None]) -> list[int]:
    """The number of devices that each run computed on, on its compared host; none if it is equal for all runs, or
    unknown for one, whose devices were not recorded."""
    if not all(run.has_recorded_devices(host) for run, host in zip(runs, hosts, strict=True)):
        return []
    counts = [computing_devices(run, host) for run, host in zip(runs, hosts, strict=True)]
    return counts if len(set(counts)) > 1 else []


def devices_note(runs: Sequence[Run], hosts: Sequence[str | None], counts: Sequence[int], per: str) -> str:
    """A sentence on the number of devices that each run computed on, of those recorded where these are more, and what
    figures are divided by."""
    of_runs = []
    for run, host, count in zip(runs, hosts, counts, strict=True):
        recorded = int((run.host_table("idle", host=host)["host_or_device"] == DEVICE).sum())
        of_runs.append(f"{run.name} on {count}{f' of {recorded}' if recorded > count else ''}")
    devices = ", ".join(of_runs)
    if per == "device":
        return f"Figures are divided by the number of devices that computed: {devices}."
    return (
        f"The runs computed on different numbers of devices: {devices}. Compare per device or per occurrence instead."
    )


def per_occurrence(diff: pd.DataFrame, table: Table, per_step: PerStep) -> pd.DataFrame:
    """The diff, or groups of its rows, with sums divided by the row's occurrences.

    Verdicts are on the time per step: a row that runs more or less often per step has none here. `per_step` turns
    ratios of sums into ratios per step. The rows are sorted by the change of the headline metric, the largest first,
    and keep their labels.

    Raises `TfcompareError` for a table without occurrences.
    """
    if _COUNT not in table.column_names:
        raise TfcompareError(f"the table {table.name!r} does not count occurrences; show it per step, run or device")
    diff = _untested_where_counts_differ(diff, diff[f"{_COUNT}_ratio"], per_step)
    for metric in table.metrics:
        if metric.kind == "sum" and metric.name != _COUNT and f"{metric.name}_baseline" in diff:
            diff = _divided(diff, metric.name)
    ours, theirs = (diff[f"{table.headline}_{side}"] for side in SIDES)
    size = pd.concat([ours, theirs], axis=1).max(axis=1)
    ranks = pd.DataFrame({"change": -change(ours, theirs).abs(), "size": -size})
    return diff.loc[ranks.sort_values(["change", "size"], kind="stable").index]


def _untested_where_counts_differ(diff: pd.DataFrame, ratios: pd.Series, per_step: PerStep) -> pd.DataFrame:
    """The diff without verdicts on rows whose occurrences per step differ."""
    if "evidence" not in diff:
        return diff
    differs = diff["evidence"].notna() & ((per_step(ratios) - 1).abs() > _ONE_COUNT)
    masked = {name: diff[name].mask(differs) for name in ("interval_low", "interval_high", "evidence") if name in diff}
    return diff.assign(**masked, verdict=diff["verdict"].mask(differs, UNTESTED))


def _divided(diff: pd.DataFrame, metric: str) -> pd.DataFrame:
    ours, theirs = (
        diff[f"{metric}_{side}"].astype("float64")
        / diff[f"{_COUNT}_{side}"].astype("float64").replace(0.0, float("nan"))
        for side in SIDES
    )
    return diff.assign(**compared(metric, ours, theirs))
