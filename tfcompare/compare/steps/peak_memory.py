"""The peak memory of a run, and of its steps of one kind: as it was allocated, and as XLA planned it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.pooling import median_of
from tfcompare.compare.steps.step_kinds import are_by_marker, included_steps
from tfcompare.schema.hlo import MAIN_MEMORY
from tfcompare.tables.step_kinds import LEAST_SHARE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run

OF_RUN = "peak memory"
"""The largest peak of any memory within the profile."""
ALLOCATED = "allocated memory"
"""The most in use after any allocation in the steps of a kind."""
PLANNED = "XLA's buffers"
"""The largest peak that XLA planned for a program that runs in the steps of a kind."""


@dataclass(frozen=True)
class PeakMemory:
    """The peak memory of baseline and candidate in bytes, of the median capture each, and what was measured."""

    measured: str
    peaks: tuple[float, float]


def peak_bytes(run: Run, host: str | None) -> float:
    """The largest peak of any memory within the profile, of all hosts or of one; NaN if unknown."""
    summary = run.table("memory_summary", host=host)
    return float(summary["peak_bytes"].max()) if len(summary) else math.nan


def filled_share(run: Run, host: str | None) -> float:
    """The largest share of its capacity that any memory has in use at its peak; NaN if unknown."""
    summary = run.table("memory_summary", host=host)
    return float((summary["peak_bytes"] / summary["capacity_bytes"].where(summary["capacity_bytes"] > 0)).max())


def planned_bytes(run: Run, host: str | None) -> float:
    """The largest peak of device memory that XLA planned for a program of a run, or of a host; NaN without any."""
    return float(_planned_peaks(run, host).max())


def peak_memory_of_steps(pair: Pair, kind: str = "") -> PeakMemory | None:
    """The peak memory in the steps of a kind; `kind` is empty where the steps of both runs are all of one.

    Of a kind among several, JAX tells XLA's buffers, since its programs are all of a step and what they allocate may be
    in use when the next step begins. TensorFlow may compile parts of a step, and allocates within it. None where
    neither is known of both sides.
    """
    measures: dict[str, Callable[[Run, str | None], float]] = {
        PLANNED: partial(_planned_in_steps, pair, kind),
        ALLOCATED: partial(_allocated_in_steps, pair, kind),
    }
    if not kind:
        measures = {OF_RUN: peak_bytes, PLANNED: measures[PLANNED]}
    elif any(run.info.framework != "JAX" for run in pair.runs):
        measures = dict(reversed(measures.items()))
    for measured, measure in measures.items():
        ours, theirs = (median_of(side.each(measure)) for side in pair.sides)
        if ours > 0 and theirs > 0:
            return PeakMemory(measured, (ours, theirs))
    return None


def instructions_in_steps(run: Run, host: str | None, steps: pd.Series) -> pd.DataFrame:
    """The instructions that ran in steps of these numbers: the columns `host`, `program`, `hlo_op`, `op_name` and
    `is_rematerialized` of `hlo_ops`, with `step` and `self_time_us`, of programs that run in `LEAST_SHARE` of them."""
    names = ["host", "program", "hlo_op", "op_name", "is_rematerialized"]
    cells = run.tables.cells_in_steps("hlo_cells", host=host)
    cells = cells[cells["step"].isin(steps) & (cells["executions"] > 0)]
    ran = run.table("hlo_ops", host=host)[names].iloc[cells["row"]].reset_index(drop=True)
    ran = ran.assign(step=cells["step"].to_numpy(), self_time_us=cells["self_time_ps"].to_numpy() / 1e6)
    of_program = ran.groupby(["host", "program"])["step"].transform("nunique")
    return ran[of_program >= LEAST_SHARE * len(steps)]


def steps_of_kind(pair: Pair, run: Run, host: str | None, kind: str) -> pd.Series:
    """The numbers of the included steps of a capture that are of a kind; of all where it is empty, or the chosen
    one."""
    steps = included_steps(run, host, are_by_marker(*pair.runs))
    is_all = kind in ("", run.choice.kind)
    return steps["step"] if is_all else steps.loc[steps["kind"] == kind, "step"]


def _planned_in_steps(pair: Pair, kind: str, run: Run, host: str | None) -> float:
    """The largest peak of device memory that XLA planned for a program that runs in the steps; NaN without any."""
    peaks = _planned_peaks(run, host)
    if peaks.empty:
        return math.nan
    ran = instructions_in_steps(run, host, steps_of_kind(pair, run, host, kind))
    programs = pd.MultiIndex.from_frame(ran[["host", "program"]].drop_duplicates())
    return float(peaks[peaks.index.isin(programs)].max())


def _planned_peaks(run: Run, host: str | None) -> pd.Series:
    """The peak of device memory that XLA planned for each program, in bytes, by `host` and `program`."""
    buffers = run.table("hlo_memory", host=host)
    live = buffers[buffers["is_live_at_peak"].astype(bool) & (buffers["memory_space"] == MAIN_MEMORY)]
    return live.groupby(["host", "program"])["size_bytes"].sum()


def _allocated_in_steps(pair: Pair, kind: str, run: Run, host: str | None) -> float:
    """The most that any memory has in use after an allocation or deallocation in the steps; NaN without any."""
    if run.table("memory_summary", host=host).empty:
        return math.nan
    steps = steps_of_kind(pair, run, host, kind).to_numpy()
    common_steps, most = run.tables.common_steps if host is None else None, [math.nan]
    for name, events in run.tables.memory_events(host=host):
        number = events.step if common_steps is None else common_steps(name, events.step)
        in_use = events.in_use_bytes[events.in_step & np.isin(number, steps)]
        most.append(float(in_use.max()) if in_use.size else math.nan)
    return float(np.fmax.reduce(most))
