"""Normalises sums: per computing device or host, where runs have other numbers of them, or per occurrence of an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from tfcompare.compare.diff import INTERVAL, change
from tfcompare.compare.groups.aggregate import compared
from tfcompare.compare.matching.scopes import UNTYPED
from tfcompare.compare.pooling import pooled, sums_of
from tfcompare.compare.stats.verdict import UNTESTED
from tfcompare.errors import TfcompareError
from tfcompare.schema import ALL_HOSTS, HOST, IDLE, OF_DEVICES, OF_EACH_HOST, OP_STATS, SIDES, Table
from tfcompare.schema.arrays import Bools, Floats

if TYPE_CHECKING:
    from tfcompare.run import Run

_COUNT = "occurrences"
PerStep = Callable[[pd.Series], pd.Series]
_ONE_COUNT = 0.005
"""Occurrences per step that differ by less are equal: an execution is cut off at an end of the profile."""


class Workers(NamedTuple):
    """How many hosts a capture ran on, on how many devices it computed, and how many were recorded."""

    hosts: int
    devices: int
    recorded: int


def workers_of(run: Run, host: str | None) -> Workers:
    """Those of a run, on all hosts or on one."""
    recorded = run.tables.device_count(host)
    return Workers(1 if host is not None else run.info.hosts, computing_devices(run, host) if recorded else 0, recorded)


def computing_devices(run: Run, host: str | None = None) -> int:
    """The number of devices, over all hosts or of one, with ops other than copies; if there are none, the number of all
    devices, at least 1."""
    ran = run.tables.op_types_on_devices(host=host)
    return max(len({(on, device) for on, device, op_type in ran if op_type not in UNTYPED}) or len(run.devices), 1)


def of_hosts_alone(table: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table that are not of devices."""
    if table in OF_DEVICES:
        return rows.iloc[:0]
    return rows[rows["host_or_device"] == HOST].reset_index(drop=True) if "host_or_device" in rows else rows


def are_of_hosts(table: str, rows: pd.DataFrame) -> Bools:
    """Which rows of a table of `OF_EACH` sum over hosts, and not over devices."""
    if table == OP_STATS.name:
        return (rows["host_or_device"] == HOST).to_numpy(np.bool_)
    return np.full(len(rows), table in OF_EACH_HOST)


def workers_of_rows(table: str, rows: pd.DataFrame, workers: Workers) -> Floats:
    """The number of devices, or hosts, that each row of a table sums over: idle time is of all recorded devices.
    Without any devices, compiled programs run on hosts."""
    devices = np.full(len(rows), float(workers.devices or workers.hosts))
    if table == OP_STATS.name:
        devices[rows["op_type"] == IDLE] = workers.recorded or workers.hosts
    return np.where(are_of_hosts(table, rows), float(workers.hosts), devices)


def all_together(table: Table, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of all hosts, and of all devices, as one: their sums are added up."""
    places = [name for name in ("host", "device") if name in table.keys]
    every = [own.assign(**dict.fromkeys(places, ALL_HOSTS)) for _, own in rows.groupby(places)]
    if not every:
        return rows
    found = pooled(table, every, [1.0] * len(every))
    return found.assign(**{name: found[name] * len(every) for name in sums_of(table)})


def workers_note(names: Sequence[str], each: Sequence[Workers], of_each: str) -> str:
    """A sentence on what sums are of, and on the devices and hosts of each run: the devices that computed, of those
    recorded where these are more."""
    on_several_hosts = of_each == "host" or any(workers.hosts > 1 for workers in each)
    of_runs = []
    for name, (hosts, devices, recorded) in zip(names, each, strict=True):
        of_recorded = f"{devices} of {recorded}" if recorded > devices else f"{devices or 'no'}"
        counts = [f"{of_recorded} device{'s' * (max(devices, recorded) != 1)}"] if of_each == "device" else []
        counts += [f"{hosts} host{'s' * (hosts > 1)}"] if on_several_hosts else []
        of_runs.append(f"{name} on {' of '.join(counts)}")
    of_devices = "Ops on devices are given per device, those on hosts per host"
    return f"{of_devices if of_each == 'device' else 'Ops are given per host'}: {', '.join(of_runs)}."


def per_occurrence(diff: pd.DataFrame, table: Table, per_step: PerStep) -> pd.DataFrame:
    """The diff, or groups of its rows, with sums divided by the row's occurrences.

    Verdicts are on the time per step: a row that runs more or less often per step has none here. `per_step` turns
    ratios of sums into ratios per step. The rows are sorted by the change of the headline metric, the largest first,
    and keep their labels.

    Raises `TfcompareError` for a table without occurrences.
    """
    if _COUNT not in table.column_names:
        raise TfcompareError(f"the table {table.name!r} does not count occurrences; show it per step, run or device")
    if "evidence" in diff:
        differs = diff["evidence"].notna() & ((per_step(diff[f"{_COUNT}_ratio"]) - 1).abs() > _ONE_COUNT)
        masked = {name: diff[name].mask(differs) for name in (*INTERVAL, "evidence") if name in diff}
        diff = diff.assign(**masked, verdict=diff["verdict"].mask(differs, UNTESTED))
    counts = {side: diff[f"{_COUNT}_{side}"].astype("float64").replace(0.0, float("nan")) for side in SIDES}
    for metric in table.metrics:
        if metric.kind == "sum" and metric.name != _COUNT and f"{metric.name}_baseline" in diff:
            each = [diff[f"{metric.name}_{side}"].astype("float64") / counts[side] for side in SIDES]
            diff = diff.assign(**compared(metric.name, *each))
    ours, theirs = (diff[f"{table.headline}_{side}"] for side in SIDES)
    size = pd.concat([ours, theirs], axis=1).max(axis=1)
    ranks = pd.DataFrame({"change": -change(ours, theirs).abs(), "size": -size})
    return diff.loc[ranks.sort_values(["change", "size"], kind="stable").index]
