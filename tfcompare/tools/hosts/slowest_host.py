"""The slowest host of a run, whether it stands out from the others, and what it does longer than they.

In synchronous training all hosts' steps end together, because the others wait for the slowest in a collective. The
slowest host is therefore the one with the longest busy time: the step without collectives and device waits.

`tables/straggler.py` answers a smaller question, whose steps stand for the run: the host with the largest mean, with
no test. Here the usual step counts, relative to the same step of the others, and a test says whether that is chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.stats.host_significance import (
    DEVICE_SPREAD,
    HOST_SPREAD,
    Outstanding,
    group_of,
    slowest,
    slowest_group,
)
from tfcompare.tools.hosts.host_causes import Cause, cause_of, collective_of
from tfcompare.tools.hosts.hosts import By, groupings, matrix, steps_by

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run

_WORD = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")


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
        for text in (*_beginnings(name), *_ends(name)):
            found.setdefault(text, []).append(position)
    by_hosts: dict[tuple[int, ...], str] = {}
    for text, positions in found.items():
        if 2 <= len(positions) <= len(names) / 2:
            hosts = tuple(positions)
            by_hosts[hosts] = max(by_hosts.get(hosts, ""), text, key=len)
    return {text: hosts for hosts, text in by_hosts.items()}


def _beginnings(name: str) -> list[str]:
    return [f"{name[: match.end()]}…" for match in _WORD.finditer(name)][:-1]


def _ends(name: str) -> list[str]:
    return [f"…{name[match.start() :]}" for match in _SEPARATOR.finditer(name)]
