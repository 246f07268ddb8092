"""The steps of all hosts of a run, paired: the slowest host, whether it stands out, and what it does longer.

In synchronous training all hosts' steps end together, because the others wait for the slowest in a collective. The
slowest host is therefore the one with the longest busy time: the step without collectives and device waits.

`tables/hosts.py` answers a smaller question, whose steps stand for the run: the host with the largest mean, with
no test. Here the usual step counts, relative to the same step of the others, and a test says whether that is chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.matching.matching import pair_devices, pair_hosts, with_hosts_of
from tfcompare.compare.stats.host_significance import (
    DEVICE_SPREAD,
    HOST_SPREAD,
    Outstanding,
    group_of,
    slowest,
    slowest_group,
)
from tfcompare.tables.hosts import WAITING_PARTS
from tfcompare.tables.step_times import positions_in_run
from tfcompare.views.hosts.causes import Cause, cause_of, collective_of

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run

By = Literal["host", "device"]
METRICS = ("duration_us", "busy_us", "collectives_us", *schema.STEP_PARTS)
"""What the page can show of each step."""
_WORD = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")


def groupings(run: Run) -> tuple[By, ...]:
    """What the steps of a run can be compared between: `host` and `device`, where it has several with steps."""
    rows = run.table("hosts")
    hosts, devices = rows["host"].nunique(), len(rows[["host", "device"]].drop_duplicates())
    by_host: tuple[By, ...] = ("host",) if hosts > 1 else ()
    return (*by_host, "device") if devices > 1 and devices != hosts else by_host


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


def busy_of(parts: pd.DataFrame) -> pd.Series:
    """The busy time of each host from the parts of its step, in µs: all but `WAITING_PARTS`."""
    return parts.drop(columns=list(WAITING_PARTS)).sum(axis=1)


def by_skew(busy: pd.DataFrame) -> list[str]:
    """The names of a matrix of busy times, the slowest first: by its mean, less the median of each step."""
    skew = (busy - busy.median()).mean(axis=1)
    order = np.lexsort((skew.index.to_numpy(str), -skew.to_numpy()))
    return [str(name) for name in skew.index[order]]


@dataclass(frozen=True)
class SlowHost:
    """The slowest host or device of a run: `found` says whether it stands out, `cause` what it does longer.

    Where hosts that are named alike are slow together, `found` is about all of them, `group` their names, `name` the
    slowest of them and `group_name` what their names share, as in `rack3-…`; else `group` has `name` alone.
    `collective` is the op in which the others wait for it longer than it waits itself; empty if no op is recorded
    there, None if the profile shows no waiting. `cause` is None if the host does not stand out.
    """

    name: str
    by: By
    found: Outstanding
    cause: Cause | None
    collective: str | None
    group: tuple[str, ...] = ()
    group_name: str = ""


def slowest_host(run: Run, by: By | None = None) -> SlowHost | None:
    """The slowest host, or device of a run with one host; None without several hosts or devices with common steps."""
    possible = groupings(run)
    chosen = by or next(iter(possible), None)
    if chosen is None or chosen not in possible:
        return None
    rows = steps_by(run, chosen)
    busy = matrix(rows, "busy_us")
    if len(busy) < 2 or busy.empty:
        return None
    spread = HOST_SPREAD if chosen == "host" else DEVICE_SPREAD
    found = slowest(busy.to_numpy(), spread)
    name, group_name = str(busy.index[found.position]), ""
    group: tuple[int, ...] = (found.position,)
    if chosen == "host":
        groups = groups_of(list(busy.index))
        slow = slowest_group(busy.to_numpy(), list(groups.values()), spread)
        if slow is not None:
            group_name, group = list(groups.items())[slow]
            found = group_of(busy.to_numpy(), group, len(groups), spread)
    names = tuple(busy.index[list(group)].astype(str))
    rows = rows[~rows["name"].isin(set(names) - {name})]
    waiting = matrix(rows, "collectives_us").mean(axis=1)
    more_us = float(waiting.drop(name).median() - waiting[name])
    cause = cause_of(run, rows, name, by_host=chosen == "host") if found.stands_out else None
    collective = collective_of(run, rows, name) if found.stands_out and more_us > 0 else None
    return SlowHost(name, chosen, found, cause, collective, names, group_name)


def slowest_host_in(pair: Pair, run: Run, by: By = "host") -> SlowHost | None:
    """As `slowest_host`, of a run of a comparison; kept with the comparison."""
    return pair.among.cached(("slowest", run.id, by), partial(slowest_host, run, by))


def groups_of(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The positions of the hosts of each group, by what their names have in common: `rack3-…`, `….rack3.dc1`.

    A group has at least two hosts and at most half of them. Names are cut between letters, digits and separators at the
    front, and at separators at the end, where domains are. Of the texts that the same hosts share, the longest counts.
    """
    found: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        beginnings = [f"{name[: match.end()]}…" for match in _WORD.finditer(name)][:-1]
        ends = [f"…{name[match.start() :]}" for match in _SEPARATOR.finditer(name)]
        for text in (*beginnings, *ends):
            found.setdefault(text, []).append(position)
    by_hosts: dict[tuple[int, ...], str] = {}
    for text, positions in found.items():
        if 2 <= len(positions) <= len(names) / 2:
            hosts = tuple(positions)
            by_hosts[hosts] = max(by_hosts.get(hosts, ""), text, key=len)
    return {text: hosts for hosts, text in by_hosts.items()}
