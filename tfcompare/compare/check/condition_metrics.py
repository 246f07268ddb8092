"""The metrics available in conditions, with their values in both runs and confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.memory_growth import FEWEST_STEPS, growth_of
from tfcompare.compare.pair import Pair
from tfcompare.compare.pooling import mean_of
from tfcompare.compare.side import Side, window_of
from tfcompare.compare.stats.change_test import ChangeTest, Level
from tfcompare.compare.stats.estimates import Estimates, Times, estimates, quantile_estimates
from tfcompare.compare.stats.step_series import step_series
from tfcompare.compare.stats.verdict import LESS, MORE, SAME, UNTESTED, Verdict
from tfcompare.compare.step_time_verdict import SAME_CAPTURE, no_steps, time_verdict
from tfcompare.compare.tf_data.call_verdicts import calls_by_pipeline, slowest_pipeline
from tfcompare.compare.utilization import Cost, instructions_in_steps, time_at_peak_us, unknown_share
from tfcompare.schema import HOST, KERNEL_STATS, SIDES
from tfcompare.schema.arrays import Floats
from tfcompare.schema.hlo import MOST_UNKNOWN
from tfcompare.tables.step_times import StepCells, Window
from tfcompare.text import close_matches, did_you_mean, some_of
from tfcompare.units import format_bytes, format_percent

if TYPE_CHECKING:
    from tfcompare.run import Run

TIME, BYTES, COUNT, RATE, SHARE = "µs", "bytes", "", "steps/s", "share"
_US_PER_S = 1e6
EXACTLY = "compared exactly"

_MOST_MEANT = 3
_MOST_LISTED = 8


@dataclass(frozen=True)
class Samples:
    """The samples of a time: `of` names them, such as steps; a capture needs at least `needed` of them.

    `fewest`: the number in the capture that has the fewest, of baseline and candidate.
    """

    of: str
    fewest: tuple[int, int]
    needed: int


@dataclass(frozen=True)
class Measured:
    """A metric of both runs in `unit` (`µs`, `bytes`, `steps/s`, `share`, or empty for a count), NaN if unknown.

    `verdict`: the change from baseline to candidate, with an interval of width 0 if it is exact; `level`: the value of
    the candidate alone; `is_missing`: neither run has the data for the metric, as the reasons explain; `samples`: what
    a time was estimated from, None for anything else.
    """

    unit: str
    baseline: float
    candidate: float
    verdict: Verdict
    level: Level
    is_missing: bool = False
    samples: Samples | None = None


@dataclass(frozen=True)
class Metric:
    """A metric: its syntax (`form`), the `unit` of its values, and the function that computes it.

    `measure` takes the two runs and the pattern after the colon.
    """

    form: str
    unit: str
    measure: Callable[[Pair, str], Measured]


def _step_time(pair: Pair, _: str) -> Measured:
    """The mean of the included steps."""
    ours, theirs = (side.step_times_us for side in pair.sides)
    return _timed(pair, ours, theirs, "steps")


def _step_time_quantile(share: float) -> Callable[[Pair, str], Measured]:
    """A quantile of the included steps."""

    def measure(pair: Pair, _: str) -> Measured:
        ours, theirs = (side.step_times_us for side in pair.sides)
        return _timed(pair, ours, theirs, "steps", estimate=partial(quantile_estimates, share=share))

    return measure


def _throughput(pair: Pair, _: str) -> Measured:
    """Steps per second, from the start of each step to that of the next; on the straggler of several hosts."""
    if not all(side.all_have_steps for side in pair.sides):
        return _untested(RATE, no_steps(*pair.sides).reason)
    ours, theirs = ([_of_window(side, i, _periods) for i in side.positions] for side in pair.sides)
    return _by_time(RATE, (_US_PER_S, _US_PER_S), _timed(pair, ours, theirs, "step periods", on_host=True))


def _share_of_peak(cost: Cost) -> Callable[[Pair, str], Measured]:
    """What a step does by what the device could do in its time."""

    def measure(pair: Pair, _: str) -> Measured:
        if not all(side.all_have_step_times for side in pair.sides):
            return _untested(SHARE, no_steps(*pair.sides).reason)
        needed = [mean_of(side.each(partial(time_at_peak_us, cost=cost))) / side.iterations for side in pair.sides]
        lacking = list(map(math.isnan, needed))
        if all(lacking):
            reason = "neither run has compiled programs of known cost on a device whose peak is known"
            return _missing(SHARE, reason + _unknown_time(pair, cost))
        ours, theirs = (side.step_times_us for side in pair.sides)
        found = _by_time(SHARE, (needed[0], needed[1]), _timed(pair, ours, theirs, "steps"))
        if any(lacking):
            reason = f"{_who_lacks(*lacking)} compiled program of known cost on a device whose peak is known"
            return replace(found, verdict=Verdict(UNTESTED, reason + _unknown_time(pair, cost)))
        return found

    return measure


def _unknown_time(pair: Pair, cost: Cost) -> str:
    """That instructions of unknown cost take a part of the time, if they do on either side."""

    def share(run: Run, host: str | None) -> float:
        return unknown_share(instructions_in_steps(run, host), [cost])

    shares = [found for side in pair.sides for found in side.each(share) if found > MOST_UNKNOWN]
    return f": {format_percent(max(shares))} of the device time has no known cost" if shares else ""


def _by_time(unit: str, amounts: tuple[float, float], found: Measured) -> Measured:
    """What each side does by the time in µs that was found for it."""
    (ours, theirs), time, level = amounts, found.verdict, found.level
    change = _per(theirs, ours)
    reason = f"from the time that it takes: {time.reason}" if time.has_interval else time.reason
    verdict = replace(
        time, reason=reason, ratio=_per(change, time.ratio), low=_per(change, time.high), high=_per(change, time.low),
        ratio_with_strays=None if time.ratio_with_strays is None else _per(change, time.ratio_with_strays),
    )  # fmt: skip
    of_candidate = Level(
        _per(theirs, level.value), _per(theirs, level.high), _per(theirs, level.low), level.reason,
        None if level.with_strays is None else _per(theirs, level.with_strays),
    )  # fmt: skip
    before, after = _per(ours, found.baseline), _per(theirs, found.candidate)
    return Measured(unit, before, after, verdict, of_candidate, samples=found.samples)


def _per(number: float, us: float) -> float:
    return number / us if us else math.inf


def _periods(window: Window) -> Floats:
    return window.periods_us


def _gaps(window: Window) -> Floats:
    return window.gaps_us


def _of_window(side: Side, position: int, series: Callable[[Window], Floats]) -> Times:
    found = window_of(side.runs[position], side.hosts[position])
    return Times.of(np.zeros(0) if found is None else series(found.per(side.iterations)))


def _time_between_steps(pair: Pair, _: str) -> Measured:
    """The time between steps, per step; on the straggler if there are several hosts."""
    if not all(side.all_have_step_times for side in pair.sides):
        return _untested(TIME, no_steps(*pair.sides).reason)
    ours, theirs = ([_of_window(side, i, _gaps) for i in side.positions] for side in pair.sides)
    return _timed(pair, ours, theirs, "gaps between steps", on_host=True)


def _input_latency(pair: Pair, _: str) -> Measured:
    """The mean call of each side's slowest pipeline on the host."""
    ours, theirs = ([_slowest_calls(side, i) for i in side.positions] for side in pair.sides)
    if not ours[0].steps and not theirs[0].steps:
        return _missing(TIME, "neither run has calls of an input pipeline of tf.data")
    return _timed(pair, ours, theirs, "calls", on_host=True)


def _slowest_calls(side: Side, position: int) -> Times:
    calls = calls_by_pipeline(side.runs[position], side.hosts[position])
    slowest = slowest_pipeline(calls)
    return Times.of(np.zeros(0) if slowest is None else calls[slowest])


def _peak_memory(pair: Pair, pattern: str) -> Measured:
    """The largest peak among the memories that both runs have, or among all if they have none in common."""
    every = [_peaks(side) for side in pair.sides]
    ours, theirs = (peaks[[fnmatchcase(name, pattern or "*") for name in peaks.index]] for peaks in every)
    known = sorted({*every[0].index, *every[1].index})
    if ours.empty and theirs.empty:
        return _missing(BYTES, _nothing_like(pattern, "a memory that", "memory", known))
    if ours.empty or theirs.empty:
        what = f"a memory that matches {pattern!r}; there are: {', '.join(known)}" if pattern else "memory"
        reason = f"{_who_lacks(ours.empty, theirs.empty)} record of {what}"
        return _counted(BYTES, _largest(ours), _largest(theirs), reason)
    shared = ours.index.intersection(theirs.index)
    if shared.empty:
        beside = f"{EXACTLY}: {ours.idxmax()} beside {theirs.idxmax()}, since the runs have no memory in common"
        return _counted(BYTES, _largest(ours), _largest(theirs), beside)
    left_out = sorted(ours.index.symmetric_difference(theirs.index))
    reason = f"{EXACTLY}, without {', '.join(left_out)}, which only one run has" if left_out else EXACTLY
    return _counted(BYTES, _largest(ours[shared]), _largest(theirs[shared]), reason, of_candidate=_largest(theirs))


def _memory_growth(pair: Pair, _: str) -> Measured:
    """The slope of the memory that grows most; 0 where its interval includes no growth."""
    ours, theirs = (growth_of(side.run, side.host) for side in pair.sides)
    if ours is None and theirs is None:
        return _missing(BYTES, f"neither run has a record of memory over {FEWEST_STEPS} steps or more")
    before, after = (math.nan if one is None else one.bytes_per_step if one.low > 0 else 0.0 for one in (ours, theirs))
    if ours is None or theirs is None:
        lacks = _who_lacks(ours is None, theirs is None)
        return _counted(BYTES, before, after, f"{lacks} record of memory over {FEWEST_STEPS} steps or more")
    ends = " to ".join(map(format_bytes, (theirs.low, theirs.high)))
    return _counted(BYTES, before, after, f"slope over {theirs.steps} steps, 95 % confidence interval {ends}")


def _peaks(side: Side) -> pd.Series:
    """The peak of each memory in the median capture; the largest if several hosts have a memory of that name."""
    return pd.concat(side.each(_peaks_of), axis=1).quantile(0.5, axis=1, interpolation="lower")


def _peaks_of(run: Run, host: str | None) -> pd.Series:
    memories = run.table("memory_summary", host=host)
    return memories.groupby("memory_id")["peak_bytes"].max()


def _largest(peaks: pd.Series) -> float:
    return math.nan if peaks.empty else float(peaks.max())


def _kernel_launches(pair: Pair, _: str) -> Measured:
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
        return _missing(COUNT, "neither run has a record of kernels")
    if any(lacking):
        return _counted(COUNT, before, after, f"{_who_lacks(*lacking)} record of kernels")
    is_known = all(side.all_have_steps for side in pair.sides)
    measured = _counted(COUNT, before, after, EXACTLY if is_known else no_steps(*pair.sides).reason)
    return replace(measured, verdict=SAME_CAPTURE) if pair.is_identical else measured


def _launches(pair: Pair, side: Side, position: int) -> float:
    """The launches in included steps, of all devices or of each; NaN without kernels."""
    run, host, kinds = side.runs[position], side.hosts[position], pair.common_kinds
    name = KERNEL_STATS.name
    kernels = run.tables.in_steps(name, host=host) if kinds is None else kinds.in_steps(KERNEL_STATS, run, host)
    shares = pair.shares(name, kernels, side, position)
    return float((kernels["occurrences"] * shares).sum()) if len(kernels) else math.nan


def _op_time(pair: Pair, pattern: str) -> Measured:
    """The self time per step of the ops whose name or type matches, on host and devices."""
    return _rows_time(pair, "op_stats", ("op_name", "op_type"), pattern, "an op whose name or type")


def _kernel_time(pair: Pair, pattern: str) -> Measured:
    """The time per step of the kernels whose name matches."""
    return _rows_time(pair, "kernel_stats", ("kernel_name",), pattern, "a kernel whose name")


def _rows_time(pair: Pair, table: str, names: tuple[str, ...], pattern: str, what: str) -> Measured:
    every = [[side.cells(i, table) for i in side.positions] for side in pair.sides]
    cells = [of_captures[0] for of_captures in every]
    matching = [_matching(c.keys, names, pattern) for c in cells]
    kind = f"{what.split()[1]}s"
    if not any(m.any() for m in matching):
        rows = pd.concat([side.run.table(table, host=side.host)[list(names)] for side in pair.sides])
        if not _matching(rows, names, pattern).any():
            known = dict.fromkeys(text for name in reversed(names) for text in rows[name])
            return _missing(TIME, _nothing_like(pattern, what, kind, known))
    of_devices = any(_has_device_rows(c.keys[m]) for c, m in zip(cells, matching, strict=True))
    unrecorded = list(map(_why_unrecorded, pair.sides)) if of_devices else ["", ""]
    why = "; ".join(f"the {name}: {reason}" for name, reason in zip(SIDES, unrecorded, strict=True) if reason)
    if unrecorded[1]:
        return _untested(TIME, why)
    lost = pair.lost_events()["op_name"]
    if any(c.keys.loc[m, "op_name"].isin(lost).any() for c, m in zip(cells, matching, strict=True)):
        return _untested(TIME, "a capture lost events of what matches: the same program ran it less often on one side")
    lacking = [not len(c.keys) for c in cells]
    if any(lacking) and not why:
        return _untested(TIME, f"{_who_lacks(*lacking)} record of {kind} in any step")
    if not any(m.any() for m in matching):
        return _untested(TIME, f"in no step of either run there is {what} matches {pattern!r}")
    ours, theirs = (
        [
            side.steps(i).split(
                _summed(
                    c, pair.shares(table, c.keys, side, i) * _matching(c.keys, names, pattern), side.steps(i).numbers
                )
            )
            if side.all_have_steps
            else Times.of(np.zeros(0))
            for i, c in enumerate(of_captures)
        ]
        for of_captures, side in zip(every, pair.sides, strict=True)
    )
    on_host = any(_has_host_rows(c.keys[m]) for c, m in zip(cells, matching, strict=True))
    measured = _timed(pair, *_in_main_kind(pair, ours, theirs), on_host=on_host)
    # If a run has no matching op, its value is missing instead of 0; the absence still counts as a change.
    before, after = (
        value if m.any() else math.nan
        for m, value in zip(matching, (measured.baseline, measured.candidate), strict=True)
    )
    measured = replace(measured, baseline=before, candidate=after)
    return replace(measured, verdict=Verdict(UNTESTED, why)) if why else measured


def _in_main_kind(
    pair: Pair, ours: Sequence[Times], theirs: Sequence[Times]
) -> tuple[Sequence[Times], Sequence[Times], str]:
    """The times in the steps of the kind that has most of them, and what these steps are called; all steps where they
    are of one kind."""
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


def _summed(cells: StepCells, weights: Floats, steps: npt.NDArray[np.int64]) -> Floats:
    """The total time of the rows in each step, each times its weight."""
    each = np.unique(weights[weights > 0])
    series = step_series(
        pd.DataFrame({"weight": each}), StepCells(pd.DataFrame({"weight": weights}), cells.cells), steps
    )
    total: Floats = each @ series
    return total


def _has_host_rows(keys: pd.DataFrame) -> bool:
    return "host_or_device" in keys and bool((keys["host_or_device"] == HOST).any())


def _has_device_rows(keys: pd.DataFrame) -> bool:
    """Whether any of these rows of ops or kernels ran on a device."""
    return bool((keys["host_or_device"] != HOST).any()) if "host_or_device" in keys else len(keys) > 0


def _timed(
    pair: Pair,
    ours: Sequence[Times],
    theirs: Sequence[Times],
    of: str,
    *,
    on_host: bool = False,
    estimate: Callable[[Times], Estimates] = estimates,
) -> Measured:
    test = pair.in_series(ChangeTest(pair.spread_between(on_host=on_host), estimate, of, can_be_absent=True), ours)
    verdict = time_verdict(pair.sides, (ours, theirs), test)
    samples = Samples(of, (min(t.steps for t in ours), min(t.steps for t in theirs)), test.min_steps)
    return Measured(TIME, test.value(ours), test.value(theirs), verdict, test.level(theirs), samples=samples)


def _counted(unit: str, before: float, after: float, reason: str, of_candidate: float | None = None) -> Measured:
    """An exactly known metric, with an interval of width 0."""
    of_candidate = after if of_candidate is None else of_candidate
    known = Level(of_candidate, of_candidate, of_candidate, reason)
    if math.isnan(before) or math.isnan(after):
        return Measured(unit, before, after, Verdict(UNTESTED, reason), known)
    ratio = 1.0 if after == before else after / before if before else math.inf
    word = SAME if after == before else MORE if after > before else LESS
    return Measured(unit, before, after, Verdict(word, reason, ratio, ratio, ratio), known)


def _untested(unit: str, reason: str) -> Measured:
    nothing = math.nan
    return Measured(unit, nothing, nothing, Verdict(UNTESTED, reason), Level(nothing, nothing, nothing, reason))


def _missing(unit: str, reason: str) -> Measured:
    return replace(_untested(unit, reason), is_missing=True)


def _nothing_like(pattern: str, what: str, kind: str, known: Iterable[str]) -> str:
    """A sentence that nothing matches, with similar names from `known` as suggestions, or else a few of them."""
    known = [name for name in known if name]
    if not pattern or not known:
        return f"neither run has a record of {kind}"
    around = f"*{pattern.casefold()}*"
    holding = sorted((name for name in known if fnmatchcase(name.casefold(), around)), key=len)
    meant = holding[:_MOST_MEANT] or close_matches(pattern.strip("*?"), known, _MOST_MEANT)
    told = did_you_mean(meant) or f"; there are: {some_of(map(repr, known), _MOST_LISTED)}"
    return f"neither run has {what} matches {pattern!r}{told}"


def _who_lacks(baseline: bool, candidate: bool) -> str:
    if baseline and candidate:
        return "neither run has a"
    return f"the {'baseline' if baseline else 'candidate'} has no"


METRICS = {
    "step_time": Metric("step_time", TIME, _step_time),
    "step_time_median": Metric("step_time_median", TIME, _step_time_quantile(0.5)),
    "step_time_p95": Metric("step_time_p95", TIME, _step_time_quantile(0.95)),
    "throughput": Metric("throughput", RATE, _throughput),
    "mfu": Metric("mfu", SHARE, _share_of_peak("flops")),
    "hbm_share": Metric("hbm_share", SHARE, _share_of_peak("bytes_accessed")),
    "time_between_steps": Metric("time_between_steps", TIME, _time_between_steps),
    "input_latency": Metric("input_latency", TIME, _input_latency),
    "peak_memory": Metric("peak_memory", BYTES, _peak_memory),
    "peak_memory:": Metric("peak_memory:MEMORY", BYTES, _peak_memory),
    "memory_growth": Metric("memory_growth", BYTES, _memory_growth),
    "kernel_launches": Metric("kernel_launches", COUNT, _kernel_launches),
    "op:": Metric("op:PATTERN", TIME, _op_time),
    "kernel:": Metric("kernel:PATTERN", TIME, _kernel_time),
}
"""All metrics by name; the name ends with a colon if a pattern follows."""
