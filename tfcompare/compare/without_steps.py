"""What a comparison of runs without step times leads with: time per execution of a program, else per device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.aggregate import SIDES, metric_in, without_idle
from tfcompare.compare.executions import execution_time_us, instructions_of, of_program, programs
from tfcompare.compare.per_device import computing_devices
from tfcompare.schema import DEVICE
from tfcompare.units import format_percent_change, format_ratio, format_time_us

if TYPE_CHECKING:
    from tfcompare.compare.comparison import Comparison
    from tfcompare.run import Run

_IN_MULTIPLES_FROM = 1.5
"""The change of a time as a factor reads better than as a percentage from here on, as in headlines."""


def leading_sentence(comparison: Comparison, candidate: Run, names: tuple[str, str]) -> str:
    """Markdown such as "`jit_f` takes 2.40 ms per execution in B, 3.10 ms in A (−22.6 %), on 8 devices and 1."

    Of the programs that both runs ran, the longest; without any, the time that ops take of each device, if the runs
    computed on different numbers of devices, else nothing. `names` are those of baseline and candidate in Markdown.
    """
    runs = comparison.baseline, candidate
    ours, theirs = (computing_devices(run, comparison.host_of(run)) for run in runs)
    devices = f", on {theirs:,} device{'s' * (theirs > 1)} and {ours:,}" if ours != theirs else ""
    rows = instructions_of(comparison, candidate)
    for program in programs(rows).itertuples() if len(rows) else ():
        before, after = execution_time_us(of_program(rows, str(program.program_key)))
        if before > 0 and after > 0:
            change = _change(before, after)
            return (f"`{program.label}` takes {format_time_us(after)} per execution in {names[1]}, "
                    f"{format_time_us(before)} in {names[0]} ({change}){devices}.")  # fmt: skip
    if not devices:
        return ""
    diff = without_idle(comparison.table("op_stats"))
    ops = diff[(diff["candidate"] == candidate.id) & (diff["host_or_device"] == DEVICE)]
    metric = metric_in(ops, "self_time_us")
    before, after = (float(ops[f"{metric}_{side}"].sum()) for side in SIDES)
    if comparison.per != "device":
        before, after = before / ours, after / theirs
    if not (before > 0 and after > 0):
        return ""
    return (f"Ops take {format_time_us(after)} of each device in {names[1]}, {format_time_us(before)} in {names[0]} "
            f"({_change(before, after)}){devices}.")  # fmt: skip


def _change(before: float, after: float) -> str:
    ratio = after / before
    if 1 / _IN_MULTIPLES_FROM < ratio < _IN_MULTIPLES_FROM:
        return format_percent_change(ratio)
    return format_ratio(ratio)
