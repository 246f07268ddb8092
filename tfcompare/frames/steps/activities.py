"""What host threads and devices can be doing, as an explanation of where step time goes."""

from __future__ import annotations

from enum import IntEnum

NONE = -1
"""No activity: events that only enclose others."""


class Activity(IntEnum):
    """Kinds of activity. If several are under way at once, the first in this order explains the time."""

    SIXTEEN_BIT_COMPUTE = 0
    THIRTY_TWO_BIT_COMPUTE = 1
    DEVICE_COMPUTE = 2  # precision unknown
    COPY_TO_HOST = 3
    COPY_BETWEEN_DEVICES = 4
    COLLECTIVE = 5
    COPY_TO_DEVICE = 6
    DEVICE_WAIT = 7  # while no device does any of the above; before what stands around waits
    DEVICE_CONTROL = 8  # a loop or branch around other instructions
    COPY_WITHIN_HOST = 9  # made by a device
    LAUNCH_CALL = 10
    WAIT_FOR_INPUT = 11
    ENQUEUE_INPUT = 12
    HOST_COPY = 13
    COMPILE = 14
    LAUNCHING_OP = 15
    HOST_OP = 16  # that launches nothing
    HOST_COLLECTIVE = 17  # exchange between hosts, mostly waiting for the others
    EXECUTOR = 18
    HOST_COMPUTE = 19


COUNTED_BY_TIME = tuple(Activity)[: Activity.WAIT_FOR_INPUT]
"""Activities that explain any step in which they run, whichever step launched them: device work and launch calls."""

COUNTED_BY_NAME = (
    *(Activity.WAIT_FOR_INPUT, Activity.ENQUEUE_INPUT, Activity.COMPILE),
    *(Activity.HOST_COLLECTIVE, Activity.EXECUTOR),
)
"""Of the remaining ones, those whose name alone shows that a step may be waiting for them."""
