"""The steps of a run: which are included, and of what kind each is, where a loop has steps of several kinds."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from tfcompare import schema
from tfcompare.sources.step_choice import StepChoice
from tfcompare.tables.host_frames import HostFrames
from tfcompare.tables.op_stats import OpTables
from tfcompare.tables.slow_steps import with_stray
from tfcompare.tables.step_times import StepCells, common_step_ids, run_steps

FEWEST = 2
"""Steps of a kind: a single one is an exception, not a kind."""
LEAST_SHARE = 0.05
"""Of a run's steps in a kind: captures begin and end anywhere in a loop."""
PROGRAM = re.compile(r"^(?:p?jit|pmap)\(([^()]+)\)/")
_PREFIXES = ("jit(", "pjit(", "pmap(")


@dataclass(frozen=True, eq=False)
class StepKinds:
    """The steps of a run, where `choice` says which count, and their kinds: the names of their markers, or the compiled
    programs that run in them."""

    frames: HostFrames
    ops: OpTables
    choice: StepChoice

    @cached_property
    def host_steps(self) -> pd.DataFrame:
        """The table `steps` of all hosts: the stray is one step of the run."""
        steps = self.frames.host_table("steps")
        if self.choice.kind is None:
            return self._judged(steps)
        return self._judged(steps.assign(included=steps["included"] & self.is_chosen(steps)))

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Columns `step`, `duration_us`, `included`, `stray`: each step of the run, as long as on its slowest host."""
        return run_steps(self.host_steps)

    def _judged(self, steps: pd.DataFrame) -> pd.DataFrame:
        return schema.STEPS.conform(with_stray(steps, is_excluded=not self.choice.counts_stray))

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many steps there are of each kind, whichever is chosen, among those that are included without a choice
        of kind; the most frequent first, empty where neither markers nor programs have names."""
        return kinds_among(kind_at(self._all_included, self.by_step()))

    @cached_property
    def are_by_marker(self) -> bool:
        """Whether the names of markers tell several kinds of steps apart."""
        return len(kinds_among(kind_at(self._all_included, self.markers()))) > 1

    @cached_property
    def _all_included(self) -> pd.Series:
        """The numbers of the steps that are included without a choice of kind."""
        is_chosen = self.choice.kind is not None
        steps = run_steps(self._judged(self.frames.host_table("steps"))) if is_chosen else self.steps
        return steps.loc[steps["included"].astype(bool), "step"]

    def by_step(self, host: str | None = None, *, by_marker: bool | None = None) -> pd.Series:
        """The kind of each step, by the step's number in `steps`; steps of which it is unknown are left out.

        It is the name of the step's marker, or else the compiled programs that ran in it: by default, the name where
        names tell several kinds apart, or no programs are known.
        """
        if by_marker is None:
            by_marker = self.are_by_marker or self.programs().empty
        return self.markers(host) if by_marker else self.programs(host)

    def by_row(self, steps: pd.DataFrame, *, by_marker: bool | None = None) -> pd.Series:
        """The kind of `by_step` for each row of `steps`, which has `host` and `step` as hosts number their steps; empty
        where unknown."""
        common_steps, number = self.frames.common_steps, steps["step"]
        if common_steps is not None:
            by_host = steps.groupby("host", sort=False)["step"]
            places = [pd.Series(common_steps(str(host), own.to_numpy()), own.index) for host, own in by_host]
            number = pd.concat(places).reindex(steps.index)
        return kind_at(number, self.by_step(by_marker=by_marker))

    def is_chosen(self, steps: pd.DataFrame) -> pd.Series:
        """Whether each row of `steps`, as for `by_row`, is of the chosen kind: a marker's name, or else a program."""
        by_marker = bool((self.markers() == self.choice.kind).any())
        return self.by_row(steps, by_marker=by_marker) == self.choice.kind

    def programs(self, host: str | None = None) -> pd.Series:
        """The compiled program that ran in each step, or several, by the step's number in `steps`; steps of which it is
        unknown are left out."""
        of = self.frames.several_or_none(host)
        return self.frames.cache.get(("step programs", of), lambda: step_programs(self.ops.cells(of)))

    def markers(self, host: str | None = None) -> pd.Series:
        """The name of the marker of each step, by the step's number in `steps`; steps of which it is unknown are left
        out, and all if no name marks several steps."""

        def markers() -> pd.Series:
            steps = self.frames.host_table("steps", host=host)
            number = steps["step"] if host is not None or steps.empty else common_step_ids(steps)
            every = steps["marker"].set_axis(number)[steps["marker"].to_numpy() != ""]
            names: pd.Series = every[~every.index.duplicated()]
            return names if kinds_among(names) else names.iloc[:0]

        return self.frames.cache.get(("step markers", host), markers)


def step_programs(ops: StepCells) -> pd.Series:
    """The compiled programs that ran in each step, by the step's number: `train_step`, or `generate + judge` for a step
    of several; steps without are left out. JAX names its programs in every op, as in `jit(train_step)/dot_general`.

    Programs count that are the longest of `LEAST_SHARE` of the steps, or take that share of the time of all: others
    help, and a step may do without. A step in which none of these ran is of its longest.
    """
    names = ops.keys["op_name"]
    named = names[names.str.startswith(_PREFIXES)]  # of most profiles none, and a pattern is tried op by op
    if named.empty:
        return pd.Series(dtype="str")
    found = named.str.extract(PROGRAM.pattern, expand=False).reindex(names.index)
    cells = ops.cells.assign(program=found.to_numpy()[ops.cells["row"].to_numpy()]).dropna(subset=["program"])
    if cells.empty:
        return pd.Series(dtype="str")
    times = cells.groupby(["step", "program"], sort=True)["time_us"].sum().reset_index()
    longest = times.loc[times.groupby("step")["time_us"].idxmax()].set_index("step")["program"]
    share_us = times.groupby("program")["time_us"].sum() / times["time_us"].sum()
    counting = {*kinds_among(longest), *share_us.index[share_us >= LEAST_SHARE]}
    ran = times[times["program"].isin(counting)].groupby("step")["program"].agg(" + ".join)
    return ran.reindex(longest.index).fillna(longest).astype("str")


def kind_at(step: pd.Series, kinds: pd.Series) -> pd.Series:
    """The kind of each of these numbers of steps, given those by number; empty where unknown."""
    return pd.Series(kinds.reindex(step).fillna("").to_numpy(), step.index, dtype="str")


def of_main_kind(steps: pd.DataFrame, kinds: pd.Series) -> pd.Series:
    """Which of `steps` (columns `duration_us`, `included`) are included and of the kind with most time, given the
    kind of each."""
    included = steps["included"].astype(bool)
    times = steps["duration_us"].where(included, 0.0).groupby(kinds).sum()
    return included & (kinds == times.idxmax()) if len(times) else included


def kinds_among(kinds: pd.Series) -> dict[str, int]:
    """How many steps there are of each kind, the most frequent first, given the kind of each step, empty where
    unknown."""
    least = max(FEWEST, LEAST_SHARE * len(kinds))
    return {name: count for name, count in Counter(kinds.tolist()).most_common() if name and count >= least}
