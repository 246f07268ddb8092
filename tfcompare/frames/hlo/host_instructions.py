"""Instructions of XLA programs that ran on a host's threads, as XLA's CPU client records them."""

from __future__ import annotations

import numpy as np

from tfcompare.frames.planes import HLO_OP, device_kind, host_plane, recorded_on
from tfcompare.schema.arrays import Int32, Int64
from tfcompare.xspace import XSpace

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
    events, names = space.events, space.metadata_names.tolist()
    is_mark = np.array([name.startswith(_END) for name in names], np.bool_)
    marks = space.rows_of_entries(is_mark)
    code = {name: number for number, name in enumerate(names)}
    started = np.array([code[name] for name in names])
    ended = np.array([code.get(name.removeprefix(_END), -1) for name in names])
    of_name = np.append(started[events.metadata[rows]], ended[events.metadata[marks]])
    order = np.lexsort((events.start_ps[np.append(rows, marks)], of_name))  # at the same time, marks come last
    here, after = order[:-1], order[1:]
    is_pair = (of_name[here] == of_name[after]) & (here < len(rows)) & (after >= len(rows))
    row, mark = here[is_pair], marks[after[is_pair] - len(rows)]
    out[row] = np.maximum(events.start_ps[mark] - (events.start_ps + events.duration_ps)[rows[row]], 0)
    return out
