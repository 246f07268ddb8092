"""The peak memory of a run, as it was allocated and as XLA planned it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare.schema.hlo import MAIN_MEMORY

if TYPE_CHECKING:
    from tfcompare.run import Run


def peak_bytes(run: Run, host: str | None) -> float:
    """The largest peak of any memory within the profile, of all hosts or of one; NaN if unknown."""
    summary = run.table("memory_summary", host=host)
    return float(summary["peak_bytes"].max()) if len(summary) else math.nan


def planned_bytes(run: Run, host: str | None) -> float:
    """The largest peak of device memory that XLA planned for a program of a run, or of a host; NaN without any."""
    buffers = run.table("hlo_memory", host=host)
    live = buffers[buffers["is_live_at_peak"].astype(bool) & (buffers["memory_space"] == MAIN_MEMORY)]
    return float(live.groupby(["host", "program"])["size_bytes"].sum().max())
