"""The one notion of a run's step time that two runs are compared by, and the steps that it keeps from deciding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfcompare.compare.stats.estimates import outlying, typical

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.stats.run_verdicts import Side

MEANING = (
    "The typical step: the mean of the steps that count, outlying ones moved to the edge of the usual (2.5 robust "
    "standard deviations from the median). The verdict and its interval are on the same figure."
)


def typical_step_us(side: Side) -> float:
    """The typical step of a run, in microseconds; with more recordings of its program the geometric mean of theirs all.

    The ratio of two sides is that of `verdict_on_series`. NaN where steps are not marked, or none counts.
    """
    series = (
        [side.steps(i)["duration_us"].to_numpy(np.float64) for i in range(len(side.runs))] if side.has_steps else []
    )
    if not series or not all(len(steps) and (steps > 0).any() for steps in series):
        return float("nan")
    found = [float(typical(steps[np.newaxis])[0]) for steps in series]
    return found[0] if len(found) == 1 else float(np.exp(np.mean(np.log(found))))


def outlying_steps(steps: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which rows of a frame with `duration_us` and `included` are moved to the edge of the usual; none set aside is."""
    counted = steps["included"].to_numpy(np.bool_)
    found = np.zeros(len(steps), np.bool_)
    if counted.any():
        found[counted] = outlying(steps["duration_us"].to_numpy(np.float64)[counted][np.newaxis])[0]
    return found
