"""Normalises sums of runs without steps: per computing device, or per occurrence of an op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.aggregate import SIDES, compared
from tfcompare.compare.diff import largest_change_first
from tfcompare.compare.matching.renamed_scopes import UNTYPED
from tfcompare.errors import TfcompareError
from tfcompare.schema import Table

if TYPE_CHECKING:
    from tfcompare.run import Run

_COUNT = "occurrences"
_PER_OCCURRENCE = "_per_occurrence"


def computing_devices(run: Run, host: str | None = None) -> int:
    """The number of devices with ops other than copies; if there are none, the number of all devices, at least 1."""
    types = run.op_types_on_devices(host=host)
    busy = types.loc[~types["op_type"].isin(UNTYPED), "device"].nunique()
    return max(busy or len(run.devices), 1)


def devices_note(baseline: Run, candidates: tuple[Run, ...], host: str | None, per: str) -> str:
    """A sentence on the number of devices that each run computed on, empty if it is equal for all runs."""
    counts = {run.name: computing_devices(run, host if run is baseline else None) for run in (baseline, *candidates)}
    if len(set(counts.values())) < 2:
        return ""
    devices = ", ".join(f"{name} on {count}" for name, count in counts.items())
    if per == "device":
        return f"Figures are divided by the number of devices that computed: {devices}."
    return (
        f"The runs computed on different numbers of devices: {devices}. Compare per device or per occurrence instead."
    )


def per_occurrence(diff: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The diff with sums divided by the row's occurrences and named `<metric>_per_occurrence`.

    The largest change of the headline metric comes first. Raises `TfcompareError` for a table without occurrences.
    """
    if _COUNT not in table.column_names:
        raise TfcompareError(f"the table {table.name!r} does not count occurrences; show it per step, run or device")
    counts = next(name for name in (_COUNT, f"{_COUNT}_per_step", f"{_COUNT}_per_device") if f"{name}_delta" in diff)
    suffix = counts.removeprefix(_COUNT)
    for metric in table.metrics:
        if metric.kind == "sum" and metric.name != _COUNT:
            diff = _divided(diff, f"{metric.name}{suffix}", counts, f"{metric.name}{_PER_OCCURRENCE}")
    keys = [key for key in table.keys if key in diff]
    in_order = [
        largest_change_first(rows, f"{table.headline}{_PER_OCCURRENCE}", keys)
        for _, rows in diff.groupby("candidate", sort=False)
    ]
    return pd.concat(in_order, ignore_index=True) if in_order else diff


def _divided(diff: pd.DataFrame, metric: str, counts: str, name: str) -> pd.DataFrame:
    ours, theirs = (
        diff[f"{metric}_{side}"].astype("float64")
        / diff[f"{counts}_{side}"].astype("float64").replace(0.0, float("nan"))
        for side in SIDES
    )
    values = compared(name, ours, theirs)
    old = {f"{metric}_{column.removeprefix(f'{name}_')}": column for column in values}
    return diff.assign(**{own: values[column] for own, column in old.items()}).rename(columns=old)
