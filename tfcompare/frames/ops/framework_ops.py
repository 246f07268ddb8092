"""Ops of the framework on the host's threads and on GPUs, with their shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import distinct
from tfcompare.frames.hlo.host_instructions import host_instructions
from tfcompare.frames.memory_events import CUT, MemoryEvents
from tfcompare.frames.nesting import idle_by_line, order_by_start, self_times
from tfcompare.frames.ops.launches import launched_on_devices, launches
from tfcompare.frames.ops.op_names import DATASET, EAGER_EXECUTION, Op, eager_op, named_ops
from tfcompare.frames.ops.op_parts import PART_TEXTS, OpEvents, executions_on_streams
from tfcompare.frames.planes import events_of_lines, host_plane, recorded_lines, recorded_on
from tfcompare.schema.arrays import Bools, Int32
from tfcompare.xspace import Plane, XSpace

_OPERANDS = "shape"
"""Of ops: their operands. TensorFlow records them at the level of its verbose events only."""


def host_ops(space: XSpace, step: Int32, is_eager: Bools) -> OpEvents | None:
    """The ops of the host plane: events named as ops, eagerly executed single ops, input pipeline stages, and without
    devices the instructions of XLA programs.

    None without a host plane.
    """
    host = host_plane(space)
    if host is None:
        return None
    part_of_metadata, ops = _ops_by_name(space)
    line, start, duration = space.events.line, space.events.start_ps, space.events.duration_ps
    part = part_of_metadata.take(space.events.metadata)
    _add_stages(space, part, ops)
    texts = [[op.type for op in ops], [op.name for op in ops], [""] * len(ops), [""] * len(ops)]
    instructions = host_instructions(space)
    if len(instructions):  # each by the framework's op that it came from
        launch, launched = launches(space, instructions)
        part[instructions] = len(ops) + launch
        of_launches = (launched.types, launched.names, launched.parts, launched.programs)
        texts = [known + more.tolist() for known, more in zip(texts, of_launches, strict=True)]
    is_execution = np.array([name.startswith(EAGER_EXECUTION) for name in space.metadata_names], np.bool_)
    is_op = recorded_on(space, host) & (part >= 0) & (is_eager | ~is_execution[space.events.metadata])
    rows = np.flatnonzero(is_op).astype(np.int32)
    order_by_start(line, start, duration, rows)
    self_ps = self_times(line, start, duration, rows)
    ones, part = np.broadcast_to(np.int64(1), len(rows)), part.take(rows)
    can_be_eager = np.array([kind != DATASET for kind in texts[0]], np.bool_)  # iterators run neither way
    idle_ps = idle_by_line(line, start, duration, rows, self_ps)
    return OpEvents(
        device=host.name,
        host_or_device=schema.HOST,
        rows=rows,
        parts=pa.record_batch([pa.array(column, pa.string()) for column in texts], PART_TEXTS),
        part=part,
        step=step.take(rows),
        start_ps=start.take(rows),
        occurrences=ones,
        executions=ones,
        total_ps=duration.take(rows),
        self_ps=self_ps,
        is_eager=is_eager.take(rows) & can_be_eager.take(part),
        idle_ps=idle_ps,
    )


def _ops_by_name(space: XSpace) -> tuple[Int32, list[Op]]:
    """(part of each metadata entry, −1 if it names no op or has no events; the op of each part). One part per op
    name; of several types under one name it has the first by alphabet, since the order in the file means nothing."""
    parts: dict[str, int] = {}
    ops: list[Op] = []
    out = np.full(len(space.metadata_names), -1, np.int32)
    named = named_ops(space)
    for row in np.flatnonzero(space.has_events).tolist():
        op = named[row] or eager_op(space.metadata_names[row])
        if op is None:
            continue
        if op.name not in parts:
            parts[op.name] = len(ops)
            ops.append(op)
        elif op.type and (not (known := ops[parts[op.name]].type) or op.type < known):
            ops[parts[op.name]] = op
        out[row] = parts[op.name]
    return out, ops


def _add_stages(space: XSpace, part: Int32, ops: list[Op]) -> None:
    """Add input pipeline stages that the program marks itself: named by the event, typed by category, one per id."""
    if "_ipl_stage_id" not in space.stat_names or "_ipl_stage_cat" not in space.stat_names:
        return
    categories = space.strings("_ipl_stage_cat")
    category = categories.spread()
    rows = np.flatnonzero((category >= 0) & space.has("_ipl_stage_id"))
    stages: dict[tuple[int, str], int] = {}
    for row, stage_id in zip(rows.tolist(), space.number_of("_ipl_stage_id", rows, -1).tolist(), strict=True):
        name = str(space.metadata_names[space.events.metadata[row]])
        key = (stage_id, name)
        if key not in stages:
            stages[key] = len(ops)
            ops.append(Op(name, categories.labels[category[row]]))
        part[row] = stages[key]


def with_shapes(parts: pa.Table, memory: MemoryEvents) -> pa.Table:
    """The table `op_parts` with its column `shapes`: the distinct shapes allocated by ops of the same name, sorted,
    empty if none, and if one is cut: it would seem equal to others, or unlike its own in another run."""
    shapes, names = _allocated_shapes(memory), parts["op_name"].combine_chunks()
    of_name = pa.array([shapes.get(name, "") for name in names.dictionary.to_pylist()], pa.string())
    at = parts.schema.get_field_index("shapes")
    return parts.set_column(at, parts.schema.field(at), of_name.take(names.indices).dictionary_encode())


def _allocated_shapes(memory: MemoryEvents) -> dict[str, str]:
    ops, shapes = memory.op_name, memory.shape
    allocated = memory.is_allocation & (ops.code >= 0) & (shapes.code >= 0)
    pairs = np.unique(ops.code[allocated] * len(shapes.labels) + shapes.code[allocated])
    found: dict[str, set[str]] = {}
    for op, shape in zip(*map(np.ndarray.tolist, np.divmod(pairs, max(1, len(shapes.labels)))), strict=True):
        if ops.labels[op] and shapes.labels[shape]:
            found.setdefault(ops.labels[op], set()).add(shapes.labels[shape])
    return {
        name: " ".join(sorted(texts)) for name, texts in found.items() if not any(text.endswith(CUT) for text in texts)
    }


def op_operands(space: XSpace, ops: Sequence[OpEvents]) -> pa.Table:
    """The table `op_operands`: the `operands` of ops on the host as TensorFlow writes them, such as
    `(half[4,384];int32[2])`, and how often each op ran with these: `occurrences`. Kernels repeat those of their op."""
    has_operands = space.has(_OPERANDS) if _OPERANDS in space.stat_names else None
    if has_operands is None or not ops or ops[0].host_or_device != schema.HOST or not has_operands[ops[0].rows].any():
        return empty("op_operands")  # most often allocations alone have a shape
    on_host, operands = ops[0], space.strings(_OPERANDS)
    code = operands.spread()[on_host.rows]
    known = code >= 0
    pairs, counts = np.unique(on_host.part[known] * np.int64(len(operands.labels)) + code[known], return_counts=True)
    part, code = np.divmod(pairs, max(1, len(operands.labels)))
    columns = {
        "op_name": on_host.parts["op_name"].take(pa.array(part)),
        "operands": pa.array(operands.labels, pa.string()).take(pa.array(code)),
        "occurrences": counts,
    }
    return host_table("op_operands", columns)


def gpu_ops(space: XSpace, planes: list[Plane], step: Int32, is_eager: Bools) -> list[OpEvents]:
    """The ops of each GPU, one element per plane with events.

    Instructions of programs that the file does not contain are left out.
    """
    recorded = recorded_lines(space)
    return [_ops_on_plane(space, plane, recorded, step, is_eager) for plane in planes if plane.event_count]


def _ops_on_plane(space: XSpace, plane: Plane, recorded: Bools, step: Int32, is_eager: Bools) -> OpEvents:
    events, (launch, launched) = space.events, launched_on_devices(space)
    every = events_of_lines(space, [i for i in plane.lines if recorded[i]])
    rows = every[launched.in_file.take(launch.take(every))]
    order_by_start(events.line, events.start_ps, events.duration_ps, rows)
    duration = events.duration_ps[rows]
    span = 0
    if len(every):
        span = int((events.start_ps[every] + events.duration_ps[every]).max() - events.start_ps[every].min())
    busy = int(duration.sum())
    used, part = distinct(launch[rows], len(launched.names))
    columns = (launched.types, launched.names, launched.parts, launched.programs)
    parts = pa.record_batch([pa.array(column[used], pa.string()) for column in columns], PART_TEXTS)
    instruction, program = (_codes(parts[name], parts["program"])[part] for name in ("part", "program"))
    runs_once = launched.runs_once[used][part]
    executions = executions_on_streams(instruction, program, runs_once, events.metadata[rows], events.line[rows])
    return OpEvents(
        device=plane.name,
        host_or_device=schema.DEVICE,
        rows=rows,
        parts=parts,
        part=part.astype(np.int32),
        step=step[rows],
        start_ps=events.start_ps[rows],
        occurrences=np.broadcast_to(np.int64(1), len(rows)),
        executions=np.where(instruction < 0, 1, executions),
        total_ps=duration,
        self_ps=duration,
        is_eager=is_eager[rows],
        idle_ps=max(busy, span) - busy,
    )


def _codes(names: pa.StringArray, programs: pa.StringArray) -> Int32:
    """A number from 0 up for each distinct name, −1 for those without a program."""
    codes = names.dictionary_encode().indices.to_numpy()
    return np.where(pc.not_equal(programs, "").to_numpy(zero_copy_only=False), codes, -1).astype(np.int32)
