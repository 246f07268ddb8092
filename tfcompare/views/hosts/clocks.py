"""When the hosts of a run reach the collective of each step, on one clock; their clocks' offsets and errors.

The clocks of hosts differ, and their profiles start at different times. A collective ends on all hosts at nearly the
same time, so the median difference of these ends is the offset between two profiles. How much single differences
scatter around it is its error: events of two hosts that are closer to each other have no known order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from tfcompare.compare.pair import Pair
from tfcompare.frames.steps.step_tables import are_collectives
from tfcompare.schema.arrays import Floats
from tfcompare.tables.step_times import common_step_ids
from tfcompare.text import as_code, capitalized
from tfcompare.units import format_time_us
from tfcompare.views.blocks import Block, Facts, Section, Text
from tfcompare.views.hosts.figures import by_skew, matrix, steps_by
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    from tfcompare.run import Run

MOST_LAST = 3
"""Hosts that the sentence names."""
HELP = (
    "A collective ends on all hosts at nearly the same time. That gives the offset between their profiles; how much "
    "single steps scatter is its error. Hosts that arrive closer together than the error have no order."
)
FEWEST_STEPS = 3
"""Offsets are estimated from at least this many steps."""
MOST_HOSTS = 32
"""Of more hosts, only the slowest are put on one clock."""

_NORMAL_95, _MAD_OF_NORMAL = 1.96, 1.4826


def blocks(pair: Pair) -> Iterator[Block]:
    """A sentence on each run whose hosts can be put on one clock, and its offsets."""
    if of_runs := [block for position in range(len(pair.shown)) for block in _of_side(pair, position)]:
        yield Section("Who reaches the collective last", of_runs, True, help=HELP)


def _of_side(pair: Pair, position: int) -> Iterator[Block]:
    run = pair.runs[position]
    found = pair.cached(("clocks", run.id), partial(clocks, run))
    if found is None:
        return
    yield Text(f"{'' if pair.is_single else f'**{pair.marked[position]}:** '}{_last(found)}")
    if len(run.host_names) > MOST_HOSTS:
        yield Text(f"Of the {MOST_HOSTS} slowest of {len(run.host_names):,} hosts.", "quiet")
    rows = [
        [str(host), format_time_us(offset), format_time_us(error), str(found.last[host])]
        for host, offset, error in found.offsets[["host", "offset_us", "error_us"]].itertuples(index=False, name=None)
    ]
    table = Facts(["Host", "Offset", "Error (95 %)", "Last in steps"], rows, (1, 2, 3))
    yield Section(f"Offsets of the profiles{'' if pair.is_single else f' of {pair.called[position]}'}", [table])


def _last(found: Clocks) -> str:
    """Who was last in how many steps."""
    counts = sorted(((count, host) for host, count in found.last.items() if count), reverse=True)
    parts = [f"{as_code(host)} in {count} of {found.steps} steps" for count, host in counts[:MOST_LAST]]
    if others := counts[MOST_LAST:]:
        which = "another host" if len(others) == 1 else f"{len(others):,} other hosts"
        parts.append(f"{which} in {sum(count for count, _ in others)}")
    if found.undecided:
        which = "all" if found.undecided == found.steps else str(found.undecided)
        steps = f"{which} of {found.steps} steps"
        parts.append(f"unknown in {steps}, as hosts arrive closer together than the clock error")
    return f"{capitalized('; '.join(parts))}."


@dataclass(frozen=True)
class Clocks:
    """The hosts of a run on one clock.

    `offsets` has one row for each host: `host`, `offset_us` (how much later its profile shows the same instant than
    that of the first host) and `error_us` (within which 95 % of the ends of collectives agree). `last` counts how often
    each host was the last to reach the first collective of a step, of `steps` steps; in `undecided` of them two hosts
    were closer than the error of their clocks.
    """

    offsets: pd.DataFrame
    last: dict[str, int]
    steps: int
    undecided: int


def clocks(run: Run) -> Clocks | None:
    """The hosts of a run on one clock, of many the `MOST_HOSTS` slowest.

    None for a single host, and if fewer than `FEWEST_STEPS` steps have the same collective on every host.
    """
    steps = run.table("steps").assign(place=common_step_ids).query("included or stray")
    if len(run.hosts) < 2 or steps.empty:
        return None
    chosen = set(by_skew(matrix(steps_by(run, "host"), "busy_us"))[:MOST_HOSTS])
    rows = run.tables.host_table("collectives")
    rows = rows[rows["host"].isin(chosen)]
    if len(chosen) < 2 or rows["host"].nunique() < len(chosen):
        return None
    start_us = rows["start_ps"] / PS_PER_US
    every = rows.assign(start_us=start_us, end_us=start_us + rows["duration_ps"] / PS_PER_US)
    every = every.merge(steps[["host", "step", "place"]], on=["host", "step"])
    same = every.groupby("place")["name"].agg(["nunique", "size"])
    places = same.index[(same["nunique"] == 1) & (same["size"] == len(chosen))]
    every = every[every["place"].isin(places)]
    if len(places) < FEWEST_STEPS:
        return None
    pivoted = [every.pivot(index="place", columns="host", values=name) for name in ("start_us", "end_us")]
    hosts = [str(host) for host in pivoted[0].columns]
    start, end = (times.to_numpy() for times in pivoted)
    offset, error = _offsets(end, 0)
    offsets = pd.DataFrame({"host": hosts, "offset_us": offset, "error_us": error})
    last = {}
    for of, host in enumerate(hosts):  # in how many steps it starts later than every other by more than the error
        offset, error = _offsets(end, of)
        is_later = start[:, [of]] + offset - start > error
        last[host] = int(np.delete(is_later, of, axis=1).all(axis=1).sum())
    return Clocks(offsets, last, len(places), len(places) - sum(last.values()))


def _offsets(end: Floats, of: int) -> tuple[Floats, Floats]:
    """(how much later each host shows the same instant than the one at `of`, 95 % error), from ends (steps × hosts)."""
    apart = end - end[:, [of]]
    offset: Floats = np.median(apart, axis=0)
    error: Floats = _NORMAL_95 * _MAD_OF_NORMAL * np.median(np.abs(apart - offset), axis=0)
    return offset, error


def first_collectives(spans: pd.DataFrame) -> pd.DataFrame:
    """The first collective of each step of a host: `step`, `name`, `start_us`, `end_us`, by its own clock.

    `spans` is the host's table `timeline_spans`.
    """
    is_collective = np.zeros(len(spans), np.bool_)
    for column in ("op_type", "name"):
        texts = spans[column].cat
        matches = are_collectives(pa.array(texts.categories, pa.string()), op_types=column == "op_type")
        is_collective |= np.append(matches, False)[texts.codes.to_numpy()]
    rows = spans[is_collective].sort_values("start_ps", kind="stable").drop_duplicates("step")
    start_us, op = rows["start_ps"] / PS_PER_US, rows["op_name"].astype("str")
    found = rows[["step"]].assign(name=op.where(op != "", rows["name"].astype("str")))
    return found.assign(start_us=start_us, end_us=start_us + rows["duration_ps"] / PS_PER_US)
