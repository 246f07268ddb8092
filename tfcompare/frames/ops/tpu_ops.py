"""Ops that ran on TPU cores: on the TensorCore of each chip, which is the device, and on its SparseCores."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tfcompare import schema
from tfcompare.frames.grouping import distinct
from tfcompare.frames.nesting import order_by_start, self_times
from tfcompare.frames.ops.op_names import UNKNOWN, Op, parse_op
from tfcompare.frames.ops.op_parts import PART_TEXTS, OpEvents
from tfcompare.frames.planes import events_of_lines, sparse_cores
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.space import LONGEST_PS, MOST_PS

OP_LINES = ("XLA Ops", "Framework Ops", "Sparse Core Ops")
_STEPS_LINE = "Steps"


def tpu_ops(space: XSpace, planes: list[Plane], step: Int32, is_eager: Bools) -> list[OpEvents]:
    """The ops of each TPU core, one element per plane with events: those of `planes`, then those of SparseCores."""
    known = _Known(*_parts(space), step, is_eager)
    used = [_Core(plane.name, schema.DEVICE, plane) for plane in planes if plane.event_count]
    used += [_Core(chip, schema.SPARSE_CORE, core) for chip, cores in sparse_cores(space).items() for core in cores]
    names = space.lines.name
    rows, step_rows = (
        [events_of_lines(space, [i for i in core.plane.lines if names[i] in wanted]) for core in used]
        for wanted in (OP_LINES, (_STEPS_LINE,))
    )
    rows = [of.take(np.flatnonzero(known.part_of_metadata.take(space.events.metadata.take(of)) >= 0)) for of in rows]
    times = [_device_times(space, of_plane) for of_plane in rows]
    if sum(float(duration.sum(dtype=np.float64)) for _, duration in times) > MOST_PS:
        times = [(space.events.start_ps.take(of), space.events.duration_ps.take(of)) for of in rows]
    return [_ops_on_core(space, *of_core, known) for of_core in zip(used, rows, times, step_rows, strict=True)]


class _Core(NamedTuple):
    """`device` and `place` are `device` and `host_or_device` of `OpEvents`."""

    device: str
    place: str
    plane: Plane


class _Known(NamedTuple):
    """The op of each entry of the events' metadata, and the step of each event and whether it is eager."""

    part_of_metadata: Int64
    parts: pa.RecordBatch
    step: Int32
    is_eager: Bools


def _ops_on_core(
    space: XSpace, core: _Core, rows: Int32, times: tuple[Int64, Int64], step_rows: Int32, known: _Known
) -> OpEvents:
    events, (start, duration) = space.events, times
    line, order = events.line.take(rows), np.arange(len(rows), dtype=np.int32)
    order_by_start(line, start, duration, order)
    self_ps = self_times(line, start, duration, order)
    rows, start, duration = rows.take(order), start.take(order), duration.take(order)
    begins, lengths = _device_times(space, step_rows)
    ends = np.append(start + duration, begins + lengths)
    span = int(ends.max() - np.append(start, begins).min()) if len(ends) else 0
    busy = int(self_ps.sum())
    used, part = distinct(known.part_of_metadata.take(events.metadata.take(rows)), len(known.parts))
    stands_for = events.occurrences.take(rows)
    occurrences = np.maximum(1, stands_for) if stands_for.any() else np.broadcast_to(np.int64(1), len(rows))
    return OpEvents(
        device=core.device,
        host_or_device=core.place,
        rows=rows,
        parts=known.parts.take(used),
        part=part.astype(np.int32),
        step=known.step.take(rows),
        start_ps=start,
        occurrences=occurrences,
        executions=occurrences,
        total_ps=duration,
        self_ps=self_ps,
        is_eager=known.is_eager.take(rows),
        idle_ps=max(busy, span) - busy,
    )


def _device_times(space: XSpace, rows: Int32) -> tuple[Int64, Int64]:
    """(start, duration) of the events `rows`, by the device's own clock if recorded and plausible."""
    start, has_start = space.numbers_of("device_offset_ps", rows)
    duration, has_duration = space.numbers_of("device_duration_ps", rows)
    is_plausible = (start == start.clip(-LONGEST_PS, LONGEST_PS)) & (duration == duration.clip(0, LONGEST_PS))
    others = ~(has_start & has_duration & is_plausible)
    start[others] = space.events.start_ps.take(rows[others])
    duration[others] = space.events.duration_ps.take(rows[others])
    return start, duration


def _parts(space: XSpace) -> tuple[Int64, pa.RecordBatch]:
    """(part of each metadata entry, −1 without program or symbol; the parts)."""
    (programs, has_program), (symbols, _) = (space.metadata_numbers(name) for name in ("program_id", "symbol_id"))
    rows = np.flatnonzero(has_program & (symbols != 0))
    op_of = cache(parse_op)  # each core has its own entries for the same ops
    codes: dict[tuple[str, str, str, str], int] = {}
    found = programs[rows].tolist(), symbols[rows].tolist(), space.shown_names[rows].tolist()
    out = np.full(len(programs), -1, np.int64)
    tf_ops = space.metadata_strings("tf_op").texts(rows).tolist()
    for row, tf_op, program, symbol, name in zip(rows.tolist(), tf_ops, *found, strict=True):
        op = (op_of(tf_op) if tf_op else None) or Op(name, UNKNOWN)
        out[row] = codes.setdefault((op.type, op.name, f"{program}/{symbol}", str(program)), len(codes))
    texts = zip(*codes, strict=True) if codes else [()] * len(PART_TEXTS)
    return out, pa.record_batch([pa.array(column, pa.string()) for column in texts], PART_TEXTS)
