"""Recognises a capture that ended earlier on the devices than on the host."""

from __future__ import annotations

import numpy as np

from tfcompare.frames.grouping import any_of, combinations
from tfcompare.frames.planes import device_kind, host_plane
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_STAT = {"GPU": "correlation_id", "TPU": "run_id"}
"""What a launch on the host and the work that it launched have in common."""

_LEAST_LOST = 20  # a few may be on their way when a capture stops
_LEAST_SHARE = 0.1
_LEAST_KNOWN = 0.99  # of earlier launches: where work is missing throughout, it says nothing that the last is


def lost_launches(space: XSpace) -> str:
    """A remark if devices recorded nothing of the last launches, but all that was launched before; empty if not.

    That happens where a device's buffer is full, or if the profiler stops while the host is far ahead of the device.
    Launches are the events of the host whose names are among those that have work on a device.
    """
    host, kind = host_plane(space), device_kind(space)
    if host is None or kind not in _STAT:
        return ""
    rows, ids = space.numbers(_STAT[kind])
    on_host = (rows >= host.first_event) & (rows < host.first_event + host.event_count)
    firsts, code = combinations(ids)
    calls, is_known = rows[on_host], any_of(code, ~on_host, len(firsts))[code[on_host]]
    names, is_name_of_launch = space.events.metadata[calls], np.zeros(len(space.metadata_names), np.bool_)
    is_name_of_launch[names[is_known]] = True
    is_launch = is_name_of_launch[names]
    start, is_known = space.events.start_ps[calls[is_launch]], is_known[is_launch]
    if not is_known.any():
        return ""
    is_late = start > start[is_known].max()
    lost, earlier = int(is_late.sum()), is_known[~is_late]
    if lost < max(_LEAST_LOST, _LEAST_SHARE * len(start)) or earlier.mean() < _LEAST_KNOWN:
        return ""
    seconds = (start.max() - start[is_known].max()) / PS_PER_US / 1e6
    return (
        f"the devices recorded nothing of the last {lost:,} of {len(start):,} launches ({seconds:.3g} s): "
        "the capture was cut short there; profile fewer steps, and wait for the device before the profiler stops"
    )
