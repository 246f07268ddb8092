"""The metrics of memory: bytes, compared exactly."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase

import pandas as pd

from tfcompare.compare.check.measured import (
    BYTES,
    EXACTLY,
    Measured,
    count_result,
    missing,
    nothing_like,
    who_lacks,
)
from tfcompare.compare.memory_growth import FEWEST_STEPS, growth_of
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.units import format_bytes


def peak_memory(pair: Pair, pattern: str) -> Measured:
    """The largest peak among the memories that both runs have, or among all if they have none in common."""
    every = [_peaks(side) for side in pair.sides]
    ours, theirs = (peaks[[fnmatchcase(name, pattern or "*") for name in peaks.index]] for peaks in every)
    known = sorted({*every[0].index, *every[1].index})
    if ours.empty and theirs.empty:
        return missing(BYTES, nothing_like(pattern, "a memory that", "memory", known))
    if ours.empty or theirs.empty:
        what = f"a memory that matches {pattern!r}; there are: {', '.join(known)}" if pattern else "memory"
        reason = f"{who_lacks(ours.empty, theirs.empty)} record of {what}"
        return count_result(BYTES, _largest(ours), _largest(theirs), reason)
    shared = ours.index.intersection(theirs.index)
    if shared.empty:
        beside = f"{EXACTLY}: {ours.idxmax()} beside {theirs.idxmax()}, since the runs have no memory in common"
        return count_result(BYTES, _largest(ours), _largest(theirs), beside)
    left_out = sorted(ours.index.symmetric_difference(theirs.index))
    reason = f"{EXACTLY}, without {', '.join(left_out)}, which only one run has" if left_out else EXACTLY
    return count_result(BYTES, _largest(ours[shared]), _largest(theirs[shared]), reason, of_candidate=_largest(theirs))


def memory_growth(pair: Pair, _: str) -> Measured:
    """The slope of the memory that grows most; 0 where its interval includes no growth."""
    ours, theirs = (growth_of(side.run, side.host) for side in pair.sides)
    if ours is None and theirs is None:
        return missing(BYTES, f"neither run has a record of memory over {FEWEST_STEPS} steps or more")
    before, after = (math.nan if one is None else one.bytes_per_step if one.low > 0 else 0.0 for one in (ours, theirs))
    if ours is None or theirs is None:
        lacks = who_lacks(ours is None, theirs is None)
        return count_result(BYTES, before, after, f"{lacks} record of memory over {FEWEST_STEPS} steps or more")
    ends = " to ".join(map(format_bytes, (theirs.low, theirs.high)))
    return count_result(BYTES, before, after, f"slope over {theirs.steps} steps, 95 % confidence interval {ends}")


def _peaks(side: Side) -> pd.Series:
    """The peak of each memory in the median capture; the largest if several hosts have a memory of that name."""
    memories = side.each(lambda run, host: run.table("memory_summary", host=host))
    peaks = [of_capture.groupby("memory_id")["peak_bytes"].max() for of_capture in memories]
    return pd.concat(peaks, axis=1).quantile(0.5, axis=1, interpolation="lower")


def _largest(peaks: pd.Series) -> float:
    return math.nan if peaks.empty else float(peaks.max())
