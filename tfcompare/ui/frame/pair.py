"""The pair of runs that a page shows in detail, and the frames of that pair."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare.charts import style
from tfcompare.compare import Comparison
from tfcompare.compare.aggregate import Grouping, group_diff
from tfcompare.compare.matching.manual import Choice, with_distinct_names
from tfcompare.compare.matching.matching import Evidence
from tfcompare.compare.scope_tree import scope_tree
from tfcompare.run import Run
from tfcompare.tools import step_series
from tfcompare.tools.op_stats import side_by_side, with_shares
from tfcompare.ui.frame.comparison_cache import cached
from tfcompare.ui.frame.shell import View


@dataclass(frozen=True)
class Pair:
    """A baseline and one candidate. `position` is the candidate's among all candidates, from 1; 0 for a run alone."""

    comparison: Comparison
    candidate: Run
    position: int

    @property
    def baseline(self) -> Run:
        """The run that the candidate is compared with."""
        return self.comparison.baseline

    @property
    def is_single(self) -> bool:
        """Whether one run is shown alone: both sides are that run, and pages show the first only."""
        return self.comparison.is_single

    @property
    def shown(self) -> list[tuple[style.Side, Run]]:
        """The sides to show, each with its run: baseline and candidate, or the run that is shown alone."""
        return list(zip(self.sides, self.runs, strict=True))[: 1 if self.is_single else 2]

    @property
    def runs(self) -> tuple[Run, Run]:
        """Baseline and candidate."""
        return self.baseline, self.candidate

    @property
    def sides(self) -> tuple[style.Side, style.Side]:
        """Baseline and candidate as charts show them."""
        every = sides(self.comparison)
        return every[0], every[self.position]

    @property
    def manual_pairs(self) -> tuple[Choice, ...]:
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
        """The diff with each side's ranks, averages and shares; cached for the next rerun."""
        return self._cached(("ops", idle), partial(_ops, self, idle)).copy(deep=False)

    def groups(self, by: Grouping, *, idle: bool) -> pd.DataFrame:
        """The ops aggregated by name, type or scope, with each side's shares; cached for the next rerun."""
        return self._cached(("groups", by, idle), partial(_groups, self, by, idle)).copy(deep=False)

    def scopes(self) -> pd.DataFrame:
        """The diff as a tree of name scopes; cached for the next rerun."""
        return self._cached("scopes", partial(_scopes, self)).copy(deep=False)

    def _cached(self, key: Hashable, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        return cached(self.comparison, (self.candidate.id, key), make)

    @property
    def key(self) -> tuple[Any, ...]:
        """The cache key of this pair."""
        repeats = (tuple(r.content_id for r in self.comparison.repeats_of(run)) for run in self.runs)
        runs = tuple((run.content_id, run.id, more) for run, more in zip(self.runs, repeats, strict=True))
        return (*runs, self.comparison.per, self.comparison.host, self.manual_pairs)


def _ops(pair: Pair, idle: bool) -> pd.DataFrame:
    return side_by_side(pair.diff(), idle=idle)


def _groups(pair: Pair, by: Grouping, idle: bool) -> pd.DataFrame:
    rows = with_distinct_names(pair.ops(idle=idle), pair.manual_pairs)
    return with_shares(group_diff(rows, by, pair.comparison.group_verdicts))


def _scopes(pair: Pair) -> pd.DataFrame:
    return scope_tree(with_distinct_names(pair.diff(), pair.manual_pairs), judge=pair.comparison.group_verdicts)


def comparison_of(view: View) -> Comparison:
    """The comparison that the page shows."""
    if view.comparison is None:
        raise TypeError("a page that compares begins with setup(…, needs='pair')")
    return view.comparison


def choose_pair(comparison: Comparison) -> Pair:
    """The pair to show in detail; with several candidates, shows a widget to choose it."""
    if comparison.is_single:
        return Pair(comparison, comparison.baseline, 0)
    candidates = {run.id: run for run in comparison.candidates}
    chosen = next(iter(candidates))
    if len(candidates) > 1:
        chosen = st.segmented_control(
            "Candidate shown in detail",
            list(candidates),
            default=chosen,
            required=True,
            format_func=lambda run_id: candidates[run_id].name,
            key="detail",
            bind="query-params",
        )
    return Pair(comparison, candidates[chosen], list(candidates).index(chosen) + 1)


def steps_of(comparison: Comparison, run: Run) -> pd.DataFrame:
    """Each step of `run` on its slowest host, or on the host that is shown."""
    host = comparison.host_of(run)
    if host is not None:
        return run.table("steps", host=host)
    return step_series.with_host(run.steps, run.table("steps"))


def has_steps(run: Run) -> bool:
    """Whether there is any step time to draw."""
    return run.info.has_steps and len(run.steps) > 0


def sides(comparison: Comparison) -> list[style.Side]:
    """The runs as charts show them, baseline first; a run that is shown alone once."""
    if comparison.is_single:
        return [style.Side(comparison.baseline.name, 0, 1)]
    runs = (comparison.baseline, *comparison.candidates)
    return [style.Side(run.name, position, len(runs)) for position, run in enumerate(runs)]
