"""Steps of several kinds in one capture, such as training and evaluation: each kind is a distribution of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.pooling import sums_of
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import FEWEST_STEPS, Times
from tfcompare.compare.stats.verdict import OF_HOSTS, Spread, Verdict
from tfcompare.schema import Table
from tfcompare.schema.arrays import Int64
from tfcompare.tables.slow_steps import is_slow
from tfcompare.tables.step_kinds import kind_at, kinds_among

if TYPE_CHECKING:
    from tfcompare.compare.side import Side
    from tfcompare.run import Run

OTHER_MIX = 0.1
"""By how much the share of a kind must differ between two runs: captures begin and end anywhere in a loop."""
_USUAL_TEST = ChangeTest(OF_HOSTS)


@dataclass(frozen=True)
class StepKind:
    """One kind of step in two runs: its name, how many included steps each run has in all captures, their mean times in
    µs as the verdict takes them (NaN without any), the verdict on these, and the test that it is from."""

    name: str
    counts: tuple[int, int]
    times_us: tuple[float, float]
    verdict: Verdict
    test: ChangeTest = _USUAL_TEST

    @property
    def total_us(self) -> float:
        """The time of all its steps in both runs."""
        return sum(count * time for count, time in zip(self.counts, self.times_us, strict=True) if count)


@dataclass(frozen=True)
class CommonKinds:
    """The kinds of steps that all captures of two sides have, with the `shares` of the mix in which ops are compared:
    the mean of the shares on both sides. `by_marker` is as for `StepKinds.by_step`."""

    shares: Mapping[str, float]
    by_marker: bool

    def of_steps(self, run: Run, host: str | None, steps: pd.Series) -> pd.Series:
        """The kind of each of these numbers of steps."""
        return kind_at(steps, run.tables.kinds.by_step(host, by_marker=self.by_marker))

    def in_steps(self, table: Table, run: Run, host: str | None) -> pd.DataFrame:
        """A table of `IN_STEPS` of a capture, with sums as if its steps were of this mix.

        Steps of a kind that not all captures have are as frequent as they are beside the others.
        """
        steps = included_steps(run, host, self.by_marker)
        counts = steps["kind"].value_counts()
        in_common = int(counts.reindex(list(self.shares)).sum())
        weights = {
            str(kind): len(steps) * (self.shares[str(kind)] / count if kind in self.shares else 1 / in_common)
            for kind, count in counts.items()
        }
        whole = run.tables.in_steps(table.name, host=host)
        if np.allclose(list(weights.values()), 1):
            return whole
        sums = sums_of(table)
        of_kinds = [
            run.tables.in_steps(table.name, host=host, steps=rows["step"])[sums].astype("float64") * weights[str(kind)]
            for kind, rows in steps.groupby("kind")
        ]
        mixed = whole.copy()
        mixed[sums] = sum(of_kinds[1:], of_kinds[0])
        return mixed

    def fewest_steps(self, side: Side) -> int:
        """The number of steps of the kind that the first capture of a side has fewest of."""
        counts = included_steps(side.run, side.host, self.by_marker)["kind"].value_counts()
        return int(counts[list(self.shares)].min())

    def split(self, side: Side, captures: Sequence[Times]) -> list[list[Times]]:
        """For each of the kinds, the times of the captures of a side in the steps of that kind."""
        kinds = [
            self.of_steps(run, host, pd.Series(side.steps(position).numbers)).to_numpy()
            for position, run, host in side.each_at
        ]
        return [
            [times.in_steps(kind == name) for kind, times in zip(kinds, captures, strict=True)] for name in self.shares
        ]

    def leveled(self, run: Run, host: str | None, numbers: Int64, times: Times) -> Times:
        """Times in the steps of these numbers, each less what the steps of its kind differ from all on average: the
        mean is as before, and how long each kind takes no longer counts as variation."""
        kind = self.of_steps(run, host, pd.Series(numbers[: times.included.shape[1]])).to_numpy()
        code, names = pd.factorize(kind)
        if len(names) < 2:
            return times
        is_of = (code == np.arange(len(names))[:, np.newaxis]).astype(np.float64)
        of_kind = times.included @ (is_of / is_of.sum(axis=1, keepdims=True)).T
        return Times(times.included - of_kind[:, code] + times.included.mean(axis=1, keepdims=True), times.stray)

    def main(self, baseline: Sequence[Sequence[Times]], candidate: Sequence[Sequence[Times]]) -> Int64:
        """For each row, the position of the kind in which it takes most time on both sides, in this mix; −1 where it
        runs in no kind on both. The sides are those of `split`."""
        ours, theirs = (
            np.array([np.mean([times.included.mean(axis=1) for times in of_kind], axis=0) for of_kind in side])
            for side in (baseline, candidate)
        )
        spent = (ours + theirs) * (ours > 0) * (theirs > 0) * np.array([*self.shares.values()])[:, np.newaxis]
        main: Int64 = np.where((spent > 0).any(axis=0), spent.argmax(axis=0), -1)
        return main


def common_kinds(baseline: Side, candidate: Side) -> CommonKinds | None:
    """The kinds that all captures of both sides have steps of; None where they have none in common."""
    by_marker = are_by_marker(baseline.run, candidate.run)
    counts = [
        side.each(lambda run, host: included_steps(run, host, by_marker)["kind"].value_counts())
        for side in (baseline, candidate)
    ]
    names = sorted(set.intersection(*(set(one.index) for of_side in counts for one in of_side)))
    if not names:
        return None
    mixes = [pd.concat([one[names] / one[names].sum() for one in of_side], axis=1).mean(axis=1) for of_side in counts]
    return CommonKinds({str(name): float((mixes[0][name] + mixes[1][name]) / 2) for name in names}, by_marker)


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


def step_kinds(baseline: Side, candidate: Side, spread: Callable[[Sequence[float]], Spread]) -> list[StepKind]:
    """The kinds of steps of two sides, that with most time first; none if the steps of each are all of one kind.

    `spread` gives that of steps of which devices take these shares on the sides. The kinds with enough steps are tested
    together: their intervals are joint.
    """
    sides = (baseline, candidate)
    by_marker = are_by_marker(*(side.run for side in sides))
    known = [_several(included_steps(side.run, side.host, by_marker)) for side in sides]
    if not any(known):
        return []
    frames = [[included_steps(side.runs[i], side.hosts[i], by_marker) for i in side.positions] for side in sides]
    for side, of_side in zip(sides, frames, strict=True):
        for frame, times in zip(of_side, side.device_times_us, strict=True):
            busy = times.included[0]
            frame["busy_us"] = busy if len(busy) == len(frame) else np.nan
    names = list(dict.fromkeys(name for of_side in known for name in of_side))
    counts = pd.concat([frame["kind"].value_counts() for of_side in frames for frame in of_side], axis=1).reindex(names)
    family = int((counts.min(axis=1, skipna=False) >= FEWEST_STEPS).sum()) or 1
    found = [_kind(name, frames, spread, family) for name in names]
    return sorted(found, key=lambda one: -one.total_us)


def _kind(
    name: str, frames: Sequence[Sequence[pd.DataFrame]], spread: Callable[[Sequence[float]], Spread], family: int
) -> StepKind:
    of_kind = [[frame[frame["kind"] == name] for frame in side] for side in frames]
    whole = [pd.concat(side)[["busy_us", "duration_us"]].sum(min_count=1) for side in of_kind]
    shares = [of_side["busy_us"] / of_side["duration_us"] for of_side in whole if of_side["duration_us"] > 0]
    of_steps = spread(shares or [math.nan])
    test = ChangeTest(of_steps, of=f"steps of {name}", family=family)
    times = [[Times.of(frame["duration_us"].to_numpy(np.float64)) for frame in side] for side in of_kind]
    ours, theirs = (sum(of_capture.included.size for of_capture in side) for side in times)
    return StepKind(name, (ours, theirs), (test.value(times[0]), test.value(times[1])), test(*times), test)


def are_by_marker(*runs: Run) -> bool:
    """Whether the kinds of steps of these runs are the names of their markers: if those tell several apart in any run,
    and all runs have one in common, or if no run has programs."""
    if any(run.tables.kinds.are_by_marker for run in runs):
        return bool(set.intersection(*(set(run.tables.kinds.markers()) for run in runs)))
    return all(run.tables.kinds.programs().empty for run in runs)


def included_steps(run: Run, host: str | None, by_marker: bool | None = None) -> pd.DataFrame:
    """Columns `step`, `duration_us` and `kind` (empty where unknown) of the included steps; `by_marker` is as for
    `StepKinds.by_step`."""
    steps = run.tables.steps_on(host)
    steps = steps[steps["included"].astype(bool)]
    kinds = run.tables.kinds.by_step(host, by_marker=by_marker)
    return steps[["step", "duration_us"]].assign(kind=kind_at(steps["step"], kinds))
