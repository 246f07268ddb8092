"""Two hosts on one axis: where they meet in a collective, and which of them gets there last."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfcompare.compare.pairs import Pairs
from tfcompare.tables.step_times import common_step_ids
from tfcompare.views.hosts.clocks import Clocks, clocks, first_collectives
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    from tfcompare.run import Run
    from tfcompare.views.timeline.run_pair import Timelines


@dataclass(frozen=True, eq=False)
class HostPair:
    """Two hosts, compared as if each were a run.

    `steps` maps each step of the first host to the number of the same step on the second; None for hosts of different
    runs, which have no step in common, and for a host with itself. `clocks` has their offset, None if unknown.
    """

    comparison: Pairs
    steps: dict[int, int] | None
    clocks: Clocks | None

    @property
    def offset(self) -> tuple[float, float]:
        """(how much later the second host's profile shows the same instant, 95 % error of that) in µs; NaN if unknown.

        As events of two hosts that are closer to each other than the error have no known order, it is that of single
        events.
        """
        if self.clocks is None:
            return math.nan, math.nan
        rows = self.clocks.offsets
        times = zip(rows["host"], rows["offset_us"].tolist(), rows["error_us"].tolist(), strict=True)
        of_host = {host: (offset, error) for host, offset, error in times}
        (ours_us, our_error_us), (theirs_us, their_error_us) = (
            of_host[run.host_names[0]] for run in (self.comparison.baseline, *self.comparison.candidates)
        )
        return theirs_us - ours_us, math.hypot(our_error_us, their_error_us)


def compare_hosts(ours: tuple[Run, str], theirs: tuple[Run, str]) -> HostPair:
    """Compares two hosts, each of a run. Raises `Unknown` for an unknown host."""
    comparison = Pairs.between(ours[0].only(ours[1]), theirs[0].only(theirs[1]))
    if ours[0].id != theirs[0].id:
        return HostPair(comparison, None, None)
    both = ours[0].only(ours[1], theirs[1])
    steps = both.table("steps").assign(place=common_step_ids)
    first, second = (steps[steps["host"] == host].set_index("place")["step"] for host in (ours[1], theirs[1]))
    shared = first.index.intersection(second.index)
    return HostPair(comparison, dict(zip(first[shared].tolist(), second[shared].tolist(), strict=True)), clocks(both))


def with_itself(run: Run, host: str) -> HostPair:
    """Compares a host with itself, to see two of its steps beside each other. Raises `Unknown` for an unknown host."""
    one = run.only(host)
    return HostPair(Pairs.between(one, replace(one, id=f"{one.id} again")), None, None)


@dataclass(frozen=True)
class Meeting:
    """The first collective of a step of two hosts of one run: whoever comes first waits there for the other.

    `span` is its position among those of the first host, `reached_ps` and `left_ps` are its start and end on each host,
    by its own clock. `offset_us` is how much later the second host's profile shows the same instant and `error_us` the
    error of that (see `HostPair.offset`); NaN if unknown. `steps` tells from how many steps that is estimated.
    """

    collective: str
    span: int
    reached_ps: tuple[int, int]
    left_ps: tuple[int, int]
    offset_us: float
    error_us: float
    steps: int

    @property
    def has_clock(self) -> bool:
        """Whether times of the two hosts can be compared."""
        return not math.isnan(self.error_us)

    @property
    def zero_ps(self) -> tuple[int, int]:
        """The same instant on each host: the end of the collective on the first; with unknown clocks, its end on each.

        Both ends are as far apart as in this step, which is within the error in 95 % of all.
        """
        if not self.has_clock:
            return self.left_ps
        return self.left_ps[0], self.left_ps[0] + round(self.offset_us * PS_PER_US)

    @property
    def late_us(self) -> float:
        """How much later the second host reaches the collective; NaN with unknown clocks."""
        return self.behind_us(self.reached_ps)

    def behind_us(self, times_ps: tuple[int, ...]) -> float:
        """How much later the second of these times is, each by the clock of its host; NaN with unknown clocks."""
        zeros = self.zero_ps
        since = [time - zero for time, zero in zip(times_ps, zeros, strict=True)]
        return (since[1] - since[0]) / PS_PER_US if self.has_clock else math.nan

    def is_ordered(self, apart_us: float) -> bool:
        """Whether it is known which of two events so far apart, one on each host, comes first."""
        return self.has_clock and abs(apart_us) > self.error_us


def meeting(hosts: HostPair, timelines: Timelines, steps: tuple[int, ...]) -> Meeting | None:
    """Where two hosts meet in this step of each; None if it does not begin with the same collective on both."""
    if hosts.steps is None or hosts.steps.get(steps[0]) != steps[1]:
        return None
    sides = []
    for side, step in zip(timelines.sides, steps, strict=True):
        rows = first_collectives(side.timeline.spans)
        rows = rows[rows["step"] == step]
        if rows.empty:
            return None
        start, end = (round(float(rows[name].iloc[0]) * PS_PER_US) for name in ("start_us", "end_us"))
        sides.append((str(rows["name"].iloc[0]), int(rows.index[0]), start, end))
    (name, span, *ours), (other, _, *theirs) = sides
    if name != other:
        return None
    counted = hosts.clocks.steps if hosts.clocks else 0
    return Meeting(name, span, (ours[0], theirs[0]), (ours[1], theirs[1]), *hosts.offset, counted)
