"""The times in which a host waits for the others to agree on a collective, before it exchanges data with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

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
    names = space.metadata_names[space.events.metadata]
    asking, agreed = (_with_context(space, np.flatnonzero(names == name)) for name in (_ASKING, _AGREED))
    pairs = asking.merge(agreed, on="context", suffixes=("", "_agreed"))
    row, start, end = (pairs[name].to_numpy(np.int64) for name in ("row", "start_ps", "start_ps_agreed"))
    step = steps.of_event[row]
    shift = (steps.origin_ps - steps.start_ps)[step]
    begin, until = np.maximum(start, steps.start_ps[step]), np.minimum(end, steps.end_ps[step])
    inside = (step >= 0) & (until > begin)
    return (begin + shift)[inside], (until + shift)[inside]


def _with_context(space: XSpace, rows: Int64) -> pd.DataFrame:
    """`row`, `start_ps` and `context` of the events that have a context of their own."""
    context, known = space.numbers_of("_c", rows)
    found = pd.DataFrame({"row": rows, "start_ps": space.events.start_ps[rows], "context": context})[known]
    return found.drop_duplicates("context", keep=False)
