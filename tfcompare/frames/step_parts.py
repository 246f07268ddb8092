"""Where the time of each step goes: parts that do not overlap and make up the step.

At each instant the first `Activity` that is under way explains it; what nothing explains is "other". What devices do
and calls that give them work count by when they run. What else the host does counts in the step that led to it, so that
work in the background (input made ahead) explains nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfcompare.frames.activities import CERTAIN, WHENEVER, Activity
from tfcompare.frames.device_activities import device_activities
from tfcompare.frames.host_activities import host_activities, timed_host_events
from tfcompare.frames.spans import NOTHING, Spans
from tfcompare.schema.runs import STEP_PARTS
from tfcompare.xspace import XSpace
from tfcompare.xspace.compilation import Array, Int, compiled

if TYPE_CHECKING:
    from tfcompare.frames.steps import Steps

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_OTHER = "other_us"
_PART_OF = {
    Activity.SIXTEEN_BIT_COMPUTE: "device_compute_us",
    Activity.THIRTY_TWO_BIT_COMPUTE: "device_compute_us",
    Activity.DEVICE_COMPUTE: "device_compute_us",
    Activity.COPY_TO_HOST: "output_us",
    Activity.COPY_BETWEEN_DEVICES: "device_to_device_us",
    Activity.COLLECTIVE: "device_collectives_us",
    Activity.COPY_TO_DEVICE: "input_us",
    Activity.DEVICE_CONTROL: "device_compute_us",
    Activity.COPY_WITHIN_HOST: _OTHER,
    Activity.LAUNCH_CALL: "kernel_launch_us",
    Activity.WAIT_FOR_INPUT: "input_us",
    Activity.ENQUEUE_INPUT: "input_us",
    Activity.HOST_COPY: _OTHER,
    Activity.COMPILE: "compile_us",
    Activity.LAUNCHING_OP: "kernel_launch_us",
    Activity.HOST_OP: "host_compute_us",
    Activity.EXECUTOR: "kernel_launch_us",
    Activity.HOST_COMPUTE: "host_compute_us",
}
_PRECISION_OF = {
    "device_compute_16_bit_us": Activity.SIXTEEN_BIT_COMPUTE,
    "device_compute_32_bit_us": Activity.THIRTY_TWO_BIT_COMPUTE,
}


def step_parts(times: Int64, steps: Steps) -> dict[str, Int64]:
    """For each of `schema.STEP_PARTS` its time in each step, in picoseconds: together the step's length exactly.

    `times` as `activity_times` gives them.
    """
    parts = {part: np.zeros(len(steps.number), np.int64) for part in STEP_PARTS}
    for activity, part in _PART_OF.items():
        parts[part] += times[:, activity]
    parts[_OTHER] += steps.end_ps - steps.start_ps - times.sum(axis=1)
    return parts


def compute_precisions(times: Int64) -> dict[str, Floats]:
    """For each of `schema.STEP_PRECISIONS` its time in each step, in picoseconds, as part of the device's computing.

    `times` as `activity_times` gives them. NaN where no step holds any whose precision is told.
    """
    found = times[:, list(_PRECISION_OF.values())].astype(np.float64)
    if not found.any():
        found[:] = np.nan
    return dict(zip(_PRECISION_OF, found.T, strict=True))


def activity_times(space: XSpace, steps: Steps) -> Int64:
    """How long each `Activity` (columns) explains each step (rows), in picoseconds."""
    events = space.events
    out = np.zeros((len(steps.number), len(Activity)), np.int64)
    rows, activity = device_activities(space)
    only_led = not len(rows) and steps.is_led.any()  # no launch that counts wherever it comes from
    on_host = timed_host_events(space, steps.is_led if only_led else None)
    what = host_activities(space, on_host)
    calls = on_host.take(np.flatnonzero(what == Activity.LAUNCH_CALL))
    rows, activity = np.append(rows, calls), np.append(activity, np.full(len(calls), Activity.LAUNCH_CALL))
    busy, before = NOTHING, np.zeros(len(steps.number), np.int64)
    for which in WHENEVER:
        own = rows.take(np.flatnonzero(activity == which))
        if len(own):
            start = events.start_ps.take(own)
            busy = busy.with_more(start, start + events.duration_ps.take(own))
            covered = busy.covered_between(steps.start_ps, steps.end_ps)
            out[:, which], before = covered - before, covered
    counts = np.flatnonzero(_may_explain(steps, on_host, what))
    _add_led(space, steps, on_host.take(counts), what.take(counts), busy, out)
    return out


def _may_explain(steps: Steps, rows: Int32, activity: Int8) -> Bools:
    """Whether each host event may explain its step: those that it led to may. Where it is not known what steps led to,
    those that say enough by their name."""
    if steps.is_led.any():
        return steps.is_led.take(rows)
    return np.isin(activity, CERTAIN) & (steps.of_event.take(rows) >= 0)


def _add_led(space: XSpace, steps: Steps, rows: Int32, activity: Int8, busy: Spans, out: Int64) -> None:
    """Fill the columns of `out` for what steps led to, each event cut to its own step, in the time not `busy`.

    Steps may overlap, so each is laid out on a time line of its own, one after the other, an instant apart.
    """
    events = space.events
    length = steps.end_ps - steps.start_ps
    origin = np.cumsum(length + 1) - (length + 1)
    led, before = NOTHING, np.zeros(len(length), np.int64)
    start, end = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for which in tuple(Activity)[len(WHENEVER) :]:
        if not (activity == which).any():
            continue
        count = _lay_out(rows, activity, int(which), events.start_ps, events.duration_ps, steps.of_event,
                         steps.start_ps, steps.end_ps, origin, start, end)  # fmt: skip
        if count:
            led = led.with_few(start[:count], end[:count])
            covered = _covered_while_idle(led, steps, origin, busy)
            out[:, which], before = covered - before, covered


@compiled
def _lay_out(
    rows: Array, activity: Array, which: Int, event_start: Array, duration: Array, of_event: Array, step_start: Array,
    step_end: Array, origin: Array, start: Array, end: Array
) -> Int:  # fmt: skip
    """Where the events of one activity begin and end on the line on which the steps begin at `origin`, cut to their
    steps; of those that touch and follow one another, as those of a thread do, one span is made. How many are left."""
    count = np.int64(0)
    for i in range(rows.size):
        if activity[i] != which:
            continue
        row = rows[i]
        step = of_event[row]
        shift = origin[step] - step_start[step]
        begin = max(event_start[row], step_start[step]) + shift
        until = min(event_start[row] + duration[row], step_end[step]) + shift
        if until <= begin:
            continue
        if count and begin <= end[count - 1] and until >= start[count - 1]:
            start[count - 1] = min(begin, start[count - 1])
            end[count - 1] = max(until, end[count - 1])
        else:
            start[count], end[count] = begin, until
            count += 1
    return count


def _covered_while_idle(led: Spans, steps: Steps, origin: Int64, busy: Spans) -> Int64:
    """How much of each step `led` covers while nothing is `busy`."""
    step = np.searchsorted(origin, led.start_ps, side="right") - 1
    shift = origin[step] - steps.start_ps[step]
    idle = led.end_ps - led.start_ps - busy.covered_between(led.start_ps - shift, led.end_ps - shift)
    total = np.append(0, np.cumsum(idle))
    bounds = np.searchsorted(led.start_ps, np.append(origin, np.iinfo(np.int64).max))
    covered: Int64 = np.diff(total[bounds])
    return covered
