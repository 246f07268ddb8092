"""What the Overview shows of a pair of runs: its key figures, and each run's largest idle gap."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.comparability import differing_examples
from tfcompare.compare.memory_growth import growth_in
from tfcompare.compare.pooling import mean_of, median_of
from tfcompare.compare.stats.estimates import STEP_TIME as MEANING
from tfcompare.compare.steps.peak_memory import filled_share, peak_bytes, planned_bytes
from tfcompare.compare.steps.step_time_verdict import step_time_us
from tfcompare.compare.utilization import (
    ROOFLINE,
    Cost,
    duty_cycle,
    instructions_in_steps,
    roofline_efficiency,
    time_at_peak_us,
)
from tfcompare.schema import DEVICE_BUSY_PARTS
from tfcompare.units import format_percent, format_time_us
from tfcompare.views.advice.memory_rules import FULL
from tfcompare.views.advice.model import WORTH_IT
from tfcompare.views.input import figures as input_bound
from tfcompare.views.input.figures import on_waiting
from tfcompare.views.key_figures import KeyFigure, better_by, op_times
from tfcompare.views.steps.figures import EXAMPLES, THROUGHPUT, window_figures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run
    from tfcompare.views.advice import Facts

STEP_TIME = "Step time"
PEAK_MEMORY = "Peak memory"
PLANNED_MEMORY = "Planned peak memory"
_DEVICE_BUSY = (
    "Mean time per step in which a device computes, communicates or copies between devices, as in the step breakdown."
)
_SPARSE_CORES_BUSY = (
    "Mean time per step and TPU chip in which any of its SparseCores ran ops; it overlaps with the parts of the step."
)
_DUTY_CYCLE = (
    "The share of the time from its first event to its last in which a device computes, communicates or copies between "
    "devices, in steps and between them."
)
_HOST_COMPUTE = "Mean time per step in which the host computes and nothing else explains the step, as in the breakdown."
_INPUT = "Mean time per step spent waiting for input or copying it to the device."
_OF_PEAK: dict[tuple[str, Cost], str] = {
    ("FLOP utilization", "flops"): "Floating-point operations of compiled programs per step and device, without those "
    "that recompute a value, as a share of what the device could do at its peak in the time of a step.",
    ("Memory bandwidth", "bytes_accessed"): "Bytes that the instructions of compiled programs read and write at least, "
    "per step and device, as a share of what the device's memory could move in the time of a step.",
}
_EFFICIENCY = (
    "The time that the instructions of compiled programs would take at the device's peaks, each limited by compute or "
    "by memory, as a share of the time that they took: how close they are to the roofline."
)
_PEAK = "The largest peak of any memory within the profile."
_GROWTH = (
    "How much more of the memory with the largest peak is in use after each step: the median slope over the steps."
)
_PLANNED = (
    "The peak of device memory that XLA planned for one execution of its largest program, on one host: no allocations "
    "were recorded."
)
LEAST_SHARE = 0.01
"""Of a peak rate: no one tunes a program by what stays below it on both sides, as on a CPU."""


def dashboard(pair: Pair, parts: pd.DataFrame) -> list[KeyFigure]:
    """Step time, throughput, device busy or host compute, input wait, memory and utilization; those that neither run
    has are left out.

    `parts` is the result of `compare.attribution.part_means`. Without steps, op times per run replace the parts.
    """
    ours, theirs = map(step_time_us, pair.sides)
    figures = [
        KeyFigure(STEP_TIME, "µs", ours, theirs, better_by(pair.verdict), MEANING),
        *_throughput(pair),
        *_parts(pair, parts),
        _memory(pair),
        *_growth(pair),
        *_utilization(pair),
    ]
    known = [figure for figure in figures if not (math.isnan(figure.baseline) and math.isnan(figure.candidate))]
    is_full = any(share >= FULL for side in pair.sides for share in side.each(filled_share))
    weighs_memory = pair.is_single or is_full
    return [replace(one, matters=matters(one, (ours, theirs), weighs_memory=weighs_memory)) for one in known]


def matters(figure: KeyFigure, step_us: tuple[float, float], *, weighs_memory: bool) -> bool:
    """Whether a figure is among the first, given the step time of both sides.

    A change that is judged matters; so do a time of `WORTH_IT` of the step on either side, a share of `LEAST_SHARE`,
    throughput unless it is 1 ÷ step time, and memory that changed or where it is weighed anyway. Without step times,
    every figure but an equal size does.
    """
    if figure.label == STEP_TIME or figure.judgement in ("better", "worse"):
        return True
    if figure.unit == "bytes":
        return weighs_memory
    sides = [*zip((figure.baseline, figure.candidate), step_us, strict=True)]
    if figure.unit == "share":
        return any(value >= LEAST_SHARE for value, _ in sides)
    if all(math.isnan(step) for _, step in sides):
        return True
    if figure.label == THROUGHPUT:
        return any(abs(rate * step * 1e-6 - 1) >= WORTH_IT for rate, step in sides)
    return figure.unit != "µs" or any(value >= WORTH_IT * step for value, step in sides)


def _memory(pair: Pair) -> KeyFigure:
    """The peak memory; where no allocations were recorded on either side, what XLA planned."""
    peaks = [median_of(side.each(peak_bytes)) for side in pair.sides]
    if all(map(math.isnan, peaks)):
        ours, theirs = (median_of(side.each(planned_bytes)) for side in pair.sides)
        return KeyFigure(PLANNED_MEMORY, "bytes", ours, theirs, "lower", _PLANNED)
    return KeyFigure(PEAK_MEMORY, "bytes", peaks[0], peaks[1], "lower", _PEAK)


def _utilization(pair: Pair) -> Iterator[KeyFigure]:
    """How much of the time devices are busy, and how much of their peak rates a step uses, where programs tell that."""
    sides, step_us = pair.sides, [*map(step_time_us, pair.sides)]
    for (label, cost), meaning in _OF_PEAK.items():
        at_peak = [side.mean_per_step(partial(time_at_peak_us, cost=cost)) for side in sides]
        ours, theirs = (us / step for us, step in zip(at_peak, step_us, strict=True))
        yield KeyFigure(label, "share", ours, theirs, "neither", meaning)
    ours, theirs = (mean_of(side.each(_roofline_efficiency)) for side in sides)
    yield KeyFigure(ROOFLINE, "share", ours, theirs, "neither", _EFFICIENCY)
    ours, theirs = (mean_of(side.each(duty_cycle)) for side in sides)
    yield KeyFigure("Device duty cycle", "share", ours, theirs, "neither", _DUTY_CYCLE)


def _roofline_efficiency(run: Run, host: str | None) -> float:
    return roofline_efficiency(instructions_in_steps(run, host))


def _growth(pair: Pair) -> Iterator[KeyFigure]:
    """How much more memory is held after each step, if that grows for certain in either run."""
    found = [growth_in(pair, side) for side in pair.sides]
    if any(one is not None and one.is_growth for one in found):
        ours, theirs = (math.nan if one is None else one.bytes_per_step for one in found)
        yield KeyFigure("Memory growth per step", "bytes", ours, theirs, "lower", _GROWTH)


def _throughput(pair: Pair) -> Iterator[KeyFigure]:
    """Steps per second; examples per second where steps handle different numbers of them."""
    figures = {figure.label: figure for figure in window_figures(pair)}
    differ = differing_examples(*pair.runs, (pair.sides[0].host, pair.sides[1].host)) is not None
    if found := figures.get(EXAMPLES if differ else THROUGHPUT):
        yield found


def _parts(pair: Pair, parts: pd.DataFrame) -> list[KeyFigure]:
    """What keeps the step busy, and its wait for input."""
    on_device, on_host = (_mean_us(parts, *names) for names in (DEVICE_BUSY_PARTS, ["host_compute_us"]))
    if any(map(math.isnan, on_host)):
        return [*_execution(pair), *op_times(pair.diff(), pair.per_on)]
    of_devices = pair.device_verdict if pair.main_kind is None else None  # else, it is on the steps of that kind
    types = [side.run.info.device_type for side in pair.sides]
    busy_us = [math.nan if of == "CPU" and not time else time for of, time in zip(types, on_device, strict=True)]
    busy = (
        KeyFigure("Device busy", "µs", busy_us[0], busy_us[1], better_by(of_devices), _DEVICE_BUSY)
        if max(on_device) > 0
        else KeyFigure("Host compute", "µs", *on_host, "neither", _HOST_COMPUTE)
    )
    sparse_cores = [side.mean_per_step(_sparse_cores_busy_us) for side in pair.sides]
    ours, theirs = (input_bound.wait_of_side(side).input_time_us.average for side in pair.sides)
    return [
        busy,
        KeyFigure("SparseCores busy", "µs", sparse_cores[0], sparse_cores[1], "neither", _SPARSE_CORES_BUSY),
        KeyFigure("Input wait", "µs", ours, theirs, better_by(on_waiting(pair)), _INPUT),
    ]


def _sparse_cores_busy_us(run: Run, host: str | None) -> float:
    """The mean over the included steps and chips; NaN where no SparseCore was recorded."""
    if "TPU" not in run.info.device_type:
        return math.nan
    steps = run.table("hosts", host=host)
    return float(steps.loc[steps["included"], "sparse_core_busy_us"].mean())


def _execution(pair: Pair) -> list[KeyFigure]:
    """The time per execution of the longest program of both runs, if they have one."""
    program = pair.longest_program
    if program is None:
        return []
    meaning = f"Self time of all instructions of {program.name} on one device, in one execution of the program."
    return [KeyFigure("Time per execution", "µs", program.baseline_us, program.candidate_us, "neither", meaning)]


def _mean_us(parts: pd.DataFrame, *names: str) -> tuple[float, float]:
    rows = parts[parts["part"].isin(names)]
    return float(rows["mean_us_baseline"].sum(skipna=False)), float(rows["mean_us_candidate"].sum(skipna=False))


def gap_matters(sides: Sequence[Facts]) -> bool:
    """Whether the largest idle gap of a step changed by a part of the step that is worth a change; of a run alone,
    whether it is one."""
    lengths_us = [0.0 if one.gap is None else one.gap.length_us for one in sides]
    before, after = (0.0, *lengths_us)[-2:]
    return abs(after - before) >= WORTH_IT * max(one.step_us for one in sides)


def gap_sentence(facts: Facts) -> str:
    """A Markdown sentence on the run's largest idle gap: its length, and the ops before and after it."""
    gap = facts.gap
    if gap is None or gap.length_us <= 0:
        return "No idle gap recurs in most steps."
    what = "No device is busy" if gap.on_device else "No op runs"
    share = f", {format_percent(gap.length_us / facts.step_us)} of the step" if facts.step_us > 0 else ""
    return f"{what} for {format_time_us(gap.length_us)}{share}, {gap.place}."
