"""Ops that ran on TPU cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfcompare import schema
from tfcompare.frames.combinations import distinct
from tfcompare.frames.nesting import order_by_start, self_times
from tfcompare.frames.ops.op_names import UNKNOWN, Op, parse_op
from tfcompare.frames.ops.op_parts import PART_TEXTS, OpEvents
from tfcompare.frames.planes import events_of_lines
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.space import LONGEST_PS, MOST_PS

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

OP_LINES = ("XLA Ops", "Framework Ops", "Sparse Core Ops")
_STEPS_LINE = "Steps"


def tpu_ops(space: XSpace, planes: list[Plane], step: Int32, is_eager: Bools) -> list[OpEvents]:
    """The ops of each TPU core, one element per plane with events."""
    start, duration = _device_times(space)
    part_of_metadata, parts = _parts(space)
    out = []
    for plane in planes:
        if not plane.event_count:
            continue
        every = _on_lines(space, plane, OP_LINES)
        rows = every.take(np.flatnonzero(part_of_metadata.take(space.events.metadata.take(every)) >= 0))
        out.append(_ops_on_plane(space, plane, rows, start, duration, part_of_metadata, parts, step, is_eager))
    return out


def _ops_on_plane(
    space: XSpace, plane: Plane, rows: Int32, start: Int64, duration: Int64, part_of_metadata: Int64,
    parts: pa.RecordBatch, step: Int32, is_eager: Bools
) -> OpEvents:  # fmt: skip
    events = space.events
    order_by_start(events.line, start, duration, rows)
    self_ps = self_times(events.line, start, duration, rows)
    spanned = np.concatenate([rows, _on_lines(space, plane, (_STEPS_LINE,))])
    span = int((start[spanned] + duration[spanned]).max() - start[spanned].min()) if len(spanned) else 0
    busy = int(self_ps.sum())
    used, part = distinct(part_of_metadata.take(events.metadata.take(rows)), len(parts))
    occurrences = np.maximum(1, events.occurrences.take(rows))
    return OpEvents(
        device=plane.name,
        host_or_device=schema.DEVICE,
        rows=rows,
        parts=parts.take(used),
        part=part,
        step=step.take(rows),
        start_ps=start.take(rows),
        occurrences=occurrences,
        executions=occurrences,
        total_ps=duration.take(rows),
        self_ps=self_ps,
        is_eager=is_eager.take(rows),
        idle_ps=max(busy, span) - busy,
    )


def _on_lines(space: XSpace, plane: Plane, names: tuple[str, ...]) -> Int32:
    return events_of_lines(space, [i for i in plane.lines if space.lines.name[i] in names])


def _device_times(space: XSpace) -> tuple[Int64, Int64]:
    """(start, duration) of every event, by the device's own clock if recorded and plausible."""
    offsets, durations = space.numbers("device_offset_ps"), space.numbers("device_duration_ps")
    start, duration = space.events.start_ps.copy(), space.events.duration_ps.copy()
    known = np.zeros((2, len(start)), np.bool_)
    own_start, own_duration = start.copy(), duration.copy()
    own_start[offsets[0]], known[0, offsets[0]] = offsets[1], True
    own_duration[durations[0]], known[1, durations[0]] = durations[1], True
    both = known.all(axis=0) & _is_plausible(own_start, -LONGEST_PS) & _is_plausible(own_duration, 0)
    if own_duration[both].sum(dtype=np.float64) > MOST_PS:
        return start, duration
    start[both], duration[both] = own_start[both], own_duration[both]
    return start, duration


def _is_plausible(times: Int64, least: int) -> Bools:
    return (times >= least) & (times <= LONGEST_PS)


def _parts(space: XSpace) -> tuple[Int64, pa.RecordBatch]:
    """(part of each metadata entry, −1 without program or symbol; the parts)."""
    size = len(space.metadata_names)
    programs, symbols = space.metadata_numbers("program_id"), space.metadata_numbers("symbol_id")
    program, symbol = np.zeros(size, np.int64), np.zeros(size, np.int64)
    known = np.zeros((2, size), np.bool_)
    program[programs[0]], known[0, programs[0]] = programs[1], True
    symbol[symbols[0]], known[1, symbols[0]] = symbols[1], symbols[1] != 0
    tf_op = space.metadata_strings("tf_op")
    code = tf_op.spread(size)
    codes: dict[tuple[str, str, str, str], int] = {}
    out = np.full(size, -1, np.int64)
    for row in np.flatnonzero(known.all(axis=0)).tolist():
        name = str(space.metadata_display_names[row] or space.metadata_names[row])
        full_name = tf_op.labels[code[row]] if code[row] >= 0 else ""
        op = (parse_op(full_name) if full_name else None) or Op(name, UNKNOWN)
        key = (op.type, op.name, f"{program[row]}/{symbol[row]}", str(program[row]))
        out[row] = codes.setdefault(key, len(codes))
    texts = zip(*codes, strict=True) if codes else [()] * len(PART_TEXTS)
    return out, pa.record_batch([pa.array(column, pa.string()) for column in texts], PART_TEXTS)
