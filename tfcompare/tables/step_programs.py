"""The kind of each step, where a loop has steps of several: the compiled programs that run in it."""

from __future__ import annotations

import re

import pandas as pd

from tfcompare.tables.step_times import StepCells

FEWEST = 2
"""Steps of a kind: a single one is an exception, not a kind."""
LEAST_SHARE = 0.05
"""Of a run's steps in a kind: captures begin and end anywhere in a loop."""
_PROGRAM = re.compile(r"^(?:p?jit|pmap)\(([^()]+)\)/")
_PREFIXES = ("jit(", "pjit(", "pmap(")


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
    found = named.str.extract(_PROGRAM.pattern, expand=False).reindex(names.index)
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
    counts = kinds.groupby(kinds, sort=False).size().sort_values(ascending=False, kind="stable")
    counts = counts[(counts.index != "") & (counts >= max(FEWEST, LEAST_SHARE * len(kinds)))]
    return {str(name): int(count) for name, count in counts.items()}
