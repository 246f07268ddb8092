"""The stray of a run: the one step that is far longer than all others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.tables.step_times import common_step_ids, run_steps

_FEWEST_STEPS = 6
"""Of fewer steps, nothing is excluded: neither the ends nor a stray."""
_DEVIATIONS = 10.0
"""A stray lies this many robust standard deviations above the median …"""
_LEAST_DEVIATION = 0.01
"""… which are taken to be at least this share of it, since a few steps may be equal by chance …"""
BEYOND_SECOND = 1.5
"""… and takes this many times as long as the second longest step: two long steps are no accident."""
_MAD_OF_NORMAL = 1.4826


def with_stray(steps: pd.DataFrame, *, is_excluded: bool) -> pd.DataFrame:
    """The steps of all hosts of a run with its stray in the column `stray`, and without it in `included` if
    `is_excluded`.

    It is looked for among the run's included steps, each as long as on its slowest host.
    """
    of_run = run_steps(steps)
    included = of_run["included"].to_numpy(np.bool_)
    times = of_run["duration_us"].to_numpy(np.float64)[included]
    position = stray_of(times) if len(of_run) >= _FEWEST_STEPS else None
    if position is None:
        return steps.assign(stray=False)
    is_stray = common_step_ids(steps) == of_run["step"].to_numpy()[included][position]
    return steps.assign(stray=is_stray, included=steps["included"] & ~(is_stray & is_excluded))


def stray_of(durations_us: npt.NDArray[np.float64]) -> int | None:
    """The position of the one step that is far longer than all others; None if there is none."""
    if len(durations_us) < 2:
        return None
    longest = int(durations_us.argmax())
    middle = float(np.median(durations_us))
    deviation = max(_MAD_OF_NORMAL * float(np.median(np.abs(durations_us - middle))), _LEAST_DEVIATION * middle)
    second = float(np.delete(durations_us, longest).max())
    is_far = durations_us[longest] > max(middle + _DEVIATIONS * deviation, BEYOND_SECOND * second)
    return longest if is_far else None
