"""The captures of each compared program, the variation between them, and their series of step times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from tfcompare import schema
from tfcompare.compare.matching.matching import NO_EVIDENCE, Evidence, host_counterparts
from tfcompare.compare.matching.tiers import NAMINGS
from tfcompare.compare.pooling import pooled
from tfcompare.compare.repeats import keys_of_primary, with_keys_of
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import FEWEST_REPEATS, Times
from tfcompare.compare.stats.spread import OF_HOSTS, Spread, declared_spread
from tfcompare.errors import Unknown
from tfcompare.schema.arrays import Floats
from tfcompare.tables.step_cells import StepCells

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run

    Rows = Callable[[Run, str | None], pd.DataFrame]

T = TypeVar("T")

_DIGITS = 9
"""Of two captures, both are as far from their mean: they differ by rounding alone."""


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
    """One side's captures, with the compared host of each. The first has the names of rows, and stands for all where
    they cannot be pooled."""

    runs: tuple[Run, ...]
    hosts: tuple[str | None, ...]

    def each(self, figure: Callable[[Run, str | None], T]) -> list[T]:
        """A figure of each capture on its compared host."""
        return [figure(run, host) for run, host in zip(self.runs, self.hosts, strict=True)]

    @property
    def most_typical(self) -> int:
        """The position of the capture whose mean step is nearest to that of all, of equals the first by content id; 0
        if the step times of any are unknown."""
        if len(self.runs) == 1:
            return 0
        means = [float(np.mean(times.included)) if times.included.size else math.nan for times in self.step_times_us]
        if not all(mean > 0 for mean in means):
            return 0
        whole = fmean(means)  # exact, so that the order of captures does not matter
        off = [round(abs(mean / whole - 1), _DIGITS) for mean in means]
        return min(self.positions, key=lambda at: (off[at], self.runs[at].content_id))

    @property
    def positions(self) -> range:
        """The positions of the captures."""
        return range(len(self.runs))

    def steps(self, position: int) -> StepsOf:
        """The steps of one capture that count, and its stray."""
        return StepsOf.of(self.runs[position].steps_on(self.hosts[position]))

    def step_count(self, position: int = 0) -> int:
        """The number of included steps of a capture, at least 1."""
        if self.hosts[position] is None:
            return self.runs[position].info.steps_included
        return len(self.steps(position).included) or 1

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
    """All captures of the programs of runs, by the run's id, and the assumed variation between captures.

    `spread`: the standard deviation between captures of one program, which overrides the default of the device.
    `as_baseline`: a candidate with too few captures varies as the baseline's do, if these suffice to measure it: they
    are earlier runs of a series.
    """

    of_run: Mapping[str, Sequence[Run]] = field(default_factory=dict)
    spread: float | None = None
    as_baseline: bool = False
    _keys: dict[tuple[str | None, ...], pd.DataFrame | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def captures(self, run: Run, host: str | None) -> Captures:
        """The captures of a run, without duplicates, after the first in an order that is always the same.

        With `host`, each replicate is restricted to its counterpart of that host; those without one are left out.
        """
        first, *others = self.of_run.get(run.id) or (run,)
        once = {r.content_id: r for r in others if r.content_id != first.content_id}
        runs = [first, *(once[content] for content in sorted(once))]
        if host is None:
            return Captures(tuple(runs), (None,) * len(runs))
        hosts = [host, *(host_counterparts(first.host_names, r.host_names).get(host) for r in runs[1:])]
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
        """The step cells of one capture, with the names of the first."""
        cells = captures.runs[position].step_cells(table, host=captures.hosts[position])
        return StepCells(with_keys_of(self.keys(captures, position, table), cells.keys), cells.cells)

    def rows(self, captures: Captures, table: str, per: Callable[[int], float], rows: Rows) -> pd.DataFrame:
        """The rows of all captures as one frame (`pooled`), with the names of the first.

        `rows` gives the table of a capture on its host; its sums are divided by what `per` says of that capture.
        """
        declared = schema.table(table)
        sums = [column.name for column in declared.columns if column.kind == "sum"]
        frames = []
        for position, own in enumerate(captures.each(rows)):
            frame = with_keys_of(self.keys(captures, position, table), own).copy(deep=False)
            frame[sums] = frame[sums] / per(position)
            frames.append(frame)
        return pooled(declared, frames)

    def keys(self, captures: Captures, position: int, table: str) -> pd.DataFrame | None:
        """What rows of a capture are called in the first, as `keys_of_primary` gives it."""
        if not position:
            return None
        declared = schema.table(table)
        (first, its_host), (run, host) = ((captures.runs[i], captures.hosts[i]) for i in (0, position))
        if "host" not in declared.keys:
            its_host = host = None
        key = (table, first.content_id, its_host, run.content_id, host)
        if key not in self._keys:

            def evidence() -> Evidence:
                if table not in NAMINGS:
                    return NO_EVIDENCE
                return first.op_evidence(host=its_host), run.op_evidence(host=host)

            ours, theirs = first.table(table, host=its_host), run.table(table, host=host)
            self._keys[key] = keys_of_primary(declared, ours, theirs, evidence)
        return self._keys[key]


@dataclass(frozen=True)
class Typical:
    """The capture of a run that stands for all where they cannot be pooled, under the id and name of the run; its own
    name, its compared host, and the other captures."""

    run: Run
    name: str
    host: str | None
    others: tuple[Run, ...]


def typical_of(run: Run, host: str | None, repeats: Mapping[str, Sequence[Run]]) -> Typical:
    """The most typical capture of a run and its `repeats`."""
    every = (run, *repeats.get(run.id, ()))
    captures = Replicates({run.id: every}).captures(run, host)
    position = captures.most_typical
    typical = captures.runs[position]
    others = tuple(one for one in every if one.content_id != typical.content_id)
    shown = run if typical is run else replace(typical, id=run.id, name=run.name)
    return Typical(shown, typical.name, captures.hosts[position], others)


def stand_ins(typical: Sequence[Typical]) -> list[str]:
    """A note on how many captures there are, and which of them stand for all; none without replicates."""
    several = [one for one in typical if one.others]
    if not several:
        return []
    are_alike = len({one.run.name for one in typical}) < len({one.run.id for one in typical})
    called = [(one, one.run.id if are_alike else one.run.name) for one in several]
    counts = [f"{1 + len(one.others)} captures of {name}" for one, name in called]
    named = [one.name if one.name == name else f"{one.name} for {name}" for one, name in called]
    return [
        f"Figures are of {' and '.join(dict.fromkeys(counts))}. Where these cannot be pooled (steps one by one, "
        "timeline, curve of memory, an execution of tf.data, texts of programs), the one nearest to the mean step "
        f"stands for them: {' and '.join(dict.fromkeys(named))}."
    ]


def counted_once(
    compared: Sequence[Run], repeats: Mapping[str, Sequence[Run]]
) -> tuple[dict[str, Sequence[Run]], list[str]]:
    """(the replicates of each run without captures that are compared themselves or counted for another run; a note on
    each of these)."""
    owner = {run.content_id: run.content_id for run in compared}
    left: dict[str, Sequence[Run]] = {}
    notes = []
    for run in compared:
        every = repeats.get(run.id, ())
        left[run.id] = [one for one in every if owner.setdefault(one.content_id, run.content_id) == run.content_id]
        twice = [one.name for one in every if one not in left[run.id]]
        notes += [f"{name} is compared or counted already, so it is no capture of {run.name}." for name in twice]
    return left, notes


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
    """(the baseline's host and its counterpart in each candidate, by id; a note for each with a different name)."""
    if host is None:
        return {run.id: None for run in (baseline, *candidates)}, []
    if host not in baseline.host_names:
        raise Unknown(f"host of {baseline.id}", host, sorted(baseline.host_names))
    hosts: dict[str, str | None] = {baseline.id: host}
    notes = []
    for run in candidates:
        counterparts = host_counterparts(baseline.host_names, run.host_names)
        if host not in counterparts:
            raise Unknown(f"host of {run.id}", host, sorted(run.host_names))
        hosts[run.id] = counterparts[host]
        if counterparts[host] != host:
            notes.append(f"Host {host} of the baseline is compared with host {counterparts[host]} of {run.name}.")
    return hosts, notes
