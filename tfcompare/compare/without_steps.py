"""What a comparison of runs without step times leads with: time per execution of a program, else per device."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.executions import programs
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.headline import IN_MULTIPLES_FROM, knows_step_time
from tfcompare.compare.per_device import computing_devices
from tfcompare.compare.stats.verdict import IDENTICAL
from tfcompare.schema import DEVICE, SIDES
from tfcompare.units import format_percent_change, format_ratio, format_time_us

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair

_LEAST_MATCHED = 0.5
"""Of other work, the time of each device says nothing: most of both runs' time is in ops that both have."""


def leading_sentence(pair: Pair, names: tuple[str, str]) -> str:
    """Markdown such as "`jit_f` takes 2.40 ms per execution in B, 3.10 ms in A (−22.6 %), on 8 devices and 1."

    Of the programs that both runs ran, the longest; without any, the time that ops take of each device, if the runs
    have most of it in common and computed on different numbers of devices; else nothing, as for runs that both have
    steps and for copies of one capture. `names` are those of baseline and candidate in Markdown.
    """
    if all(knows_step_time(run.info) for run in pair.runs) or pair.verdict == IDENTICAL:
        return ""
    ours, theirs = (computing_devices(side.run, side.host) for side in pair.sides)
    devices = f", on {theirs:,} device{'s' * (theirs > 1)} and {ours:,}" if ours != theirs else ""
    program = pair.longest_program
    if program is None and not devices:
        return ""
    if program is None:
        before, after = _time_of_each_device(pair)
        what, unit = "Ops take", "of each device"
    else:
        before, after = program.baseline_us, program.candidate_us
        others = f", the longest of {program.of:,} programs," if program.of > 1 else ""
        what, unit = f"`{program.name}`{others} takes", "per execution"
    if not (before > 0 and after > 0):
        return ""
    return (f"{what} {format_time_us(after)} {unit} in {names[1]}, {format_time_us(before)} in {names[0]} "
            f"({_change(before, after)}){devices}.")  # fmt: skip


class Execution(NamedTuple):
    """An XLA program that two runs ran: its name, its time per execution in both, and how many programs both ran."""

    name: str
    baseline_us: float
    candidate_us: float
    of: int


def longest_program(pair: Pair) -> Execution | None:
    """The XLA program that took both runs the most time; None if they have none in common."""
    rows = pair.instructions()
    if rows.empty:
        return None
    both = programs(rows)
    both = both[(both[[f"execution_time_us_{side}" for side in SIDES]] > 0).all(axis=1)]
    if both.empty:
        return None
    first = both.iloc[0]
    ours, theirs = (float(first[f"execution_time_us_{side}"]) for side in SIDES)
    return Execution(str(first["label"]), ours, theirs, len(both))


def _time_of_each_device(pair: Pair) -> tuple[float, float]:
    """The self time of all ops on devices, in µs, which is of each device where their numbers differ; 0 if most of it
    is in ops of one run."""
    diff = without_idle(pair.diff())
    ops = diff[diff["host_or_device"] == DEVICE]
    times = ops[[f"self_time_us_{side}" for side in SIDES]].astype("float64").fillna(0.0)
    if (times[ops["status"] == MATCHED].sum() < _LEAST_MATCHED * times.sum()).any():
        return 0.0, 0.0
    before, after = (float(ops[f"self_time_us_{side}"].sum()) for side in SIDES)
    return before, after


def _change(before: float, after: float) -> str:
    ratio = after / before
    if 1 / IN_MULTIPLES_FROM < ratio < IN_MULTIPLES_FROM:
        return format_percent_change(ratio)
    return format_ratio(ratio)
