"""Where the steps of a host come from, and the events that could mark them.

Sources in order of preference: the marker that the user names; a device plane's `Steps` line; host events flagged `_r`
with a step number; host events with `step_num` alone (Keras 3); old `train N` names; repetitions of an XLA module; else
the whole profile as one step.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from tfcompare.frames.grouping import largest, smallest
from tfcompare.frames.hlo.compilations import TF_CALL_STAT
from tfcompare.frames.hlo.host_instructions import host_instructions
from tfcompare.frames.ops.op_names import named_ops
from tfcompare.frames.planes import (
    STEPS_LINE,
    chip_parts,
    device_kind,
    device_planes,
    events_of_lines,
    host_plane,
    profile_span_ps,
    recorded_lines,
)
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.groups import Groups
from tfcompare.frames.steps.step_spans import (
    StepSpans,
    choose_spans,
    device_events,
    device_spans,
    execution_spans,
    no_spans,
)
from tfcompare.frames.steps.steps import DEVICE_LINE, WHOLE_PROFILE, XLA_MODULE, Steps
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace, lookup
from tfcompare.xspace.compilation import Array, compiled

_MIN_REPETITIONS = 5
_MIN_TIME_SHARE = 0.5
_MAX_OVERLAPPING = 16
"""How many of the steps that started last are checked for one that is still running."""
_NO_COMPUTE = re.compile(
    r"(EagerExecute|EagerLocalExecute|EagerKernelExecute|FunctionRun|IteratorGetNext|MEMCPYHto[DH]).*", re.DOTALL | re.I
)
_TRACING = re.compile(
    r"(PjitFunction\(|trace_to_jaxpr|tf\.function-graph_building|convert_to_tensor|\$partial_eval\.py:).*", re.DOTALL
)
"""What JAX and TensorFlow record while they trace code, much of it also when they call compiled functions."""
_NO_PROGRAM = re.compile(rf"{_TRACING.pattern}|(\$|ParseArguments|PythonRefManager::).*", re.DOTALL)
"""The same, Python functions and Python's memory management."""
_REMEDY = "put them around the call of the compiled function, not into its code"
_NOTHING_COMPUTED = f"no op or program runs within the step markers: {_REMEDY}"
_MAX_MARKERS = 10
_MIN_OCCURRENCES = 3
_MAX_NAME_LENGTH = 200


def find_steps(space: XSpace, groups: Groups, marker_chosen: bool = False) -> Steps:
    """The steps of this host, from the first source that yields any."""
    finders = [_from_steps_line, _from_markers, _from_modules]
    for find in [_from_chosen_marker] if marker_chosen else finders:
        steps = find(space, groups)
        if steps is not None:
            return steps
    has_markers = not marker_chosen and len(groups.markers)
    return replace(_whole_profile(space), why_untimed=_NOTHING_COMPUTED if has_markers else "")


def _from_markers(space: XSpace, groups: Groups) -> Steps | None:
    """Steps from the marker events of groups; steps in which nothing was computed are dropped.

    A step lasts as long as the longest marker in its group, or as its group's work on a device where that starts before
    the marker or ends after it. If most of the work runs after the markers and cannot be linked to them, the whole
    profile is one step.
    """
    markers = groups.markers
    if not len(markers):
        return None
    of_group = np.full(int(groups.group.max()) + 1, -1, np.int64)
    of_group[groups.group[markers]] = np.arange(len(markers))
    named = space.rows_of_entries(grouping.is_marker_name(space))
    candidates = np.unique(np.concatenate([markers, named[groups.group[named] >= 0]]))
    step = of_group[groups.group[candidates]]
    candidates, step = candidates[step >= 0], step[step >= 0]
    longest = grouping.longest_of_each(space, candidates, step)
    has_compute = _has_compute(space, groups, candidates)
    if not has_compute.any():
        return None
    steps = _from_marker_events(space, groups, groups.step_number[has_compute], longest[has_compute])
    name_of = dict(zip(groups.step_number.tolist(), grouping.marker_names(space, groups), strict=True))
    if not steps.has_markers:
        return steps
    return replace(steps, marker=tuple([name_of[number] for number in steps.number.tolist()]))


def _from_chosen_marker(space: XSpace, groups: Groups) -> Steps | None:
    """Steps that each last until the next marker starts; the last one lasts as long as its event.

    What a loop does between two calls belongs to the step, and a call that launches device work returns before that is
    done.
    """
    markers = groups.markers
    if not len(markers):
        return None
    start = space.events.start_ps[markers]
    end = np.append(start[1:], start[-1] + space.events.duration_ps[markers[-1]])
    spans = StepSpans(start, end), no_spans(len(markers))
    return _assign_events(space, groups, groups.step_number, markers, *spans)


def _has_compute(space: XSpace, groups: Groups, markers: Int64) -> Bools:
    """Whether each step has an event other than markers, function launches, copies and waits for input, and is not in
    code that is traced: there, functions are called, but no program runs, although the profile has programs that do."""

    def count(events: Bools) -> Int32:
        counts = np.zeros(int(groups.group.max()) + 1, np.int32)
        lookup.count_each(groups.group[events], counts)
        return counts[groups.group[groups.markers]]

    is_ignored = np.zeros(len(space.events), np.bool_)
    is_ignored[space.rows_of_entries(grouping.names_matching(space, _NO_COMPUTE))] = True
    is_ignored[markers] = True
    every = count(groups.group >= 0)
    out: Bools = every > count(is_ignored)
    is_ignored |= grouping.names_matching(space, _NO_PROGRAM)[space.events.metadata] | space.has(TF_CALL_STAT)
    is_tracing = grouping.names_matching(space, _TRACING)[space.events.metadata]
    is_traced = (every == count(is_ignored)) & (count(is_tracing) > 0)
    has_programs = is_traced.any() and (
        any(map(len, device_events(space))) or len(host_instructions(space)) > 0 or any(named_ops(space))
    )
    return out & ~is_traced if has_programs else out


def _from_steps_line(space: XSpace, groups: Groups) -> Steps | None:
    """Steps from the `Steps` line that the profiler derived for each device."""
    is_named = np.array([name == "Steps" for name in space.lines.name], np.bool_)
    of_steps = is_named | (space.lines.id.astype(np.int32) == STEPS_LINE)
    rows = events_of_lines(space, [i for plane in device_planes(space) for i in plane.lines if of_steps[i]])
    if not len(rows):
        return None
    names = space.metadata_names[space.events.metadata[rows]]
    if all(re.fullmatch(r"\d{1,18}", name) for name in names):
        keys = np.array([int(name) for name in names], np.int64)
    else:
        keys = _position_on_line(space, rows)
    return _from_device_events(space, groups, DEVICE_LINE, rows, keys)


def _from_modules(space: XSpace, groups: Groups) -> Steps | None:
    """Steps from the executions of the XLA module that takes most of the device time, if it repeats: the n-th execution
    on every device belongs to step n."""
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
    if len(rows) < _MIN_REPETITIONS * devices or time[main] < _MIN_TIME_SHARE * time.sum():
        return None
    return _from_device_events(space, groups, f"{XLA_MODULE} {distinct[main]}", rows, _position_on_line(space, rows))


def _from_device_events(space: XSpace, groups: Groups, source: str, rows: Int32, keys: Int64) -> Steps:
    """Steps from device events, one key per step: those of the device whose steps take longest in all; a step that it
    lacks lasts as long as on the slowest that has it.

    Devices that do not wait for one another are slow in different steps, so no device takes as long as the slowest of
    each step. An event belongs to the step of its own device, one of a part of a chip to that of the chip.
    """
    events = space.events
    numbers, code = np.unique(keys, return_inverse=True)
    is_slowest = _is_on_slowest_device(space, rows, code)
    of_slowest = np.isin(code, code[is_slowest])
    chosen = np.flatnonzero(is_slowest | ~of_slowest)
    longest = grouping.longest_of_each(space, rows[chosen], code[chosen])
    in_time = np.argsort(events.start_ps[longest], kind="stable")
    position = np.empty(len(numbers), np.int64)
    position[in_time] = np.arange(len(numbers))
    start = events.start_ps[longest[in_time]]
    end = start + events.duration_ps[longest[in_time]]
    of_event = _spans_at(start, end, np.arange(len(start)), events.start_ps)
    plane_of_row, parts = space.planes_of(rows), chip_parts(space)
    for plane in device_planes(space):
        own = np.flatnonzero(plane_of_row == plane.index)
        if len(own):
            begin = events.start_ps[rows[own]]
            until = begin + events.duration_ps[rows[own]]
            for here in (plane, *parts.get(plane.name, [])):
                of_event[here.events] = _spans_at(begin, until, position[code[own]], events.start_ps[here.events])
    spans = no_spans(len(numbers)), StepSpans(start, end)
    return Steps(source, numbers[in_time], start, end, *_assign_groups(of_event, groups, rows, position[code]), *spans)


def _whole_profile(space: XSpace) -> Steps:
    start, end = profile_span_ps(space)
    first = np.zeros(len(space.events), np.int32)
    times = np.array([start]), np.array([end])
    return Steps(WHOLE_PROFILE, np.zeros(1, np.int64), *times, first, first < 0, no_spans(1), no_spans(1))


def _is_on_slowest_device(space: XSpace, rows: Int32, step: Int64) -> Bools:
    """Which rows are on the device whose steps take longest in all; if some steps are on all, these count alone."""
    devices, device = np.unique(space.planes_of(rows), return_inverse=True)
    had = np.unique(step * len(devices) + device) // len(devices)
    is_common = np.bincount(had, minlength=int(step.max()) + 1) == len(devices)
    counts = is_common[step] if is_common.any() else np.ones(len(rows), np.bool_)
    time = np.bincount(device, weights=space.events.duration_ps[rows] * counts)
    slowest: Bools = device == time.argmax()
    return slowest


def _position_on_line(space: XSpace, rows: Int32) -> Int64:
    """Each row's position in time among the rows of its line."""
    line, start = space.events.line[rows], space.events.start_ps[rows]
    order = np.lexsort((start, line))
    position = np.empty(len(rows), np.int64)
    first = np.searchsorted(line[order], line[order])
    position[order] = np.arange(len(rows)) - first
    return position


def _from_marker_events(space: XSpace, groups: Groups, number: Int64, marker: Int64) -> Steps:
    """Steps of these marker events; each lasts as long as the marker or as the work that it launched."""
    in_order = np.argsort(space.events.start_ps[marker], kind="stable")
    number, marker = number[in_order], marker[in_order]
    start = space.events.start_ps[marker]
    host = StepSpans(start, start + space.events.duration_ps[marker])
    nothing = np.full(len(space.events), -1, np.int32)
    step_of_event = _assign_groups(nothing, groups, marker, np.arange(len(marker)))[0]
    if device_kind(space) == "CPU":
        device, why_untimed = execution_spans(space, groups.executions, step_of_event, host)
        if why_untimed:
            return replace(_whole_profile(space), why_untimed=why_untimed)
    else:
        device = device_spans(space, step_of_event, len(marker))
    steps = _assign_events(space, groups, number, marker, host, device)
    if device_kind(space) == "CPU" and device.exist.any():
        steps.of_event[groups.executions.rows[groups.executions.launch < 0]] = -1  # they run whenever there is a thread
    return steps


def _assign_events(
    space: XSpace, groups: Groups, number: Int64, marker: Int64, host: StepSpans, device: StepSpans
) -> Steps:
    """Builds `Steps`, in time order, and assigns events to them.

    Events in a marker's group belong to its step. Other host events belong to the step whose host span contains them,
    other device events to the step that contains them.
    """
    step = choose_spans(host, device)
    times, each = space.events.start_ps, np.arange(len(number))
    of_event = _spans_at(host.start_ps, host.end_ps, each, times)
    parts = [plane for of_chip in chip_parts(space).values() for plane in of_chip]
    for plane in (*device_planes(space), *parts):
        of_event[plane.events] = _spans_at(step.start_ps, step.end_ps, each, times[plane.events])
    of_event, is_linked = _assign_groups(of_event, groups, marker, each)
    return Steps(groups.source, number, step.start_ps, step.end_ps, of_event, is_linked, host, device)


def _spans_at(start: Int64, end: Int64, step: Int64, times: Int64) -> Int32:
    """The step of the span that contains each of `times`, −1 for none; if several do, the one that started last."""
    order = np.argsort(start, kind="stable")
    out = np.empty(len(times), np.int32)
    _find_spans(start[order], end[order], step[order], times, out)
    return out


@compiled
def _find_spans(start: Array, end: Array, step: Array, times: Array, out: Array) -> None:
    """`_spans_at` for spans sorted by `start`. Each search starts at the previous answer, which mostly holds."""
    at = -1
    for i in range(times.size):
        time = times[i]
        if (at >= 0 and time < start[at]) or (at + 1 < start.size and start[at + 1] <= time):
            at = np.searchsorted(start, time, side="right") - 1
        around = at
        while around > at - _MAX_OVERLAPPING and around > 0 and end[around] <= time:
            around -= 1
        out[i] = step[around] if around >= 0 and time < end[around] else -1


def _assign_groups(of_event: Int32, groups: Groups, rows: Int32 | Int64, step: Int64) -> tuple[Int32, Bools]:
    """(`of_event` with the events of the groups of `rows` moved to the step of each row; whether each event, but for
    markers, was assigned by its group)."""
    step_of_group = np.full(int(groups.group.max(initial=-1)) + 2, -1, np.int32)
    step_of_group[groups.group[rows]] = step
    step_of_group[-1] = -1  # of the events in no group
    grouped = step_of_group.take(groups.group)
    is_linked = grouped >= 0
    np.copyto(of_event, grouped, where=is_linked)
    is_linked[groups.markers] = False
    return of_event, is_linked


def likely_markers(space: XSpace) -> tuple[str, ...]:
    """Names of up to ten host events that repeat on a single thread, longest total time first.

    A training loop runs on one thread, and most of that thread's time is spent in steps.
    """
    plane = host_plane(space)
    recorded = recorded_lines(space)
    lines = [i for i in plane.lines if recorded[i] and space.lines.event_count[i]] if plane is not None else []
    if not lines:
        return ()
    rows = events_of_lines(space, lines)
    names = space.events.metadata[rows]
    on_line = np.repeat(np.arange(len(lines)), space.lines.event_count[np.array(lines)])
    size = int(names.max()) + 1
    first, last = smallest(names, on_line, size), largest(names, on_line, size)
    times = np.bincount(names, minlength=size)
    total_ps = np.bincount(names, space.events.duration_ps[rows], minlength=size)
    candidates = np.flatnonzero((times >= _MIN_OCCURRENCES) & (first == last) & (total_ps > 0))
    best = candidates[np.argsort(-total_ps[candidates], kind="stable")]
    texts = dict.fromkeys(str(space.metadata_names[name]) for name in best[: 4 * _MAX_MARKERS])
    return tuple(text for text in texts if text.strip() and len(text) <= _MAX_NAME_LENGTH)[:_MAX_MARKERS]
