"""The timelines of a pair of runs, or of one run alone, made ready to align and to draw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.frames.nesting import self_times
from tfcompare.schema import DEVICE, IDLE
from tfcompare.schema.arrays import Int64
from tfcompare.tables.step_times import positions_in_run
from tfcompare.views.timeline.lanes import LanePair, Layout, lane_pairs, lay_out
from tfcompare.views.timeline.pairs import Identities, identities
from tfcompare.views.timeline.run_timeline import NONE, HostTimeline, typical_step
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run


@dataclass(frozen=True, eq=False)
class SideTimeline:
    """One host of a run: its timeline, the rows of its spans, and its steps, sorted by start.

    `steps` has the columns `step`, `position` (among the steps of the run, from 1), `start_ps`, `duration_ps`,
    `included`, `program` (its kind); it is empty if the run marks none.
    """

    run: str
    timeline: HostTimeline
    layout: Layout
    steps: pd.DataFrame

    @property
    def typical(self) -> int | None:
        """The number of the typical step of this host."""
        return typical_step(self.steps.assign(duration_us=self.steps["duration_ps"]))

    def position_of(self, step: int) -> int:
        """The position of the step with this number among the steps of the run, counted from 1."""
        return int(self.steps.loc[self.steps["step"] == step, "position"].iloc[0])

    @property
    def extent_ps(self) -> tuple[int, int]:
        """The first start and the last end of all spans; (0, 1) without any."""
        if not len(self.layout.start_ps):
            return 0, 1
        return int(self.layout.start_ps.min()), int(self.layout.end_ps.max())

    @property
    def has_steps(self) -> bool:
        """Whether the run marks steps."""
        return len(self.steps) > 0


@dataclass(frozen=True, eq=False)
class Timelines:
    """Baseline and candidate, or one run alone; their lanes, and their rows in the diff of `op_stats`."""

    sides: tuple[SideTimeline, ...]
    lanes: tuple[LanePair, ...]
    op_stats: pd.DataFrame
    known: Identities

    @property
    def all_have_steps(self) -> bool:
        """Whether all sides have steps, so that they can be aligned at one."""
        return all(side.has_steps for side in self.sides)

    @cached_property
    def ops_by_time(self) -> pd.DataFrame:
        """The rows of `op_stats` that both sides have, those on the device first, the longest first."""
        rows = self.op_stats[(self.op_stats["status"] == MATCHED) & (self.op_stats["op_type"] != IDLE)]
        rows = rows.assign(later=rows["host_or_device"] != DEVICE, time=-rows["self_time_us_baseline"])
        return rows.sort_values(["later", "time"], kind="stable")

    def op_rows(self, side: int) -> Int64:
        """The row of `op_stats` that each span of a side belongs to, `NONE` for those that are no op."""
        return self.known.op[side]

    @cached_property
    def lane_numbers(self) -> tuple[Int64, ...]:
        """For each side, the pair in `lanes` that each of its lanes belongs to, `NONE` for none."""
        found = []
        for side, opened in enumerate(self.sides):
            number = np.full(len(opened.timeline.lanes), NONE, np.int64)
            for position, pair in enumerate(self.lanes):
                if (lane := pair.lanes[side]) is not None:
                    number[lane] = position
            found.append(number)
        return tuple(found)

    @cached_property
    def self_time_ps(self) -> tuple[Int64, ...]:
        """For each side, the self time of each span: of an op less the ops that it encloses, as in `op_stats`.

        Of a span that is no op, less all spans that it encloses.
        """
        found = []
        for number, side in enumerate(self.sides):
            spans, ops = side.timeline.spans, np.flatnonzero(self.op_rows(number) != NONE)
            lane, start, duration = (spans[name].to_numpy(np.int64) for name in ("lane", "start_ps", "duration_ps"))
            own = self_times(lane, start, duration, np.arange(len(spans)))
            own[ops] = self_times(lane, start, duration, ops)
            found.append(own)
        return tuple(found)

    @cached_property
    def row_of_span(self) -> tuple[Int64, ...]:
        """For each side, the row of the layout that each span is in."""
        found = []
        for side in self.sides:
            row = np.empty(len(side.layout.span), np.int64)
            row[side.layout.span] = np.repeat(np.arange(len(side.layout.lane)), np.diff(side.layout.first))
            found.append(row)
        return tuple(found)


def open_timelines(pair: Pair, host: str | None) -> Timelines:
    """The timelines of the baseline's `host` and its counterpart in the candidate; of one run if it is shown alone.

    Without a host, those of the baseline's first host. A candidate without a counterpart is shown with its first host.
    """
    baseline, candidate = pair.runs
    host = host or baseline.host_names[0]
    sides = [_side(baseline, host)]
    if not pair.is_single:
        theirs = host_counterparts(baseline.host_names, candidate.host_names).get(host, candidate.host_names[0])
        sides.append(_side(candidate, theirs))
    diff, kernels = pair.diff(), pair.diff("kernel_stats")
    shown = [side.timeline for side in sides]
    lanes = tuple(lane_pairs(shown))
    twice, both = shown, list(lanes)
    if len(shown) == 1:  # each lane is its own partner
        twice, both = shown * 2, [replace(pair, lanes=(pair.lanes[0], pair.lanes[0])) for pair in lanes]
    return Timelines(tuple(sides), lanes, diff, identities(twice, both, diff, kernels))


def _side(run: Run, host: str) -> SideTimeline:
    timeline = HostTimeline(host, *run.tables.timeline(host), zero_ps=0)
    every = run.table("steps") if run.info.has_steps else run.table("steps").iloc[:0]
    every = every.assign(position=positions_in_run(every), kind=run.tables.kinds.by_row(every))
    steps = every[(every["host"] == host) & every["duration_us"].notna()]
    times = {f"{name}_ps": (steps[f"{name}_us"] * PS_PER_US).round().astype("int64") for name in ("start", "duration")}
    steps = steps[["step", "position", "included", "kind"]].assign(**times)
    steps = steps.sort_values("start_ps", kind="stable", ignore_index=True)
    return SideTimeline(run.name, timeline, lay_out(timeline.spans), steps)
