"""Ops that ran on GPU streams: kernels, copies and memory sets, attributed to the op that launched them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.frames.nesting import order_by_start
from tfcompare.frames.ops.launches import launches, stream_events
from tfcompare.frames.ops.op_counts import executions_on_streams
from tfcompare.frames.ops.op_names import UNKNOWN, Op
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.xspace import Plane, XSpace

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def gpu_ops(space: XSpace, planes: list[Plane], step: Int32, is_eager: Bools) -> list[OpEvents]:
    """The ops of each GPU, one element per plane with events."""
    used = [plane for plane in planes if plane.event_count]
    if not used:
        return []
    part_of_event, parts = _parts(space, used)
    return [_ops_on_plane(space, plane, part_of_event, parts, step, is_eager) for plane in used]


def _ops_on_plane(
    space: XSpace, plane: Plane, part: Int64, parts: pd.DataFrame, step: Int32, is_eager: Bools
) -> OpEvents:
    every = stream_events(space, plane)
    rows = every[part[every] >= 0]
    events = space.events
    order_by_start(events.line, events.start_ps, events.duration_ps, rows)
    duration = events.duration_ps[rows]
    span = 0
    if len(every):
        span = int((events.start_ps[every] + events.duration_ps[every]).max() - events.start_ps[every].min())
    busy = int(duration.sum())
    is_instruction = parts["program"] != ""
    instruction, program = (
        pd.factorize(parts[name].where(is_instruction))[0][part[rows]] for name in ("part", "program")
    )
    runs_once = parts["runs_once"].to_numpy(np.bool_)[part[rows]]
    executions = executions_on_streams(instruction, program, runs_once, events.metadata[rows], events.line[rows])
    return OpEvents(
        device=plane.name,
        host_or_device=schema.DEVICE,
        rows=rows,
        parts=parts,
        part=part[rows],
        step=step[rows],
        start_ps=events.start_ps[rows],
        occurrences=np.ones(len(rows), np.int64),
        executions=np.where(instruction < 0, 1, executions),
        total_ps=duration,
        self_ps=duration,
        is_eager=is_eager[rows],
        idle_ps=max(busy, span) - busy,
    )


def _parts(space: XSpace, planes: list[Plane]) -> tuple[Int64, pd.DataFrame]:
    """(part of each event, −1 for none; the parts). Instructions of programs that the file does not contain have no
    part."""
    rows = np.concatenate([stream_events(space, plane) for plane in planes])
    launch, launched = launches(space, rows)
    out = np.full(len(space.events), -1, np.int64)
    out[rows] = np.array([i if it.in_file else -1 for i, it in enumerate(launched)], np.int64)[launch]
    ops = [it.op or Op(it.own_name, UNKNOWN) for it in launched]
    parts = pd.DataFrame(
        {
            "op_type": [op.type for op in ops],
            "op_name": [op.name for op in ops],
            "part": [it.part for it in launched],
            "program": [it.program for it in launched],
        },
        dtype="str",
    ).assign(runs_once=[it.runs_once for it in launched])
    return out, parts
