"""The metrics of ops and kernels: of the rows of a table in the included steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.check.measured import (
    BANDWIDTH,
    COUNT,
    EXACTLY,
    FLOP_RATE,
    FLOPS,
    TIME,
    Measured,
    by_time,
    count_result,
    missing,
    nothing_like,
    time_result,
    unknown_time,
    untested_result,
    who_lacks,
    why_unrecorded,
)
from tfcompare.compare.pair import Pair
from tfcompare.compare.pooling import mean_of
from tfcompare.compare.repeats import with_keys_of
from tfcompare.compare.side import Side
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.step_series import step_series
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.compare.steps.step_time_verdict import SAME_CAPTURE, no_steps
from tfcompare.compare.utilization import COSTS, Cost, unknown_share
from tfcompare.compare.work.terms import RATES, ROUNDING, computes
from tfcompare.schema import DEVICE, HLO_OPS, HOST, KERNEL_STATS, OP_STATS, SIDES, SPARSE_CORE, Table
from tfcompare.schema.arrays import Floats
from tfcompare.schema.hlo import MOST_UNKNOWN
from tfcompare.tables.step_times import StepCells
from tfcompare.units import format_percent

_US_PER_S = 1e6


@dataclass(frozen=True)
class _Rows:
    """Rows of a `table` whose cell in one of the columns `names` matches a pattern; `what` they are in a sentence."""

    table: Table
    names: tuple[str, ...]
    what: str


@dataclass(frozen=True)
class _Found:
    """The cells of all captures of both sides, and the keys of those rows of the first that match; `why`: what lacks a
    record of devices, empty if nothing does."""

    every: list[list[StepCells]]
    matching: list[pd.DataFrame]
    why: str = ""

    @property
    def are_on_host(self) -> list[npt.NDArray[np.bool_]]:
        """Which of the matching rows ran on a host."""
        return [
            (rows["host_or_device"] == HOST).to_numpy(np.bool_)
            if "host_or_device" in rows
            else np.zeros(len(rows), np.bool_)
            for rows in self.matching
        ]


_KERNELS = _Rows(KERNEL_STATS, ("kernel_name",), "a kernel whose name")
_OPS = _Rows(OP_STATS, ("op_name", "op_type"), "an op whose name or type")


def kernel_launches(pair: Pair, _: str) -> Measured:
    """Launches per included step; a profile's sum is not comparable if its number of steps is unknown."""

    def launches(side: Side, position: int) -> float:
        kernels, shares = _in_steps(pair, KERNEL_STATS, side, position)
        return float((kernels["occurrences"] * shares).sum()) if len(kernels) else math.nan

    return _per_step(pair, COUNT, launches, "record of kernels")


def occurrences(pair: Pair, pattern: str) -> Measured:
    """How often ops whose name or type matches run per included step; 0 where a run has none of them."""
    found = _matching_rows(pair, pattern, _OPS, COUNT)
    if isinstance(found, Measured):
        return found

    def runs(side: Side, position: int) -> float:
        ops, shares = _in_steps(pair, OP_STATS, side, position)
        named = with_keys_of(side.keys(position, OP_STATS.name), ops)
        return float((ops["occurrences"] * shares * _matching(named, _OPS.names, pattern)).sum())

    measured = _per_step(pair, COUNT, runs, "record of ops")
    return replace(measured, verdict=Verdict(UNTESTED, found.why)) if found.why else measured


def flops(pair: Pair, _: str) -> Measured:
    """FLOPs of compiled programs per included step, those that recompute a value too, without SparseCores."""

    def of_capture(side: Side, position: int) -> float:
        instructions, shares = _in_steps(pair, HLO_OPS, side, position)
        is_counted = (instructions["core_type"] != SPARSE_CORE).to_numpy()
        instructions, shares = instructions[is_counted], shares[is_counted]
        is_known = unknown_share(instructions, ["flops"]) <= MOST_UNKNOWN  # False where none took any time
        return float((instructions["flops"] * shares).sum()) if is_known else math.nan

    return _per_step(pair, FLOPS, of_capture, "compiled program of known cost", unknown_time(pair, "flops"))


def rate(pair: Pair, pattern: str) -> Measured:
    """What ops whose name or type matches do by their self time: FLOP/s if they compute for most of it on either side,
    else bytes/s. Not known in steps of several kinds."""
    time = _rows_time(pair, pattern, _OPS)
    if time.is_missing:
        return replace(time, unit=FLOP_RATE)
    if pair.common_kinds is not None:
        return untested_result(FLOP_RATE, "the work in steps of each kind is not known; choose a kind (--step-kind)")
    every = [_ops_with_work(pair, side, i, pattern) for side in pair.sides for i in side.positions]
    cost = _cost_of(every)
    unit = FLOP_RATE if cost == "flops" else BANDWIDTH
    unknown = max(unknown_share(ops, [cost]) for ops in every)  # NaN where a capture has none of them
    remark = f": {format_percent(unknown)} of their time has no known work" if unknown > MOST_UNKNOWN else ""

    def work(side: Side, position: int) -> float:
        ops = _ops_with_work(pair, side, position, pattern)
        return float(ops[cost].sum()) if _is_known(ops, cost) else math.nan

    done = _per_step(pair, unit, work, f"record of the work of ops that match {pattern!r}", remark)
    if done.is_missing or math.isnan(done.baseline) or math.isnan(done.candidate):
        return done
    return by_time(unit, (_US_PER_S * done.baseline, _US_PER_S * done.candidate), time)


def _ops_with_work(pair: Pair, side: Side, position: int, pattern: str) -> pd.DataFrame:
    """The ops of a capture that match: `self_time_us`, `flops` and `bytes_accessed` in its included steps, these
    missing where the time is not that of the work, and `computes`."""
    ops, shares = _in_steps(pair, OP_STATS, side, position)
    is_chosen = _matching(with_keys_of(side.keys(position, OP_STATS.name), ops), _OPS.names, pattern)
    ops, shares = ops[is_chosen], shares[is_chosen]
    is_whole = np.isclose(ops["self_time_us"], ops["total_time_us"], ROUNDING, 0.0)
    costs = {name: (ops[name] * shares).where(ops[of].notna() & is_whole) for name, of in RATES.items()}
    intensity = (ops["flops"] / ops["bytes_accessed"]).to_numpy(np.float64)
    is_computing = computes(ops["bound_by"].to_numpy(np.object_)[np.newaxis], intensity[np.newaxis])
    return pd.DataFrame({"self_time_us": ops["self_time_us"] * shares, **costs, "computes": is_computing})


def _is_known(ops: pd.DataFrame, cost: Cost) -> bool:
    return unknown_share(ops, [cost]) <= MOST_UNKNOWN and ops[cost].sum() > 0


def _cost_of(every: Sequence[pd.DataFrame]) -> Cost:
    """What the work of ops is measured in, on both sides: what fits better, if it is known in all captures."""
    times = [(ops.loc[ops["computes"], "self_time_us"].sum(), ops["self_time_us"].sum()) for ops in every]
    is_computing = any(computing > whole / 2 for computing, whole in times)
    better, other = COSTS if is_computing else COSTS[::-1]
    is_known = [all(_is_known(ops, cost) for ops in every) for cost in (better, other)]
    return other if is_known == [False, True] else better


def _in_steps(pair: Pair, table: Table, side: Side, position: int) -> tuple[pd.DataFrame, Floats]:
    """The rows of a capture in its included steps, in the mix of kinds that both sides have; what to multiply their
    sums by, for all devices or for each."""
    run, host, kinds = side.runs[position], side.hosts[position], pair.common_kinds
    rows = run.tables.in_steps(table.name, host=host) if kinds is None else kinds.in_steps(table, run, host)
    return rows, pair.shares(table.name, rows, side, position)


def _per_step(pair: Pair, unit: str, of_capture: Callable[[Side, int], float], what: str, remark: str = "") -> Measured:
    """An exact figure per included step: the mean over the captures that have it, given its sum in one of them, NaN
    where it is unknown. `what` a run without it lacks; `remark` ends that sentence."""
    sums = [[of_capture(side, i) for i in side.positions] for side in pair.sides]
    before, after = (
        mean_of([total / side.step_count(i) for i, total in enumerate(of_side)]) / side.iterations
        if side.all_have_steps
        else math.nan
        for of_side, side in zip(sums, pair.sides, strict=True)
    )
    lacking = [all(map(math.isnan, of_side)) for of_side in sums]
    if all(lacking):
        return missing(unit, f"neither run has a {what}{remark}")
    if any(lacking):
        return count_result(unit, before, after, f"{who_lacks(*lacking)} {what}{remark}")
    is_known = all(side.all_have_steps for side in pair.sides)
    measured = count_result(unit, before, after, EXACTLY if is_known else no_steps(*pair.sides).reason)
    return replace(measured, verdict=SAME_CAPTURE) if pair.is_identical else measured


def _matching_rows(pair: Pair, pattern: str, of: _Rows, unit: str) -> _Found | Measured:
    """The rows that match, or why the metric is missing or untested."""
    names, what = of.names, of.what
    every = [[side.cells(i, of.table.name) for i in side.positions] for side in pair.sides]
    keys = [of_captures[0].keys for of_captures in every]
    found = _Found(every, [of_side[_matching(of_side, names, pattern)] for of_side in keys])
    kind, has_any = f"{what.split()[1]}s", any(map(len, found.matching))
    if not has_any:
        rows = pd.concat([side.run.table(of.table.name, host=side.host)[list(names)] for side in pair.sides])
        if not _matching(rows, names, pattern).any():
            known = dict.fromkeys(text for name in reversed(names) for text in rows[name])
            return missing(unit, nothing_like(pattern, what, kind, known))
    are_on_host = all(of_side.all() for of_side in found.are_on_host)
    unrecorded = ["", ""] if are_on_host else list(map(why_unrecorded, pair.sides))
    why = "; ".join(f"the {name}: {reason}" for name, reason in zip(SIDES, unrecorded, strict=True) if reason)
    if unrecorded[1]:
        return untested_result(unit, why)
    lost = pair.lost_events()["op_name"]
    if any(rows["op_name"].isin(lost).any() for rows in found.matching):
        return untested_result(
            unit, "a capture lost events of what matches: the same program ran it less often on one side"
        )
    lacking = [not len(of_side) for of_side in keys]
    if any(lacking) and not why:
        return untested_result(unit, f"{who_lacks(*lacking)} record of {kind} in any step")
    if not has_any:
        return untested_result(unit, f"in no step of either run there is {what} matches {pattern!r}")
    return replace(found, why=why)


def _rows_time(pair: Pair, pattern: str, of: _Rows) -> Measured:
    """The time per step of the rows that match."""
    found = _matching_rows(pair, pattern, of, TIME)
    if isinstance(found, Measured):
        return found

    def weights(side: Side, position: int, rows: pd.DataFrame) -> Floats:
        return pair.shares(of.table.name, rows, side, position) * _matching(rows, of.names, pattern)

    ours, theirs = (_sum_up(side, cells, weights) for side, cells in zip(pair.sides, found.every, strict=True))
    place = HOST if any(of_side.any() for of_side in found.are_on_host) else DEVICE
    measured = time_result(pair, *_in_main_kind(pair, ours, theirs), place=place)
    # If a run has no matching op, its value is missing instead of 0; the absence still counts as a change.
    both = zip((measured.baseline, measured.candidate), found.matching, strict=True)
    before, after = (value if len(rows) else math.nan for value, rows in both)
    verdict = Verdict(UNTESTED, found.why) if found.why else measured.verdict
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


KERNEL_TIME = partial(_rows_time, of=_KERNELS)
OP_TIME = partial(_rows_time, of=_OPS)
