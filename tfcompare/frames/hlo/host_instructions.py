"""Instructions of XLA programs that ran on a host's threads, as XLA's CPU client records them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.planes import HLO_OP, device_kind, host_plane, recorded_on
from tfcompare.xspace import XSpace

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_END = "end: "


def host_instructions(space: XSpace) -> Int32:
    """The rows of the events on the host's threads that name an instruction, in file order.

    None with devices: their host events only start work on a device.
    """
    host = host_plane(space)
    if host is None or device_kind(space) != "CPU":
        return np.zeros(0, np.int32)
    named = np.unique(space.strings(HLO_OP).owners)
    rows: Int32 = named[recorded_on(space, host)[named]].astype(np.int32)
    return rows


def late_ps(space: XSpace, rows: Int32) -> Int64:
    """How long after each of these instructions' events its mark `end: <name>` was written, in picoseconds.

    An instruction may hand its work to other threads and return before that is done. The mark comes later still: the
    thread that finishes the work first runs what follows. A mark belongs to the last start of its instruction before
    it; 0 without one.
    """
    out = np.zeros(len(rows), np.int64)
    if not len(rows):
        return out
    events, names = space.events, space.metadata_names
    marks = {i: str(name)[len(_END) :] for i, name in enumerate(names) if str(name).startswith(_END)}
    marked = np.flatnonzero(np.isin(events.metadata, list(marks)))
    starts = pd.DataFrame({"name": names[events.metadata[rows]], "start": events.start_ps[rows]})
    ends = pd.DataFrame({"name": [marks[i] for i in events.metadata[marked].tolist()], "at": events.start_ps[marked]})
    pairs = pd.merge_asof(
        starts.astype({"name": "str"}).reset_index(names="row").sort_values("start", kind="stable"),
        ends.astype({"name": "str"}).reset_index(names="mark").sort_values("at", kind="stable"),
        left_on="start", right_on="at", by="name", direction="forward",
    ).dropna(subset="mark").drop_duplicates("mark", keep="last")  # fmt: skip
    row, at = pairs["row"].to_numpy(), pairs["at"].to_numpy(np.int64)
    out[row] = np.maximum(at - (events.start_ps + events.duration_ps)[rows[row]], 0)
    return out
