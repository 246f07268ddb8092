"""A series with its changes: when, by how much, and which ops explain them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.side import window_of
from tfcompare.compare.stats.change_points import change_points, change_points_of_family
from tfcompare.errors import TfcompareError
from tfcompare.frames.profile_reader import OnProgress
from tfcompare.run import Run, load
from tfcompare.sources.logdir import FoundRun
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.views.series import figures as tool
from tfcompare.views.series.figures import THROUGHPUT, Metric, Opener, label_of

T = TypeVar("T")
_RATIO = ("ratio", "ratio_low", "ratio_high", "p")
_AROUND = ("run_before", "label_before", "before", "after")
COLUMNS = ("run", "name", "recorded", "label", *_AROUND, *_RATIO, "runs_before", "runs_after")
"""The columns of `changes`."""
OP_COLUMNS = ("host_or_device", "op_type", "op_name", "run", "label", "delta_us", *_RATIO)
"""The columns of `op_changes`."""
NO_OP = "no op running"
OTHER_HOSTS = "other hosts slower"
BETWEEN = "time between steps"
NEAREST = 10
"""An explanation compares at most this many runs on either side of a change."""
FAMILY_RUNS = 200
"""Changes in every op are looked for in at most this many of the last runs."""
SMALLEST_OP_SHARE = 0.005
"""Ops below this share of the time in all runs are not tested, as in verdicts."""
_DIGITS_OF_PS = 6
_OP = ["host_or_device", "op_type", "op_name"]


def changes(rows: pd.DataFrame) -> pd.DataFrame:
    """The change points of a series (the result of `tools.series.series`), in its order.

    Columns: `run`, `name`, `recorded` and `label` of the first run after the change; `run_before` and `label_before`
    of the last one before; `before` and `after`, the geometric means up to the neighbouring changes with strays
    clipped, in the metric's unit; `ratio`, after ÷ before, with its 95 % confidence interval `ratio_low` to
    `ratio_high`; `p`; `runs_before` and `runs_after`, how many runs that rests on. Runs without a value do not count.
    """
    known = rows[rows["value"] > 0].reset_index(drop=True)
    out = []
    for point in change_points(known["value"].to_numpy(np.float64)):
        after, before = known.iloc[point.at], known.iloc[point.at - 1]
        first = (after["run"], after["name"], after["recorded"], after["label"], before["run"], before["label"])
        size = (point.before, point.after, point.ratio, point.low, point.high, point.p)
        out.append((*first, *size, point.at - point.first, point.end - point.at))
    return pd.DataFrame(out, columns=list(COLUMNS))


@dataclass(frozen=True)
class Series:
    """A metric of `runs` in order, which are of one device: `left_out` others are not in it.

    `rows` are those of `tools.series.series`, `changes` those of the function `changes`.
    """

    runs: Sequence[FoundRun]
    metric: Metric
    rows: pd.DataFrame
    changes: pd.DataFrame
    left_out: int
    progress: OnProgress
    opener: Opener
    _results: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        found: Sequence[FoundRun],
        metric: Metric,
        by: str = "",
        progress: OnProgress = lambda _done, _all: None,
        opener: Opener = load,
    ) -> Series:
        """The series of those runs that are on the device of the last one; parameters as those of `series`."""
        every = tool.series(found, metric, by, progress, opener)
        rows = tool.on_last_device(every)
        runs = {run.id: run for run in found}
        shown = [runs[run] for run in rows["run"]]
        return cls(shown, metric, rows, changes(rows), len(every) - len(rows), progress, opener)

    @property
    def count(self) -> int:
        """How many runs have a value."""
        return int((self.rows["value"] > 0).sum())

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, kept for `key`. Callers must not modify it."""
        if key not in self._results:
            self._results[key] = make()
        found: T = self._results[key]
        return found

    def moves(self, position: int) -> pd.DataFrame:
        """How the mean step changed op by op at the change at this position of `changes`.

        For throughput, one row is the time between steps, and all add up to the change of step and time between.

        At most `NEAREST` runs count on each side, none beyond the neighbouring changes. Times are wall time: where
        several ops ran at once, an instant is divided among them, so the rows, one of which is the time in which no op
        ran, add up to the change of the mean step. Of several hosts, each run's straggler counts. Ops are matched by
        their exact names. Columns: `host_or_device`, `op_type`, `op_name`, `before_us`, `after_us`, `delta_us`; the
        largest change first. Empty if no run on a side has steps or can be read.
        """
        return self.cached(position, partial(self._moves, position))

    def _moves(self, position: int) -> pd.DataFrame:
        ids = [run.id for run in self.runs]
        edges = [0, *(ids.index(run) for run in self.changes["run"]), len(ids)]
        first, at, end = edges[position : position + 3]
        nearest = self.runs[max(at - NEAREST, first) : min(at + NEAREST, end)]
        of_periods = self.metric.kind == THROUGHPUT
        times = self._read(nearest, lambda run: wall_times_us(run, of_periods) if run.info.has_step_times else None)
        known = {run: of_run for run, of_run in times.items() if of_run is not None}
        before, after = ([known[run] for run in side if run in known] for side in (ids[:at], ids[at:]))
        if not (before and after):
            return pd.DataFrame(columns=[*_OP, "before_us", "after_us", "delta_us"])
        sides = {"before_us": before, "after_us": after}
        means = {name: pd.concat(side, axis=1).fillna(0.0).mean(axis=1) for name, side in sides.items()}
        both: pd.DataFrame = pd.concat(means, axis=1).fillna(0.0)
        both["delta_us"] = (both["after_us"] - both["before_us"]).round(_DIGITS_OF_PS) + 0.0  # no "−0.000"
        order = both["delta_us"].abs().sort_values(ascending=False, kind="stable").index
        return both.loc[order].reset_index()

    def op_changes(self) -> tuple[pd.DataFrame, int]:
        """(the change points of every op in the last `FAMILY_RUNS` runs, tested together; the ops tested).

        Columns `OP_COLUMNS`, the largest change of time first. Only ops that all runs have are tested, and none below
        `SMALLEST_OP_SHARE` of the time in all runs. Runs on another device than the last one are left out.
        """
        return self.cached("op_changes", self._op_changes)

    def _op_changes(self) -> tuple[pd.DataFrame, int]:
        runs = {run.id: run for run in self.runs[-FAMILY_RUNS:]}

        def self_times(run: Run) -> tuple[pd.Series, str]:
            times = without_idle(run.tables.in_steps("op_stats")).groupby(_OP)["self_time_us"].sum()
            return times / run.info.steps_included, tool.device_of_read(run)

        read = self._read(list(runs.values()), self_times)
        if not read:
            return pd.DataFrame(columns=list(OP_COLUMNS)), 0
        *_, (_, last_device) = read.values()
        times = pd.concat({run: of_run for run, (of_run, device) in read.items() if device == last_device}, axis=1)
        times = times.dropna()
        times = times[(times > 0).all(axis=1)]
        times = times[(times >= SMALLEST_OP_SHARE * times.sum()).any(axis=1)]
        rows = []
        for op, points in zip(times.index, change_points_of_family(times.to_numpy(np.float64)), strict=True):
            for point in points:
                changed, before = times.columns[point.at], float(times.loc[op].iloc[point.first : point.at].mean())
                change = (before * (point.ratio - 1), point.ratio, point.low, point.high, point.p)
                rows.append((*op, changed, label_of(runs[changed]), *change))
        out = pd.DataFrame(rows, columns=list(OP_COLUMNS))
        order = out["delta_us"].abs().sort_values(ascending=False, kind="stable").index
        return out.loc[order].reset_index(drop=True), len(times)

    def _read(self, runs: Sequence[FoundRun], read: Callable[[Run], T]) -> dict[str, T]:
        """What `read` makes of each of these runs, by their ids, without those that cannot be read."""
        found = {}
        for done, run in enumerate(runs):
            self.progress(done, len(runs))
            try:
                found[run.id] = read(self.opener(run))
            except TfcompareError:  # its row of the series says why
                continue
        self.progress(len(runs), len(runs))
        return found


def wall_times_us(run: Run, of_periods: bool = False) -> pd.Series:
    """The wall time per step of each op of a run's straggler, by side, type and name, with the time without any op and
    what steps of the run take longer than the straggler's; `of_periods`: with the mean time between steps, too."""
    steps = steps_of_straggler(run.table("steps"))
    steps = steps[steps["included"].astype(bool)]
    shares = run.tables.op_shares(str(steps["host"].iloc[0])).of_steps(steps["step"])
    times = shares.sums("wall_time_us").groupby(_OP)["wall_time_us"].sum() / len(steps)
    step_us = float(steps["duration_us"].mean())
    of_run_us = float(run.steps.loc[run.steps["included"].astype(bool), "duration_us"].mean())
    rest = {("", "", NO_OP): step_us - float(times.sum()), ("", "", OTHER_HOSTS): of_run_us - step_us}
    if of_periods:
        window = window_of(run)
        rest["", "", BETWEEN] = 0.0 if window is None else window.between_us
    every: pd.Series = pd.concat([times, pd.Series(rest).rename_axis(_OP)])
    return every
