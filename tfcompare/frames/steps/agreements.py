"""The times in which a host waits for the others to agree on a collective, before it exchanges data with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tfcompare.frames.steps.steps import Steps
from tfcompare.xspace import XSpace

Int64 = npt.NDArray[np.int64]

_ASKING = "CollectiveExecutor::RunClosure"
_AGREED = "CollectiveExecutor::CompleteParamsAsync::Done"


def agreements_in_steps(space: XSpace, steps: Steps) -> tuple[Int64, Int64]:
    """(starts, ends) of agreements in picoseconds, clipped to their steps, on the timeline of consecutive steps.

    A host asks the first one and gets the answer on another thread. The event that spans both is often missing in a
    profile, so the two ends are joined by the context (`_c`) that TensorFlow gives them.
    """
    (asked, asking), (answered, agreed) = (_with_context(space, name) for name in (_ASKING, _AGREED))
    _, of_asking, of_agreed = np.intersect1d(asked, answered, assume_unique=True, return_indices=True)
    row = asking[of_asking]
    start, end = space.events.start_ps[row], space.events.start_ps[agreed[of_agreed]]
    step = steps.of_event[row]
    shift = (steps.origin_ps - steps.start_ps)[step]
    begin, until = np.maximum(start, steps.start_ps[step]), np.minimum(end, steps.end_ps[step])
    inside = (step >= 0) & (until > begin)
    return (begin + shift)[inside], (until + shift)[inside]


def _with_context(space: XSpace, name: str) -> tuple[Int64, Int64]:
    """(the contexts that exactly one event of that name has, the row of that event)."""
    rows = space.rows_named(name)
    context, known = space.numbers_of("_c", rows)
    contexts, first, count = np.unique(context[known], return_index=True, return_counts=True)
    return contexts[count == 1], rows[known][first[count == 1]]
