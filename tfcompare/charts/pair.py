"""The two runs that charts and tables are about, and the frames of both."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pandas as pd

from tfcompare.charts.style import Side, letter
from tfcompare.compare import Comparison, executions
from tfcompare.compare.groups.aggregate import Grouping, group_diff
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.matching.manual import ManualChoice, with_distinct_names
from tfcompare.compare.matching.matching import Evidence
from tfcompare.markdown import as_code
from tfcompare.run import Run
from tfcompare.text import by_number, capitalized
from tfcompare.tools import step_attribution, step_series
from tfcompare.tools.ops.op_stats import side_by_side, with_shares

T = TypeVar("T")


@dataclass(frozen=True)
class Pair:
    """A baseline and one candidate. `position` is the candidate's among all candidates, from 1; 0 for a run alone.

    Sentences call the runs `A` and `B`, or by their names if they are `by_name`.
    """

    comparison: Comparison
    candidate: Run
    position: int
    by_name: bool = False

    @property
    def baseline(self) -> Run:
        """The run that the candidate is compared with."""
        return self.comparison.baseline

    @property
    def is_single(self) -> bool:
        """Whether one run is shown alone: both sides are that run, and pages show the first only."""
        return self.comparison.is_single

    @property
    def is_identical(self) -> bool:
        """Whether both sides are the same capture."""
        return self.baseline.content_id == self.candidate.content_id

    @property
    def not_compared(self) -> str:
        """A Markdown sentence on why what ran on devices is not compared; empty if it is, or for a run alone."""
        lacking = [name for name, (_, run) in zip(self.marked, self.shown, strict=False) if not self._has_devices(run)]
        if self.is_single or not lacking:
            return ""
        have = "have" if len(lacking) > 1 else "has"
        return f"What ran on devices is not compared: {' and '.join(lacking)} {have} no record of it."

    @property
    def why_not_compared(self) -> str:
        """`not_compared`, and why: for pages that have nothing else."""
        why = next((run.why_untimed for _, run in self.shown if not self._has_devices(run)), "")
        return f"{self.not_compared} {capitalized(why)}." if self.not_compared else ""

    @property
    def stand_ins(self) -> str:
        """A Markdown sentence on the captures that stand for all of their sides where nothing can be pooled; empty
        without replicates."""
        of_several = [
            f"{as_code(run.found.name)} for {name}"
            for name, called, (_, run) in zip(self.marked, self.called, self.shown, strict=False)
            if self.comparison.repeats_of(run) and run.found.name != called
        ]
        return f"Of several captures, one is shown: {' and '.join(of_several)}." if of_several else ""

    def _has_devices(self, run: Run) -> bool:
        return run.has_recorded_devices(self.comparison.host_of(run))

    @property
    def shown(self) -> list[tuple[Side, Run]]:
        """The sides to show, each with its run: baseline and candidate, or the run that is shown alone."""
        return list(zip(self.sides, self.runs, strict=True))[: 1 if self.is_single else 2]

    @property
    def runs(self) -> tuple[Run, Run]:
        """Baseline and candidate."""
        return self.baseline, self.candidate

    @property
    def sides(self) -> tuple[Side, Side]:
        """Baseline and candidate as charts show them."""
        every = sides(self.comparison)
        return every[0], every[self.position]

    @property
    def letters(self) -> list[str]:
        """`A` and `B`, as the runs are called in sentences; `A` alone for a run that is shown alone."""
        return [letter(0)] if self.is_single else [letter(0), letter(self.position)]

    @property
    def called(self) -> tuple[str, str]:
        """What sentences call baseline and candidate; a run alone goes by its name."""
        if self.is_single:
            return self.baseline.name, self.baseline.name
        return self.comparison.names_of(self.candidate) if self.by_name else (letter(0), letter(self.position))

    @property
    def marked(self) -> tuple[str, str]:
        """As `called`, in Markdown."""
        if not (self.by_name or self.is_single):
            return self.called
        ours, theirs = map(as_code, self.called)
        return ours, theirs

    @property
    def headings(self) -> list[str]:
        """The headings of columns for baseline and candidate; of a run alone, one."""
        if not self.by_name:
            return self.letters
        return ["Run"] if self.is_single else ["Baseline", "Candidate"]

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, kept for `key` with the comparison. Callers must not modify it."""
        return self.comparison.cached((self.candidate.id, self.by_name, key), make)

    @property
    def manual_pairs(self) -> tuple[ManualChoice, ...]:
        """The user's manual matches and separations that apply to both runs."""
        return self.comparison.manual_pairs.get(self.candidate.id, ())

    def interval(self, row: pd.Series) -> tuple[float, float]:
        """The confidence interval of the ratio of the sums that a row of a diff shows; NaN without one.

        Tests are about the time per step; of runs with different numbers of steps, sums per run have another ratio.
        """
        return float(row["interval_low"]) / self.per_step_ratio, float(row["interval_high"]) / self.per_step_ratio

    @property
    def per_step_ratio(self) -> float:
        """The ratio per step ÷ the ratio of the sums shown."""
        return float(self.comparison.per_step(pd.Series([1.0]), self.candidate).iloc[0])

    def host_of(self, run: Run) -> str | None:
        """The host of `run` that is shown: the chosen one, or its counterpart in a candidate; None for all."""
        return self.comparison.host_of(run)

    def diff(self, table: str = "op_stats") -> pd.DataFrame:
        """The pair's diff of a table."""
        rows = self.comparison.table(table)
        return rows[rows["candidate"] == self.candidate.id].reset_index(drop=True)

    def tables(self, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The table of baseline and candidate, for the host that is shown or for all hosts."""
        ours, theirs = (run.table(name, host=self.host_of(run)) for run in self.runs)
        return ours, theirs

    @property
    def evidence(self) -> Evidence:
        """What identifies the ops of both runs other than their names."""
        ours, theirs = (run.op_evidence(host=self.host_of(run)) for run in self.runs)
        return ours, theirs

    def ops(self, *, idle: bool) -> pd.DataFrame:
        """The diff with each side's ranks, averages and shares."""
        return self.cached(("ops", idle), lambda: side_by_side(self.diff(), idle=idle)).copy(deep=False)

    def groups(self, by: Grouping, *, idle: bool) -> pd.DataFrame:
        """The ops aggregated by name, type or scope, with each side's shares."""

        def make() -> pd.DataFrame:
            rows = with_distinct_names(self.ops(idle=idle), self.manual_pairs)
            return with_shares(group_diff(rows, by, self.comparison.group_verdicts))

        return self.cached(("groups", by, idle), make).copy(deep=False)

    def scopes(self) -> pd.DataFrame:
        """The diff as a tree of name scopes."""

        def make() -> pd.DataFrame:
            return scope_tree(with_distinct_names(self.diff(), self.manual_pairs), judge=self.comparison.group_verdicts)

        return self.cached("scopes", make).copy(deep=False)

    @property
    def attribution(self) -> step_attribution.Attribution:
        """How the average step of the candidate differs from the baseline's, by part."""
        return self.cached("attribution", partial(step_attribution.attribution, self.comparison, self.candidate))

    def instructions(self) -> pd.DataFrame:
        """The instructions of all XLA programs on both sides, with their program and their times per execution."""
        return self.cached("instructions", partial(executions.instructions_of, self.comparison, self.candidate))


def pairs_of(comparison: Comparison, *, by_name: bool = False) -> list[Pair]:
    """The baseline with each candidate; of a run alone, that run. `by_name` as in `Pair`."""
    if comparison.is_single:
        return [Pair(comparison, comparison.baseline, 0, by_name)]
    return [Pair(comparison, run, position, by_name) for position, run in enumerate(comparison.candidates, start=1)]


def named_captures(comparison: Comparison, run: Run) -> list[tuple[str, Run, str | None]]:
    """Each capture of a run with its compared host; of several with their own names, of one without."""
    captures = comparison.captures(run)
    names = [one.found.name for one in captures.runs] if len(captures.runs) > 1 else [""]
    named = zip(names, captures.runs, captures.hosts, strict=True)
    return sorted(named, key=lambda one: by_number(one[0]))


def steps_of(run: Run, host: str | None) -> pd.DataFrame:
    """Each step of `run` on its slowest host, or on the host that is shown."""
    if host is not None:
        return run.table("steps", host=host)
    return step_series.with_host(run.steps, run.table("steps"))


def has_step_times(run: Run) -> bool:
    """Whether there is any step time to draw."""
    return run.info.has_step_times and len(run.steps) > 0


def may_draw(steps: Iterable[pd.DataFrame]) -> bool:
    """Whether any of these runs has several steps: a single one is a figure and no chart."""
    return any(len(frame) > 1 for frame in steps)


def sides(comparison: Comparison) -> list[Side]:
    """The runs as charts show them, baseline first; a run that is shown alone once."""
    if comparison.is_single:
        return [Side(comparison.baseline.name, 0, 1)]
    runs = (comparison.baseline, *comparison.candidates)
    return [Side(run.name, position, len(runs)) for position, run in enumerate(runs)]
