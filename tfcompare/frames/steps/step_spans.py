"""The spans of steps on host and device, and of executions of programs.

Without devices, executions of XLA programs on the host's own threads take the place of device events
(`execution_spans`).

The rule is that of xprof's `StepDetails::StepTime` (xprof/utils/event_span.cc): if the host span includes the device
span, the program waits for the device within the step, and the host span is the step. Otherwise the host only launches
work, and the device span is the step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tfcompare.frames.executions import Executions
from tfcompare.frames.grouping import largest, smallest
from tfcompare.frames.ops.copies import KINDS, copy_kinds
from tfcompare.frames.planes import device_kind, device_planes, events_of_lines, recorded_lines
from tfcompare.frames.spans import NO_SPANS
from tfcompare.schema.arrays import Bools, Floats, Int32, Int64
from tfcompare.schema.kernels import HOST_TO_DEVICE
from tfcompare.text import as_code
from tfcompare.xspace import XSpace

_TPU_LINES = ("XLA Ops", "XLA Modules")
_NEGLIGIBLE = 0.1
"""The share of the programs' time that may run after the markers, or be of unknown steps. A program that blocks within
each step may leave a small one, such as that of the next random key, running at its end."""
_MOST = 0.5
_EARLY, _REMEDY = "steps end before their work", "block on the result inside the step"
_RUNTIME_THREAD = re.compile(r"tf_XLA(PjRt|Tfrt)CpuClient.*")
"""It runs programs; it recorded something, if only that it was given work."""


@dataclass(frozen=True, eq=False)
class StepSpans:
    """One span per step, in picoseconds since the XSpace's origin. A missing span has its end before its start."""

    start_ps: Int64
    end_ps: Int64

    @property
    def exist(self) -> Bools:
        """Whether each step has a span."""
        found: Bools = self.end_ps >= self.start_ps
        return found

    def take(self, steps: Int64) -> StepSpans:
        """The spans at those positions."""
        return StepSpans(self.start_ps[steps], self.end_ps[steps])

    @property
    def length_ps(self) -> Floats:
        """Length of each span, NaN for missing ones."""
        return np.where(self.exist, (self.end_ps - self.start_ps).astype(np.float64), np.nan)

    @property
    def first_start_ps(self) -> Floats:
        """Start of each span, NaN for missing ones."""
        return np.where(self.exist, self.start_ps.astype(np.float64), np.nan)


def no_spans(count: int) -> StepSpans:
    """Missing spans for `count` steps."""
    return StepSpans(np.zeros(count, np.int64), np.full(count, -1, np.int64))


def device_spans(space: XSpace, step_of_event: Int32, count: int) -> StepSpans:
    """From the first to the last device event of each step, on the device where that takes longest.

    `step_of_event` is the step that launched each event, −1 for none. An input copy that starts while the device still
    works on an earlier step was prefetched, and does not begin its step.
    """
    longest = no_spans(count)
    is_input = copy_kinds(space) == KINDS.index(HOST_TO_DEVICE) if device_kind(space) == "GPU" else None
    for of_device in device_events(space):
        rows = of_device[step_of_event[of_device] >= 0]
        if not len(rows):
            continue
        step, start = step_of_event[rows], space.events.start_ps[rows]
        end = start + space.events.duration_ps[rows]
        counts = np.ones(len(rows), np.bool_)
        if is_input is not None:
            others = ~is_input[rows]
            done = np.maximum.accumulate(largest(step[others], end[others], count))
            done = np.append(np.iinfo(np.int64).min, done[:-1])  # of earlier steps
            counts = others | (start >= done[step])
        span = spans_of_steps(step[counts], start[counts], end[counts], count)
        is_longer = span.end_ps - span.start_ps > longest.end_ps - longest.start_ps
        longest = StepSpans(
            np.where(is_longer, span.start_ps, longest.start_ps), np.where(is_longer, span.end_ps, longest.end_ps)
        )
    return longest


def device_events(space: XSpace) -> list[Int32]:
    """Rows of the events that ran on each of `device_planes`: recorded streams of a GPU, ops and modules of a TPU."""
    names = space.lines.name
    is_own = [name in _TPU_LINES for name in names] if device_kind(space) == "TPU" else recorded_lines(space)
    return [events_of_lines(space, [i for i in plane.lines if is_own[i]]) for plane in device_planes(space)]


def choose_spans(host: StepSpans, device: StepSpans) -> StepSpans:
    """The host span of each step, or its device span if that is not within the host span.

    Steps are in host order. A host span starts no earlier than the device finishes earlier steps: a program that waits
    for the device only every tenth step would otherwise count the time of ten steps in one.
    """
    is_host = ~device.exist | ((host.start_ps <= device.start_ps) & (device.end_ps <= host.end_ps))
    done = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(device.end_ps)[:-1])
    waited_until = np.where(device.exist, np.minimum(done, device.start_ps), host.start_ps)
    return StepSpans(
        np.where(is_host, np.maximum(host.start_ps, waited_until), device.start_ps),
        np.where(is_host, host.end_ps, device.end_ps),
    )


def spans_of_steps(step: Int32, start: Int64, end: Int64, count: int) -> StepSpans:
    """From the first start to the last end of each step's events."""
    first, last = smallest(step, start, count), largest(step, end, count)
    has_any = last >= first
    return StepSpans(np.where(has_any, first, 0), np.where(has_any, last, -1))


def execution_spans(
    space: XSpace, executions: Executions, step_of_event: Int32, markers: StepSpans
) -> tuple[StepSpans, str]:
    """(from the first to the last event of the XLA programs that each step launched; why the steps have no time).

    All spans are missing if the programs run within the markers, which then last as long as their work. The steps have
    no time if the programs do not, and too little is known of which step launched them.
    """
    count, rows = len(markers.start_ps), executions.rows
    has_unlinked = (step_of_event[executions.unlinked] >= 0).any()
    if has_unlinked and not len(rows) and any(map(_RUNTIME_THREAD.fullmatch, space.lines.name)):
        return no_spans(count), f"{_EARLY}: the profile holds none of it; {_REMEDY}"
    start, time = space.events.start_ps[rows], space.events.duration_ps[rows]
    end, is_linked = start + time, executions.launch >= 0
    step = np.where(is_linked, step_of_event[rows], -1)
    own, unknown = np.flatnonzero(step >= 0), np.flatnonzero(~is_linked & has_unlinked)
    late = np.zeros(len(rows), np.int64)
    late[own] = np.maximum(end[own] - np.maximum(start[own], markers.end_ps[step[own]]), 0)
    inside = NO_SPANS.union(markers.start_ps, markers.end_ps).covered_between(start[unknown], end[unknown])
    late[unknown] = time[unknown] - inside
    negligible = _NEGLIGIBLE * (time[own].sum() + time[unknown].sum())
    if late.sum() <= negligible:
        return no_spans(count), ""
    if time[unknown].sum() > negligible:
        after_last = np.minimum(late, (end - np.maximum(start, markers.end_ps.max())).clip(0)).sum()
        where = "after the last marker" if after_last > _MOST * late.sum() else "outside of the markers"
        work = f"most of the work{_of_longest_program(space, rows, late)} runs {where}"
        return no_spans(count), f"{_EARLY}: {work}; {_REMEDY}"
    return spans_of_steps(step[own], start[own], end[own], count), ""


def _of_longest_program(space: XSpace, rows: Int64, time: Int64) -> str:
    """Names the XLA program with the most of this time, in Markdown; empty if the programs are not recorded."""
    module = space.strings("hlo_module")
    code = module.spread()[rows]
    named = code >= 0
    if not named.any():
        return ""
    return f" of {as_code(str(module.labels[int(np.bincount(code[named], time[named]).argmax())]))}"
