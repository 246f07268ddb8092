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
    return host_table(
        "steps",
        {
            "step": steps.number,
            "start_us": steps.start_ps / PS_PER_US,
            "duration_us": (steps.end_ps - steps.start_ps) / PS_PER_US,
            "included": steps.included,
            "stray": np.zeros(len(steps.number), np.bool_),  # decided for a run as a whole (`strays.with_stray`)
            "host_start_us": steps.host.first_start_ps / PS_PER_US,
            "host_span_us": steps.host.length_ps / PS_PER_US,
            "device_span_us": steps.device.length_ps / PS_PER_US,
            **{part: ps / PS_PER_US for part, ps in step_parts(times, steps, idle_ps).items()},
            **{column: ps / PS_PER_US for column, ps in compute_precisions(times).items()},
        },
    )
