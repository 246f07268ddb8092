"""What host threads and devices can be doing, as far as it explains where a step's time goes."""

from __future__ import annotations

from enum import IntEnum

NONE = -1
"""In place of an activity: what only stands around others."""


class Activity(IntEnum):
    """One kind of doing; where several are under way at once, the first in this order explains the instant."""

    DEVICE_COMPUTE = 0
    COPY_TO_HOST = 1
    COPY_BETWEEN_DEVICES = 2
    COLLECTIVE = 3
    COPY_TO_DEVICE = 4
    DEVICE_CONTROL = 5  # a loop or branch around other instructions
    COPY_WITHIN_HOST = 6  # made by a device
    LAUNCH_CALL = 7
    WAIT_FOR_INPUT = 8
    ENQUEUE_INPUT = 9
    HOST_COPY = 10
    COMPILE = 11
    LAUNCHING_OP = 12
    HOST_OP = 13  # that launches nothing
    EXECUTOR = 14
    HOST_COMPUTE = 15


WHENEVER = tuple(Activity)[: Activity.WAIT_FOR_INPUT]
"""What explains an instant of a step whatever led to it: a device is busy for all, and so is who gives it work."""

CERTAIN = (Activity.WAIT_FOR_INPUT, Activity.ENQUEUE_INPUT, Activity.COMPILE, Activity.EXECUTOR)
"""Of the others, what says by its name alone that a step may be waiting for it."""
