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
from tfcompare.compare.tf_data.call_verdicts import slowest_calls
from tfcompare.compare.utilization import Cost, instructions_in_steps, time_at_peak_us, unknown_share
from tfcompare.schema import DEVICE, HOST, KERNEL_STATS, SIDES
from tfcompare.schema.arrays import Floats
from tfcompare.schema.hlo import MOST_UNKNOWN
from tfcompare.tables.step_times import StepCells
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
    return _time_result(pair, ours, theirs, "steps")


def _step_time_quantile(share: float) -> Callable[[Pair, str], Measured]:
    """A quantile of the included steps."""

    def measure(pair: Pair, _: str) -> Measured:
        ours, theirs = (side.step_times_us for side in pair.sides)
        return _time_result(pair, ours, theirs, "steps", estimate=partial(quantile_estimates, share=share))

    return measure


def _throughput(pair: Pair, _: str) -> Measured:
    """Steps per second, from the start of each step to that of the next; on the straggler of several hosts."""
    if not all(side.all_have_steps for side in pair.sides):
        return _untested_result(RATE, no_steps(*pair.sides).reason)
    ours, theirs = (_window_times(side, "periods_us") for side in pair.sides)
    return _by_time(RATE, (_US_PER_S, _US_PER_S), _time_result(pair, ours, theirs, "step periods", place=HOST))


def _share_of_peak(cost: Cost) -> Callable[[Pair, str], Measured]:
    """What a step does by what the device could do in its time."""

    def measure(pair: Pair, _: str) -> Measured:
        if not all(side.all_have_step_times for side in pair.sides):
            return _untested_result(SHARE, no_steps(*pair.sides).reason)
        needed = [side.mean_per_step(partial(time_at_peak_us, cost=cost)) for side in pair.sides]
        lacking = list(map(math.isnan, needed))
        if all(lacking):
            reason = "neither run has compiled programs of known cost on a device whose peak is known"
            return _missing(SHARE, reason + _unknown_time(pair, cost))
        ours, theirs = (side.step_times_us for side in pair.sides)
        found = _by_time(SHARE, (needed[0], needed[1]), _time_result(pair, ours, theirs, "steps"))
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
    ratio, low, high = (_per(change, of) for of in (time.ratio, time.high, time.low))
    with_strays = None if time.ratio_with_strays is None else _per(change, time.ratio_with_strays)
    verdict = replace(time, reason=reason, ratio=ratio, low=low, high=high, ratio_with_strays=with_strays)
    value, low, high = (_per(theirs, of) for of in (level.value, level.high, level.low))
    with_strays = None if level.with_strays is None else _per(theirs, level.with_strays)
    of_candidate = Level(value, low, high, level.reason, with_strays)
    before, after = _per(ours, found.baseline), _per(theirs, found.candidate)
    return Measured(unit, before, after, verdict, of_candidate, samples=found.samples)


def _per(number: float, us: float) -> float:
    return number / us if us else math.inf


def _window_times(side: Side, series: str) -> list[Times]:
    """A series of the window of each capture, per iteration; empty for a capture without one."""
    windows = side.each(window_of)
    return [Times.of(np.zeros(0) if w is None else getattr(w.per(side.iterations), series)) for w in windows]


def _time_between_steps(pair: Pair, _: str) -> Measured:
    """The time between steps, per step; on the straggler if there are several hosts."""
    if not all(side.all_have_step_times for side in pair.sides):
        return _untested_result(TIME, no_steps(*pair.sides).reason)
    ours, theirs = (_window_times(side, "gaps_us") for side in pair.sides)
    return _time_result(pair, ours, theirs, "gaps between steps", place=HOST)


def _input_latency(pair: Pair, _: str) -> Measured:
    """The mean call of each side's slowest pipeline on the host."""
    every = map(slowest_calls, pair.sides)
    ours, theirs = ([Times.of(np.zeros(0) if one is None else one[1]) for one in of_side] for of_side in every)
    if not ours[0].steps and not theirs[0].steps:
        return _missing(TIME, "neither run has calls of an input pipeline of tf.data")
    return _time_result(pair, ours, theirs, "calls", place=HOST)


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
        return _count_result(BYTES, _largest(ours), _largest(theirs), reason)
    shared = ours.index.intersection(theirs.index)
    if shared.empty:
        beside = f"{EXACTLY}: {ours.idxmax()} beside {theirs.idxmax()}, since the runs have no memory in common"
        return _count_result(BYTES, _largest(ours), _largest(theirs), beside)
    left_out = sorted(ours.index.symmetric_difference(theirs.index))
    reason = f"{EXACTLY}, without {', '.join(left_out)}, which only one run has" if left_out else EXACTLY
    return _count_result(BYTES, _largest(ours[shared]), _largest(theirs[shared]), reason, of_candidate=_largest(theirs))


def _memory_growth(pair: Pair, _: str) -> Measured:
    """The slope of the memory that grows most; 0 where its interval includes no growth."""
    ours, theirs = (growth_of(side.run, side.host) for side in pair.sides)
    if ours is None and theirs is None:
        return _missing(BYTES, f"neither run has a record of memory over {FEWEST_STEPS} steps or more")
    before, after = (math.nan if one is None else one.bytes_per_step if one.low > 0 else 0.0 for one in (ours, theirs))
    if ours is None or theirs is None:
        lacks = _who_lacks(ours is None, theirs is None)
        return _count_result(BYTES, before, after, f"{lacks} record of memory over {FEWEST_STEPS} steps or more")
    ends = " to ".join(map(format_bytes, (theirs.low, theirs.high)))
    return _count_result(BYTES, before, after, f"slope over {theirs.steps} steps, 95 % confidence interval {ends}")


def _peaks(side: Side) -> pd.Series:
    """The peak of each memory in the median capture; the largest if several hosts have a memory of that name."""
    memories = side.each(lambda run, host: run.table("memory_summary", host=host))
    peaks = [of_capture.groupby("memory_id")["peak_bytes"].max() for of_capture in memories]
    return pd.concat(peaks, axis=1).quantile(0.5, axis=1, interpolation="lower")


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
        return _count_result(COUNT, before, after, f"{_who_lacks(*lacking)} record of kernels")
    is_known = all(side.all_have_steps for side in pair.sides)
    measured = _count_result(COUNT, before, after, EXACTLY if is_known else no_steps(*pair.sides).reason)
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
            return _missing(TIME, _nothing_like(pattern, what, kind, known))
    on_host = [
        (m["host_or_device"] == HOST).to_numpy() if "host_or_device" in m else np.zeros(len(m)) for m in matching
    ]
    unrecorded = ["", ""] if all(of_side.all() for of_side in on_host) else list(map(_why_unrecorded, pair.sides))
    why = "; ".join(f"the {name}: {reason}" for name, reason in zip(SIDES, unrecorded, strict=True) if reason)
    if unrecorded[1]:
        return _untested_result(TIME, why)
    lost = pair.lost_events()["op_name"]
    if any(m["op_name"].isin(lost).any() for m in matching):
        return _untested_result(
            TIME, "a capture lost events of what matches: the same program ran it less often on one side"
        )
    lacking = [not len(of_side) for of_side in keys]
    if any(lacking) and not why:
        return _untested_result(TIME, f"{_who_lacks(*lacking)} record of {kind} in any step")
    if not has_any:
        return _untested_result(TIME, f"in no step of either run there is {what} matches {pattern!r}")

    def weights(side: Side, position: int, rows: pd.DataFrame) -> Floats:
        return pair.shares(table, rows, side, position) * _matching(rows, names, pattern)

    ours, theirs = (_sum_up(side, cells, weights) for side, cells in zip(pair.sides, every, strict=True))
    place = HOST if any(of_side.any() for of_side in on_host) else DEVICE
    measured = _time_result(pair, *_in_main_kind(pair, ours, theirs), place=place)
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


def _time_result(
    pair: Pair,
    ours: Sequence[Times],
    theirs: Sequence[Times],
    of: str,
    *,
    place: str = "",
    estimate: Callable[[Times], Estimates] = estimates,
) -> Measured:
    test = pair.in_series(
        ChangeTest(pair.spread_on(place) if place else pair.spread_of_steps, estimate, of, can_be_absent=True), ours
    )
    verdict = time_verdict(pair.sides, (ours, theirs), test)
    samples = Samples(of, (min(t.steps for t in ours), min(t.steps for t in theirs)), test.min_steps)
    return Measured(TIME, test.value(ours), test.value(theirs), verdict, test.level(theirs), samples=samples)


def _count_result(unit: str, before: float, after: float, reason: str, of_candidate: float | None = None) -> Measured:
    """An exactly known metric, with an interval of width 0."""
    of_candidate = after if of_candidate is None else of_candidate
    known = Level(of_candidate, of_candidate, of_candidate, reason)
    if math.isnan(before) or math.isnan(after):
        return Measured(unit, before, after, Verdict(UNTESTED, reason), known)
    ratio = 1.0 if after == before else after / before if before else math.inf
    word = SAME if after == before else MORE if after > before else LESS
    return Measured(unit, before, after, Verdict(word, reason, ratio, ratio, ratio), known)


def _untested_result(unit: str, reason: str) -> Measured:
    nothing = math.nan
    return Measured(unit, nothing, nothing, Verdict(UNTESTED, reason), Level(nothing, nothing, nothing, reason))


def _missing(unit: str, reason: str) -> Measured:
    return replace(_untested_result(unit, reason), is_missing=True)


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


_KERNEL_TIME = partial(_rows_time, table="kernel_stats", names=("kernel_name",), what="a kernel whose name")
_OP_TIME = partial(_rows_time, table="op_stats", names=("op_name", "op_type"), what="an op whose name or type")

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
    "op:": Metric("op:PATTERN", TIME, _OP_TIME),
    "kernel:": Metric("kernel:PATTERN", TIME, _KERNEL_TIME),
}
"""All metrics by name; the name ends with a colon if a pattern follows."""
