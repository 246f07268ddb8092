"""A baseline and one candidate: the diffs and verdicts that views are made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import fmean
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.comparability import BATCH_SIZE, MIX, Mismatch, mismatches
from tfcompare.compare.controls import Controls, controls_of
from tfcompare.compare.diff import INTERVAL, SumsPer
from tfcompare.compare.executions import Execution, instructions_of, longest_program, lost_events
from tfcompare.compare.groups import aggregate as coverage_of
from tfcompare.compare.groups.aggregate import Groups
from tfcompare.compare.groups.group_verdicts import group_verdicts
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.matching.manual import ManualChoice, with_distinct_names
from tfcompare.compare.matching.matching import Evidence, with_hosts_of
from tfcompare.compare.per_device import all_together, per_occurrence, workers_of, workers_of_rows
from tfcompare.compare.pooling import sums_of
from tfcompare.compare.side import Side
from tfcompare.compare.spreads import spread_of_steps, spread_on
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import FEWEST_REPEATS, Times
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.compare.steps.iterations import ALIKE, Iterations, iterations_per_step
from tfcompare.compare.steps.step_kinds import CommonKinds, StepKind, common_kinds, step_kinds
from tfcompare.compare.steps.step_time_verdict import (
    SAME_CAPTURE,
    UNRELATED,
    caveat,
    device_time_verdict,
    knows_step_time,
    step_time_verdict,
    time_verdict,
)
from tfcompare.compare.table_diff import are_together, are_unrelated, count_steps, diff_of, side_rows, unjudged_ops
from tfcompare.compare.tf_data.call_verdicts import CallVerdict, on_calls, on_slowest_calls
from tfcompare.compare.tf_data.pipelines import HostPipeline, pair_pipelines, slowest_executions
from tfcompare.compare.utilization import on_devices
from tfcompare.errors import TfcompareError
from tfcompare.schema.arrays import Floats
from tfcompare.text import as_code

if TYPE_CHECKING:
    from tfcompare.compare.pairs import OfEach, Pairs
    from tfcompare.compare.per_device import Workers
    from tfcompare.run import Run

T = TypeVar("T")
Per = Literal["step", "run", "device"]
PER: tuple[Per, ...] = ("step", "run", "device")


def per_words(per: Per, of_each: str, step: str = "step") -> str:
    """What sums are per, as texts name it: `step`, `step and device`; `step` may be called otherwise."""
    if per == "step":
        return f"{step} and {of_each}" if of_each else step
    return of_each or per


@dataclass(frozen=True, eq=False)
class Pair:
    """A baseline and one candidate `among` others. `position` is the candidate's among all sides; 0 for a run alone.

    Sentences call the runs `A` and `B`, or by their names if they are `by_name`.
    """

    among: Pairs
    position: int
    by_name: bool = False

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """Baseline and candidate, with all of their captures; what they do per step is per iteration of their steps."""
        ours, theirs = self.sides_as_recorded
        return (
            replace(ours, count_iterations=lambda: self.iterations[0]),
            replace(theirs, count_iterations=lambda: self.iterations[1]),
        )

    @property
    def sides_as_recorded(self) -> tuple[Side, Side]:
        """`sides`, with figures per step as it was recorded."""
        return self.among.sides[0], self.among.sides[self.position]

    @property
    def iterations(self) -> Iterations:
        """The iterations of a step on both sides, for steps of unlike work; `ALIKE` for others."""

        def count() -> Iterations:
            if self.is_identical or not all(side.all_have_steps for side in self.sides_as_recorded) or self._kinds:
                return ALIKE
            return iterations_per_step(self.sides_as_recorded, partial(unjudged_ops, self))

        return self._retain("iterations", count)

    @cached_property
    def baseline(self) -> Run:
        """The run that the candidate is compared with; of several captures, the one that stands for all."""
        return self.among.baseline

    @cached_property
    def candidate(self) -> Run:
        """The candidate, as `baseline`."""
        return self.sides[1].run

    @property
    def runs(self) -> tuple[Run, Run]:
        """Baseline and candidate."""
        return self.baseline, self.candidate

    @property
    def per(self) -> Per:
        """What sums are divided by."""
        return self.among.per

    @property
    def of_each(self) -> OfEach:
        """What sums over devices are given for, if not all: `Pairs.of_each`."""
        return self.among.of_each

    @property
    def per_what(self) -> str:
        """As `Pairs.per_what`; of steps of unlike work, per iteration."""
        return self.per_on("")

    def per_on(self, place: str) -> str:
        """What sums of ops on hosts, or on devices, are per: `step`, `step and host`."""
        of_each = "host" if place == schema.HOST and self.of_each else self.of_each
        return per_words(self.per, of_each, "step" if self.iterations == ALIKE else "iteration")

    @property
    def host(self) -> str | None:
        """The compared host of the baseline, None for all."""
        return self.among.host

    def host_of(self, run: Run) -> str | None:
        """The host of `run` that is compared: the chosen one, or its counterpart in a candidate; None for all."""
        return self.among.side_of(run).host

    @property
    def is_single(self) -> bool:
        """Whether one run is shown alone: both sides are that run, and pages show the first only."""
        return self.among.is_single

    @property
    def is_identical(self) -> bool:
        """Whether both sides are the same capture."""
        return self.baseline.content_id == self.candidate.content_id

    @property
    def shown(self) -> list[tuple[Side, Run]]:
        """The sides to show, each with its run: baseline and candidate, or the run that is shown alone."""
        return list(zip(self.sides, self.runs, strict=True))[: 1 if self.is_single else 2]

    @property
    def letters(self) -> list[str]:
        """`A` and `B`, as the runs are called in sentences; `A` alone for a run that is shown alone."""
        return [side.letter for side, _ in self.shown]

    @property
    def names(self) -> tuple[str, str]:
        """The names of baseline and candidate, or their ids if the names are equal."""
        ours, theirs = self.sides_as_recorded
        return (ours.run.id, theirs.run.id) if ours.name == theirs.name else (ours.name, theirs.name)

    @property
    def called(self) -> tuple[str, str]:
        """What sentences call baseline and candidate; a run alone goes by its name."""
        if self.is_single:
            return self.among.sides[0].name, self.among.sides[0].name
        ours, theirs = self.sides
        return self.names if self.by_name else (ours.letter, theirs.letter)

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
        """The result of `make`, which may depend on what sentences call the runs, kept for `key` with the comparison.
        Callers must not modify it."""
        return self.among.cached((self.candidate.id, self.by_name, key), make)

    def _retain(self, key: Hashable, make: Callable[[], T]) -> T:
        """As `cached`, but kept as long as the comparison: for diffs and verdicts, which much else is made of."""
        return self.among.retain((self.candidate.id, key), make)

    @property
    def manual_pairs(self) -> tuple[ManualChoice, ...]:
        """The user's manual matches and separations that apply to both runs."""
        return self.among.manual_pairs.get(self.candidate.id, ())

    @property
    def evidence(self) -> Evidence:
        """What identifies the ops of both runs other than their names."""
        ours, theirs = (side.run.tables.op_evidence(host=side.host) for side in self.sides)
        return ours, theirs

    @property
    def mismatches(self) -> list[Mismatch]:
        """Differences that make the two runs hard to compare, the most serious first."""

        def make() -> list[Mismatch]:
            found = mismatches(*self.runs)
            if self.iterations == ALIKE:
                return found
            ours, theirs = (f"{count}×" for count in self.iterations)
            meaning = (
                "a step of one side has several iterations of the other's work; figures per step are per iteration"
            )
            more = Mismatch("Work per step", ours, theirs, meaning, False)
            return [*(one for one in found if one.label != BATCH_SIZE), more]

        return self._retain("mismatches", make)

    @property
    def knows_devices(self) -> bool:
        """Whether what ran on devices was recorded on both sides; otherwise, only hosts are compared."""
        return all(all(side.each(lambda run, host: run.tables.has_recorded_devices(host))) for side in self.sides)

    @cached_property
    def are_unrelated(self) -> bool:
        """Whether the runs are of different programs, so that no verdict is given."""
        return are_unrelated(self)

    def tables(self, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The table of baseline and candidate, for the host that is compared or for all hosts."""
        ours, theirs = (side.run.table(name, host=side.host) for side in self.sides)
        return ours, theirs

    def rows(self, name: str, side: Side) -> pd.DataFrame:
        """The rows of a table of all captures of one side, with sums as in diffs."""
        table = schema.table(name)
        found = side_rows(self, table, side)
        if (divisor := found.divisor) is None:
            return found.frame
        return found.frame.assign(**{name: found.frame[name] / divisor for name in sums_of(table)})

    def whole(self, name: str, side: Side) -> pd.DataFrame:
        """The rows of a table over the whole profile, with its sums, of the hosts that the diff has rows of."""
        table, found = schema.table(name), side.whole(name)
        return all_together(table, found) if are_together(self, table) else found

    def sums_per(self, *, per_occurrence: bool = False) -> SumsPer:
        """What the sums of a diff are per, or those of `rows_per_occurrence`."""
        return self.among.sums_per(per_occurrence=per_occurrence)

    def diff(self, name: str = "op_stats") -> pd.DataFrame:
        """The diff of a table, as described at `Comparison.table`, but for the names of sums, which are those of the
        table: what they are per is `sums_per`.

        Raises `Unknown` for an unknown table, `TfcompareError` for one without a diff.
        """
        table = schema.table(name)
        if not table.has_diff:
            raise TfcompareError(f"the table {name!r} has no diff; show it for each run by itself")
        return self._retain(("diff", name), partial(diff_of, self, table)).copy(deep=False)

    def coverage(self, name: str = "op_stats") -> pd.DataFrame:
        """The shares of a table's headline metric that were matched; see `coverage.coverage`.

        Raises `TfcompareError` for a table without a headline metric.
        """
        headline_metric = schema.table(name).headline
        if headline_metric is None:
            raise TfcompareError(f"the table {name!r} has no headline metric, so it has no matched share")
        return coverage_of.coverage(self.diff(name), headline_metric, [self.candidate.id])

    @property
    def controls(self) -> dict[str, Controls]:
        """Ops that surely do the same work on both sides, by place; see `controls_of`."""
        return self._retain("controls", partial(controls_of, self))

    def scopes(self) -> pd.DataFrame:
        """The diff of ops as a tree of name scopes."""

        def make() -> pd.DataFrame:
            return scope_tree(with_distinct_names(self.diff(), self.manual_pairs), judge=self.group_verdicts)

        return self.among.cached((self.candidate.id, "scopes"), make).copy(deep=False)

    def instructions(self) -> pd.DataFrame:
        """The instructions of all XLA programs on both sides, with their program and their times per execution, without
        those of SparseCores: what they run is in no time of a program."""
        return on_devices(self.every_instruction())

    def every_instruction(self) -> pd.DataFrame:
        """`instructions`, with those of SparseCores."""
        return self.among.cached((self.candidate.id, "instructions"), partial(instructions_of, self))

    @property
    def longest_program(self) -> Execution | None:
        """The longest XLA program that both runs ran."""
        return self._retain("longest program", partial(longest_program, self))

    def pipelines(self) -> dict[HostPipeline, str]:
        """Maps each matched tf.data pipeline of the candidate, (the baseline's host, name), to the baseline's."""
        ours, theirs = map(slowest_executions, self.tables("tf_data"))
        return pair_pipelines(ours, with_hosts_of(ours, theirs))

    def lost_events(self) -> pd.DataFrame:
        """The instructions of which a capture of either run lost events (`lost_events.lost_events`): they, and the ops
        that they compute, are not judged."""
        return self._retain("lost events", partial(lost_events, self))

    @property
    def verdict(self) -> Verdict:
        """The verdict on the step time."""
        return self._retain("verdict", partial(step_time_verdict, self))

    @property
    def device_verdict(self) -> Verdict | None:
        """The verdict on how long devices are busy per step; None where they are not on both sides."""
        return self._retain("device verdict", partial(device_time_verdict, self))

    @property
    def _kinds(self) -> list[StepKind]:
        """`step_kinds` without remarks on how the runs differ."""
        return self._retain("kinds", lambda: step_kinds(*self.sides_as_recorded, partial(spread_of_steps, self)))

    @property
    def step_kinds(self) -> list[StepKind]:
        """The kinds of steps of both sides, that with most time first; none if the steps of each are all of one
        kind."""

        def make() -> list[StepKind]:
            if self.is_identical or self.are_unrelated:
                untested = SAME_CAPTURE if self.is_identical else UNRELATED
                return [replace(one, verdict=untested) for one in self._kinds]
            why = caveat(self.mismatches, but=MIX)
            return [replace(one, verdict=replace(one.verdict, caveat=why)) for one in self._kinds]

        return self._retain("step kinds", make)

    @property
    def main_kind(self) -> StepKind | None:
        """The kind of step with most time that both runs have, where their steps are of several: the headline is on
        it. None where it is on all steps."""
        if self.is_identical or not all(knows_step_time(run.info) for run in self.runs):
            return None
        return next((kind for kind in self.step_kinds if all(kind.counts)), None)

    @property
    def common_kinds(self) -> CommonKinds | None:
        """The kinds of steps within which ops and kernels are compared, where there are several; None elsewhere."""

        def make() -> CommonKinds | None:
            have_steps = all(side.all_have_steps for side in self.sides_as_recorded)
            return (
                common_kinds(*self.sides_as_recorded) if have_steps and not self.is_identical and self._kinds else None
            )

        return self._retain("common kinds", make)

    @property
    def headline_verdict(self) -> Verdict:
        """The verdict that the headline states: on the step time, or on that of the kind of step with most time."""
        kind = self.main_kind
        return self.verdict if kind is None else kind.verdict

    def in_series(self, test: ChangeTest, baseline: Sequence[Times]) -> ChangeTest:
        """The test with the spread that the captures of the baseline show, if it also applies to the candidate."""
        if not self.among.is_series or self.among.spread is not None or len(baseline) < FEWEST_REPEATS:
            return test
        return replace(test, spread=test.measured_spread(baseline) or test.spread)

    def group_verdicts(self, groups: Groups) -> pd.DataFrame:
        """The verdicts on groups of ops or kernels, tested as one family; can be passed as `judge` to functions such as
        `group_diff`.

        Columns: `verdict`, `evidence`, `interval_low`, `interval_high`; one row per group.
        """
        return group_verdicts(groups, self)

    def time_verdict(self, times: tuple[list[Times], list[Times]], of: str, place: str = schema.HOST) -> Verdict:
        """A verdict on the mean of individual times of a host or device, such as calls to an input pipeline.

        Each side of `times` holds those of each capture, in chronological order; `of` names what is timed (`steps`,
        `calls`).
        """
        found = time_verdict(self, times, ChangeTest(spread_on(self, place), of=of, can_be_absent=True))
        return found if self.is_identical else replace(found, caveat=caveat(self.mismatches))

    def call_verdicts(self, pipelines: pd.DataFrame) -> list[CallVerdict]:
        """A verdict on the mean call for each matched row of the diff of `tf_data_pipelines`."""
        return on_calls(*self.sides, pipelines, partial(self.time_verdict, of="calls"))

    def slowest_call_verdict(self) -> CallVerdict | None:
        """The verdict on the mean call of each side's slowest pipeline; None if a side has no calls."""
        return on_slowest_calls(*self.sides, partial(self.time_verdict, of="calls"))

    def interval(self, row: pd.Series) -> tuple[float, float]:
        """The confidence interval of the ratio of the sums that a row of a diff shows; NaN without one.

        Tests are about the time per step; of runs with different numbers of steps, sums per run have another ratio.
        """
        low, high = self.of_sums(row[list(INTERVAL)].astype("float64"))
        return low, high

    def of_sums(self, ratios: pd.Series) -> pd.Series:
        """Ratios of the time per step, of which verdicts are, as ratios of sums: the reverse of `per_step`."""
        return ratios / self.per_step(pd.Series(1.0, ratios.index))

    def per_step(self, ratios: pd.Series) -> pd.Series:
        """Converts ratios of sums, as in diffs, to ratios of the time per step, which verdicts refer to."""
        if self.per == "step":
            return ratios
        our_steps, their_steps = (fmean(side.each(count_steps)) * side.iterations for side in self.sides)
        return ratios * (our_steps / their_steps)

    def shares(self, table: str, rows: pd.DataFrame, side: Side, position: int) -> Floats:
        """What to multiply sums over the whole of a capture by, for these rows of a table: 1, or the share that each
        device or host has, if that is what they are given for."""
        return 1.0 / self.workers_of_rows(table, rows, side, position)

    def workers_of_rows(self, table: str, rows: pd.DataFrame, side: Side, position: int) -> Floats:
        """How many devices or hosts rows of a table of a capture are divided by: 1 unless they are given for each."""
        if not self.of_each or table not in schema.OF_EACH:
            return np.ones(len(rows))
        return workers_of_rows(table, rows, self.workers(side, position))

    def workers(self, side: Side, position: int) -> Workers:
        """The hosts and devices of a capture."""
        make = partial(workers_of, side.runs[position], side.hosts[position])
        return self.among.retain(("workers", side.position, side.host, position), make)

    def rows_per_occurrence(self, rows: pd.DataFrame, name: str) -> pd.DataFrame:
        """Some rows of the diff of a table, or groups of them, with sums divided by occurrences. Raises
        `TfcompareError` for a table without occurrences."""
        return per_occurrence(rows, schema.table(name), self.per_step)
