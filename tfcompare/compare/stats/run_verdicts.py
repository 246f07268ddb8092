"""Verdicts on a pair of runs: on its step time, and on the rows of its diffs that are known step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.compare.comparability import mismatches
from tfcompare.compare.matching.matching import host_counterparts, with_hosts_of
from tfcompare.compare.repeats import with_names_of
from tfcompare.compare.stats.row_verdicts import identical_rows, step_series, untested_rows, verdicts_on_rows
from tfcompare.compare.stats.series_verdict import OF_HOSTS, Spread, declared_spread, verdict_on_series
from tfcompare.compare.stats.verdict import IDENTICAL, UNTESTED, Verdict
from tfcompare.compare.sums import SIDES, Groups
from tfcompare.frames.steps.step_cells import StepCells

if TYPE_CHECKING:
    from tfcompare.run import Run

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KEYS = {"op_stats": ["host_or_device", "op_type", "op_name"], "kernel_stats": list(schema.KERNEL_STATS.keys)}
"""Tables whose rows are judged, by the keys that tell them apart."""

NO_STEPS = Verdict(UNTESTED, "a run has no step markers")


@dataclass(frozen=True)
class Side:
    """One side's recordings: the run that is shown, and more of the same program, with the host of each that counts."""

    runs: tuple[Run, ...]
    hosts: tuple[str | None, ...]

    @property
    def positions(self) -> range:
        """Of the recordings."""
        return range(len(self.runs))

    def steps(self, position: int) -> pd.DataFrame:
        """`step` and `duration_us` of the steps of one recording that count."""
        run, host = self.runs[position], self.hosts[position]
        steps = run.steps if host is None else run.table("steps", host=host)
        return steps[steps["included"].astype(bool)]

    @property
    def has_steps(self) -> bool:
        """Whether the steps of all recordings were marked."""
        return all(run.info.has_steps for run in self.runs)


@dataclass(frozen=True)
class Judge:
    """How verdicts on runs are made.

    `repeats`: for a run's id, more recordings of the same program; `spread`: the standard deviation between recordings
    of one program, in place of what is declared for the device.
    """

    repeats: Mapping[str, Sequence[Run]] = field(default_factory=dict)
    spread: float | None = None
    _aligned: dict[tuple[str | None, ...], StepCells] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def recordings(self, run: Run, host: str | None) -> Side:
        """The run and its repeats, each recording once, in an order that does not depend on how they were given.

        With `host`, each repeat on the counterpart of that host; one that has none is left out.
        """
        once = {r.content_id: r for r in self.repeats.get(run.id, ()) if r.content_id != run.content_id}
        runs = [run, *(once[content] for content in sorted(once))]
        if host is None:
            return Side(tuple(runs), (None,) * len(runs))
        hosts = [host, *(host_counterparts(run.host_names, r.host_names).get(host) for r in runs[1:])]
        there = [(r, h) for r, h in zip(runs, hosts, strict=True) if h is not None]
        return Side(tuple(r for r, _ in there), tuple(h for _, h in there))

    def spread_between(self, baseline: Run, candidate: Run, *, on_host: bool = False) -> Spread:
        """The assumed spread between captures of these two programs: of their steps, or of what the host does."""
        if self.spread is not None:
            return Spread(self.spread, "as set")
        types = baseline.info.device_type, candidate.info.device_type
        spread = OF_HOSTS if on_host else declared_spread(*types)
        return spread.under_load() if any(map(self._is_under_load, (baseline, candidate))) else spread

    def _is_under_load(self, run: Run) -> bool:
        """Whether the run or any of its repeats was recorded on a busy machine."""
        return any(one.is_under_load for one in (run, *self.repeats.get(run.id, ())))

    def on_step_time(self, baseline: Side, candidate: Side) -> Verdict:
        """Whether the candidate's steps take another time."""
        ours, theirs = baseline.runs[0], candidate.runs[0]
        if ours.content_id == theirs.content_id:
            return IDENTICAL
        if not (baseline.has_steps and candidate.has_steps):
            return NO_STEPS
        series = [
            [side.steps(i)["duration_us"].to_numpy(np.float64) for i in range(len(side.runs))]
            for side in (baseline, candidate)
        ]
        verdict = verdict_on_series(series[0], series[1], self.spread_between(ours, theirs))
        return replace(verdict, caveat=caveat(ours, theirs))

    def on_rows(
        self, diff: pd.DataFrame, name: str, baseline: Side, candidate: Side, displayed: pd.Series
    ) -> pd.DataFrame:
        """For the matched rows of a diff of `name`: `verdict`, `interval_low`, `interval_high`, under its index.

        `displayed`: for each row candidate ÷ baseline of its time per step, as it is displayed.
        """
        rows = diff[diff["status"] == "matched"]
        if baseline.runs[0].content_id == candidate.runs[0].content_id:
            return identical_rows(len(rows)).set_axis(rows.index)
        if not (baseline.has_steps and candidate.has_steps) or rows.empty:
            return untested_rows(len(rows)).set_axis(rows.index)
        spreads = self.spreads_of_rows(rows, baseline, candidate)
        ours = self._series(rows, name, baseline, "")
        theirs = self._series(rows, name, candidate, "_candidate")
        shown = displayed[rows.index].to_numpy(np.float64)
        return verdicts_on_rows(ours, theirs, spreads, shown).set_axis(rows.index)

    def on_groups(self, groups: Groups, baseline: Side, candidate: Side, displayed: pd.Series) -> pd.DataFrame:
        """As `on_rows`, for groups of rows: what a group took in a step is the sum over all its rows on that side."""
        if baseline.runs[0].content_id == candidate.runs[0].content_id:
            return identical_rows(len(displayed))
        result = untested_rows(len(displayed))
        ours, theirs = (set(groups.number_of[side]) for side in SIDES)
        both = np.array(sorted(ours & theirs), np.int64)
        if not (baseline.has_steps and candidate.has_steps) or not both.size:
            return result
        spread_of = self.spreads_of_groups(groups, baseline, candidate)
        spreads = [spread_of[number] for number in both]
        series = [self._added_up(groups, s, side) for s, side in zip(SIDES, (baseline, candidate), strict=True)]
        ours_of_both, theirs_of_both = ([of_run[both] for of_run in side] for side in series)
        found = verdicts_on_rows(ours_of_both, theirs_of_both, spreads, displayed.to_numpy(np.float64)[both])
        result.loc[both, list(found.columns)] = found.to_numpy(object)
        return result

    def spreads_of_rows(self, rows: pd.DataFrame, baseline: Side, candidate: Side) -> list[Spread]:
        """The spread between recordings that counts for each row: what has a `host_or_device` may run on the host."""
        runs = baseline.runs[0], candidate.runs[0]
        places = rows.get("host_or_device", pd.Series("Device", index=rows.index))
        spreads = {place: self.spread_between(*runs, on_host=place == "Host") for place in places.unique()}
        return [spreads[place] for place in places]

    def spreads_of_groups(self, groups: Groups, baseline: Side, candidate: Side) -> dict[int, Spread]:
        """The spread between recordings that counts for each group: the widest that any of its rows has."""
        of_rows = dict(zip(groups.rows.index, self.spreads_of_rows(groups.rows, baseline, candidate), strict=True))
        widest: dict[int, Spread] = {}
        for number_of_row in groups.number_of.values():
            for row, number in number_of_row.items():
                widest[number] = max(widest.get(number, of_rows[row]), of_rows[row], key=lambda spread: spread.share)
        return widest

    def _added_up(self, groups: Groups, name_of_side: str, side: Side) -> list[Floats]:
        """What each group took in each step, for each of the side's recordings."""
        number = groups.number_of[name_of_side]
        rows = groups.rows.loc[number.index]
        suffix = "_candidate" if name_of_side == "candidate" else ""
        added_up = []
        for series in self._series(rows, groups.table, side, suffix):
            total = np.zeros((len(groups.ratios), series.shape[1]))
            np.add.at(total, number.to_numpy(np.int64), series)
            added_up.append(total)
        return added_up

    def _series(self, rows: pd.DataFrame, name: str, side: Side, suffix: str) -> list[Floats]:
        series = []
        for i in side.positions:
            cells = self.cells(side, i, name)
            keys = KEYS[name]
            if "host" in keys:
                cells = StepCells(with_hosts_of(rows, cells.keys), cells.cells)
            named = rows[[f"{key}{suffix}" if f"{key}{suffix}" in rows else key for key in keys]].set_axis(keys, axis=1)
            series.append(step_series(named, cells, side.steps(i)["step"].to_numpy(np.int64)))
        return series

    def cells(self, side: Side, position: int, name: str) -> StepCells:
        """The step cells of one recording, of a repeat under the names of the run that is shown."""
        (shown, its_host), (run, host) = ((side.runs[i], side.hosts[i]) for i in (0, position))
        if not position:
            return shown.step_cells(name, host=its_host)
        key = (name, shown.content_id, its_host, run.content_id, host)
        if key not in self._aligned:
            self._aligned[key] = with_names_of(shown, its_host, run, host, name)
        return self._aligned[key]


def caveat(baseline: Run, candidate: Run) -> str:
    """What keeps any verdict on the two runs' times from being one on the program; empty where nothing does."""
    hard = [m.label.lower() for m in mismatches(baseline, candidate) if m.is_hard]
    if not hard:
        return ""
    named = " and ".join(filter(None, [", ".join(hard[:-1]), hard[-1]]))
    return f"the runs differ in {named}, which alone can change times"
