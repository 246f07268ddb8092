"""`memory_timeline`: a row per allocation and deallocation, made on demand since it may be large."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.frames.memory_events import NOT_RECORDED, MemoryEvents
from tfcompare.schema.arrays import Int64
from tfcompare.schema.memory import MEMORY_TIMELINE
from tfcompare.tables.frames import frame_of
from tfcompare.xspace.space import PS_PER_US

_EVENTS = np.array(["deallocation", "allocation"])


def memory_timeline(events: MemoryEvents, host: str, rows: Int64 | None = None) -> pd.DataFrame:
    """Columns of `schema.memory.MEMORY_TIMELINE` for all events of a host, or for those in `rows`, sorted by memory id
    and time."""
    table = events.table if rows is None else events.table.take(rows)
    return timeline_of_events(frame_of("memory_events", table).assign(host=host))


def timeline_of_events(events: pd.DataFrame) -> pd.DataFrame:
    """The same for rows of the host table `memory_events`, with their column `host`."""
    return MEMORY_TIMELINE.conform(
        events.assign(
            time_us=events["time_ps"].to_numpy() / PS_PER_US,
            event=_EVENTS[events["is_allocation"].to_numpy(np.int64)],
            requested_bytes=_sizes(events["requested_bytes"]),
            allocation_bytes=_sizes(events["allocation_bytes"]),
            step=pd.arrays.IntegerArray(events["step"].to_numpy(), ~events["in_step"].to_numpy()),
            in_use_bytes=events["stack_bytes"].to_numpy() + events["heap_bytes"].to_numpy(),
        )
    )


def _sizes(sizes: pd.Series) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(sizes.to_numpy(), sizes.to_numpy() == NOT_RECORDED)
