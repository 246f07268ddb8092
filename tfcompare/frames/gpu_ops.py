"""Ops that ran on GPU streams: kernels, copies and memory sets, by the op that launched them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.frames.op_names import UNKNOWN, Op, parse_op
from tfcompare.frames.op_parts import OpEvents
from tfcompare.frames.planes import METADATA_PLANE, events_of_lines, recorded_lines
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.hlo import Instruction, instructions
from tfcompare.xspace.space import StringStat

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_HLO_PROTO = ("Hlo Proto", "hlo_proto")
_ANNOTATIONS = ("level 0", "annotation")


def gpu_ops(space: XSpace, planes: list[Plane], step: Int64, is_eager: Bools) -> list[OpEvents]:
    """The ops of each GPU, one element a plane with events."""
    programs = _Programs(space)
    part_of_event, parts = _parts(space, planes, programs)
    return [_on_plane(space, plane, part_of_event, parts, step, is_eager) for plane in planes if plane.event_count]


def _on_plane(space: XSpace, plane: Plane, part: Int64, parts: pd.DataFrame, step: Int64, is_eager: Bools) -> OpEvents:
    every = _stream_events(space, plane)
    rows = every[part[every] >= 0]
    events = space.events
    duration = events.duration_ps[rows]
    span = 0
    if len(every):
        span = int((events.start_ps[every] + events.duration_ps[every]).max() - events.start_ps[every].min())
    busy = int(duration.sum())
    return OpEvents(
        device=plane.name,
        host_or_device=schema.DEVICE,
        parts=parts,
        part=part[rows],
        step=step[rows],
        occurrences=np.ones(len(rows), np.int64),
        total_ps=duration,
        self_ps=duration,
        is_eager=is_eager[rows],
        idle_ps=max(busy, span) - busy,
    )


def _stream_events(space: XSpace, plane: Plane) -> Int64:
    recorded = recorded_lines(space)
    return events_of_lines(space, [i for i in plane.lines if recorded[i]])


class _Programs:
    """The HLO instructions of the XLA programs in the file, read when first asked for."""

    def __init__(self, space: XSpace) -> None:
        metadata = {p.index for p in space.planes if p.name == METADATA_PLANE}
        self._protos = {
            int(space.metadata_ids[row]): proto
            for name in _HLO_PROTO
            for row, proto in space.metadata_bytes(name).items()
            if int(space.metadata_plane[row]) in metadata
        }
        self._read: dict[int, dict[str, Instruction]] = {}

    def instruction(self, program: int, name: str) -> Instruction | None:
        if program not in self._read:
            proto = self._protos.get(program)
            self._read[program] = instructions(proto) if proto is not None else {}
        return self._read[program].get(name)


def _parts(space: XSpace, planes: list[Plane], programs: _Programs) -> tuple[Int64, pd.DataFrame]:
    """(part of each event, −1 for none; the parts): decided once for each distinct combination of what names an op."""
    size = len(space.events)
    stats = {name: space.strings(name) for name in ("hlo_op", "tf_op", *_ANNOTATIONS)}
    columns = [stats[name].spread(size) for name in stats]
    program = space.number_of_each("program_id", 0)
    rows = np.concatenate([_stream_events(space, p) for p in planes]) if planes else np.zeros(0, np.int64)
    keys = np.stack([c[rows] for c in (*columns, program, space.events.metadata.astype(np.int64))], axis=1)
    distinct, code = np.unique(keys, axis=0, return_inverse=True) if len(rows) else (keys, np.zeros(0, np.int64))
    named = [_name(space, programs, stats, key) for key in distinct.tolist()]
    out = np.full(size, -1, np.int64)
    out[rows] = np.array([i if part is not None else -1 for i, part in enumerate(named)], np.int64)[code.reshape(-1)]
    op = [part if part is not None else (Op("", ""), "") for part in named]
    parts = pd.DataFrame(
        {"op_type": [o.type for o, _ in op], "op_name": [o.name for o, _ in op], "part": [p for _, p in op]},
        dtype="str",
    )
    return out, parts


def _name(space: XSpace, programs: _Programs, stats: dict[str, StringStat], key: list[int]) -> tuple[Op, str] | None:
    """(op, part) by `hlo_op` and the program it is part of, else by `tf_op`, else by what annotates the launch."""
    *codes, program, metadata = key
    text = {
        name: stat.labels[code] if code >= 0 else "" for (name, stat), code in zip(stats.items(), codes, strict=True)
    }
    kernel = str(space.metadata_names[metadata])
    if text["hlo_op"]:
        instruction = programs.instruction(program, text["hlo_op"].rpartition("::")[2])
        if instruction is None:
            return None
        op = parse_op(instruction.tf_op) if instruction.tf_op else None
        return op or Op(instruction.name, UNKNOWN), f"{program}/{instruction.name}"
    if text["tf_op"]:
        op = parse_op(text["tf_op"]) or Op(text["tf_op"], UNKNOWN)
        return op, f"{op.name}/{kernel}"
    for name in _ANNOTATIONS:
        op = parse_op(_without_details(text[name])) if text[name] else None
        if op is not None:
            return op, f"{op.name}/{kernel}"
    return Op(kernel, UNKNOWN), kernel


def _without_details(annotation: str) -> str:
    """The outermost name of `name:type#shape=(…)#::#edge_name=…#`, without what follows it."""
    return annotation.partition("::")[0].partition("#")[0]
