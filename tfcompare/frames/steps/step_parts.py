"""Splits the time of each step into parts that do not overlap and add up to the step.

At each instant the first `Activity` under way explains the time; unexplained time is "other". Device work and launch
calls count for any step in which they run. Other host events count only for the step that caused them, so that
background work (prefetched input) explains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.ops.op_segments import AROUND, OpSegments
from tfcompare.frames.spans import NO_SPANS, Spans, lowest_kinds
from tfcompare.frames.steps.activities import COUNTED_BY_NAME, COUNTED_BY_TIME, NONE, Activity
from tfcompare.frames.steps.device_activities import by_start, device_activities
from tfcompare.frames.steps.host_activities import host_activities, is_collective, timed_host_events
from tfcompare.frames.steps.steps import Steps, some_at_a_time
from tfcompare.frames.tf_data.tf_data_functions import TfDataFunctions
from tfcompare.schema.arrays import Floats, Int8, Int32, Int64
from tfcompare.schema.runs import STEP_PARTS
from tfcompare.xspace import XSpace, lookup
from tfcompare.xspace.compilation import Array, Int, compiled

_Arrays = tuple[Array, ...]
_IDLE, _OTHER = "idle_us", "other_us"
_ROWS_AT_ONCE = 1 << 18
_RANKS = int(AROUND) + 1
_BY_TIME = len(COUNTED_BY_TIME)
_PART_OF = {
    Activity.SIXTEEN_BIT_COMPUTE: "device_compute_us",
    Activity.THIRTY_TWO_BIT_COMPUTE: "device_compute_us",
    Activity.DEVICE_COMPUTE: "device_compute_us",
    Activity.COPY_TO_HOST: "output_us",
    Activity.COPY_BETWEEN_DEVICES: "device_to_device_us",
    Activity.COLLECTIVE: "device_collectives_us",
    Activity.COPY_TO_DEVICE: "input_us",
    Activity.DEVICE_WAIT: "device_waits_us",
    Activity.DEVICE_CONTROL: "device_compute_us",
    Activity.COPY_WITHIN_HOST: _OTHER,
    Activity.LAUNCH_CALL: "kernel_launch_us",
    Activity.WAIT_FOR_INPUT: "input_us",
    Activity.ENQUEUE_INPUT: "input_us",
    Activity.HOST_COPY: _OTHER,
    Activity.COMPILE: "compile_us",
    Activity.LAUNCHING_OP: "kernel_launch_us",
    Activity.HOST_OP: "host_compute_us",
    Activity.HOST_COLLECTIVE: "host_collectives_us",
    Activity.EXECUTOR: "kernel_launch_us",
    Activity.HOST_COMPUTE: "host_compute_us",
}
_GROUP_OF = np.array(
    [*(STEP_PARTS.index(_PART_OF[a]) + len(STEP_PARTS) * (a in COUNTED_BY_TIME) for a in Activity), -1], np.int64
)
"""The group of each activity. Op segments share the time of activities of their own group: one per part of the step,
separate for those counted by time (devices) and the others (host)."""
_GROUP_OF[Activity.LAUNCH_CALL] = _GROUP_OF[Activity.LAUNCHING_OP]
_PRECISION_OF = {
    "device_compute_16_bit_us": Activity.SIXTEEN_BIT_COMPUTE,
    "device_compute_32_bit_us": Activity.THIRTY_TWO_BIT_COMPUTE,
}


def step_parts(times: Int64, steps: Steps, idle_ps: Int64) -> dict[str, Int64]:
    """The time of each of `schema.STEP_PARTS` in each step, in picoseconds; the parts add up to the step's length
    exactly.

    `times` is the first result of `explain`, `idle_ps` that of `idle_times`.
    """
    parts = {part: np.zeros(len(steps.number), np.int64) for part in STEP_PARTS}
    for activity, part in _PART_OF.items():
        parts[part] += times[:, activity]
    unexplained = steps.end_ps - steps.start_ps - times.sum(axis=1)
    parts[_IDLE] += np.minimum(idle_ps, unexplained)
    parts[_OTHER] += unexplained - parts[_IDLE]
    return parts


def part_of_activity(activity: Int8) -> Int8:
    """The position in `schema.STEP_PARTS` of the part that each activity belongs to."""
    return np.array([STEP_PARTS.index(_PART_OF[a]) for a in Activity], np.int8)[activity]


def compute_precisions(times: Int64) -> dict[str, Floats]:
    """The time of each of `schema.STEP_PRECISIONS` in each step, in picoseconds; a portion of the device compute time.

    `times` is the first result of `explain`. NaN if the precision is unknown in all steps.
    """
    found = times[:, list(_PRECISION_OF.values())].astype(np.float64)
    if not found.any():
        found[:] = np.nan
    return dict(zip(_PRECISION_OF, found.T, strict=True))


@dataclass(frozen=True, eq=False)
class Activities:
    """Events that may explain step time: `rows` are device events and launch calls by start, `host_rows` other host
    events.

    `activity` and `host_activity` are the activity of each. Host events may explain only their own step.
    """

    rows: Int32
    activity: Int8
    host_rows: Int32
    host_activity: Int8

    def of_event(self, space: XSpace) -> Int8:
        """The activity of every event of the profile, `NONE` for events that explain nothing."""
        out = np.full(len(space.events), NONE, np.int8)
        out[self.host_rows] = self.host_activity
        out[self.rows] = self.activity
        return out


NO_ACTIVITIES = Activities(np.zeros(0, np.int32), np.zeros(0, np.int8), np.zeros(0, np.int32), np.zeros(0, np.int8))


def one_of_each_host_part(activities: Activities) -> Int8:
    """An activity of each part of the step that these explain by what the host does."""
    present = np.unique(np.concatenate([activities.activity, activities.host_activity]))
    present = present[(present >= 0) & ((present == Activity.LAUNCH_CALL) | ~np.isin(present, COUNTED_BY_TIME))]
    one: Int8 = present[np.unique(_GROUP_OF[present], return_index=True)[1]].astype(np.int8)
    return one


def find_activities(space: XSpace, steps: Steps, functions: TfDataFunctions | None = None) -> Activities:
    """The events that may explain step time. `functions`: what `tf_data_functions` returns, computed if not given."""
    rows, activity = device_activities(space)
    collectives = is_collective(space)
    only_linked = not len(rows) and steps.is_linked.any()  # without device events, there are no launch calls
    on_host = timed_host_events(space, steps.is_linked | collectives if only_linked else None)
    host_activity = host_activities(space, on_host, functions)
    calls = on_host.take(np.flatnonzero(host_activity == Activity.LAUNCH_CALL))
    may_explain = steps.of_event.take(on_host) >= 0  # its step, if it is linked to it or an exchange between hosts
    if steps.is_linked.any():
        may_explain = steps.is_linked.take(on_host) | (may_explain & (host_activity == Activity.HOST_COLLECTIVE))
    else:
        may_explain &= np.isin(host_activity, COUNTED_BY_NAME)
    explaining = np.flatnonzero(may_explain)
    activity = np.append(activity, np.full(len(calls), Activity.LAUNCH_CALL, np.int8))
    return Activities(
        *by_start(space, np.append(rows, calls), activity),
        on_host.take(explaining),
        host_activity.take(explaining),
    )


def idle_times(space: XSpace, steps: Steps, activities: Activities, ops: Sequence[OpEvents]) -> Int64:
    """The time of each step in which nothing of `activities` runs, and none of `ops`, of whatever step, in
    picoseconds."""
    events, busy = space.events, NO_SPANS
    runs = activities.of_event(space) != NONE
    for plane in ops:
        runs[plane.rows] = True
    rows = np.flatnonzero(runs)  # line by line, mostly in order of time
    for some in np.array_split(rows, len(rows) // _ROWS_AT_ONCE + 1):
        start = events.start_ps.take(some)
        busy = busy.union(start, start + events.duration_ps.take(some))
    return steps.end_ps - steps.start_ps - busy.covered_between(steps.start_ps, steps.end_ps)


def explain(space: XSpace, steps: Steps, activities: Activities, segments: OpSegments) -> tuple[Int64, Floats]:
    """(time that each `Activity` explains of each step, in picoseconds; the share of it that each op segment gets).

    At each instant, the time of a part is shared equally among the running segments of that step and part. Time that no
    segment covers is not assigned.
    """
    out = np.zeros((len(steps.number), len(Activity)), np.int64)
    times = space.events.start_ps, space.events.duration_ps
    busy, activity = lowest_kinds(*times, activities.rows, activities.activity)
    shares = _Shares(segments, steps)
    for which in lookup.used(activity, len(Activity)):
        of_one = busy.take(np.flatnonzero(activity == which))
        out[:, which] = of_one.covered_between(steps.start_ps, steps.end_ps)
    for group, own in shares.of_groups(activity):
        shares.add(group, partial(_covered_before, busy.take(own)))
    _add_linked(space, steps, activities, busy, out, shares)
    return out, shares.segment_times()


def _covered_before(spans: Spans, times_ps: Int64, _: Int32) -> Int64:
    return spans.covered_before(times_ps)


class _Shares:
    """Accumulates the step time that op segments get, one activity group at a time.

    Segments are taken by group and step, a limited number at a time. `_measure` holds, for the start and end of each
    segment, how much time of its part lies before; only differences within a step matter.
    """

    def __init__(self, segments: OpSegments, steps: Steps) -> None:
        self._segments, self._groups = segments, 2 * len(STEP_PARTS)
        place = _GROUP_OF.astype(np.int32)[segments.activity]
        place *= len(steps.number)
        place += segments.step
        self._first, self._order = lookup.grouped(place, self._groups * len(steps.number))
        self._shift = steps.origin_ps - steps.start_ps
        self._measure = np.zeros((2, len(place)))

    def of_groups(self, activity: Int8) -> Iterator[tuple[int, Int64]]:
        """(each group of which there are segments, the positions of activities of that group)."""
        first = self._first[:: max(len(self._shift), 1)]
        for group in np.flatnonzero(np.diff(first)).tolist():
            if len(own := np.flatnonzero(_GROUP_OF[activity] == group)):
                yield group, own

    def add(self, group: int, before: Callable[[Int64, Int32], Int64]) -> None:
        """Add time explained by activities of a group: `before` returns how much of it lies before times in steps."""
        for several in self._of_group(group):
            chosen = self._order[several]
            step = self._segments.step.take(chosen)
            for measure, times in zip(self._measure, (self._segments.start_ps, self._segments.end_ps), strict=True):
                measure[several] += before(times.take(chosen), step)

    def segment_times(self) -> Floats:
        """The time that each segment gets, in picoseconds, shared with other running segments of its group, step and
        rank, while none of a lower rank runs."""
        out, segments = np.empty(len(self._order)), self._segments
        for group in range(self._groups):
            sums = np.zeros(_RANKS)
            for several in self._of_group(group):
                chosen = self._order[several]
                shift = self._shift.take(segments.step.take(chosen))  # to a timeline on which steps do not overlap
                times = np.concatenate([segments.start_ps.take(chosen) + shift, segments.end_ps.take(chosen) + shift])
                order, own = np.argsort(times, kind="stable"), np.empty(len(chosen))
                measure = np.ascontiguousarray(self._measure[:, several].reshape(-1))
                running, since = np.zeros(_RANKS, np.int64), np.empty(len(chosen))
                _share(order, measure, segments.rank.take(chosen), sums, running, since, own)
                out[chosen] = own
        return out

    def _of_group(self, group: int) -> Iterator[slice]:
        """The segments of a group in `_order`, some whole steps at a time."""
        steps = len(self._shift)
        first = self._first[group * steps : (group + 1) * steps + 1]
        for begin, end in some_at_a_time(first):
            if first[end] > first[begin]:
                yield slice(int(first[begin]), int(first[end]))


@compiled
def _share(order: Array, measure: Array, rank: Array, sums: Array, running: Array, since: Array, out: Array) -> None:
    """Sweep over starts and ends of segments in time order.

    `order` holds indices of starts (0 to count − 1) and ends (count and up). `since` is what a segment running from the
    beginning would have got by the start of each segment; `sums` what one of each rank would have got by now, `running`
    how many of each rank run now.
    """
    count, last = out.size, 0.0
    for at in order:
        for lowest in range(running.size):
            if running[lowest] > 0:
                sums[lowest] += (measure[at] - last) / running[lowest]
                break
        last = measure[at]
        segment = at % count
        own = rank[segment]
        if at < count:
            running[own] += 1
            since[segment] = sums[own]
        else:
            running[own] -= 1
            out[segment] = sums[own] - since[segment]


def _add_linked(space: XSpace, steps: Steps, activities: Activities, busy: Spans, out: Int64, shares: _Shares) -> None:
    """Fill the columns of `out` for host events of linked steps: the time that they explain while no device is `busy`.

    Each event is clipped to its own step. Steps may overlap, so they are placed one after another on a separate
    timeline.
    """
    origin = steps.origin_ps
    spans, activity = _lowest_in_steps(space, steps, activities)
    step = np.searchsorted(origin, spans.start_ps, side="right") - 1
    shift = (origin - steps.start_ps)[step]
    begin, end = (at - shift for at in (spans.start_ps, spans.end_ps))
    begin, end = (at - busy.covered_before(at) for at in (begin, end))
    np.add.at(out, (step, activity), end - begin)
    for group, own in shares.of_groups(activity):
        idle_ps = (end - begin).take(own)
        before = np.cumsum(idle_ps) - idle_ps - begin.take(own)
        shares.add(group, _LinkedSpans(spans.take(own), shift.take(own), before, origin - steps.start_ps, busy).before)


def _lowest_in_steps(space: XSpace, steps: Steps, activities: Activities) -> tuple[Spans, Int8]:
    """The result of `lowest_kinds` for host events of linked steps, on the timeline of consecutive steps."""
    rows, times = activities.host_rows, (space.events.start_ps, space.events.duration_ps)
    of_steps = steps.of_event, steps.start_ps, steps.end_ps, steps.origin_ps
    start, end, activity = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), np.empty(len(rows), np.int8)
    count = _cut_to_steps(rows, activities.host_activity, times, of_steps, start, end, activity)
    start, end, activity = start[:count], end[:count], activity[:count]
    if (activity == Activity.HOST_COLLECTIVE).any():
        asked, agreed = agreements_in_steps(space, steps)
        start, end = np.append(start, asked), np.append(end, agreed)
        activity = np.append(activity, np.full(len(asked), Activity.HOST_COLLECTIVE, np.int8))
    order = np.argsort(start, kind="stable").astype(np.int32)
    return lowest_kinds(start, end - start, order, activity.take(order))


@dataclass(frozen=True, eq=False)
class _LinkedSpans:
    """Spans on a timeline of consecutive steps, and how much of them falls in time when no device is `busy`.

    `shift_ps` is how much later each is there than when it ran, `shift_of_step_ps` that of each step; `before_ps` is
    the idle time in the spans before each, less all idle time before it.
    """

    spans: Spans
    shift_ps: Int64
    before_ps: Int64
    shift_of_step_ps: Int64
    busy: Spans

    def before(self, times_ps: Int64, steps: Int32) -> Int64:
        """How much of the spans, on the timeline of consecutive steps, lies before each of these times of steps."""
        shifted = times_ps + self.shift_of_step_ps.take(steps)
        last = np.searchsorted(self.spans.start_ps, shifted, side="right") - 1  # may be of an earlier step, below it
        until = np.minimum(shifted, self.spans.end_ps.take(last)) - self.shift_ps.take(last)
        return np.where(last >= 0, self.before_ps.take(last) + until - self.busy.covered_before(until), 0)


@compiled
def _cut_to_steps(
    rows: Array, activity: Array, times: _Arrays, of_steps: _Arrays, start: Array, end: Array, of_span: Array
) -> Int:
    """Spans of the events that explain their own step alone, clipped to it, on the timeline on which steps start at
    `origin`.

    Events of one activity that are adjacent and touch are merged, as those of one thread do. Returns the number of
    spans.
    """
    (event_start, duration), (of_event, step_start, step_end, origin) = times, of_steps
    count = np.int64(0)
    for i in range(rows.size):
        if activity[i] < _BY_TIME:
            continue
        row = rows[i]
        step = of_event[row]
        shift = origin[step] - step_start[step]
        begin = max(event_start[row], step_start[step]) + shift
        until = min(event_start[row] + duration[row], step_end[step]) + shift
        if until <= begin:
            continue
        is_same = count > 0 and of_span[count - 1] == activity[i]
        if is_same and begin <= end[count - 1] and until >= start[count - 1]:
            start[count - 1] = min(begin, start[count - 1])
            end[count - 1] = max(until, end[count - 1])
        else:
            start[count], end[count], of_span[count] = begin, until, activity[i]
            count += 1
    return count


_ASKING = "CollectiveExecutor::RunClosure"
_AGREED = "CollectiveExecutor::CompleteParamsAsync::Done"


def agreements_in_steps(space: XSpace, steps: Steps) -> tuple[Int64, Int64]:
    """(starts, ends) of agreements in picoseconds, clipped to their steps, on the timeline of consecutive steps.

    A host asks the first one and gets the answer on another thread. The event that spans both is often missing in a
    profile, so the two ends are joined by the context (`_c`) that TensorFlow gives them.
    """
    found = []
    for name in (_ASKING, _AGREED):
        rows = space.rows_named(name)
        context, known = space.numbers_of("_c", rows)
        contexts, first, count = np.unique(context[known], return_index=True, return_counts=True)
        found.append((contexts[count == 1], rows[known][first[count == 1]]))  # a context of several tells nothing
    (asked, asking), (answered, agreed) = found
    _, of_asking, of_agreed = np.intersect1d(asked, answered, assume_unique=True, return_indices=True)
    row = asking[of_asking]
    start, end = space.events.start_ps[row], space.events.start_ps[agreed[of_agreed]]
    step = steps.of_event[row]
    shift = (steps.origin_ps - steps.start_ps)[step]
    begin, until = np.maximum(start, steps.start_ps[step]), np.minimum(end, steps.end_ps[step])
    inside = (step >= 0) & (until > begin)
    return (begin + shift)[inside], (until + shift)[inside]
