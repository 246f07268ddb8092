"""The timeline of one host: its lanes (threads, streams and other lines of its devices), and all events on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import host_table, texts
from tfcompare.frames.edges import launches
from tfcompare.frames.nesting import order_by_start
from tfcompare.frames.ops.op_parts import NO_STEP, OpEvents
from tfcompare.frames.planes import events_of_lines, recorded_lines, shown_lines
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema import HOST
from tfcompare.schema.arrays import Int32
from tfcompare.xspace import XSpace

NONE = -1


def timeline(space: XSpace, steps: Steps, ops: Sequence[OpEvents]) -> dict[str, pa.Table]:
    """The tables `timeline_lanes` and `timeline_spans`.

    `timeline_lanes` has one row for each line of the host, its devices and parts of TPU chips that has events: `plane`,
    `line` (their names), `line_id` (a decimal number), and `is_recorded`; the profiler derived other lines from
    recorded ones.

    `timeline_spans` has one row for each event, sorted by lane and start, longer ones first: `lane` (a row of
    `timeline_lanes`), `start_ps` since the start of the profile, `duration_ps`, `name`, `op_type` and `op_name` (empty
    for events that are no ops), `step` (its number, `NO_STEP` outside all steps), and `launch`: the row of the span on
    the host that launched it, `NONE` if unknown. Aggregated events have no start and are left out. Ops on TPUs have the
    times of the device's own clock, as in `op_stats`; it can differ from the host's, so they may start before their
    launch.
    """
    lines = shown_lines(space)
    recorded = recorded_lines(space)
    start, duration = space.events.start_ps.copy(), space.events.duration_ps.copy()
    for plane in ops:
        if plane.host_or_device != HOST:
            start[plane.rows], duration[plane.rows] = plane.start_ps, plane.total_ps
    rows = events_of_lines(space, lines) if lines else np.zeros(0, np.int32)
    rows = rows[space.events.occurrences.take(rows) <= 0]
    lane_of_line = np.full(len(space.lines.name), NONE, np.int32)
    lane_of_line[lines] = np.arange(len(lines))
    order_by_start(space.events.line, start, duration, rows)
    names = pa.array(space.shown_names, pa.string()).dictionary_encode()
    numbers = steps.number if steps.has_markers else np.full(len(steps.number), NO_STEP)
    lanes = {
        "plane": [space.planes[int(space.lines.plane[i])].name for i in lines],
        "line": [space.lines.name[i] for i in lines],
        "line_id": [str(space.lines.id[i]) for i in lines],
        "is_recorded": recorded[lines],
    }
    spans = {
        "lane": lane_of_line.take(space.events.line.take(rows)),
        "start_ps": start.take(rows),
        "duration_ps": duration.take(rows),
        "name": texts(names.indices.to_numpy().take(space.events.metadata.take(rows)), names.dictionary),
        **_ops_of(rows, ops, len(space.events)),
        "step": np.append(numbers, NO_STEP).take(steps.of_event.take(rows)),
        "launch": _launches(space, rows),
    }
    return {name: host_table(name, each) for name, each in (("timeline_lanes", lanes), ("timeline_spans", spans))}


def _ops_of(rows: Int32, ops: Sequence[OpEvents], events: int) -> dict[str, pa.DictionaryArray]:
    """The type and name of the op that each event belongs to, empty for none."""
    op = np.full(events, NONE, np.int32)
    first = 0
    for plane in ops:
        op[plane.rows] = first + plane.part
        first += len(plane.parts)
    op = op.take(rows)
    found = {}
    for column in ("op_type", "op_name"):
        names = pa.concat_arrays([*(plane.parts[column] for plane in ops), pa.array([""])]).dictionary_encode()
        found[column] = texts(names.indices.to_numpy().take(op), names.dictionary)
    return found


def _launches(space: XSpace, rows: Int32) -> Int32:
    """For each of `rows`, the position among them of the event that launched it."""
    sources, targets = launches(space)
    position = np.full(len(space.events) + 1, NONE, np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    launch = np.full(len(space.events), NONE, np.int32)
    launch[targets] = sources
    return position.take(launch.take(rows))
