"""The hosts or devices of a run side by side, and of two runs: their steps, and how these are paired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.matching.matching import pair_devices, pair_hosts, with_hosts_of
from tfcompare.tables.hosts import WAITING_PARTS
from tfcompare.tables.step_times import positions_in_run

if TYPE_CHECKING:
    from tfcompare.run import Run

By = Literal["host", "device"]
METRICS = ("duration_us", "busy_us", "collectives_us", *schema.STEP_PARTS)
"""What the page can show of each step."""


def groupings(run: Run) -> tuple[By, ...]:
    """What the steps of a run can be compared between: `host` and `device`, where it has several with steps."""
    rows = run.table("hosts")
    several: tuple[tuple[By, int], ...] = (
        ("host", rows["host"].nunique()),
        ("device", len(rows[["host", "device"]].drop_duplicates())),
    )
    by_host, by_device = (count for _, count in several)
    return tuple(by for by, count in several if count > 1 and not (by == "device" and by_host == by_device))


def steps_by(run: Run, by: By) -> pd.DataFrame:
    """One row for each step of each host or device.

    Columns: `name` of the host or device, `host`, `step`, `place` (the position of the step in the run, from 1),
    `start_us`, `included`, and `METRICS`. Devices are named with their host if the run has several.
    """
    steps = run.table("steps")
    if steps.empty:
        return steps.assign(name="", place=0, busy_us=0.0, collectives_us=0.0)[_COLUMNS]
    steps = steps.assign(place=positions_in_run)
    rows = steps if by == "host" else run.table("hosts")
    name = rows["host"] if by == "host" else rows["device"].str.removeprefix("/device:")
    if by == "device" and rows["host"].nunique() > 1:
        name = rows["host"] + " " + name
    collectives = rows[list(WAITING_PARTS)].sum(axis=1)
    rows = rows.assign(name=name, collectives_us=collectives, busy_us=rows["duration_us"] - collectives)
    if by == "device":
        rows = rows.merge(steps[["host", "step", "place"]], on=["host", "step"], how="left")
    return rows[_COLUMNS]


_COLUMNS = ["name", "host", "step", "place", "start_us", "included", *METRICS]


def matrix(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric of the included steps that all hosts have: one row for each host, one column for each step's position.

    `rows` is the result of `steps_by`.
    """
    counted = rows[rows["included"].astype(bool)]
    return counted.pivot(index="name", columns="place", values=metric).dropna(axis=1).astype("float64")


def without_steps(run: Run) -> tuple[str, ...]:
    """The hosts of a run with steps whose own profile has none."""
    with_steps = set(run.table("steps")["host"])
    return tuple(host for host in run.host_names if host not in with_steps) if with_steps else ()


@dataclass(frozen=True)
class Pairing:
    """The baseline's name of each host or device of the candidate that is paired, and how: by `name` or `position`."""

    names: dict[str, str]
    by_position: int

    def sentence(self, what: str) -> str:
        """How they were paired; `what` is `hosts` or `devices`."""
        start = f"{what.capitalize()} are paired by"
        if not self.by_position:
            return f"{start} name."
        if self.by_position == len(self.names):
            return f"{start} position: the names differ."
        return f"{start} name; {self.by_position} by position, as their names differ."


def _pairing(baseline: Run, candidate: Run, by: By, ours: pd.DataFrame, theirs: pd.DataFrame) -> Pairing:
    """Pairs the hosts or devices of two runs that have steps: by name, else by position."""
    hosts = pair_hosts(ours["host"].unique(), theirs["host"].unique())
    if by == "host":
        return Pairing(hosts, sum(a != b for a, b in hosts.items()))
    tables = baseline.table("hosts"), candidate.table("hosts")
    devices = pair_devices(tables[0], with_hosts_of(*tables))
    several = ours["host"].nunique() > 1, theirs["host"].nunique() > 1
    names = {
        _device_name(host, device, several[1]): _device_name(hosts[host], counterpart, several[0])
        for host in hosts
        for device in tables[1].loc[tables[1]["host"] == host, "device"].unique()
        if (counterpart := devices.get((hosts[host], device))) is not None
    }
    return Pairing(names, sum(a != b for a, b in names.items()))


def _device_name(host: str, device: str, several: bool) -> str:
    own = device.removeprefix("/device:")
    return f"{host} {own}" if several else own


@dataclass(frozen=True)
class PairedSteps:
    """`steps_by` of two runs, the candidate's with the names of the baseline, and how they were paired."""

    baseline: pd.DataFrame
    candidate: pd.DataFrame
    pairing: Pairing

    def matrices(self, metric: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """`matrix` of both runs, and the difference: of the hosts and steps that both have.

        Columns are positions of steps from 1: runs number their steps differently.
        """
        ours, theirs = (matrix(steps, metric) for steps in (self.baseline, self.candidate))
        hosts, steps = ours.index.intersection(theirs.index), ours.columns.intersection(theirs.columns)
        return ours, theirs, theirs.loc[hosts, steps] - ours.loc[hosts, steps]

    @property
    def by_skew(self) -> list[str]:
        """The candidate's hosts, the slowest first, then those that only the baseline has."""
        sides = (matrix(side, "busy_us") for side in (self.candidate, self.baseline))
        return list(dict.fromkeys(name for busy in sides if busy.size for name in by_skew(busy)))


def paired_steps(baseline: Run, candidate: Run, by: By) -> PairedSteps:
    """The steps of each host or device of two runs."""
    ours, theirs = steps_by(baseline, by), steps_by(candidate, by)
    found = _pairing(baseline, candidate, by, ours, theirs)
    names = theirs["name"].map(lambda name: found.names.get(name, name)).astype("str")
    return PairedSteps(ours, theirs.assign(name=names), found)


def part_means(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean of each part over the included steps that all hosts have; one row for each host, one column per part.

    `rows` is the result of `steps_by`.
    """
    common = matrix(rows, "busy_us").columns
    counted = rows[rows["included"].astype(bool) & rows["place"].isin(common)]
    return counted.groupby("name")[list(schema.STEP_PARTS)].mean()


def parts_of_step(rows: pd.DataFrame, place: int) -> pd.DataFrame:
    """The parts of the step at this position in each host that has it, as `part_means`."""
    return rows[rows["place"] == place].set_index("name")[list(schema.STEP_PARTS)].astype("float64")


def busy_of(parts: pd.DataFrame) -> pd.Series:
    """The busy time of each host from the parts of its step, in µs: all but `WAITING_PARTS`."""
    return parts.drop(columns=list(WAITING_PARTS)).sum(axis=1)


def by_skew(busy: pd.DataFrame) -> list[str]:
    """The names of a matrix of busy times, the slowest first: by its mean, less the median of each step."""
    skew = (busy - busy.median()).mean(axis=1)
    order = np.lexsort((skew.index.to_numpy(str), -skew.to_numpy()))
    return [str(name) for name in skew.index[order]]
