"""The pair of runs that a page shows in detail; its frames are cached for the next rerun."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare.charts import pair
from tfcompare.charts.pair import has_steps as has_steps
from tfcompare.charts.pair import sides as sides
from tfcompare.charts.pair import steps_of as steps_of
from tfcompare.charts.style import letter
from tfcompare.compare import Comparison
from tfcompare.compare.aggregate import Grouping
from tfcompare.ui.frame.comparison_cache import cached
from tfcompare.ui.frame.shell import View


@dataclass(frozen=True)
class Pair(pair.Pair):
    """A baseline and one candidate, with frames that are cached for the next rerun."""

    def ops(self, *, idle: bool) -> pd.DataFrame:
        """The diff with each side's ranks, averages and shares."""
        make = super().ops
        return self._cached(("ops", idle), lambda: make(idle=idle)).copy(deep=False)

    def groups(self, by: Grouping, *, idle: bool) -> pd.DataFrame:
        """The ops aggregated by name, type or scope, with each side's shares."""
        make = super().groups
        return self._cached(("groups", by, idle), lambda: make(by, idle=idle)).copy(deep=False)

    def scopes(self) -> pd.DataFrame:
        """The diff as a tree of name scopes."""
        return self._cached("scopes", super().scopes).copy(deep=False)

    def _cached(self, key: Hashable, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        return cached(self.comparison, (self.candidate.id, key), make)

    @property
    def key(self) -> tuple[Any, ...]:
        """The cache key of this pair."""
        repeats = (tuple(r.content_id for r in self.comparison.repeats_of(run)) for run in self.runs)
        runs = tuple((run.content_id, run.id, more) for run, more in zip(self.runs, repeats, strict=True))
        return (*runs, self.comparison.per, self.comparison.host, self.manual_pairs)


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
        letters = {run_id: letter(position) for position, run_id in enumerate(candidates, start=1)}
        chosen = st.segmented_control(
            "Candidate shown in detail",
            list(candidates),
            default=chosen,
            required=True,
            format_func=lambda run_id: f"{letters[run_id]} · {candidates[run_id].name}",
            key="detail",
            bind="query-params",
        )
    return Pair(comparison, candidates[chosen], list(candidates).index(chosen) + 1)
