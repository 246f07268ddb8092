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
from tfcompare.compare.matching import with_hosts_of
from tfcompare.compare.row_verdicts import identical_rows, step_series, untested_rows, verdicts_on_rows
from tfcompare.compare.series_verdict import Spread, declared_spread, verdict_on_series
from tfcompare.compare.verdict import IDENTICAL, UNTESTED, Verdict
from tfcompare.frames.step_cells import StepCells

if TYPE_CHECKING:
    from tfcompare.run import Run

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KEYS = {"op_stats": ["host_or_device", "op_type", "op_name"], "kernel_stats": list(schema.KERNEL_STATS.keys)}
"""Tables whose rows are judged, by the keys that tell them apart."""

NO_STEPS = Verdict(UNTESTED, "no steps to judge by: a run has no step markers")


@dataclass(frozen=True)
class Side:
    """One side's recordings: the run that is shown, and more of the same program, with the host of each that counts."""

    runs: tuple[Run, ...]
    hosts: tuple[str | None, ...]

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

    def recordings(self, run: Run, host: str | None) -> Side:
        """The run and its repeats, on the host of that name where a repeat has it."""
        runs = (run, *(r for r in self.repeats.get(run.id, ()) if r.content_id != run.content_id))
        return Side(runs, tuple(host if host in r.host_names else None for r in runs))

    def spread_between(self, baseline: Run, candidate: Run) -> Spread:
        """The spread between recordings that counts for these two."""
        if self.spread is not None:
            return Spread(self.spread, "as it was set")
        return declared_spread(baseline.info.device_type, candidate.info.device_type)

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

    def on_rows(self, diff: pd.DataFrame, name: str, baseline: Side, candidate: Side) -> pd.DataFrame:
        """For the matched rows of a diff of `name`: `verdict`, `interval_low`, `interval_high`, under its index."""
        rows = diff[diff["status"] == "matched"]
        if baseline.runs[0].content_id == candidate.runs[0].content_id:
            return identical_rows(len(rows)).set_axis(rows.index)
        if not (baseline.has_steps and candidate.has_steps) or rows.empty:
            return untested_rows(len(rows)).set_axis(rows.index)
        spread = self.spread_between(baseline.runs[0], candidate.runs[0])
        ours = self._series(rows, name, baseline, "")
        theirs = self._series(rows, name, candidate, "_candidate")
        return verdicts_on_rows(ours, theirs, spread.share).set_axis(rows.index)

    def _series(self, rows: pd.DataFrame, name: str, side: Side, suffix: str) -> list[Floats]:
        series = []
        for i, (run, host) in enumerate(zip(side.runs, side.hosts, strict=True)):
            cells = run.step_cells(name, host=host)
            keys = KEYS[name]
            if "host" in keys:
                cells = StepCells(with_hosts_of(rows, cells.keys), cells.cells)
            named = rows[[f"{key}{suffix}" if f"{key}{suffix}" in rows else key for key in keys]].set_axis(keys, axis=1)
            series.append(step_series(named, cells, side.steps(i)["step"].to_numpy(np.int64)))
        return series


def caveat(baseline: Run, candidate: Run) -> str:
    """What keeps any verdict on the two runs' times from being one on the program; empty where nothing does."""
    hard = [m.label.lower() for m in mismatches(baseline, candidate) if m.is_hard]
    if not hard:
        return ""
    named = " and ".join(filter(None, [", ".join(hard[:-1]), hard[-1]]))
    return f"not a verdict on the program alone: the runs differ in {named}"
