"""Sentences on a pair of runs that several pages show, in Markdown."""

from __future__ import annotations

from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.compare.table_diff import overlap
from tfcompare.text import as_code, capitalized
from tfcompare.units import format_percent

DIFFERENT_PROGRAMS = "Different programs: there is nothing to compare"
WHAT_TO_CHOOSE = "Choose two runs of one program, or open each run alone."


def time_in_common(pair: Pair, names: tuple[str, str]) -> str:
    """`Ops of both take 0.12 % of the device time in A and 11.4 % in B.`; `names` are those of the runs in Markdown."""
    found = overlap(pair)
    before, after = map(format_percent, found.shares)
    what = "device time" if found.on_devices else "time of all ops"
    return f"Ops of both take {before} of the {what} in {names[0]} and {after} in {names[1]}."


def sums_per(pair: Pair) -> str:
    """What sums of ops are per: `step`, or `step, all hosts together`."""
    several = pair.host is None and any(len(run.host_names) > 1 for run in pair.runs)
    return f"{pair.per_what}{', all hosts together' if several else ''}"


def not_compared(pair: Pair) -> str:
    """A Markdown sentence on why what ran on devices is not compared; empty if it is, or for a run alone."""
    lacking = [name for name, side in zip(pair.marked, pair.sides, strict=True) if not _has_devices(side)]
    if pair.is_single or not lacking:
        return ""
    have = "have" if len(lacking) > 1 else "has"
    return f"What ran on devices is not compared: {' and '.join(lacking)} {have} no record of it."


def why_not_compared(pair: Pair) -> str:
    """`not_compared`, and why: for pages that have nothing else."""
    why = next((side.run.why_untimed for side in pair.sides if not _has_devices(side)), "")
    return f"{not_compared(pair)} {capitalized(why)}." if not_compared(pair) else ""


def stand_ins(pair: Pair) -> str:
    """A Markdown sentence on the captures that stand for all of their sides where nothing can be pooled; empty
    without replicates."""
    of_several = [
        f"{as_code(run.found.name)} for {name}"
        for name, called, (side, run) in zip(pair.marked, pair.called, pair.shown, strict=False)
        if len(side.runs) > 1 and run.found.name != called
    ]
    return f"Of several captures, one is shown: {' and '.join(of_several)}." if of_several else ""


def _has_devices(side: Side) -> bool:
    return side.run.tables.has_recorded_devices(side.host)
