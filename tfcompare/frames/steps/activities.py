"""What host threads and devices can be doing, as far as it explains where a step's time goes."""

from __future__ import annotations

from enum import IntEnum

NONE = -1
"""In place of an activity: what only stands around others."""


class Activity(IntEnum):
    """One kind of doing; where several are under way at once, the first in this order explains the instant."""

    SIXTEEN_BIT_COMPUTE = 0
    THIRTY_TWO_BIT_COMPUTE = 1
    DEVICE_COMPUTE = 2  # of a width that is not told
    COPY_TO_HOST = 3
    COPY_BETWEEN_DEVICES = 4
    COLLECTIVE = 5
    COPY_TO_DEVICE = 6
    DEVICE_CONTROL = 7  # a loop or branch around other instructions
    COPY_WITHIN_HOST = 8  # made by a device
    LAUNCH_CALL = 9
    WAIT_FOR_INPUT = 10
    ENQUEUE_INPUT = 11
    HOST_COPY = 12
    COMPILE = 13
    LAUNCHING_OP = 14
    HOST_OP = 15  # that launches nothing
    HOST_COLLECTIVE = 16  # takes part in an exchange between hosts, most of the time waiting for the others
    EXECUTOR = 17
    HOST_COMPUTE = 18


WHENEVER = tuple(Activity)[: Activity.WAIT_FOR_INPUT]
"""What explains an instant of a step whatever led to it: a device is busy for all, and so is who gives it work."""

CERTAIN = (
    Activity.WAIT_FOR_INPUT, Activity.ENQUEUE_INPUT, Activity.COMPILE, Activity.HOST_COLLECTIVE, Activity.EXECUTOR
)  # fmt: skip
"""Of the others, what says by its name alone that a step may be waiting for it."""
