"""`steps`: the table of one host's steps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.steps.step_parts import compute_precisions, step_parts
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema.arrays import Int64
from tfcompare.xspace.space import PS_PER_US


def steps_frame(steps: Steps, times: Int64, idle_ps: Int64) -> pa.Table:
    """Columns of `schema.STEPS` for one host; no rows if nothing marks steps. `times` is the result of
    `step_parts.explain`, `idle_ps` that of `step_parts.idle_times`."""
    if not steps.has_markers:
        return empty("steps")
    parts = {**step_parts(times, steps, idle_ps), **compute_precisions(times)}
    is_known = ~steps.is_lost
    return host_table(
        "steps",
        {
            "step": steps.number,
            "marker": steps.marker or [""] * len(steps.number),
            "start_us": steps.start_ps / PS_PER_US,
            "duration_us": np.where(is_known, (steps.end_ps - steps.start_ps) / PS_PER_US, np.nan),
            "included": steps.included,
            "stray": np.zeros(len(steps.number), np.bool_),  # decided for a run as a whole (`strays.with_stray`)
            "host_start_us": steps.host.first_start_ps / PS_PER_US,
            "host_span_us": steps.host.length_ps / PS_PER_US,
            "device_span_us": np.where(is_known, steps.device.length_ps / PS_PER_US, np.nan),
            **{part: np.where(is_known, ps / PS_PER_US, np.nan) for part, ps in parts.items()},
        },
    )
