"""What a metric is, and how its values, change and interval are made from times or from exact figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from tfcompare.compare.matching.overlap import OTHERS
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.compare.spreads import spread_of_steps, spread_on
from tfcompare.compare.stats.change_test import ChangeTest, Level
from tfcompare.compare.stats.estimates import Changes, Estimates, Times, estimates
from tfcompare.compare.stats.verdict import LESS, MORE, REPLICATES, SAME, UNTESTED, Verdict, words
from tfcompare.compare.steps.step_time_verdict import time_verdict
from tfcompare.compare.utilization import Cost, instructions_in_steps, unknown_share
from tfcompare.schema.hlo import MOST_UNKNOWN
from tfcompare.text import close_matches, did_you_mean, some_of
from tfcompare.units import format_percent

if TYPE_CHECKING:
    from tfcompare.run import Run

TIME, BYTES, COUNT, FLOPS, RATE, SHARE = "µs", "bytes", "", "FLOP", "steps/s", "share"
FLOP_RATE, BANDWIDTH = "FLOP/s", "bytes/s"
EXACTLY = "compared exactly"

ROUNDING = 1e-9
"""Counts per step are quotients, and FLOPs are sums of them."""

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
    """A metric of both runs in `unit` (`µs`, `bytes`, `FLOP`, `steps/s`, `FLOP/s`, `bytes/s`, `share`, or empty for a
    count), NaN if unknown.

    `verdict`: the change from baseline to candidate, with an interval of width 0 if it is exact; `level`: the value of
    the candidate alone; `is_missing`: neither run has the data for the metric, as the reasons explain; `samples`: what
    a time was estimated from, None for anything else; `kind`: the kind of the steps, if it is of one of several.
    """

    unit: str
    baseline: float
    candidate: float
    verdict: Verdict
    level: Level
    is_missing: bool = False
    samples: Samples | None = None
    kind: str = ""


@dataclass(frozen=True)
class Metric:
    """A metric: its syntax (`form`), the `unit` of its values, and the function that computes it.

    `measure` takes the two runs and the pattern after the colon; `in_each_kind`, which is used where it finds anything,
    gives the metric in each kind of step, where there are several.
    """

    form: str
    unit: str
    measure: Callable[[Pair, str], Measured]
    in_each_kind: Callable[[Pair], list[Measured]] = lambda _: []


def time_result(
    pair: Pair,
    ours: Sequence[Times],
    theirs: Sequence[Times],
    of: str,
    *,
    place: str = "",
    estimate: Callable[[Times], Estimates] = estimates,
) -> Measured:
    """A time of each capture of both sides, tested for a change, with an interval.

    `of` names what was timed, such as `steps`; `place`: what it is the work of, a host or devices, or empty for steps;
    `estimate` is as for `ChangeTest`.
    """
    spread = spread_on(pair, place) if place else spread_of_steps(pair)
    return tested(pair, ours, theirs, ChangeTest(spread, estimate, of, can_be_absent=True))


def tested(pair: Pair, ours: Sequence[Times], theirs: Sequence[Times], test: ChangeTest, kind: str = "") -> Measured:
    """As `time_result`, by this test; of the steps of one `kind`, if it is given."""
    test = pair.in_series(test, ours)
    verdict = time_verdict(pair, (ours, theirs), test)
    samples = Samples(test.of, (min(t.steps for t in ours), min(t.steps for t in theirs)), test.min_steps)
    return Measured(TIME, test.value(ours), test.value(theirs), verdict, test.level(theirs), samples=samples, kind=kind)


def by_time(unit: str, amounts: tuple[float, float], found: Measured) -> Measured:
    """What each side does by the time in µs that was found for it; the verdict is on the time at equal amounts."""
    (ours, theirs), time, level = amounts, found.verdict, found.level
    change = 1.0 if math.isclose(ours, theirs, rel_tol=ROUNDING) else per(theirs, ours)
    reason = f"from the time that it takes: {time.reason}" if time.has_interval else time.reason
    ratio, low, high = (per(change, of) for of in (time.ratio, time.high, time.low))
    with_strays = None if time.ratio_with_strays is None else per(change, time.ratio_with_strays)
    word = time.word if change == 1 or not time.has_interval else word_at(change, time)
    verdict = replace(time, word=word, reason=reason, ratio=ratio, low=low, high=high, ratio_with_strays=with_strays)
    value, low, high = (per(theirs, of) for of in (level.value, level.high, level.low))
    with_strays = None if level.with_strays is None else per(theirs, level.with_strays)
    of_candidate = Level(value, low, high, level.reason, with_strays)
    before, after = per(ours, found.baseline), per(theirs, found.candidate)
    return Measured(unit, before, after, verdict, of_candidate, samples=found.samples)


def word_at(change: float, time: Verdict) -> str:
    """The verdict on the time, had the candidate done as much as the baseline and not `change` times as much."""
    with_strays = time.ratio if time.ratio_with_strays is None else time.ratio_with_strays
    ratio, low, high, strays = (np.array([of / change]) for of in (time.ratio, time.low, time.high, with_strays))
    unused = np.full(1, math.nan)
    found = Changes(ratio, low, high, unused, (unused, unused), unused, unused, strays, unused)
    return str(words(found, measured_spread=time.evidence == REPLICATES)[0])


def per(number: float, us: float) -> float:
    """A rate, infinite in no time."""
    return number / us if us else math.inf


def count_result(unit: str, before: float, after: float, reason: str, of_candidate: float | None = None) -> Measured:
    """An exactly known metric, with an interval of width 0."""
    of_candidate = after if of_candidate is None else of_candidate
    known = Level(of_candidate, of_candidate, of_candidate, reason)
    if math.isnan(before) or math.isnan(after):
        return Measured(unit, before, after, Verdict(UNTESTED, reason), known)
    is_same = math.isclose(after, before, rel_tol=ROUNDING)
    ratio = 1.0 if is_same else after / before if before else math.inf
    word = SAME if is_same else MORE if after > before else LESS
    return Measured(unit, before, after, Verdict(word, reason, ratio, ratio, ratio), known)


def untested_result(unit: str, reason: str) -> Measured:
    """A metric that could not be measured, for this reason."""
    nothing = math.nan
    return Measured(unit, nothing, nothing, Verdict(UNTESTED, reason), Level(nothing, nothing, nothing, reason))


def missing(unit: str, reason: str) -> Measured:
    """A metric that neither run has the data for, for this reason."""
    return replace(untested_result(unit, reason), is_missing=True)


def why_unrecorded(side: Side) -> str:
    """Why a side has no record of what ran on devices; empty if it has."""
    captures = zip(side.runs, side.hosts, strict=True)
    return next((run.why_untimed for run, host in captures if not run.tables.has_recorded_devices(host)), "")


def unknown_time(pair: Pair, cost: Cost) -> str:
    """That instructions of unknown cost take a part of the time, if they do on either side."""

    def share(run: Run, host: str | None) -> float:
        return unknown_share(instructions_in_steps(run, host), [cost])

    shares = [found for side in pair.sides for found in side.each(share) if found > MOST_UNKNOWN]
    return f": {format_percent(max(shares))} of the device time has no known cost" if shares else ""


def nothing_like(pattern: str, what: str, kind: str, known: Iterable[str]) -> str:
    """A sentence that nothing matches, with similar names from `known` as suggestions, or else a few of them."""
    known = [name for name in known if name and not name.endswith(OTHERS)]
    if not pattern or not known:
        return f"neither run has a record of {kind}"
    around = f"*{pattern.casefold()}*"
    holding = sorted((name for name in known if fnmatchcase(name.casefold(), around)), key=len)
    meant = holding[:_MOST_MEANT] or close_matches(pattern.strip("*?"), known, _MOST_MEANT)
    told = did_you_mean(meant) or f"; there are: {some_of(map(repr, known), _MOST_LISTED)}"
    return f"neither run has {what} matches {pattern!r}{told}"


def who_lacks(baseline: bool, candidate: bool) -> str:
    """The beginning of a sentence on what neither side, or one of them, lacks."""
    if baseline and candidate:
        return "neither run has a"
    return f"the {'baseline' if baseline else 'candidate'} has no"
