"""What the XLA page shows of compiled programs: their instructions per execution, key figures, a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.aggregate import compared, metric_in
from tfcompare.compare.diff import ADDED, REMOVED, change
from tfcompare.hlo.names import plain_program
from tfcompare.schema.hlo import TRANSFERS
from tfcompare.tools.advice.model import code
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.tools.op_stats import ROLES
from tfcompare.units import format_delta, format_percent, format_percent_change, format_time_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ONLY_THERE = "+"
"""Before the key of a program that only the candidate has."""
_MOST_ABOVE_FEWEST = 1.5
_US_PER_S = 1e6


def instructions(ops: pd.DataFrame, programs: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """The rows of a diff of `hlo_ops`, with their program and their times per execution of it.

    `programs` maps the candidate's matched programs, (host, program), to the baseline's. Adds `program_key`, the
    baseline's program (that of the candidate after `ONLY_THERE` if only that has it), and for both sides, with `_delta`
    and `_ratio`:

    - `program_executions`: how often the program ran, over all devices and hosts, in the unit of the diff.
    - `execution_time_us`: self time ÷ `program_executions`; a program's rows add up to its time per execution.
    - `excess_us`: the part of it above the least time that the device's peaks allow; missing where unknown.
    """
    keys = _program_keys(ops, programs)
    rows = ops.assign(program_key=keys)
    of_side: dict[str, list[pd.Series]] = {"program_executions": [], "execution_time_us": [], "excess_us": []}
    for role in ROLES:
        executions = keys.map(_executions(rows, role)).astype("float64")
        times = _floats(rows, "self_time_us", role)
        excess = (times - least_time_us(rows, role)).clip(lower=0.0)
        is_there = rows["status"] != (ADDED if role == "baseline" else REMOVED)
        of_side["program_executions"].append(executions.where(is_there))
        of_side["execution_time_us"].append(times / executions)
        of_side["excess_us"].append(excess / executions)
    columns = {name: cell for metric, sides in of_side.items() for name, cell in compared(metric, *sides).items()}
    return rows.assign(**columns)


def least_time_us(rows: pd.DataFrame, role: str) -> pd.Series:
    """The least time, in µs, in which the instructions could run at the device's peaks; NaN where unknown."""
    flops, moved = (_floats(rows, name, role) for name in ("flops", "bytes_accessed"))
    least = np.maximum(flops / rows[f"peak_flops_per_s_{role}"], moved / rows[f"peak_bytes_per_s_{role}"])
    is_known = rows[f"bound_by_{role}"].fillna("") != ""
    return pd.Series(least * _US_PER_S, rows.index).where(is_known)


def _program_keys(ops: pd.DataFrame, programs: Mapping[tuple[str, str], str]) -> pd.Series:
    """The program of each row: the baseline's name of it if it has the program."""
    cells = zip(*(ops[name].tolist() for name in ("host", "program", "status")), strict=True)
    keys = [
        programs.get((host, program), f"{ONLY_THERE}{program}") if status == ADDED else program
        for host, program, status in cells
    ]
    return pd.Series(keys, ops.index, dtype="str")


def _executions(rows: pd.DataFrame, role: str) -> pd.Series:
    """How often each program ran, by its key, summed over hosts."""
    counts = rows[["program_key", "host"]].assign(count=_floats(rows, "executions", role))
    return usual_counts(counts[counts["count"] > 0]).groupby("program_key").sum()


def usual_counts(counts: pd.DataFrame) -> pd.Series:
    """How often each program ran on each host, by `program_key` and `host`: the most frequent of the small counts.

    `counts` has a row for each instruction, with its executions in `count`. Instructions in loops run more often than
    their program; at the ends of a profile, some miss one execution.
    """
    program = ["program_key", "host"]
    fewest = counts.groupby(program)["count"].transform("min")
    outside_loops = counts[counts["count"] < _MOST_ABOVE_FEWEST * fewest]
    each = outside_loops.groupby([*program, "count"], as_index=False).size().sort_values(["size", "count"])
    return each.groupby(program)["count"].last()


def programs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each program of `instructions`, the longest first; sums over its instructions.

    Columns: `program_key`; `label`, its name, with its id if others have the same; `share`, of the self time of both
    runs; `self_time_us_*`; `execution_time_us_*`.
    """
    names = [f"{metric}_{role}" for metric in (metric_in(rows, "self_time_us"), "execution_time_us") for role in ROLES]
    sums = rows.groupby("program_key", as_index=False)[names].sum(min_count=1)
    size = sums[names[:2]].sum(axis=1)
    full = sums["program_key"].str.removeprefix(ONLY_THERE)
    plain = full.map(plain_program).astype("str")
    label = plain.mask(plain.duplicated(keep=False), full)
    label = label.mask(label.duplicated(keep=False), sums["program_key"])
    sums = sums.assign(label=label, share=size / (float(size.sum()) or 1.0))
    return sums.sort_values(["share", "program_key"], ascending=[False, True], ignore_index=True)


def of_program(rows: pd.DataFrame, program: str) -> pd.DataFrame:
    """The instructions of one program, those whose time per execution changed most first."""
    here = rows[rows["program_key"] == program]
    sides = [here[f"execution_time_us_{role}"] for role in ROLES]
    order = pd.DataFrame({"change": change(*sides).abs(), "size": pd.concat(sides, axis=1).max(axis=1)}, here.index)
    return here.loc[order.sort_values(["change", "size"], ascending=False, kind="stable").index]


def figures(rows: pd.DataFrame) -> list[KeyFigure]:
    """Time per execution, rates and the share of the peak of the program whose instructions `rows` are."""
    found = [
        KeyFigure(
            "Time per execution", "µs", *execution_time_us(rows), "neither",
            "Self time of all its instructions on one device in one execution. Instructions may run at the same time.",
        ),
        KeyFigure(
            "FLOP rate", "FLOP/s", *_both(_rate(rows, "flops", role) for role in ROLES), "neither",
            "Floating-point operations of all its instructions by their self time; unknown if those of one are.",
        ),
        KeyFigure(
            "Bandwidth", "bytes/s", *_both(_rate(rows, "bytes_accessed", role) for role in ROLES), "neither",
            "Bytes that all its instructions read and write at least, by their self time; unknown if those of one are.",
        ),
        KeyFigure(
            "Share of peak", "share", *_both(_share_of_peak(rows, role) for role in ROLES), "neither",
            "Least time that the device's peak FLOP rate and bandwidth allow, as a share of the time taken. Of the "
            "instructions whose costs are known, on devices whose peaks are known.",
        ),
    ]  # fmt: skip
    return [figure for figure in found if not (np.isnan(figure.baseline) and np.isnan(figure.candidate))]


def execution_time_us(rows: pd.DataFrame) -> tuple[float, float]:
    """The time per execution of the program on both sides; NaN for a side without it."""
    return _both(_total(rows[f"execution_time_us_{role}"]) for role in ROLES)


def _rate(rows: pd.DataFrame, cost: str, role: str) -> float:
    """The cost by self time; unknown if an instruction's cost or rate is, but for starting and awaiting transfers."""
    times = _floats(rows, "self_time_us", role)
    is_transfer = rows["category"].str.endswith(TRANSFERS)
    if (rows[f"bandwidth_bytes_per_s_{role}"].isna() & (times > 0) & ~is_transfer).any():
        return np.nan
    return _total(_floats(rows, cost, role)[times.notna()], skipna=False) / (_total(times) or np.nan) * _US_PER_S


def _share_of_peak(rows: pd.DataFrame, role: str) -> float:
    least = least_time_us(rows, role)
    return _total(least) / (_total(_floats(rows, "self_time_us", role)[least.notna()]) or np.nan)


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
    changes = change(*(rows[f"execution_time_us_{role}"] for role in ROLES)) * np.sign(delta)
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


def _floats(rows: pd.DataFrame, metric: str, role: str) -> pd.Series:
    return rows[f"{metric_in(rows, metric)}_{role}"].astype("float64")


def _total(cells: pd.Series, *, skipna: bool = True) -> float:
    return float(cells.sum(skipna=skipna, min_count=1))


def _both(values: Iterable[float]) -> tuple[float, float]:
    ours, theirs = values
    return ours, theirs
