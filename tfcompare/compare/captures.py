"""The captures of each compared program, the variation between them, and their series of step times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.repeats import with_names_of
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import FEWEST_REPEATS, Times
from tfcompare.compare.stats.spread import OF_HOSTS, Spread, declared_spread
from tfcompare.errors import Unknown
from tfcompare.schema.arrays import Floats
from tfcompare.tables.step_cells import StepCells

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run


@dataclass(frozen=True)
class StepsOf:
    """The `included` steps of one capture, in order, and its excluded `stray`: a single row or none."""

    included: pd.DataFrame
    stray: pd.DataFrame

    @classmethod
    def of(cls, steps: pd.DataFrame) -> StepsOf:
        """From the steps of a run or of one of its hosts."""
        included = steps["included"].astype(bool)
        return cls(steps[included], steps[steps["stray"].astype(bool) & ~included].head(1))

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The numbers of the included steps, then that of the stray."""
        return np.concatenate([self.included["step"].to_numpy(np.int64), self.stray["step"].to_numpy(np.int64)])

    def times(self, column: str) -> Times:
        """The times in a column."""
        return self.split(np.concatenate([frame[column].to_numpy(np.float64) for frame in (self.included, self.stray)]))

    def split(self, values: Floats) -> Times:
        """Values of `numbers`, one row for all or an array (rows, steps), with the stray apart."""
        rows, count = np.atleast_2d(values), len(self.included)
        return Times(rows[:, :count], rows[:, count] if len(self.stray) else None)


@dataclass(frozen=True)
class Captures:
    """One side's captures: the displayed run and its replicates, with the compared host of each."""

    runs: tuple[Run, ...]
    hosts: tuple[str | None, ...]

    @property
    def positions(self) -> range:
        """The positions of the captures."""
        return range(len(self.runs))

    def steps(self, position: int) -> StepsOf:
        """The steps of one capture that count, and its stray."""
        return StepsOf.of(self.runs[position].steps_on(self.hosts[position]))

    @property
    def step_count(self) -> int:
        """The number of included steps of the displayed run, at least 1."""
        return self.runs[0].info.steps_included if self.hosts[0] is None else len(self.steps(0).included) or 1

    @property
    def all_have_steps(self) -> bool:
        """Whether all captures have step markers."""
        return all(run.info.has_steps for run in self.runs)

    @property
    def all_have_step_times(self) -> bool:
        """Whether the step times of all captures are known."""
        return all(run.info.has_step_times for run in self.runs)

    @property
    def step_times_us(self) -> list[Times]:
        """The step times of each capture; none if those of any are unknown."""
        if not self.all_have_step_times:
            return [Times.of(np.zeros(0)) for _ in self.runs]
        return [self.steps(i).times("duration_us") for i in self.positions]


@dataclass(frozen=True)
class Replicates:
    """Further captures of the programs of runs, by the run's id, and the assumed variation between captures.

    `spread`: the standard deviation between captures of one program, which overrides the default of the device.
    `as_baseline`: a candidate with too few captures varies as the baseline's do, if these suffice to measure it: they
    are earlier runs of a series.
    """

    of_run: Mapping[str, Sequence[Run]] = field(default_factory=dict)
    spread: float | None = None
    as_baseline: bool = False
    _aligned: dict[tuple[str | None, ...], StepCells] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def captures(self, run: Run, host: str | None) -> Captures:
        """The run and its replicates, without duplicates, in an order independent of that of the arguments.

        With `host`, each replicate is restricted to its counterpart of that host; those without one are left out.
        """
        once = {r.content_id: r for r in self.of_run.get(run.id, ()) if r.content_id != run.content_id}
        runs = [run, *(once[content] for content in sorted(once))]
        if host is None:
            return Captures(tuple(runs), (None,) * len(runs))
        hosts = [host, *(host_counterparts(run.host_names, r.host_names).get(host) for r in runs[1:])]
        there = [(r, h) for r, h in zip(runs, hosts, strict=True) if h is not None]
        return Captures(tuple(r for r, _ in there), tuple(h for _, h in there))

    def spread_between(self, baseline: Run, candidate: Run, *, on_host: bool = False) -> Spread:
        """The assumed spread between captures of these two programs, for step times or, with `on_host`, host times."""
        if self.spread is not None:
            return Spread(self.spread, "as set")
        types = baseline.info.device_type, candidate.info.device_type
        spread = OF_HOSTS if on_host else declared_spread(*types)
        return spread.under_load() if any(map(self._is_under_load, (baseline, candidate))) else spread

    def spread_of(self, baseline: Sequence[Times], test: ChangeTest) -> Spread:
        """The spread that `test` assumes, or that of the baseline's captures if it also applies to the candidate."""
        if not self.as_baseline or self.spread is not None or len(baseline) < FEWEST_REPEATS:
            return test.spread
        return test.measured_spread(baseline) or test.spread

    def _is_under_load(self, run: Run) -> bool:
        """Whether the run or any of its replicates was captured on a busy machine."""
        return any(one.is_under_load for one in (run, *self.of_run.get(run.id, ())))

    def cells(self, captures: Captures, position: int, table: str) -> StepCells:
        """The step cells of one capture; those of a replicate have the names of the displayed run."""
        (shown, its_host), (run, host) = ((captures.runs[i], captures.hosts[i]) for i in (0, position))
        if not position:
            return shown.step_cells(table, host=its_host)
        key = (table, shown.content_id, its_host, run.content_id, host)
        if key not in self._aligned:
            self._aligned[key] = with_names_of(shown, its_host, run, host, table)
        return self._aligned[key]


def shared_by_copies(
    baseline: Run, candidates: Sequence[Run], repeats: Mapping[str, Sequence[Run]]
) -> dict[str, Sequence[Run]]:
    """The replicates of each run; candidates that are the same capture as the baseline share theirs with it."""
    copies = {run.id: run for run in (baseline, *candidates) if run.content_id == baseline.content_id}
    every = [more for run_id in copies for more in repeats.get(run_id, ())]
    return {**repeats, **{run_id: every for run_id in copies if every}}


def counterparts_of_host(
    baseline: Run, candidates: tuple[Run, ...], host: str | None
) -> tuple[dict[str, str | None], list[str]]:
    """Each candidate's counterpart of the baseline's host, and a note for each with a different name."""
    if host is None:
        return {run.id: None for run in candidates}, []
    if host not in baseline.host_names:
        raise Unknown(f"host of {baseline.id}", host, sorted(baseline.host_names))
    hosts: dict[str, str | None] = {}
    notes = []
    for run in candidates:
        counterparts = host_counterparts(baseline.host_names, run.host_names)
        if host not in counterparts:
            raise Unknown(f"host of {run.id}", host, sorted(run.host_names))
        hosts[run.id] = counterparts[host]
        if counterparts[host] != host:
            notes.append(f"Host {host} of the baseline is compared with host {counterparts[host]} of {run.name}.")
    return hosts, notes
