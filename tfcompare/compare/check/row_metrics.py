"""The metrics of ops and kernels: of the rows of a table in the included steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.check.measured import (
    COUNT,
    EXACTLY,
    TIME,
    Measured,
    count_result,
    missing,
    nothing_like,
    time_result,
    untested_result,
    who_lacks,
)
from tfcompare.compare.pair import Pair
from tfcompare.compare.pooling import mean_of
from tfcompare.compare.side import Side
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.step_series import step_series
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.compare.step_time_verdict import SAME_CAPTURE, no_steps
from tfcompare.schema import DEVICE, HOST, KERNEL_STATS, SIDES
from tfcompare.schema.arrays import Floats
from tfcompare.tables.step_times import StepCells


def kernel_launches(pair: Pair, _: str) -> Measured:
    """Launches per included step; a profile's sum is not comparable if its number of steps is unknown."""
    launches = [[_launches(pair, side, i) for i in side.positions] for side in pair.sides]
    before, after = (
        mean_of([count / side.step_count(i) for i, count in enumerate(counts)]) / side.iterations
        if side.all_have_steps
        else math.nan
        for counts, side in zip(launches, pair.sides, strict=True)
    )
    lacking = [all(map(math.isnan, counts)) for counts in launches]
    if all(lacking):
        return missing(COUNT, "neither run has a record of kernels")
    if any(lacking):
        return count_result(COUNT, before, after, f"{who_lacks(*lacking)} record of kernels")
    is_known = all(side.all_have_steps for side in pair.sides)
    measured = count_result(COUNT, before, after, EXACTLY if is_known else no_steps(*pair.sides).reason)
    return replace(measured, verdict=SAME_CAPTURE) if pair.is_identical else measured


def _launches(pair: Pair, side: Side, position: int) -> float:
    """The launches in included steps, of all devices or of each; NaN without kernels."""
    run, host, kinds = side.runs[position], side.hosts[position], pair.common_kinds
    name = KERNEL_STATS.name
    kernels = run.tables.in_steps(name, host=host) if kinds is None else kinds.in_steps(KERNEL_STATS, run, host)
    shares = pair.shares(name, kernels, side, position)
    return float((kernels["occurrences"] * shares).sum()) if len(kernels) else math.nan


def _rows_time(pair: Pair, pattern: str, *, table: str, names: tuple[str, ...], what: str) -> Measured:
    """The time per step of the rows of a table with a matching cell in one of the columns `names`."""
    every = [[side.cells(i, table) for i in side.positions] for side in pair.sides]
    keys = [of_captures[0].keys for of_captures in every]
    matching = [of_side[_matching(of_side, names, pattern)] for of_side in keys]
    kind, has_any = f"{what.split()[1]}s", any(map(len, matching))
    if not has_any:
        rows = pd.concat([side.run.table(table, host=side.host)[list(names)] for side in pair.sides])
        if not _matching(rows, names, pattern).any():
            known = dict.fromkeys(text for name in reversed(names) for text in rows[name])
            return missing(TIME, nothing_like(pattern, what, kind, known))
    on_host = [
        (m["host_or_device"] == HOST).to_numpy() if "host_or_device" in m else np.zeros(len(m)) for m in matching
    ]
    unrecorded = ["", ""] if all(of_side.all() for of_side in on_host) else list(map(_why_unrecorded, pair.sides))
    why = "; ".join(f"the {name}: {reason}" for name, reason in zip(SIDES, unrecorded, strict=True) if reason)
    if unrecorded[1]:
        return untested_result(TIME, why)
    lost = pair.lost_events()["op_name"]
    if any(m["op_name"].isin(lost).any() for m in matching):
        return untested_result(
            TIME, "a capture lost events of what matches: the same program ran it less often on one side"
        )
    lacking = [not len(of_side) for of_side in keys]
    if any(lacking) and not why:
        return untested_result(TIME, f"{who_lacks(*lacking)} record of {kind} in any step")
    if not has_any:
        return untested_result(TIME, f"in no step of either run there is {what} matches {pattern!r}")

    def weights(side: Side, position: int, rows: pd.DataFrame) -> Floats:
        return pair.shares(table, rows, side, position) * _matching(rows, names, pattern)

    ours, theirs = (_sum_up(side, cells, weights) for side, cells in zip(pair.sides, every, strict=True))
    place = HOST if any(of_side.any() for of_side in on_host) else DEVICE
    measured = time_result(pair, *_in_main_kind(pair, ours, theirs), place=place)
    # If a run has no matching op, its value is missing instead of 0; the absence still counts as a change.
    both = zip((measured.baseline, measured.candidate), matching, strict=True)
    before, after = (value if len(rows) else math.nan for value, rows in both)
    verdict = Verdict(UNTESTED, why) if why else measured.verdict
    return replace(measured, baseline=before, candidate=after, verdict=verdict)


def _in_main_kind(
    pair: Pair, ours: Sequence[Times], theirs: Sequence[Times]
) -> tuple[Sequence[Times], Sequence[Times], str]:
    """The times in the kind of step that takes most time, where there are several, and what these steps are called."""
    if (kinds := pair.common_kinds) is None:
        return ours, theirs, "steps"
    of_kinds = [kinds.split(side, times) for side, times in zip(pair.sides, (ours, theirs), strict=True)]
    main = int(kinds.main(of_kinds[0], of_kinds[1])[0])
    if main < 0:
        return ours, theirs, "steps"
    return of_kinds[0][main], of_kinds[1][main], f"steps of {list(kinds.shares)[main]}"


def _why_unrecorded(side: Side) -> str:
    """Why a side has no record of what ran on devices; empty if it has."""
    captures = zip(side.runs, side.hosts, strict=True)
    return next((run.why_untimed for run, host in captures if not run.tables.has_recorded_devices(host)), "")


def _matching(keys: pd.DataFrame, names: tuple[str, ...], pattern: str) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(keys), np.bool_)
    for name in names:
        matches = {text for text in keys[name].unique() if fnmatchcase(text, pattern)}
        found |= keys[name].isin(matches).to_numpy(np.bool_)
    return found


def _sum_up(
    side: Side, every: Sequence[StepCells], weights_of: Callable[[Side, int, pd.DataFrame], Floats]
) -> list[Times]:
    """The total time of the rows in each step of each capture, each times its weight."""
    found = []
    for position, cells in enumerate(every if side.all_have_steps else ()):
        steps, weights = side.steps(position), weights_of(side, position, cells.keys)
        each = np.unique(weights[weights > 0])
        weighted = StepCells(pd.DataFrame({"weight": weights}), cells.cells)
        found.append(steps.split(each @ step_series(pd.DataFrame({"weight": each}), weighted, steps.numbers)))
    return found or [Times.of(np.zeros(0)) for _ in every]


KERNEL_TIME = partial(_rows_time, table="kernel_stats", names=("kernel_name",), what="a kernel whose name")
OP_TIME = partial(_rows_time, table="op_stats", names=("op_name", "op_type"), what="an op whose name or type")
