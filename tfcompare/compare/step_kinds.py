"""Steps of several kinds in one capture, such as training and evaluation: each kind is a distribution of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.tables.slow_steps import is_slow
from tfcompare.tables.step_programs import kind_at, kinds_among

if TYPE_CHECKING:
    from tfcompare.compare.side import Side
    from tfcompare.run import Run

OTHER_MIX = 0.1
"""By how much the share of a kind must differ between two runs: captures begin and end anywhere in a loop."""


@dataclass(frozen=True)
class StepKind:
    """One kind of step in two runs: its name, how many included steps each run has in all captures, their mean times in
    µs as the verdict takes them (NaN without any), and the verdict on these."""

    name: str
    counts: tuple[int, int]
    times_us: tuple[float, float]
    verdict: Verdict

    @property
    def total_us(self) -> float:
        """The time of all its steps in both runs."""
        return sum(count * time for count, time in zip(self.counts, self.times_us, strict=True) if count)


def kinds_of(run: Run, host: str | None) -> dict[str, int]:
    """How many included steps of each kind a run has, the most frequent first; empty if they are all of one kind."""
    return _several(included_steps(run, host))


def _several(steps: pd.DataFrame) -> dict[str, int]:
    kinds = kinds_among(steps["kind"])
    return kinds if len(kinds) > 1 else {}


def slow_steps_are_a_kind(run: Run, host: str | None) -> bool:
    """Whether no step of a run is slow among those of its own kind, of which there are several: those that are slow
    among all are another kind."""
    steps = included_steps(run, host)
    if not (kinds := _several(steps)):
        return False
    times = [steps.loc[steps["kind"] == name, "duration_us"].to_numpy(np.float64) for name in kinds]
    return sum(map(len, times)) == len(steps) and not any(is_slow(of_kind[np.newaxis]).any() for of_kind in times)


def is_other_mix(baseline: Mapping[str, int], candidate: Mapping[str, int]) -> bool:
    """Whether two runs, given the counts of their kinds of steps, have another mix of them."""
    wholes = [sum(counts.values()) or 1 for counts in (baseline, candidate)]
    shares = (
        [counts.get(name, 0) / whole for counts, whole in zip((baseline, candidate), wholes, strict=True)]
        for name in {**baseline, **candidate}
    )
    return any(abs(ours - theirs) > OTHER_MIX for ours, theirs in shares)


def counts_of(kinds: Sequence[StepKind]) -> tuple[dict[str, int], dict[str, int]]:
    """How many included steps of each of these kinds the baseline and the candidate have, without those of none."""
    ours, theirs = ({one.name: one.counts[side] for one in kinds if one.counts[side]} for side in (0, 1))
    return ours, theirs


def step_kinds(baseline: Side, candidate: Side, test: ChangeTest) -> list[StepKind]:
    """The kinds of steps of two sides, that with most time first; none if the steps of each are all of one kind."""
    sides = (baseline, candidate)
    by_marker = are_by_marker(*(side.run for side in sides))
    frames = [[included_steps(side.runs[i], side.hosts[i], by_marker) for i in side.positions] for side in sides]
    known = [_several(side[0]) for side in frames]
    found = [_kind(name, frames, test) for name in dict.fromkeys(name for of_side in known for name in of_side)]
    return sorted(found, key=lambda one: -one.total_us)


def _kind(name: str, frames: Sequence[Sequence[pd.DataFrame]], test: ChangeTest) -> StepKind:
    test = replace(test, of=f"steps of {name}")
    times = [
        [Times.of(frame.loc[frame["kind"] == name, "duration_us"].to_numpy(np.float64)) for frame in side]
        for side in frames
    ]
    ours, theirs = (sum(of_capture.included.size for of_capture in side) for side in times)
    return StepKind(name, (ours, theirs), (test.value(times[0]), test.value(times[1])), test(*times))


def are_by_marker(*runs: Run) -> bool:
    """Whether the kinds of steps of these runs are the names of their markers: if those tell several apart in any run,
    and all runs have one in common, or if no run has programs."""
    if any(run.has_kinds_by_marker for run in runs):
        return bool(set.intersection(*(set(run.step_markers()) for run in runs)))
    return all(run.step_programs().empty for run in runs)


def included_steps(run: Run, host: str | None, by_marker: bool | None = None) -> pd.DataFrame:
    """Columns `step`, `duration_us` and `kind` (empty where unknown) of the included steps; `by_marker` is as for
    `Run.kind_of_steps`."""
    steps = run.steps_on(host)
    steps = steps[steps["included"].astype(bool)]
    kinds = run.kind_of_steps(host, by_marker=by_marker)
    return steps[["step", "duration_us"]].assign(kind=kind_at(steps["step"], kinds))
