"""The steps of one host: where they begin and end, and which event belongs to which.

Sources in order of preference (DESIGN, decision 5): the marker that the user names; a device plane's `Steps` line; host
events flagged `_r` with a step number; host events with `step_num` alone (Keras 3); old `train N` names; repetitions of
an XLA module; else the whole profile as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.frames.planes import HOST_PLANE, STEPS_LINE, device_planes, events_of_lines, host_plane, short_id
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.groups import Groups
from tfcompare.frames.steps.step_parts import compute_precisions, step_parts
from tfcompare.frames.steps.step_spans import StepSpans, device_spans, no_spans, step_of
from tfcompare.xspace import XSpace, lookup
from tfcompare.xspace.compilation import Array, compiled
from tfcompare.xspace.space import PS_PER_US

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

WHOLE_PROFILE = "whole profile"
DEVICE_LINE = "device Steps line"
XLA_MODULE = "XLA module"
_SET_ASIDE_ABOVE = 5
_LEAST_REPETITIONS = 5
_LEAST_SHARE = 0.5
_MOST_OVERLAPPING = 16
"""So many steps that were begun last are looked at for one that has not ended."""
_NO_COMPUTE = re.compile(
    r"(EagerExecute|EagerLocalExecute|EagerKernelExecute|FunctionRun|IteratorGetNext|MEMCPYHto[DH]).*", re.DOTALL | re.I
)


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps in the order of the program, in picoseconds since the XSpace's origin.

    `of_event`: the step (its position) of each event, −1 outside of all; `is_led`: whether that is known from what led
    to the event, not only by when it began (never of markers). `host`: the step's marker; `device`: from its first to
    its last device event. Where both are known, the step is one of the two (`step_spans`). `chosen`: of steps that
    were chosen by range, which of them count.
    """

    source: str
    number: Int64
    start_ps: Int64
    end_ps: Int64
    of_event: Int32
    is_led: Bools
    host: StepSpans = field(default_factory=lambda: no_spans(0))
    device: StepSpans = field(default_factory=lambda: no_spans(0))
    chosen: Bools | None = None

    @property
    def included(self) -> Bools:
        """The first and the last of more than five are excluded, as in xprof, unless steps were chosen by range.

        So is the last of several that begin with a chosen event: no next one tells where it ends.
        """
        if self.chosen is not None:
            return self.chosen
        out = np.ones(len(self.number), np.bool_)
        if self.source == grouping.NAMED and len(out) > 1:
            out[-1] = False
        if len(out) > _SET_ASIDE_ABOVE:
            out[[0, -1]] = False
        return out

    @property
    def origin_ps(self) -> Int64:
        """Where each step begins on a line on which they lie one after the other, an instant apart."""
        width = self.end_ps - self.start_ps + 1
        origin: Int64 = np.cumsum(width) - width
        return origin

    @property
    def has_markers(self) -> bool:
        """Whether something marks the steps; else the whole profile is one."""
        return self.source != WHOLE_PROFILE


def find_steps(space: XSpace, groups: Groups, marker_chosen: bool = False) -> Steps:
    """The steps of this host by the first source that has any."""
    finders = [_from_steps_line, _from_markers, _from_modules]
    for find in [_from_chosen] if marker_chosen else finders:
        steps = find(space, groups)
        if steps is not None:
            return steps
    return _whole_profile(space)


def in_range(space: XSpace, steps: Steps, first: int | None, last: int | None) -> tuple[Steps, Bools]:
    """(the steps from one position to another, counted from 1; which events belong to them or lie between them).

    All of them count, but the last of the profile where its end is not known.
    """
    count = len(steps.number)
    low, high = (first or 1) - 1, min(last or count, count)
    chosen = np.arange(low, high)
    place = np.full(count + 1, -1, np.int32)  # the spare last element answers for −1
    place[chosen] = np.arange(len(chosen))
    of_event = place[steps.of_event]
    kept = of_event >= 0
    outside = steps.of_event < 0
    for plane in space.planes if len(chosen) else []:
        is_host = plane.name == HOST_PLANE and steps.host.exist[chosen].all()
        span = steps.host if is_host else StepSpans(steps.start_ps, steps.end_ps)
        times = space.events.start_ps[plane.events]
        between = (times >= span.start_ps[chosen].min()) & (times < span.end_ps[chosen].max())
        kept[plane.events] |= outside[plane.events] & between
    counts = np.ones(len(chosen), np.bool_)
    if steps.source == grouping.NAMED and high == count and len(chosen) > 1:
        counts[-1] = False
    return Steps(
        steps.source, steps.number[chosen], steps.start_ps[chosen], steps.end_ps[chosen], of_event[kept],
        steps.is_led[kept], steps.host.take(chosen), steps.device.take(chosen), counts,
    ), kept  # fmt: skip


def steps_frame(steps: Steps, times: Int64, host: str) -> pd.DataFrame:
    """Columns of `schema.STEPS` for one host; no rows where nothing marks steps. `times`: as `step_parts.explain` gives
    them."""
    if not steps.has_markers:
        return schema.STEPS.empty()
    return schema.STEPS.conform(
        pd.DataFrame(
            {
                "host": host,
                "step": steps.number,
                "start_us": steps.start_ps / PS_PER_US,
                "duration_us": (steps.end_ps - steps.start_ps) / PS_PER_US,
                "included": steps.included,
                "host_start_us": steps.host.first_start_ps / PS_PER_US,
                "host_span_us": steps.host.length_ps / PS_PER_US,
                "device_span_us": steps.device.length_ps / PS_PER_US,
                **{part: ps / PS_PER_US for part, ps in step_parts(times, steps).items()},
                **{column: ps / PS_PER_US for column, ps in compute_precisions(times).items()},
            }
        )
    )


def _from_markers(space: XSpace, groups: Groups) -> Steps | None:
    """A step is as long as the longest marker in its group, or as what its group ran on a device, where that ends
    after the marker does or begins before; one in which nothing was computed is none."""
    markers = groups.markers
    if not len(markers):
        return None
    of_group = np.full(int(groups.group.max()) + 1, -1, np.int64)
    of_group[groups.group[markers]] = np.arange(len(markers))
    named = space.rows_of_entries(grouping.are_marker_names(space))
    candidates = np.unique(np.concatenate([markers, named[groups.group[named] >= 0]]))
    step = of_group[groups.group[candidates]]
    candidates, step = candidates[step >= 0], step[step >= 0]
    longest = _longest_of_each(space, candidates, step)
    keep = _has_compute(space, groups, of_group, candidates)
    if not keep.any():
        return None
    return _in_time(space, groups, groups.source, groups.step_number[keep], longest[keep])


def _from_chosen(space: XSpace, groups: Groups) -> Steps | None:
    """A step lasts until the next one begins: what a loop does between its calls is part of it, and a call that only
    hands work to a device is over long before that is done. Nothing ends the last: it is as long as its event."""
    markers = groups.markers
    if not len(markers):
        return None
    start = space.events.start_ps[markers]
    end = np.append(start[1:], start[-1] + space.events.duration_ps[markers[-1]])
    spans = StepSpans(start, end)
    return _with_events(space, groups, groups.source, groups.step_number, markers, spans, spans, no_spans(len(markers)))


def _has_compute(space: XSpace, groups: Groups, of_group: Int64, markers: Int64) -> Bools:
    """Whether each step has an event besides markers, launches of functions, copies and waiting for input."""
    is_none = np.zeros(len(space.events), np.bool_)
    is_none[space.rows_of_entries(grouping.names_matching(space, _NO_COMPUTE))] = True
    is_none[markers] = True
    events, without = np.zeros((2, len(of_group)), np.int32)
    lookup.count_each(groups.group, events)
    lookup.count_each(groups.group[is_none], without)
    out = np.zeros(len(groups.markers), np.bool_)
    out[of_group[(events > without) & (of_group >= 0)]] = True
    return out


def _from_steps_line(space: XSpace, groups: Groups) -> Steps | None:
    """Steps that the profiler derived on each device."""
    lines = [
        i
        for plane in device_planes(space)
        for i in plane.lines
        if short_id(space.lines.id[i]) == STEPS_LINE or space.lines.name[i] == "Steps"
    ]
    rows = events_of_lines(space, lines)
    if not len(rows):
        return None
    names = space.metadata_names[space.events.metadata[rows]]
    if all(re.fullmatch(r"\d{1,18}", name) for name in names):
        keys = np.array([int(name) for name in names], np.int64)
    else:
        keys = _position_on_line(space, rows)
    return _on_devices(space, groups, DEVICE_LINE, rows, keys)


def _from_modules(space: XSpace, groups: Groups) -> Steps | None:
    """Executions of the XLA module that most of the device's time goes to, if it repeats: the n-th on each device make
    up a step."""
    lines = [i for plane in device_planes(space) for i in plane.lines if space.lines.name[i] == "XLA Modules"]
    rows = events_of_lines(space, lines)
    if not len(rows):
        return None
    module = space.events.metadata[rows]
    names = np.array([re.sub(r"\(\d+\)$", "", n) for n in space.metadata_names])[module]
    distinct, code = np.unique(names, return_inverse=True)
    time = np.bincount(code, weights=space.events.duration_ps[rows])
    main = int(time.argmax())
    rows = rows[code == main]
    devices = len(np.unique(space.events.line[rows]))
    if len(rows) < _LEAST_REPETITIONS * devices or time[main] < _LEAST_SHARE * time.sum():
        return None
    return _on_devices(space, groups, f"{XLA_MODULE} {distinct[main]}", rows, _position_on_line(space, rows))


def _on_devices(space: XSpace, groups: Groups, source: str, rows: Int32, keys: Int64) -> Steps:
    """A step is as long as on the device that takes longest for it; an event belongs to the step of its own device."""
    events = space.events
    numbers, code = np.unique(keys, return_inverse=True)
    longest = _longest_of_each(space, rows, code)
    in_time = np.argsort(events.start_ps[longest], kind="stable")
    position = np.empty(len(numbers), np.int64)
    position[in_time] = np.arange(len(numbers))
    start = events.start_ps[longest[in_time]]
    end = start + events.duration_ps[longest[in_time]]
    of_event = _within(start, end, np.arange(len(start)), events.start_ps)
    for plane in device_planes(space):
        own = np.flatnonzero(space.plane_of_event[rows] == plane.index)
        if len(own):
            begin = events.start_ps[rows[own]]
            until = begin + events.duration_ps[rows[own]]
            of_event[plane.events] = _within(begin, until, position[code[own]], events.start_ps[plane.events])
    group = groups.group[rows]
    of_group = dict(zip(group.tolist(), position[code].tolist(), strict=True))
    return Steps(
        source, numbers[in_time], start, end, *_by_group(of_event, groups, of_group),
        host=no_spans(len(numbers)), device=StepSpans(start, end),
    )  # fmt: skip


def _whole_profile(space: XSpace) -> Steps:
    start, end = profile_span_ps(space)
    every = np.zeros(len(space.events), np.int32)
    return Steps(
        WHOLE_PROFILE, np.zeros(1, np.int64), np.array([start]), np.array([end]), every, every < 0,
        host=no_spans(1), device=no_spans(1),
    )  # fmt: skip


def profile_span_ps(space: XSpace) -> tuple[int, int]:
    """From the first start to the last end of all events on host and devices."""
    host, events = host_plane(space), space.events
    planes = [*device_planes(space), *([host] if host is not None else [])]
    begins = [int(events.start_ps[p.events].min()) for p in planes if p.event_count]
    ends = [int((events.start_ps[p.events] + events.duration_ps[p.events]).max()) for p in planes if p.event_count]
    return min(begins, default=0), max(ends, default=0)


def _longest_of_each(space: XSpace, rows: Int32 | Int64, step: Int64) -> Int32 | Int64:
    """The longest of the events of each step, in the order of steps; of several as long, the earliest."""
    order = np.lexsort((-space.events.start_ps[rows], space.events.duration_ps[rows], step))
    longest: Int32 | Int64 = rows[order[np.append(np.diff(step[order]) != 0, True)]]
    return longest


def _position_on_line(space: XSpace, rows: Int32) -> Int64:
    """Each row's position in time among those of its line."""
    line, start = space.events.line[rows], space.events.start_ps[rows]
    order = np.lexsort((start, line))
    position = np.empty(len(rows), np.int64)
    first = np.searchsorted(line[order], line[order])
    position[order] = np.arange(len(rows)) - first
    return position


def _in_time(space: XSpace, groups: Groups, source: str, number: Int64, marker: Int32 | Int64) -> Steps:
    """Steps of these marker events, each as long as the marker or as what it led to on a device."""
    in_order = np.argsort(space.events.start_ps[marker], kind="stable")
    number, marker = number[in_order], marker[in_order]
    start = space.events.start_ps[marker]
    host = StepSpans(start, start + space.events.duration_ps[marker])
    nothing = np.full(len(space.events), -1, np.int32)
    device = device_spans(space, _by_group(nothing, groups, _step_of_group(groups, marker))[0], len(marker))
    return _with_events(space, groups, source, number, marker, step_of(host, device), host, device)


def _with_events(
    space: XSpace, groups: Groups, source: str, number: Int64, marker: Int32 | Int64, step: StepSpans, host: StepSpans,
    device: StepSpans,
) -> Steps:  # fmt: skip
    """These steps, in the order of time, with their events: those of a marker's group, and of the others on the host
    those within its span, on a device those within the step."""
    times, each = space.events.start_ps, np.arange(len(number))
    of_event = _within(host.start_ps, host.end_ps, each, times)
    for plane in device_planes(space):
        of_event[plane.events] = _within(step.start_ps, step.end_ps, each, times[plane.events])
    of_event, is_led = _by_group(of_event, groups, _step_of_group(groups, marker))
    return Steps(source, number, step.start_ps, step.end_ps, of_event, is_led, host, device)


def _step_of_group(groups: Groups, marker: Int32 | Int64) -> dict[int, int]:
    return dict(zip(groups.group[marker].tolist(), range(len(marker)), strict=True))


def _within(start: Int64, end: Int64, step: Int64, times: Int64) -> Int32:
    """The step of the span that each of `times` lies in: of several the latest one begun, −1 for none."""
    order = np.argsort(start, kind="stable")
    out = np.empty(len(times), np.int32)
    _find_spans(start[order], end[order], step[order], times, out)
    return out


@compiled
def _find_spans(start: Array, end: Array, step: Array, times: Array, out: Array) -> None:
    """`_within` for spans in the order of `start`. Times that follow one another mostly lie in the same span."""
    at = -1
    for i in range(times.size):
        time = times[i]
        if (at >= 0 and time < start[at]) or (at + 1 < start.size and start[at + 1] <= time):
            low, high = 0, start.size
            while low < high:
                middle = (low + high) // 2
                if start[middle] <= time:
                    low = middle + 1
                else:
                    high = middle
            at = low - 1
        around = at
        while around > at - _MOST_OVERLAPPING and around > 0 and end[around] <= time:
            around -= 1
        out[i] = step[around] if around >= 0 and time < end[around] else -1


def _by_group(of_event: Int32, groups: Groups, of_group: dict[int, int]) -> tuple[Int32, Bools]:
    """(`of_event`, but for events in a group that is a step: that step; which events are those, markers left out)."""
    step_of_group = np.full(int(groups.group.max(initial=-1)) + 1, -1, np.int32)
    for group, step in of_group.items():
        if group >= 0:
            step_of_group[group] = step
    is_led = np.zeros(len(of_event), np.bool_)
    _lead(groups.group, step_of_group, of_event, is_led)
    is_led[groups.markers] = False
    return of_event, is_led


@compiled
def _lead(group: Array, step_of_group: Array, step: Array, is_led: Array) -> None:
    """Put events of groups that are steps into those."""
    for i in range(group.size):
        if group[i] >= 0 and step_of_group[group[i]] >= 0:
            step[i] = step_of_group[group[i]]
            is_led[i] = True
