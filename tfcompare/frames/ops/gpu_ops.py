"""Ops that ran on GPU streams: kernels, copies and memory sets, attributed to the op that launched them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames.grouping import distinct
from tfcompare.frames.nesting import order_by_start
from tfcompare.frames.ops.launches import Launch, launches
from tfcompare.frames.ops.op_names import UNKNOWN, Op
from tfcompare.frames.ops.op_parts import PART_TEXTS, OpEvents, executions_on_streams
from tfcompare.frames.planes import events_of_lines, recorded_lines
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import Plane, XSpace


def gpu_ops(space: XSpace, planes: list[Plane], step: Int32, is_eager: Bools) -> list[OpEvents]:
    """The ops of each GPU, one element per plane with events.

    Instructions of programs that the file does not contain are left out.
    """
    used, recorded = [plane for plane in planes if plane.event_count], recorded_lines(space)
    if not used:
        return []
    rows = [events_of_lines(space, [i for i in plane.lines if recorded[i]]) for plane in used]
    every = np.concatenate(rows)
    launch, launched = launches(space, every)
    launch_of_event = np.full(len(space.events), -1, np.int64)
    launch_of_event[every] = np.array([i if it.in_file else -1 for i, it in enumerate(launched)], np.int64)[launch]
    return [
        _ops_on_plane(space, plane, of_plane, launch_of_event, launched, step, is_eager)
        for plane, of_plane in zip(used, rows, strict=True)
    ]


def _ops_on_plane(
    space: XSpace, plane: Plane, every: Int32, launch: Int64, launched: list[Launch], step: Int32, is_eager: Bools
) -> OpEvents:
    rows = every[launch[every] >= 0]
    events = space.events
    order_by_start(events.line, events.start_ps, events.duration_ps, rows)
    duration = events.duration_ps[rows]
    span = 0
    if len(every):
        span = int((events.start_ps[every] + events.duration_ps[every]).max() - events.start_ps[every].min())
    busy = int(duration.sum())
    used, part = distinct(launch[rows], len(launched))
    own = [launched[i] for i in used.tolist()]
    parts = _parts(own)
    instruction, program = (_codes(parts[name], parts["program"])[part] for name in ("part", "program"))
    runs_once = np.array([it.runs_once for it in own], np.bool_)[part]
    executions = executions_on_streams(instruction, program, runs_once, events.metadata[rows], events.line[rows])
    return OpEvents(
        device=plane.name,
        host_or_device=schema.DEVICE,
        rows=rows,
        parts=parts,
        part=part,
        step=step[rows],
        start_ps=events.start_ps[rows],
        occurrences=np.ones(len(rows), np.int64),
        executions=np.where(instruction < 0, 1, executions),
        total_ps=duration,
        self_ps=duration,
        is_eager=is_eager[rows],
        idle_ps=max(busy, span) - busy,
    )


def _parts(launched: list[Launch]) -> pa.RecordBatch:
    ops = [it.op or Op(it.own_name, UNKNOWN) for it in launched]
    texts = [
        [op.type for op in ops], [op.name for op in ops], [it.part for it in launched], [it.program for it in launched]
    ]  # fmt: skip
    return pa.record_batch([pa.array(column, pa.string()) for column in texts], PART_TEXTS)


def _codes(names: pa.StringArray, programs: pa.StringArray) -> Int64:
    """A number from 0 up for each distinct name, −1 for those without a program."""
    codes = names.dictionary_encode().indices.to_numpy()
    return np.where(pc.not_equal(programs, "").to_numpy(zero_copy_only=False), codes, -1).astype(np.int64)
