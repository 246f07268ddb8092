"""One side of a comparison: all captures of a program, the names of their rows, and their series of step times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from tfcompare import schema
from tfcompare.compare.matching.matching import NO_EVIDENCE, Evidence, host_counterparts
from tfcompare.compare.matching.tiers import NAMINGS
from tfcompare.compare.pooling import mean_of, pooled
from tfcompare.compare.repeats import keys_of_primary, with_keys_of
from tfcompare.compare.stats.estimates import Times
from tfcompare.schema import DEVICE_BUSY_PARTS
from tfcompare.schema.arrays import Floats
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.tables.step_times import StepCells, Window, window
from tfcompare.text import by_number, capitalized

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run


T = TypeVar("T")

_DIGITS = 9
"""Of two captures, both are as far from their mean: they differ by rounding alone."""


@dataclass(frozen=True)
class StepsOf:
    """Of the `steps` of one capture the `included` rows, in order, and its excluded `stray`: a single row or none.
    Times are those of one of the `iterations` of a step."""

    steps: pd.DataFrame
    included: npt.NDArray[np.intp]
    stray: npt.NDArray[np.intp]
    iterations: int = 1

    @classmethod
    def of(cls, steps: pd.DataFrame, iterations: int = 1) -> StepsOf:
        """From the steps of a run or of one of its hosts."""
        included, stray = (steps[name].to_numpy(np.bool_) for name in ("included", "stray"))
        return cls(steps, np.flatnonzero(included), np.flatnonzero(stray & ~included)[:1], iterations)

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The numbers of the included steps, then that of the stray."""
        return self.steps["step"].to_numpy(np.int64)[np.append(self.included, self.stray)]

    def times(self, column: str) -> Times:
        """The times in a column."""
        return self.split(self.steps[column].to_numpy(np.float64)[np.append(self.included, self.stray)])

    def split(self, values: Floats) -> Times:
        """Values in steps of `numbers`, one row for all or an array (rows, steps), per iteration; the stray's apart."""
        rows, count = np.atleast_2d(values) / self.iterations, len(self.included)
        return Times(rows[:, :count], rows[:, count] if len(self.stray) else None)


def letter(position: int) -> str:
    """`A` for the baseline, `B` for the first candidate."""
    return chr(ord("A") + position) if position < 26 else str(position + 1)


def window_of(run: Run, host: str | None = None) -> Window | None:
    """The window of a run on one host; by default, on the straggler."""
    if not run.info.has_steps:
        return None
    steps = steps_of_straggler(run.table("steps", host=host))
    return window(steps, None if run.choice.kind is None else run.tables.kinds.is_chosen(steps))


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison: all captures of a program, with the compared host of each.

    `position` 0 is the baseline, 1 the first candidate, of `sides` in all; 1 if alone. The first of `runs` has the
    names of rows, and stands for all where they cannot be pooled; of `hosts`, None is all. Charts need no captures.
    `count_iterations` gives `iterations`, when they are first asked for.
    """

    name: str
    position: int
    sides: int = 2
    runs: tuple[Run, ...] = ()
    hosts: tuple[str | None, ...] = ()
    count_iterations: Callable[[], int] = lambda: 1
    _keys: dict[tuple[str | None, ...], pd.DataFrame | None] = field(default_factory=dict, repr=False)

    @property
    def role(self) -> str:
        """`Baseline`, `Candidate`, or `Candidate C` if there are several; `Run` if it is shown alone."""
        return capitalized(self.role_in_text)

    @property
    def role_in_text(self) -> str:
        """The role as it is written within a sentence: `baseline`, `candidate C`."""
        if self.sides == 1:
            return "run"
        if self.position == 0:
            return "baseline"
        return "candidate" if self.sides <= 2 else f"candidate {self.letter}"

    @property
    def letter(self) -> str:
        """`A` for the baseline, `B` for the first candidate."""
        return letter(self.position)

    @property
    def run(self) -> Run:
        """The capture that stands for all where they cannot be pooled."""
        return self.runs[0]

    @property
    def host(self) -> str | None:
        """The host of `run` that is compared; None for all."""
        return self.hosts[0]

    @property
    def iterations(self) -> int:
        """How many times the work of a step of the other side a step of this one does: figures per step are divided by
        it."""
        return self.count_iterations()

    @property
    def is_under_load(self) -> bool:
        """Whether any capture was made on a busy machine."""
        return any(run.is_under_load for run in self.runs)

    def of(self, runs: Sequence[Run], host: str | None) -> Side:
        """This side with these captures, without duplicates, after the first in an order that is always the same.

        With `host`, each capture after the first is restricted to its counterpart of that host; those without one are
        left out.
        """
        first, *others = runs
        once = {r.content_id: r for r in others if r.content_id != first.content_id}
        every = [first, *(once[content] for content in sorted(once))]
        if host is None:
            return replace(self, runs=tuple(every), hosts=(None,) * len(every))
        hosts = [host, *(host_counterparts(first.host_names, r.host_names).get(host) for r in every[1:])]
        there = [(r, h) for r, h in zip(every, hosts, strict=True) if h is not None]
        return replace(self, runs=tuple(r for r, _ in there), hosts=tuple(h for _, h in there))

    def on(self, host: str | None) -> Side:
        """The same captures on another host, as in `of`."""
        return self if host == self.host else self.of(self.runs, host)

    def each(self, figure: Callable[[Run, str | None], T]) -> list[T]:
        """A figure of each capture on its compared host."""
        return [figure(run, host) for run, host in zip(self.runs, self.hosts, strict=True)]

    @property
    def each_at(self) -> list[tuple[int, Run, str | None]]:
        """The position of each capture, the capture, and its compared host."""
        return list(zip(self.positions, self.runs, self.hosts, strict=True))

    def mean_per_step(self, figure: Callable[[Run, str | None], float]) -> float:
        """The mean of a figure per step over the captures that have it, per iteration; NaN if none has."""
        return mean_of(self.each(figure)) / self.iterations

    @property
    def named_captures(self) -> list[tuple[str, Run, str | None]]:
        """Each capture with its compared host, by the numbers in their names; of several with their own names, of one
        without."""
        names = [run.found.name for run in self.runs] if len(self.runs) > 1 else [""]
        return sorted(zip(names, self.runs, self.hosts, strict=True), key=lambda one: by_number(one[0]))

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
        return StepsOf.of(self.runs[position].tables.steps_on(self.hosts[position]), self.iterations)

    def step_count(self, position: int = 0) -> int:
        """The number of included steps of a capture, at least 1."""
        if self.hosts[position] is None:
            return self.runs[position].info.steps_included
        return int(self.runs[position].tables.steps_on(self.hosts[position])["included"].sum()) or 1

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
        """The step times of each capture, per iteration; none if those of any are unknown."""
        if not self.all_have_step_times:
            return [Times.of(np.zeros(0)) for _ in self.runs]
        return [self.steps(i).times("duration_us") for i in self.positions]

    @property
    def device_times_us(self) -> list[Times]:
        """For how long devices are busy in each step of each capture, per iteration, on its straggler of several hosts;
        NaN where the parts of steps are unknown."""

        def busy(run: Run, host: str | None) -> Times:
            steps = steps_of_straggler(run.table("steps", host=host))
            busy_us = steps[list(DEVICE_BUSY_PARTS)].sum(axis=1, skipna=False)
            return StepsOf.of(steps.assign(busy_us=busy_us), self.iterations).times("busy_us")

        return self.each(busy)

    @property
    def device_share(self) -> float:
        """The share of the step time in which devices are busy: the mean of all captures; NaN where it is unknown."""
        both = zip(self.device_times_us, self.step_times_us, strict=True)
        shares = [busy.included.mean() / step.included.mean() for busy, step in both if step.included.size]
        return min(mean_of(shares), 1.0)

    @property
    def windows(self) -> list[Window]:
        """The windows of the captures that have one, with times per iteration of their steps."""
        return [found.per(self.iterations) for found in self.each(window_of) if found is not None]

    @property
    def window(self) -> Window | None:
        """The window of a capture; of several, one whose arrays have the means of each."""
        windows = self.windows
        if len(windows) < 2:
            return next(iter(windows), None)
        timed = [found for found in windows if len(found.timed_us)]
        return Window(
            np.array([found.period_us for found in windows]),
            np.array([found.timed_us.mean() for found in timed]),
            np.array([found.between_us for found in timed]),
            np.array([found.overlap_us for found in timed]),
        )

    def cells(self, position: int, table: str) -> StepCells:
        """The step cells of one capture, with the names of the first."""
        cells = self.runs[position].tables.step_cells(table, host=self.hosts[position])
        return StepCells(with_keys_of(self.keys(position, table), cells.keys), cells.cells)

    def rows(self, table: str, per: Callable[[int], float], rows: Callable[[int], pd.DataFrame]) -> pd.DataFrame:
        """The rows of all captures as one frame (`pooled`), with the names of the first.

        `rows` gives the table of the capture at a position; its sums are divided by what `per` says of that capture.
        """
        frames = [with_keys_of(self.keys(i, table), rows(i)) for i in self.positions]
        return pooled(schema.table(table), frames, [per(i) for i in self.positions])

    def whole(self, name: str) -> pd.DataFrame:
        """The rows of a table over the whole profile, sums as the mean of all captures."""
        if len(self.runs) == 1:
            return self.run.table(name, host=self.host)
        return self.rows(name, lambda _: 1, lambda i: self.runs[i].table(name, host=self.hosts[i]))

    def keys(self, position: int, table: str) -> pd.DataFrame | None:
        """What rows of a capture are called in the first, as `keys_of_primary` gives it."""
        if not position:
            return None
        declared = schema.table(table)
        (first, its_host), (run, host) = ((self.runs[i], self.hosts[i]) for i in (0, position))
        if "host" not in declared.keys:
            its_host = host = None
        key = (table, first.content_id, its_host, run.content_id, host)
        if key not in self._keys:

            def evidence() -> Evidence:
                if table not in NAMINGS:
                    return NO_EVIDENCE
                return first.tables.op_evidence(host=its_host), run.tables.op_evidence(host=host)

            ours, theirs = first.table(table, host=its_host), run.table(table, host=host)
            self._keys[key] = keys_of_primary(declared, ours, theirs, evidence)
        return self._keys[key]
