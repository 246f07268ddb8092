"""Tables of one host's steps: times and parts, also by device, wall time of ops, idle gaps, and collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.frames.arrow import empty, host_table, texts
from tfcompare.frames.grouping import combinations, distinct
from tfcompare.frames.host_annotations import HostAnnotations
from tfcompare.frames.ops.op_parts import OpEvents, OpParts
from tfcompare.frames.ops.op_segments import AROUND, NO_SEGMENTS, concat, op_segments
from tfcompare.frames.ops.tpu_ops import OP_LINES
from tfcompare.frames.planes import HOST_PLANE, device_planes, events_of_lines, host_plane, sparse_cores
from tfcompare.frames.spans import NO_SPANS
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.host_activities import COLLECTIVE_OP
from tfcompare.frames.steps.step_parts import Activities, compute_precisions, explain, part_of_activity, step_parts
from tfcompare.frames.steps.steps import Steps, some_at_a_time
from tfcompare.frames.tf_data.tf_data_functions import TfDataFunctions
from tfcompare.schema import DEVICE, HOST, STEP_PARTS
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace, lookup
from tfcompare.xspace.space import PS_PER_US


def steps_frame(steps: Steps, times: Int64, idle_ps: Int64) -> pa.Table:
    """Columns of `schema.STEPS` for one host; no rows if nothing marks steps. `times` is the result of
    `step_parts.explain`, `idle_ps` that of `step_parts.idle_times`."""
    if not steps.has_markers:
        return empty("steps")
    parts = {**step_parts(times, steps, idle_ps), **compute_precisions(times)}
    is_known = ~steps.is_lost
    columns = {
        "step": steps.number,
        "marker": steps.marker or [""] * len(steps.number),
        "start_us": steps.start_ps / PS_PER_US,
        "duration_us": np.where(is_known, (steps.end_ps - steps.start_ps) / PS_PER_US, np.nan),
        "included": steps.included,
        "stray": np.zeros(len(steps.number), np.bool_),  # decided for a run as a whole (`strays.with_stray`)
        "host_start_us": steps.host.first_start_ps / PS_PER_US,
        "host_span_us": steps.host.length_ps / PS_PER_US,
        "device_span_us": np.where(is_known, steps.device.length_ps / PS_PER_US, np.nan),
        **{part: np.where(is_known, ps / PS_PER_US, np.nan) for part, ps in parts.items()},
    }
    return host_table("steps", columns)


def device_steps(space: XSpace, steps: Steps, times: Int64, idle_ps: Int64, activities: Activities) -> pa.Table:
    """Columns `device`, `step`, `schema.STEP_PARTS` and `sparse_core_busy_us`: each step of the host on each of its
    devices with events.

    A device's parts are those that the step would have if the host's other devices did nothing; they add up to the
    step. A host with at most one device has the parts of its steps; without a device, it is the device `/host:CPU`.
    No rows if nothing marks steps, nor for steps that were not recorded as a whole. `times` is the result of
    `step_parts.explain` for all devices together, `idle_ps` that of `idle_times`, `activities` that of
    `find_activities`.
    """
    if not steps.has_markers:
        return empty("device_steps")
    names = [plane.name for plane in device_planes(space) if plane.event_count]
    devices = list(dict.fromkeys(names)) or [HOST_PLANE]  # a damaged profile may have several planes of one name
    times_of_devices = [times]
    if len(devices) > 1:
        number = {name: i for i, name in enumerate(devices)}
        device_of_plane = np.array([number.get(plane.name, -1) for plane in space.planes])
        device = device_of_plane[space.planes_of(activities.rows)]
        times_of_devices = []
        for i in range(len(devices)):
            own = np.flatnonzero((device == i) | (activities.activity == Activity.LAUNCH_CALL))
            of_one = replace(activities, rows=activities.rows.take(own), activity=activities.activity.take(own))
            times_of_devices.append(explain(space, steps, of_one, NO_SEGMENTS)[0])
    parts, known = [step_parts(each, steps, idle_ps) for each in times_of_devices], ~steps.is_lost
    cores, busy_us = sparse_cores(space), np.full((len(devices), len(known)), np.nan)
    for name, of_device in zip(devices, busy_us, strict=True):
        on_lines = [i for core in cores.get(name, []) for i in core.lines if space.lines.name[i] in OP_LINES]
        rows = events_of_lines(space, on_lines)
        if len(rows):
            start = space.events.start_ps[rows]
            busy = NO_SPANS.union(start, start + space.events.duration_ps[rows])
            of_device[:] = busy.covered_between(steps.start_ps, steps.end_ps) / PS_PER_US
    columns = {
        "device": [name for name in devices for _ in range(int(known.sum()))],
        "step": np.tile(steps.number[known], len(devices)),
        **{part: np.concatenate([found[part][known] for found in parts]) / PS_PER_US for part in STEP_PARTS},
        "sparse_core_busy_us": busy_us[:, known].reshape(-1),
    }
    return host_table("device_steps", columns)


class WallTimes(NamedTuple):
    """How the time of each step is explained.

    `activities` is the time that each `Activity` (columns) explains of each step (rows), in picoseconds. `wall` is the
    table `op_wall`: part, step (its number), step_part (a position in `schema.STEP_PARTS`), stage (the part of the
    tf.data iterator that the op worked for, −1 for none) and wall_time_ps, the op's share of that part of the step;
    part and stage are rows of `op_parts`. `totals` is `op_wall_totals`: part, and wall_time_ps in all steps together.
    `annotations` is `annotation_wall`: the same for the rows of `host_annotations`, of the time in which no op runs;
    their time between the steps has step and part −1.
    """

    activities: Int64
    wall: pa.Table
    totals: pa.Table
    annotations: pa.Table


def op_wall_times(
    space: XSpace,
    steps: Steps,
    ops: Sequence[OpEvents],
    parts: OpParts,
    functions: TfDataFunctions,
    activities: Activities,
    annotations: HostAnnotations,
) -> WallTimes:
    """The wall times of `ops`, and of what encloses them; none if nothing marks steps, nor in steps that were not
    recorded as a whole; `parts` are the parts of `ops`, `activities` the result of `find_activities`."""
    if not steps.has_markers:
        times = np.zeros((len(steps.number), len(Activity)), np.int64)
        return WallTimes(times, empty("op_wall"), empty("op_wall_totals"), empty("annotation_wall"))
    found = op_segments(space, steps, ops, activities.of_event(space), functions)
    segments = concat([*found, annotations.segments(steps, activities, len(parts.row))])
    del found
    times, shares = explain(space, steps, activities, segments)
    op, step, stage, rank = segments.op, segments.step, segments.stage, segments.rank
    step_part = part_of_activity(segments.activity)
    del segments  # their times take most of the memory
    kinds = combinations(stage, op, step_part)[1]  # few, so that each has a cell for every step
    first, cell = combinations(kinds, step)
    wall_ps = np.bincount(cell, shares, len(first))
    counts = (wall_ps > 0) & ~steps.is_lost[step[first]]
    is_around = counts & (rank[first] == AROUND)
    between = annotations.between_steps(steps)
    outside = {
        "annotation": op[first[is_around]] - len(parts.row),
        "step": steps.number[step[first[is_around]]],
        "step_part": step_part[first[is_around]],
        "wall_time_ps": wall_ps[is_around],
    }
    outside = {name: np.concatenate([values, between[name]]) for name, values in outside.items()}
    counts &= ~is_around
    first, wall_ps = first[counts], wall_ps[counts]
    part, row = parts.row[op[first]], np.append(parts.row, -1)
    used, code = distinct(part.astype(np.int64), len(parts.parts))
    wall = {
        "part": part,
        "step": steps.number[step[first]],
        "step_part": step_part[first],
        "stage": row[stage[first]],
        "wall_time_ps": wall_ps,
    }
    totals = {"part": used.astype(np.int32), "wall_time_ps": np.bincount(code, wall_ps, len(used))}
    tables = (host_table("op_wall", wall), host_table("op_wall_totals", totals), host_table("annotation_wall", outside))
    return WallTimes(times, *tables)


def idle_gaps(space: XSpace, steps: Steps, ops: Sequence[OpEvents]) -> pa.Table:
    """Columns of `schema.IDLE_GAPS` for one host: of all its devices together if any of them ran an op, else of its
    threads.

    No rows if nothing marks steps, and for those that were not recorded as a whole.
    """
    if not steps.has_markers or not len(steps.number):
        return empty("idle_gaps")
    side = DEVICE if any(plane.host_or_device == DEVICE for plane in ops) else HOST
    planes = [plane for plane in ops if plane.host_or_device == side]
    since, length, before, after = _longest_gaps(space, steps, planes)
    names = pa.concat_arrays([*(plane.parts["op_name"] for plane in planes), pa.array([""])]).dictionary_encode()
    code, labels = names.indices.to_numpy(), names.dictionary
    known = np.flatnonzero(~steps.is_lost)
    since, length, before, after = (found.take(known) for found in (since, length, before, after))
    columns = {
        "step": steps.number[known],
        "host_or_device": [side] * len(known),
        "start_us": (steps.start_ps[known] + since) / PS_PER_US,
        "duration_us": length / PS_PER_US,
        "op_before": texts(code[before], labels),  # −1, no op, is the last: ""
        "op_after": texts(code[after], labels),
    }
    return host_table("idle_gaps", columns)


def _longest_gaps(space: XSpace, steps: Steps, planes: Sequence[OpEvents]) -> tuple[Int64, Int64, Int64, Int64]:
    """The longest gap of each step: (start since the step's start, length, op before, op after)."""
    by_step = [lookup.grouped(plane.step, len(steps.number)) for plane in planes]
    count = np.zeros(len(steps.number) + 1, np.int64) + sum(first for first, _ in by_step)
    found = []
    for begin, end in some_at_a_time(count):
        events = [order[first[begin] : first[end]] for first, order in by_step]
        every = np.arange(begin, end)
        found.append(_longest_gap_of_each(every, *_events_of_steps(space, steps, every, planes, events), steps))
    since, length, before, after = (np.concatenate(several) for several in zip(*found, strict=True))
    return since, length, before, after


def _events_of_steps(
    space: XSpace, steps: Steps, every: Int64, planes: Sequence[OpEvents], chosen: Sequence[Int32]
) -> tuple[Int64, Int64, Int64, Int64]:
    """(step, start, end, op) of the events of each plane that are `chosen`, clipped to their step.

    Step and op are positions, the latter over the ops of all planes; times count from the start of the step. The end of
    each of the steps `every` is included as an op of position −1.
    """
    events, first = space.events, 0
    length = steps.end_ps - steps.start_ps
    found = [(every, length[every], length[every], np.full(len(every), -1))]
    for plane, of_plane in zip(planes, chosen, strict=True):
        row, step = plane.rows.take(of_plane), plane.step.take(of_plane).astype(np.int64)
        start = events.start_ps.take(row) - steps.start_ps.take(step)
        end = np.minimum(start + events.duration_ps.take(row), length.take(step))
        np.maximum(start, 0, out=start)
        inside = np.flatnonzero(end > start)
        op = first + plane.part.take(of_plane.take(inside)).astype(np.int64)
        found.append((step.take(inside), start.take(inside), end.take(inside), op))
        first += len(plane.parts)
    step, start, end, op = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return step, start, end, op


def _longest_gap_of_each(
    every: Int64, step: Int64, start: Int64, end: Int64, op: Int64, steps: Steps
) -> tuple[Int64, Int64, Int64, Int64]:
    """As `_longest_gaps`, of the steps `every` with these events, which are placed on one timeline without overlap, so
    that a running maximum gives the end of all ops so far."""
    origin = steps.origin_ps.take(step)
    order = np.argsort(origin + start, kind="stable")
    step, begins, ends = step.take(order), (origin + start).take(order), (origin + end).take(order)
    reach = np.maximum.accumulate(ends)
    until = np.append(0, reach[:-1])
    origin = origin.take(order)
    gap = begins - np.maximum(until, origin)
    longest = np.maximum.reduceat(gap, np.searchsorted(step, every))
    at = np.flatnonzero(gap == longest.take(step - every[0]))
    at = at[np.searchsorted(step[at], every)]
    lasting = np.flatnonzero(ends == reach)
    last = lasting[np.searchsorted(lasting, at) - 1]  # of the ops before the gap, the one that ends last
    before = np.where(until[at] <= origin[at], -1, op[order[last]])
    return np.maximum(until, origin)[at] - origin[at], gap[at], before, op[order[at]]


_COLLECTIVE_TYPE = f"^{COLLECTIVE_OP.pattern}"
_COLLECTIVE_NAME = (
    r"(?i)^(nccl|rccl|nvshmem|all-reduce|all-gather|all-to-all|ragged-all-to-all|reduce-scatter|collective-)"
)
"""Of libraries that reach other hosts, and of instructions: other kernels exchange data within a host."""


def are_collectives(names: pa.Array, *, op_types: bool = False) -> Bools:
    """Which of these names of events, or types of ops, are those of collectives."""
    pattern = _COLLECTIVE_TYPE if op_types else _COLLECTIVE_NAME
    found: Bools = pc.match_substring_regex(names, pattern).to_numpy(zero_copy_only=False)
    return found


def collectives(space: XSpace, steps: Steps, ops: Sequence[OpEvents]) -> pa.Table:
    """Columns `step`, `name` (of the op, or else of the event), `start_ps` and `duration_ps`, one row for each step
    with a collective; of several that start together, as `timeline_spans` sorts them.

    No rows if nothing marks steps.
    """
    names = space.shown_names
    is_one = are_collectives(pa.array(names, pa.string()))
    types = [are_collectives(plane.parts["op_type"], op_types=True) for plane in ops]
    if not steps.has_markers or not (is_one.any() or any(each.any() for each in types)):
        return empty("collectives")
    events = space.events
    chosen = is_one[events.metadata]
    for plane, of_type in zip(ops, types, strict=True):
        chosen[plane.rows[of_type[plane.part]]] = True
    lines = [i for plane in (host_plane(space), *device_planes(space)) if plane is not None for i in plane.lines]
    place = np.full(len(space.lines.name), -1, np.int64)
    place[lines] = np.arange(len(lines))
    rows = np.flatnonzero(chosen)
    rows = rows[(steps.of_event[rows] >= 0) & (place[events.line[rows]] >= 0) & (events.occurrences[rows] <= 0)]
    start, duration, name = events.start_ps[rows], events.duration_ps[rows], names[events.metadata[rows]]
    for plane in ops:
        own = np.flatnonzero(np.isin(plane.rows, rows))
        at, op = np.searchsorted(rows, plane.rows[own]), plane.parts["op_name"].to_numpy(zero_copy_only=False)
        op = op[plane.part[own]]
        name[at] = np.where(op != "", op, name[at])
        if plane.host_or_device == DEVICE:
            start[at], duration[at] = plane.start_ps[own], plane.total_ps[own]
    order = np.lexsort((-duration, place[events.line[rows]], start))
    of_step, first = np.unique(steps.of_event[rows][order], return_index=True)
    at = order[first]
    columns = {"step": steps.number[of_step], "name": name[at], "start_ps": start[at], "duration_ps": duration[at]}
    return host_table("collectives", columns)
