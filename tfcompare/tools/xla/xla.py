"""What the XLA page says of a compiled program: key figures and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.diff import change
from tfcompare.compare.executions import execution_time_us, floats
from tfcompare.compare.utilization import ROOFLINE, roofline_efficiency
from tfcompare.schema import SIDES
from tfcompare.schema.hlo import MOST_UNKNOWN, TRANSFERS
from tfcompare.tools.advice.model import code
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.units import format_delta, format_percent, format_percent_change, format_time_us

if TYPE_CHECKING:
    from collections.abc import Iterable

_US_PER_S = 1e6


def figures(rows: pd.DataFrame) -> list[KeyFigure]:
    """Time per execution, rates and the share of the peak of the program whose instructions `rows` are."""
    found = [
        KeyFigure(
            "Time per execution", "µs", *execution_time_us(rows), "neither",
            "Self time of all its instructions on one device in one execution. Instructions may run at the same time.",
        ),
        KeyFigure(
            "FLOP rate", "FLOP/s", *_both(_rate(rows, "flops", role) for role in SIDES), "neither",
            "Floating-point operations of all its instructions by their self time; unknown if those of more than 1 % "
            "of that time are.",
        ),
        KeyFigure(
            "Bandwidth", "bytes/s", *_both(_rate(rows, "bytes_accessed", role) for role in SIDES), "neither",
            "Bytes that all its instructions read and write at least, by their self time; unknown as the FLOP rate is.",
        ),
        KeyFigure(
            ROOFLINE, "share", *_both(_efficiency(rows, role) for role in SIDES), "neither",
            "Least time that the device's peak FLOP rate and bandwidth allow its instructions, as a share of the time "
            "taken; the Overview's is of all programs in the steps.",
        ),
    ]  # fmt: skip
    return [figure for figure in found if not (np.isnan(figure.baseline) and np.isnan(figure.candidate))]


def _rate(rows: pd.DataFrame, cost: str, role: str) -> float:
    """The cost by self time; unknown if costs or rates of instructions are that take a part of the time, but for
    starting and awaiting transfers."""
    times, costs = floats(rows, "self_time_us", role), floats(rows, cost, role)
    is_transfer = rows["category"].str.endswith(TRANSFERS)
    is_unknown = costs.isna() | (rows[f"bandwidth_bytes_per_s_{role}"].isna() & ~is_transfer)
    if times[is_unknown].sum() > MOST_UNKNOWN * times.sum():
        return np.nan
    return _total(costs) / (_total(times) or np.nan) * _US_PER_S


def _efficiency(rows: pd.DataFrame, role: str) -> float:
    """That of one side's instructions, in a frame with the columns of `hlo_ops`."""
    names = ("self_time_us", "flops", "bytes_accessed", "peak_flops_per_s", "peak_bytes_per_s")
    return roofline_efficiency(pd.DataFrame({name: floats(rows, name, role) for name in names}))


def sentence(rows: pd.DataFrame, name: str, runs: tuple[str, str]) -> str:
    """`jit_f` takes 3.10 ms per execution in `B`, 2.40 ms in `A` (+29.2 %), and the largest change, in Markdown.

    `rows` are the instructions of the program of that name; `runs` are the names of baseline and candidate.
    """
    ours, theirs = execution_time_us(rows)
    program, (baseline, candidate) = code(name), map(code, runs)
    if np.isnan(ours) or np.isnan(theirs):
        time, there = (theirs, candidate) if np.isnan(ours) else (ours, baseline)
        return f"{program} ran only in {there}: {format_time_us(time)} per execution."
    if ours == theirs:
        return f"{program} takes {format_time_us(ours)} per execution in both runs."
    change_text = f" ({format_percent_change(theirs / ours)})" if ours > 0 else ""
    text = (
        f"{program} takes {format_time_us(theirs)} per execution in {candidate}, {format_time_us(ours)} in {baseline}"
    )
    return f"{text}{change_text}{_largest_part(rows, theirs - ours)}."


def _largest_part(rows: pd.DataFrame, delta: float) -> str:
    """`; largest change: fusion.12 (+0.5 ms)`: the instruction that changed most in the direction of the program."""
    changes = change(*(rows[f"execution_time_us_{role}"] for role in SIDES)) * np.sign(delta)
    if changes.max() <= 0:
        return ""
    name = rows["hlo_op"].iloc[int(changes.argmax())]
    return f"; largest change: {code(name)} ({format_delta(float(changes.max() * np.sign(delta)), 'µs')})"


def sentence_alone(rows: pd.DataFrame, name: str) -> str:
    """`jit_f` takes 784 ms per execution. Longest instruction: `copy-done.4` (24.8 %), in Markdown."""
    times = rows["execution_time_us_baseline"]
    total = _total(times)
    longest = code(rows["hlo_op"].iloc[int(times.argmax())])
    share = format_percent(float(times.max()) / total) if total > 0 else "0 %"
    return f"{code(name)} takes {format_time_us(total)} per execution. Longest instruction: {longest} ({share})."


def _total(cells: pd.Series) -> float:
    return float(cells.sum(min_count=1))


def _both(values: Iterable[float]) -> tuple[float, float]:
    ours, theirs = values
    return ours, theirs
