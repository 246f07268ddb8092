"""How much of what a device could do at most a step uses: floating-point operations, and memory bandwidth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from tfcompare.compare.per_device import computing_devices

if TYPE_CHECKING:
    from tfcompare.run import Run

Cost = Literal["flops", "bytes_accessed"]
_PEAKS = {"flops": "peak_flops_per_s", "bytes_accessed": "peak_bytes_per_s"}
_MOST_UNKNOWN = 0.01
"""Of the time of instructions, how much may be in those of unknown cost: the sum is then too small by that order."""
_US_PER_S = 1e6


def time_at_peak_us(run: Run, host: str | None, cost: Cost) -> float:
    """How long a device needs at least for its part of a step, in µs: its cost by the peak rate for its operands.

    The sum over the instructions of compiled programs in the whole profile, by all its steps and the devices that
    computed; with steps of one kind, over those of its program. FLOPs that only recompute a value are left out, as in
    model FLOPs. NaN without programs or steps, where the device's peak is not known, and where instructions of unknown
    cost take more than 1 % of the time.
    """
    rows = run.table("hlo_ops", host=host)
    steps = run.steps if host is None else run.table("steps", host=host)
    count = len(steps)
    if run.choice.kind is not None:
        rows = rows[rows["program"].str.startswith(f"jit_{run.choice.kind}(")]
        every = run.table("steps", host=host)
        count = int((run.kinds_of(every) == run.choice.kind).sum()) // every["host"].nunique()
    if rows.empty or steps.empty:
        return math.nan
    if cost == "flops":
        rows = rows[~rows["is_rematerialized"].astype(bool)]
    needed = (rows[cost] / rows[_PEAKS[cost]]).mask(rows[cost] == 0, 0.0)
    unknown = rows.loc[needed.isna(), "self_time_us"].sum()
    if unknown > _MOST_UNKNOWN * rows["self_time_us"].sum():
        return math.nan
    return float(needed.sum()) * _US_PER_S / count / computing_devices(run, host)
